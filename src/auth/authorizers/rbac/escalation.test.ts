import assert from 'node:assert/strict'
import { describe, it } from 'node:test'

import type { ClusterRole, ClusterRoleBinding, PolicyRule, RoleBinding } from '#apis/rbac/v1.ts'
import { StatusError } from '#meta/status.ts'
import { uncoveredRights } from '#model/rule-coverage.ts'

import type { User } from '../../user.ts'
import { privilegedGroup } from '../fixed.ts'
import { unionOf } from '../index.ts'
import { createEscalationChecks } from './escalation.ts'
import { RbacIndex } from './rbac.ts'

const ns = 'n1'
const user = (name: string, ...groups: string[]): User => ({ name, uid: '', groups, extra: {} })
const pods: PolicyRule = { verbs: ['get', 'list'], apiGroups: [''], resources: ['pods'] }
const secrets: PolicyRule = { verbs: ['get'], apiGroups: [''], resources: ['secrets'] }
const ref = (kind: string, name: string) => ({ apiGroup: 'rbac.authorization.k8s.io', kind, name })

/** Users: jane reads pods in n1; erin may escalate; bob may bind the role `strong`; root is in system:masters. */
function createWorld(): { index: RbacIndex; checks: ReturnType<typeof createEscalationChecks> } {
  const index = new RbacIndex()
  const give = (who: string, rules: PolicyRule[]): void => {
    index.setClusterRole({ metadata: { name: `of-${who}` }, rules })
    const subjects = [{ kind: 'User', name: who }]
    index.setBinding({
      metadata: { name: `to-${who}`, namespace: ns },
      roleRef: ref('ClusterRole', `of-${who}`),
      subjects,
    })
  }
  const rbac = ['rbac.authorization.k8s.io']
  give('jane', [pods])
  give('erin', [{ verbs: ['escalate'], apiGroups: rbac, resources: ['roles'] }])
  give('bob', [{ verbs: ['bind'], apiGroups: rbac, resources: ['clusterroles'], resourceNames: ['strong'] }])
  index.setClusterRole({
    metadata: { name: 'admin' },
    rules: [
      { verbs: ['*'], apiGroups: ['*'], resources: ['*'] },
      { verbs: ['*'], nonResourceURLs: ['*'] },
    ],
  })
  index.setBinding({
    metadata: { name: 'root' },
    roleRef: ref('ClusterRole', 'admin'),
    subjects: [{ kind: 'User', name: 'root' }],
  })
  index.setClusterRole({ metadata: { name: 'strong' }, rules: [secrets] })
  index.setClusterRole({ metadata: { name: 'weak' }, rules: [{ ...pods, verbs: ['get'] }] })
  return { index, checks: createEscalationChecks({ authorizer: unionOf([privilegedGroup, index]), index }) }
}

async function outcome(work: () => Promise<void>): Promise<string> {
  try {
    await work()
    return 'allowed'
  } catch (error) {
    assert.ok(error instanceof StatusError)
    return `${error.status.code}`
  }
}

describe('escalation check of RBAC writes', () => {
  it('rejects a role with permissions that the writer lacks', async () => {
    const { checks } = createWorld()
    const table: [string, string[], PolicyRule[], string][] = [
      ['jane', [], [pods], 'allowed'],
      ['jane', [], [{ ...pods, verbs: ['list'] }], 'allowed'],
      ['jane', [], [{ ...pods, resourceNames: ['one'] }], 'allowed'],
      ['jane', [], [], 'allowed'],
      ['jane', [], [pods, secrets], '403'],
      ['jane', [], [{ ...pods, verbs: ['*'] }], '403'],
      ['jane', [], [{ ...pods, resources: ['*'] }], '403'],
      ['jane', [], [{ ...pods, apiGroups: ['*'] }], '403'],
      ['jane', [], [{ ...pods, resources: ['pods/log'] }], '403'],
      ['erin', [], [secrets], 'allowed'],
      ['bob', [], [secrets], '403'],
      ['root', [], [secrets], 'allowed'],
      ['anybody', ['system:masters'], [secrets], 'allowed'],
      ['nobody', [], [pods], '403'],
    ]
    for (const [name, groups, rules, expected] of table) {
      const role = { metadata: { name: 'r', namespace: ns }, rules }
      const who = user(name, ...groups)
      assert.equal(await outcome(() => checks.roleWrite(who, role, undefined)), expected, `create by ${name}`)
      const old = { ...role, rules: [pods] }
      const changed = { ...role, metadata: { ...role.metadata, labels: { a: 'b' } } }
      assert.equal(await outcome(() => checks.roleWrite(who, changed, old)), expected, `update by ${name}`)
    }
  })

  it('lists missing permissions, one line per resource', async () => {
    const { checks } = createWorld()
    const rules = [
      { verbs: ['get', 'delete'], apiGroups: [''], resources: ['secrets', 'pods'] },
      { verbs: ['get'], nonResourceURLs: ['/metrics'] },
    ]
    const role = { metadata: { name: 'r', namespace: ns }, rules }
    await assert.rejects(checks.roleWrite(user('jane', 'dev', 'ops'), role, undefined), (error: StatusError) => {
      assert.equal(
        error.message,
        'roles.rbac.authorization.k8s.io "r" is forbidden: user "jane" (groups=["dev" "ops"]) is attempting to grant RBAC permissions not currently held:\n' +
          '{APIGroups:[""], Resources:["pods"], Verbs:["delete"]}\n' +
          '{APIGroups:[""], Resources:["secrets"], Verbs:["get" "delete"]}\n' +
          '{NonResourceURLs:["/metrics"], Verbs:["get"]}',
      )
      return true
    })
  })

  it('rejects a binding to a role with permissions that the writer lacks', async () => {
    const { checks } = createWorld()
    const table: [string, string, string, string][] = [
      ['jane', 'ClusterRole', 'weak', 'allowed'],
      ['jane', 'ClusterRole', 'strong', '403'],
      ['bob', 'ClusterRole', 'strong', 'allowed'],
      ['bob', 'ClusterRole', 'weak', '403'],
      ['erin', 'ClusterRole', 'strong', '403'],
      ['root', 'ClusterRole', 'strong', 'allowed'],
      ['jane', 'ClusterRole', 'missing', '404'],
      ['jane', 'Role', 'missing', '404'],
    ]
    for (const [name, kind, role, expected] of table) {
      const binding: RoleBinding = { metadata: { name: 'b', namespace: ns }, roleRef: ref(kind, role) }
      assert.equal(
        await outcome(() => checks.bindingWrite(user(name), binding, undefined)),
        expected,
        `${name} ${role}`,
      )
    }
    // A right in one namespace is no right in the cluster.
    const wide: ClusterRoleBinding = { metadata: { name: 'b' }, roleRef: ref('ClusterRole', 'weak') }
    assert.equal(await outcome(() => checks.bindingWrite(user('jane'), wide, undefined)), '403')
    assert.equal(
      await outcome(() =>
        checks.bindingWrite(user('bob'), { ...wide, roleRef: ref('ClusterRole', 'strong') }, undefined),
      ),
      '403',
    )
  })

  it('requires all permissions for writing an aggregated role', async () => {
    const { checks } = createWorld()
    const role: ClusterRole = {
      metadata: { name: 'g' },
      rules: null,
      aggregationRule: { clusterRoleSelectors: [{ matchLabels: { a: 'b' } }] },
    }
    assert.equal(await outcome(() => checks.roleWrite(user('jane'), role, undefined)), '403')
    assert.equal(await outcome(() => checks.roleWrite(user('root'), role, undefined)), 'allowed')
    const { aggregationRule: _, ...plain } = role
    assert.equal(await outcome(() => checks.roleWrite(user('jane'), plain, role)), '403')
  })

  it('allows the garbage collector to change owner references only', async () => {
    const { checks } = createWorld()
    const role = { metadata: { name: 'r', namespace: ns }, rules: [secrets] }
    const owned = { ...role, metadata: { ...role.metadata, finalizers: ['x'], ownerReferences: [] } }
    assert.equal(await outcome(() => checks.roleWrite(user('gc'), owned, role)), 'allowed')
    assert.equal(await outcome(() => checks.roleWrite(user('gc'), { ...owned, rules: [secrets, pods] }, role)), '403')
  })
})

describe('coverage of an RBAC rule by others', () => {
  const table: [string, PolicyRule, PolicyRule, number][] = [
    ['verb "*" covers every verb', { ...pods, verbs: ['*'] }, pods, 0],
    ['two verbs do not cover all verbs', pods, { ...pods, verbs: ['*'] }, 1],
    [
      'resource */scale covers the subresource scale of any resource',
      { ...pods, resources: ['*/scale'] },
      { ...pods, resources: ['a/scale'] },
      0,
    ],
    [
      'resource */scale does not cover the resource itself',
      { ...pods, resources: ['*/scale'] },
      { ...pods, resources: ['a'] },
      2,
    ],
    ['a rule without resourceNames covers one name', pods, { ...pods, resourceNames: ['x'] }, 0],
    ['a rule with one resourceName does not cover all names', { ...pods, resourceNames: ['x'] }, pods, 2],
    [
      'a non-resource URL with "*" covers paths below it',
      { verbs: ['get'], nonResourceURLs: ['/a/*'] },
      { verbs: ['get'], nonResourceURLs: ['/a/b'] },
      0,
    ],
    [
      'a non-resource URL with "*" does not cover its parent',
      { verbs: ['get'], nonResourceURLs: ['/a/b'] },
      { verbs: ['get'], nonResourceURLs: ['/a/*'] },
      1,
    ],
    [
      'resources do not cover non-resource URLs',
      { ...pods, verbs: ['*'] },
      { verbs: ['get'], nonResourceURLs: ['/a'] },
      1,
    ],
  ]
  for (const [name, owned, wanted, missing] of table) {
    it(name, () => assert.equal(uncoveredRights([owned], [wanted]).length, missing))
  }
})
