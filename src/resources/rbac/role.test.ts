import assert from 'node:assert/strict'
import { test } from 'node:test'

import type { EscalationChecks } from '#apiserver/authorizers/rbac/escalation.ts'
import { forbiddenError } from '#meta/status-errors.ts'

import { changed, judge } from '../rules.fixture.ts'
import { defineClusterRole } from './clusterrole.ts'
import { defineClusterRoleBinding } from './clusterrolebinding.ts'
import { defineRole } from './role.ts'
import { defineRoleBinding } from './rolebinding.ts'

const GROUP = 'rbac.authorization.k8s.io'

const role = {
  metadata: { name: 'system:reader', namespace: 'ns' },
  rules: [{ verbs: ['get'], apiGroups: [''], resources: ['pods'] }],
}

test('a Role needs verbs, groups and resources, and has no URLs', async () => {
  const { create } = judge(defineRole())
  assert.deepEqual((await create(role)).errors, [])
  const table: readonly (readonly [string, unknown, readonly string[]])[] = [
    ['metadata.name', 'a/b', [`metadata.name: Invalid value: "a/b": may not contain '/'`]],
    ['rules.0.verbs', [], ['rules[0].verbs: Required value: verbs must contain at least one value']],
    [
      'rules.0.apiGroups',
      [],
      ['rules[0].apiGroups: Required value: resource rules must supply at least one api group'],
    ],
    ['rules.0.resources', [], ['rules[0].resources: Required value: resource rules must supply at least one resource']],
    [
      'rules.0.nonResourceURLs',
      ['/healthz'],
      [
        'rules[0].nonResourceURLs: Invalid value: ["/healthz"]: namespaced rules cannot apply to non-resource URLs',
        'rules[0].nonResourceURLs: Invalid value: ["/healthz"]: rules cannot apply to both regular resources and non-resource URLs',
      ],
    ],
  ]
  for (const [path, value, errors] of table) {
    assert.deepEqual((await create(changed(role, path, value))).errors, errors, path)
  }
})

test('a ClusterRole that gathers others says which', async () => {
  const { create, update, cells } = judge(defineClusterRole())
  const gathering = {
    metadata: { name: 'a' },
    aggregationRule: { clusterRoleSelectors: [{ matchLabels: { a: 'b' } }] },
  }
  assert.deepEqual((await create(gathering)).errors, [])
  assert.deepEqual((await create(changed(gathering, 'aggregationRule.clusterRoleSelectors', []))).errors, [
    'aggregationRule.clusterRoleSelectors: Required value: at least one clusterRoleSelector required if aggregationRule is non-nil',
  ])
  const odd = changed(gathering, 'aggregationRule.clusterRoleSelectors.0', {
    matchExpressions: [{ key: 'a', operator: 'Like', values: ['b'] }],
  })
  assert.deepEqual((await create(odd)).errors, [
    'aggregationRule.clusterRoleSelectors[0].matchExpressions[0].operator: Invalid value: "Like": not a valid selector operator',
    'aggregationRule.clusterRoleSelectors[0]: Invalid value: null: invalid label selector.',
  ])
  const badValue = changed(gathering, 'aggregationRule.clusterRoleSelectors.0', {
    matchExpressions: [{ key: 'a', operator: 'In', values: ['-'] }],
  })
  const said = (await update(badValue, badValue)).errors
  assert.deepEqual(said, ['aggregationRule.clusterRoleSelectors[0]: Invalid value: null: invalid label selector.'])
  assert.deepEqual(cells({ metadata: { name: 'a', creationTimestamp: '2026-01-01T00:00:00Z' } }), [
    'a',
    '2026-01-01T00:00:00Z',
  ])
})

const binding = {
  metadata: { name: 'b', namespace: 'ns' },
  roleRef: { kind: 'Role', name: 'r' },
  subjects: [
    { kind: 'User', name: 'u' },
    { kind: 'Group', name: 'g' },
    { kind: 'ServiceAccount', name: 's', namespace: 'n' },
  ],
}

test('a binding gets its groups', () => {
  const { roleRef, subjects } = judge(defineRoleBinding()).read(binding)
  assert.equal(roleRef.apiGroup, GROUP)
  assert.deepEqual(
    subjects?.map(({ apiGroup }) => apiGroup),
    [GROUP, GROUP, undefined],
  )
})

test('a binding names a role and subjects that can be', async () => {
  const { create } = judge(defineRoleBinding())
  assert.deepEqual((await create(binding)).errors, [])
  const table: readonly (readonly [string, unknown, readonly string[]])[] = [
    ['roleRef.apiGroup', 'x', [`roleRef.apiGroup: Unsupported value: "x": supported values: "${GROUP}"`]],
    ['roleRef.kind', 'User', ['roleRef.kind: Unsupported value: "User": supported values: "Role", "ClusterRole"']],
    ['roleRef.name', '', ['roleRef.name: Required value']],
    ['roleRef.name', 'a%', [`roleRef.name: Invalid value: "a%": may not contain '%'`]],
    ['subjects.0.name', '', ['subjects[0].name: Required value']],
    ['subjects.1.apiGroup', 'x', [`subjects[1].apiGroup: Unsupported value: "x": supported values: "${GROUP}"`]],
    ['subjects.2.apiGroup', 'x', ['subjects[2].apiGroup: Unsupported value: "x": supported values: ""']],
    [
      'subjects.0.kind',
      'Robot',
      ['subjects[0].kind: Unsupported value: "Robot": supported values: "ServiceAccount", "User", "Group"'],
    ],
  ]
  for (const [path, value, errors] of table) {
    assert.deepEqual((await create(changed(binding, path, value))).errors, errors, path)
  }
})

test('in a ClusterRoleBinding a service account has its namespace, and the role is a cluster role', async () => {
  const { create } = judge(defineClusterRoleBinding())
  const body = { ...binding, metadata: { name: 'b' } }
  assert.deepEqual((await create(changed(body, 'subjects.2.namespace', undefined))).errors, [
    'roleRef.kind: Unsupported value: "Role": supported values: "ClusterRole"',
    'subjects[2].namespace: Required value',
  ])
})

test('a binding keeps its role and shows its subjects', async () => {
  const { update, cells } = judge(defineRoleBinding())
  assert.deepEqual((await update(changed(binding, 'roleRef.name', 'other'), binding)).errors, [
    `roleRef: Invalid value: {"apiGroup":"${GROUP}","kind":"Role","name":"other"}: cannot change roleRef`,
  ])
  assert.deepEqual((await update(changed(binding, 'subjects', []), binding)).errors, [])
  assert.deepEqual(cells(binding), ['b', 'Role/r', '<unknown>', 'u', 'g', 'n/s'])
})

test('nobody writes a role or a binding that the checks refuse', async () => {
  const asked: string[] = []
  const refuse = (what: string): never => {
    asked.push(what)
    throw forbiddenError({ group: GROUP, resource: what }, 'x', 'no')
  }
  const checks: EscalationChecks = {
    roleWrite: async (user, next, old) => refuse(`${user.name} ${next.metadata.name} ${old === undefined}`),
    bindingWrite: async () => refuse('binding'),
  }
  const [refused] = (await judge(defineRole(checks)).create(role)).errors
  assert.match(refused ?? '', /forbidden: no$/)
  await judge(defineClusterRole(checks)).update({ metadata: { name: 'a' } }, { metadata: { name: 'a' } })
  await judge(defineRoleBinding(checks)).create(binding)
  assert.deepEqual(asked, ['jane system:reader true', 'jane a false', 'binding'])
})
