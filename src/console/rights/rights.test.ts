/** Tests the search for rights in roles and bindings, and the texts with which people ask. */
import assert from 'node:assert/strict'
import { describe, it } from 'node:test'

import type { PolicyRule, RoleRef, Subject } from '#apis/rbac/v1.ts'

import type { Kind } from '../api/kinds.ts'
import { holderText, parseHolder } from './holder-text.ts'
import { questionsOf } from './questions.ts'
import { allGrants, type Grant, grantsTo, identityOf, type RbacObjects, whoMay } from './rbac.ts'
import { ruleText } from './rule-row.ts'
import { namespaceOf, targetOf } from './target.ts'

const ref = (kind: string, name: string): RoleRef => ({ apiGroup: 'rbac.authorization.k8s.io', kind, name })
const user = (name: string): Subject => ({ kind: 'User', name })
const account = (name: string, namespace?: string): Subject => ({
  kind: 'ServiceAccount',
  name,
  ...(namespace !== undefined && { namespace }),
})

const pods: PolicyRule = { verbs: ['get', 'list'], apiGroups: [''], resources: ['pods'] }
const WORLD: RbacObjects = {
  clusterRoles: [
    { metadata: { name: 'view' }, rules: [pods] },
    { metadata: { name: 'all' }, rules: [{ verbs: ['*'], apiGroups: ['*'], resources: ['*'] }] },
    { metadata: { name: 'metrics' }, rules: [{ verbs: ['get'], nonResourceURLs: ['/metrics*'] }] },
    { metadata: { name: 'empty' }, rules: null },
  ],
  roles: [
    { metadata: { name: 'one', namespace: 'a' }, rules: [{ ...pods, verbs: ['delete'], resourceNames: ['web'] }] },
  ],
  clusterRoleBindings: [
    { metadata: { name: 'admins' }, roleRef: ref('ClusterRole', 'all'), subjects: [{ kind: 'Group', name: 'admins' }] },
    { metadata: { name: 'scrapers' }, roleRef: ref('ClusterRole', 'metrics'), subjects: [account('prom', 'mon')] },
    { metadata: { name: 'nothing' }, roleRef: ref('ClusterRole', 'empty'), subjects: [user('jane')] },
    // Without a namespace this names no service account.
    { metadata: { name: 'broken' }, roleRef: ref('ClusterRole', 'all'), subjects: [account('lost')] },
    { metadata: { name: 'gone' }, roleRef: ref('ClusterRole', 'gone'), subjects: [user('jane')] },
  ],
  roleBindings: [
    { metadata: { name: 'viewers', namespace: 'a' }, roleRef: ref('ClusterRole', 'view'), subjects: [user('jane')] },
    {
      metadata: { name: 'ones', namespace: 'a' },
      roleRef: ref('Role', 'one'),
      subjects: [account('bot'), account('bot', 'b')],
    },
    // The Role is in another namespace.
    { metadata: { name: 'wrong', namespace: 'b' }, roleRef: ref('Role', 'one'), subjects: [user('joe')] },
  ],
}
const grants = allGrants(WORLD)
const names = (found: readonly Grant[]): readonly string[] => found.map(({ holder }) => holderText(holder))

describe('whoMay()', () => {
  const cases: readonly (readonly [verb: string, of: string, name: string, ns: string | undefined, who: string])[] = [
    ['get', 'pods', '', 'a', 'Group:admins User:jane'],
    ['get', 'pods', '', 'b', 'Group:admins'],
    ['get', 'pods', '', '', 'Group:admins'],
    ['get', 'pods', '', undefined, 'Group:admins User:jane'],
    ['delete', 'pods', 'web', 'a', 'Group:admins ServiceAccount:a/bot ServiceAccount:b/bot'],
    ['delete', 'pods', 'db', 'a', 'Group:admins'],
    ['delete', 'pods', '', 'a', 'Group:admins'],
    ['get', 'pods/log', '', 'a', 'Group:admins'],
    ['get', '/metrics/cadvisor', '', '', 'ServiceAccount:mon/prom'],
    ['post', '/metrics', '', '', ''],
  ]
  for (const [verb, of, name, ns, who] of cases) {
    it(`finds "${who}" for ${verb} ${of} ${name} in ${ns ?? 'any namespace'}`, () => {
      const target = targetOf(of, [])
      assert.ok(target !== undefined)
      assert.equal(names(whoMay(grants, { ...target, verb, name }, ns)).join(' '), who)
    })
  }
})

describe('grantsTo()', () => {
  const bindings = (who: string, groups: readonly string[] = []): string => {
    const holder = parseHolder(who)
    assert.ok(holder !== undefined)
    return grantsTo(grants, identityOf(holder, groups))
      .map(({ binding }) => binding.name)
      .join(' ')
  }

  it('finds bindings of a user, of a group, and of a service account as a user', () => {
    assert.equal(bindings('User:jane'), 'gone nothing viewers')
    assert.equal(bindings('User:jane', ['admins']), 'admins gone nothing viewers')
    assert.equal(bindings('Group:admins'), 'admins')
    assert.equal(bindings('ServiceAccount:a/bot'), 'ones')
    assert.equal(bindings('User:system:serviceaccount:mon:prom'), 'scrapers')
    assert.equal(bindings('User:admins'), '')
  })

  it('has no rules for a role that does not exist', () => {
    const [gone] = grantsTo(grants, identityOf({ kind: 'User', name: 'joe' }))
    assert.equal(gone?.rules, undefined)
  })
})

describe('identityOf()', () => {
  it('adds the groups of the API server', () => {
    assert.deepEqual(identityOf({ kind: 'ServiceAccount', name: 'x', namespace: 'n' }).groups, [
      'system:serviceaccounts',
      'system:serviceaccounts:n',
      'system:authenticated',
    ])
    assert.deepEqual(identityOf({ kind: 'User', name: 'system:anonymous' }).groups, ['system:unauthenticated'])
    assert.deepEqual(identityOf({ kind: 'Group', name: 'g' }), { user: undefined, groups: ['g'] })
  })
})

describe('targetOf()', () => {
  const kind = (plural: string, group: string, isNamespaced = true): Kind => ({
    group,
    version: 'v1',
    plural,
    singular: plural.slice(0, -1),
    kind: plural,
    isNamespaced,
    verbs: [],
    shortNames: plural === 'pods' ? ['po'] : [],
    subresources: [],
  })
  const kinds = [
    kind('pods', ''),
    kind('pods', 'metrics.k8s.io'),
    kind('deployments', 'apps'),
    kind('nodes', '', false),
  ]
  const cases: readonly (readonly [text: string, group: string, resource: string, subresource: string])[] = [
    ['pods', '', 'pods', ''],
    ['po', '', 'pods', ''],
    ['pods.metrics.k8s.io', 'metrics.k8s.io', 'pods', ''],
    ['deployment/scale', 'apps', 'deployments', 'scale'],
    ['deployments.apps/scale', 'apps', 'deployments', 'scale'],
    ['subjectaccessreviews.authorization.k8s.io', 'authorization.k8s.io', 'subjectaccessreviews', ''],
    ['*', '', '*', ''],
  ]
  for (const [text, group, resource, subresource] of cases) {
    it(`reads ${text}`, () => {
      assert.deepEqual(targetOf(text, kinds), { isResource: true, path: '', group, resource, subresource })
    })
  }

  it('reads paths, and nothing in an empty text', () => {
    const path = { isResource: false, path: '/livez', group: '', resource: '', subresource: '' }
    assert.deepEqual([targetOf(' /livez ', kinds), targetOf(' ', kinds)], [path, undefined])
  })

  it('is authorized in the namespace of the kind', () => {
    const inside = (text: string, namespace: string, name = ''): string | undefined =>
      namespaceOf(targetOf(text, kinds)!, kinds, { namespace, name })
    assert.deepEqual([inside('pods', 'a'), inside('pods', '')], ['a', undefined])
    assert.deepEqual([inside('nodes', 'a'), inside('/livez', 'a')], ['', ''])
    assert.deepEqual([inside('namespaces', '', 'shop'), inside('namespaces', 'a')], ['shop', undefined])
  })
})

describe('addresses of subjects', () => {
  for (const text of [
    'User:jane',
    'User:system:node:n-1',
    'Group:system:masters',
    'ServiceAccount:kube-system/default',
  ])
    it(`keep ${text}`, () => assert.equal(holderText(parseHolder(text)!), text))

  it('mean the namespace default without one, and nothing without a name', () => {
    assert.equal(holderText(parseHolder('ServiceAccount:builder')!), 'ServiceAccount:default/builder')
    assert.deepEqual([parseHolder('User: '), parseHolder('jane')], [undefined, undefined])
  })
})

describe('questionsOf()', () => {
  it('asks about the subjects of a binding, a service account and the rules of a role', () => {
    const api = { apiVersion: 'rbac.authorization.k8s.io/v1' }
    const binding = {
      ...api,
      kind: 'RoleBinding',
      metadata: { namespace: 'a' },
      subjects: [account('bot'), user('jo')],
    }
    assert.deepEqual(
      questionsOf(binding as never).map(({ query }) => query['who']),
      ['ServiceAccount:a/bot', 'User:jo'],
    )
    const bot = { apiVersion: 'v1', kind: 'ServiceAccount', metadata: { name: 'bot', namespace: 'a' } }
    assert.equal(questionsOf(bot)[0]?.text, 'What may ServiceAccount a/bot do?')
    const rules: readonly PolicyRule[] = [
      { verbs: ['update'], apiGroups: ['apps'], resources: ['deployments/scale'] },
      { verbs: ['get'], nonResourceURLs: ['/metrics'] },
    ]
    assert.deepEqual(
      questionsOf({ ...api, kind: 'ClusterRole', metadata: {}, rules } as never).map(({ text }) => text),
      ['Who may update deployments.apps/scale?', 'Who may get /metrics?'],
    )
    assert.deepEqual(questionsOf({ apiVersion: 'v1', kind: 'Pod', metadata: {} }), [])
  })
})

describe('ruleText()', () => {
  const cases: readonly (readonly [rule: PolicyRule, text: string])[] = [
    [pods, 'get, list pods'],
    [{ verbs: ['*'], apiGroups: ['*'], resources: ['*'] }, 'every verb on everything'],
    [{ verbs: ['get'], apiGroups: ['', 'apps'], resources: ['a'], resourceNames: ['b'] }, 'get a of apps named b'],
  ]
  for (const [rule, text] of cases) it(`writes "${text}"`, () => assert.equal(ruleText(rule), text))
})
