/** Tests the pure parts of the pages about people: states, own permissions, rules as texts, refusals in words. */
import assert from 'node:assert/strict'
import { describe, it } from 'node:test'

import type { PolicyRule } from '#apis/rbac/v1.ts'

import { RequestError } from '../api/request.ts'
import type { Member } from './members.ts'
import { ownRights } from './own-rights.ts'
import { inWords, readableRefusal } from './refusal.ts'
import type { ServerRole } from './roles.ts'
import { NO_TEXTS, ruleOf, textsOf } from './rule-fields.ts'
import { lifetimeOf } from './tokens.ts'
import { type ServerUser, stateOfUser } from './users.ts'

const MANAGEMENT = 'management.hyperkube.io'

describe('stateOfUser()', () => {
  const user = { disabled: false, mustChangePassword: false } as ServerUser
  const cases: readonly (readonly [change: Partial<ServerUser>, text: string])[] = [
    [{}, 'Active'],
    [{ mustChangePassword: true }, 'Must change the password'],
    [{ mustChangePassword: true, disabled: true }, 'Disabled'],
  ]
  for (const [change, text] of cases)
    it(`returns "${text}"`, () => assert.equal(stateOfUser({ ...user, ...change }).text, text))
})

describe('ownRights()', () => {
  const rule = (resources: string, verbs: string): PolicyRule => ({
    apiGroups: [MANAGEMENT],
    resources: resources.split(' '),
    verbs: verbs.split(' '),
  })
  const role = (name: string, spec: Partial<ServerRole['spec']>): ServerRole => ({
    metadata: { name },
    spec: { scope: 'cluster', rules: [], ...spec },
  })
  const roles = [
    role('cluster-owner', { inherits: 'cluster-admin' }),
    role('members-manage', { rules: [rule('members', 'list manage')] }),
    role('project-owner', { scope: 'project', inherits: 'admin', rules: [rule('members namespaces', 'manage')] }),
  ]
  const member = (spec: Member['spec']): Member => ({ metadata: { name: 'm-1' }, spec })
  const jane = { name: 'u-1', username: 'jane', groups: ['idp:devs'] }
  const inCluster = { cluster: 'c-1' }
  type Question = readonly [verb: 'create' | 'manage', resource: string, project?: string]
  const cases: readonly (readonly [name: string, specs: readonly Member['spec'][], Question, boolean])[] = [
    ['the owner of the cluster', [{ role: 'cluster-owner', user: 'u-1', ...inCluster }], ['manage', 'members'], true],
    ['the owner in a project', [{ role: 'cluster-owner', user: 'u-1', ...inCluster }], ['create', 'x', 'p-1'], true],
    ['another user', [{ role: 'cluster-owner', user: 'u-2', ...inCluster }], ['manage', 'members'], false],
    ['a group', [{ role: 'members-manage', group: 'idp:devs', ...inCluster }], ['manage', 'members'], true],
    ['another group', [{ role: 'members-manage', group: 'idp:ops', ...inCluster }], ['manage', 'members'], false],
    ['another verb', [{ role: 'members-manage', user: 'u-1', ...inCluster }], ['create', 'members'], false],
    ['the project', [{ role: 'project-owner', user: 'u-1', project: 'p-1' }], ['manage', 'members', 'p-1'], true],
    ['another project', [{ role: 'project-owner', user: 'u-1', project: 'p-1' }], ['manage', 'members', 'p-2'], false],
    ['the whole cluster', [{ role: 'project-owner', user: 'u-1', project: 'p-1' }], ['manage', 'members'], false],
    ['a role that is gone', [{ role: 'gone', user: 'u-1', ...inCluster }], ['manage', 'members'], false],
    ['no members', [], ['manage', 'members'], false],
  ]
  for (const [name, specs, question, expected] of cases) {
    it(`is ${expected} for ${name}`, () =>
      assert.equal(ownRights(jane, specs.map(member), roles)(...question), expected))
  }

  it('is true for administrators', () => {
    assert.ok(ownRights({ ...jane, isAdministrator: true }, [], [])('manage', 'members'))
  })
})

describe('rules in a form', () => {
  it('become texts and the same rules again', () => {
    const rules: readonly PolicyRule[] = [
      { verbs: ['get', 'list'], apiGroups: ['', 'apps'], resources: ['pods', 'deployments'], resourceNames: ['web'] },
      { verbs: ['get'], nonResourceURLs: ['/metrics', '/metrics/*'] },
    ]
    for (const rule of rules) assert.deepEqual(ruleOf(textsOf(rule)), rule)
    assert.equal(textsOf(rules[0]!).apiGroups, 'core, apps')
  })

  it('mean the core group without a group, and no rule without any text', () => {
    const texts = { ...NO_TEXTS, verbs: 'get  list,watch', resources: ' pods ' }
    assert.deepEqual(ruleOf(texts), { verbs: ['get', 'list', 'watch'], apiGroups: [''], resources: ['pods'] })
    assert.equal(ruleOf({ ...NO_TEXTS, verbs: ' , ' }), undefined)
  })
})

describe('readableRefusal()', () => {
  it('writes missing rights in words, and keeps all other lines', () => {
    const message = [
      'the role needs rights that you do not have:',
      '{APIGroups:[""], Resources:["secrets"], Verbs:["get" "list"]}',
      '{APIGroups:["apps"], Resources:["deployments"], ResourceNames:["a\\"b"], Verbs:["*"]}',
      '{NonResourceURLs:["*"], Verbs:["get"]}',
      '{not a right',
    ].join('\n')
    assert.equal(
      readableRefusal(message),
      [
        'the role needs rights that you do not have:',
        '– get, list secrets',
        '– every verb on deployments of apps named a\\"b',
        '– get everything',
        '{not a right',
      ].join('\n'),
    )
  })

  it('is the message of a failed request', async () => {
    const refused = new RequestError({ code: 403, message: 'no:\n{APIGroups:[""], Resources:["pods"], Verbs:["get"]}' })
    await assert.rejects(inWords(Promise.reject(refused)), { code: 403, message: 'no:\n– get pods' })
  })
})

describe('lifetimeOf()', () => {
  it('returns seconds', () => assert.equal(lifetimeOf(' 90 '), 90 * 86_400))
  for (const text of ['', '0', '91', '-1', '1.5', 'week'])
    it(`refuses "${text}"`, () => assert.throws(() => lifetimeOf(text), RequestError))
})
