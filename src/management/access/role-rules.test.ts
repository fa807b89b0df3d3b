import assert from 'node:assert/strict'
import { describe, it } from 'node:test'

import fc from 'fast-check'

import type { PolicyRule } from '#apis/rbac/v1.ts'

import type { RoleSpec } from '../kinds/access.ts'
import { BUILT_IN_ROLES } from './built-in-roles.ts'
import { allows, covers, EVERYTHING, grantedRules, ownedRules, requireCovered, rulesInCluster } from './role-rules.ts'

const builtIn = (name: string): RoleSpec => {
  const role = BUILT_IN_ROLES[name]
  assert.ok(role !== undefined, name)
  return role
}
const inheriting = (inherits: string): Pick<RoleSpec, 'rules' | 'inherits'> => ({ rules: [], inherits })
const mayGive = (owner: string, role: string): boolean =>
  covers(ownedRules(builtIn(owner)), grantedRules(builtIn(role)))

describe('built-in roles', () => {
  const namesOf = (scope: RoleSpec['scope']): string[] =>
    Object.keys(BUILT_IN_ROLES).filter((name) => builtIn(name).scope === scope)

  it('of projects can be granted by an owner of the project', () => {
    for (const name of namesOf('project')) assert.ok(mayGive('project-owner', name), name)
  })

  it('of clusters and projects can be granted by an owner of the cluster', () => {
    for (const name of [...namesOf('cluster'), ...namesOf('project')]) assert.ok(mayGive('cluster-owner', name), name)
  })

  it('of the server can be granted by an administrator', () => {
    for (const name of namesOf('global')) assert.ok(mayGive('administrator', name), name)
  })

  const refused: readonly (readonly [owner: string, role: string])[] = [
    ['project-owner', 'cluster-owner'],
    ['project-member', 'project-owner'],
    ['project-read-only', 'project-member'],
    ['project-read-only', 'secrets-view'],
    ['project-members-manage', 'secrets-view'],
    ['members-manage', 'cluster-member'],
    ['members-manage', 'project-owner'],
    ['cluster-member', 'cluster-read-only'],
    ['cluster-read-only', 'cluster-member'],
    ['projects-create', 'project-owner'],
    ['users-manage', 'administrator'],
    ['users-manage', 'roles-manage'],
    ['roles-manage', 'users-manage'],
  ]
  for (const [owner, role] of refused)
    it(`${role} cannot be granted by a user with role ${owner}`, () => assert.equal(mayGive(owner, role), false))
})

describe('rules that a role grants', () => {
  it('by inheriting a ClusterRole are covered by that role, a wider built-in one, and cluster-admin', () => {
    const rows: readonly (readonly [owned: string, wanted: string, isCovered: boolean])[] = [
      ['view', 'view', true],
      ['edit', 'view', true],
      ['admin', 'edit', true],
      ['cluster-admin', 'admin', true],
      ['cluster-admin', 'own', true],
      ['view', 'edit', false],
      ['admin', 'cluster-admin', false],
      ['admin', 'own', false],
      ['own', 'own', true],
      ['own', 'view', false],
    ]
    for (const [owned, wanted, isCovered] of rows)
      assert.equal(
        covers(ownedRules(inheriting(owned)), grantedRules(inheriting(wanted))),
        isCovered,
        `${owned} ${wanted}`,
      )
  })

  it('by inheriting a ClusterRole are not covered by a copy of its rules, because the cluster may extend it', () => {
    const { rules } = { rules: ownedRules(inheriting('view')).filter(({ verbs }) => !verbs.includes('inherit')) }
    assert.ok(rules.length > 0)
    assert.equal(covers(rules, grantedRules(inheriting('view'))), false)
  })

  it('are not covered by all permissions for routes of the server', () => {
    const routes = [{ apiGroups: ['management.hyperkube.io'], resources: ['*'], verbs: ['*'] }]
    assert.equal(covers(routes, grantedRules(inheriting('cluster-admin'))), false)
    assert.equal(covers(routes, grantedRules(inheriting('view'))), false)
  })
})

describe('rulesInCluster() of a role', () => {
  it('omits rules for routes of the management server', () => {
    const [pods, both, routes] = [[''], ['', 'management.hyperkube.io'], ['management.hyperkube.io']].map(
      (apiGroups): PolicyRule => ({ apiGroups, resources: ['pods'], verbs: ['get'] }),
    )
    const paths: PolicyRule = { nonResourceURLs: ['/metrics'], verbs: ['get'] }
    assert.deepEqual(rulesInCluster([pods, both, routes, paths].filter((one) => one !== undefined)), [
      pods,
      pods,
      paths,
    ])
  })
})

describe('allows() for a route of the management server', () => {
  it('requires a rule with the verb and the resource, or with wildcards', () => {
    const rules = builtIn('members-manage').rules
    assert.ok(allows(rules, 'manage', 'members') && allows(EVERYTHING, 'manage', 'members'))
    assert.ok(
      !allows(rules, 'manage', 'projects') && !allows(rules, 'create', 'members') && !allows([], 'list', 'members'),
    )
  })
})

describe('requireCovered() before a role is granted', () => {
  it('reports the missing permissions', () => {
    assert.throws(
      () => requireCovered([], [{ apiGroups: [''], resources: ['pods'], verbs: ['get'] }], 'the role "x"'),
      {
        message:
          /the role "x" needs rights that you do not have:\n\{APIGroups:\[""\], Resources:\["pods"\], Verbs:\["get"\]\}/,
      },
    )
  })

  const GROUPS = ['', 'apps']
  const RESOURCES = ['pods', 'pods/log', 'deployments']
  const VERBS = ['get', 'create']
  const NAMES = ['a', 'b']
  const some = (values: readonly string[]): fc.Arbitrary<string[]> =>
    fc.uniqueArray(fc.constantFrom(...values, '*'), { minLength: 1 })
  const rule = fc.record(
    {
      apiGroups: some(GROUPS),
      resources: some([...RESOURCES, '*/log']),
      verbs: some(VERBS),
      resourceNames: fc.uniqueArray(fc.constantFrom(...NAMES)),
    },
    { requiredKeys: ['apiGroups', 'resources', 'verbs'] },
  )

  /** The check of each request on its own, written without the code under test. */
  function mayDo(rules: readonly PolicyRule[], [group, resource, verb, name]: readonly string[]): boolean {
    const has = (list: readonly string[] = [], ...values: readonly unknown[]): boolean =>
      list.some((one) => values.includes(one))
    return rules.some(
      ({ apiGroups, resources, verbs, resourceNames = [] }) =>
        has(apiGroups, group, '*') &&
        has(verbs, verb, '*') &&
        has(resources, resource, '*', `*/${resource?.split('/')[1]}`) &&
        (resourceNames.length === 0 || has(resourceNames, name)),
    )
  }

  it('allows no request that the granting user could not make', () => {
    const requests = GROUPS.concat('other').flatMap((group) =>
      RESOURCES.concat('other').flatMap((resource) =>
        VERBS.concat('other').flatMap((verb) => ['', ...NAMES].map((name) => [group, resource, verb, name])),
      ),
    )
    fc.assert(
      fc.property(fc.array(rule, { maxLength: 4 }), fc.array(rule, { minLength: 1, maxLength: 3 }), (owned, wanted) => {
        if (!covers(owned, wanted)) return
        for (const request of requests) assert.ok(!mayDo(wanted, request) || mayDo(owned, request), request.join())
      }),
      { numRuns: 2000 },
    )
  })
})
