import assert from 'node:assert/strict'
import { test } from 'node:test'

import type { EscalationChecks } from '#auth/authorizers/rbac/escalation.ts'
import { forbiddenError } from '#meta/status-errors.ts'

import { changed, tryRules } from '../rules.fixture.ts'
import { defineRoleBinding } from './rolebinding.ts'

const GROUP = 'rbac.authorization.k8s.io'

const binding = {
  metadata: { name: 'b', namespace: 'ns' },
  roleRef: { kind: 'Role', name: 'r' },
  subjects: [
    { kind: 'User', name: 'u' },
    { kind: 'Group', name: 'g' },
    { kind: 'ServiceAccount', name: 's', namespace: 'n' },
  ],
}

test('a RoleBinding defaults API groups, and keeps given ones', () => {
  const { read } = tryRules(defineRoleBinding())
  const { roleRef, subjects } = read(binding)
  assert.equal(roleRef.apiGroup, GROUP)
  assert.deepEqual(
    subjects?.map(({ apiGroup }) => apiGroup),
    [GROUP, GROUP, undefined],
  )
  assert.equal(read(changed(binding, 'roleRef.apiGroup', 'x')).roleRef.apiGroup, 'x')
  assert.equal(read(changed(binding, 'subjects.0.apiGroup', 'x')).subjects?.[0]?.apiGroup, 'x')
})

test('a RoleBinding requires a valid role and subjects', async () => {
  const { create } = tryRules(defineRoleBinding())
  assert.deepEqual((await create(binding)).errors, [])
  assert.deepEqual((await create(changed(binding, 'roleRef.kind', 'ClusterRole'))).errors, [])
  const table: readonly (readonly [string, unknown, readonly string[]])[] = [
    ['roleRef.apiGroup', 'x', [`roleRef.apiGroup: Unsupported value: "x": supported values: "${GROUP}"`]],
    ['roleRef.kind', 'User', ['roleRef.kind: Unsupported value: "User": supported values: "Role", "ClusterRole"']],
    ['roleRef.name', '', ['roleRef.name: Required value']],
    ['roleRef.name', 'a%', [`roleRef.name: Invalid value: "a%": may not contain '%'`]],
    ['subjects.0.name', '', ['subjects[0].name: Required value']],
    ['subjects.1.apiGroup', 'x', [`subjects[1].apiGroup: Unsupported value: "x": supported values: "${GROUP}"`]],
    ['subjects.2.apiGroup', 'x', ['subjects[2].apiGroup: Unsupported value: "x": supported values: ""']],
    ['subjects.2.name', '', ['subjects[2].name: Required value']],
    [
      'subjects.0.kind',
      'Robot',
      ['subjects[0].kind: Unsupported value: "Robot": supported values: "ServiceAccount", "User", "Group"'],
    ],
  ]
  for (const [path, value, errors] of table) {
    assert.deepEqual((await create(changed(binding, path, value))).errors, errors, path)
  }
  const [misnamed] = (await create(changed(binding, 'subjects.2.name', 'A_b'))).errors
  assert.match(misnamed ?? '', /^subjects\[2\]\.name: Invalid value: "A_b": a lowercase RFC 1123 subdomain must/)
})

test('a RoleBinding accepts any user and group names, and service accounts of its namespace without a namespace field', async () => {
  const { create } = tryRules(defineRoleBinding())
  assert.deepEqual((await create(changed(binding, 'subjects.0.name', 'https://issuer#Ju le'))).errors, [])
  assert.deepEqual((await create(changed(binding, 'subjects.2.namespace', undefined))).errors, [])
  assert.deepEqual((await create(changed(binding, 'subjects', undefined))).errors, [])
})

test('a RoleBinding keeps its role, and may change its subjects', async () => {
  const { update } = tryRules(defineRoleBinding())
  assert.deepEqual((await update(changed(binding, 'roleRef.name', 'other'), binding)).errors, [
    `roleRef: Invalid value: {"apiGroup":"${GROUP}","kind":"Role","name":"other"}: cannot change roleRef`,
  ])
  assert.deepEqual((await update(changed(binding, 'subjects', []), binding)).errors, [])
  assert.deepEqual((await update(changed(binding, 'subjects.0.name', ''), binding)).errors, [
    'subjects[0].name: Required value',
  ])
})

test('a RoleBinding is rejected if the escalation check fails', async () => {
  const calls: string[] = []
  const checks: EscalationChecks = {
    roleWrite: async () => assert.fail('A binding is no role'),
    async bindingWrite(user, next, old) {
      calls.push(`${user.name} ${next.metadata.name} ${old === undefined ? 'new' : 'changed'}`)
      throw forbiddenError({ group: GROUP, resource: 'rolebindings' }, 'b', 'no')
    },
  }
  const { create, update } = tryRules(defineRoleBinding(checks))
  assert.match(
    (await create(binding)).errors[0] ?? '',
    /^rolebindings\.rbac\.authorization\.k8s\.io "b" is forbidden: no$/,
  )
  await update(binding, binding)
  assert.deepEqual(calls, ['jane b new', 'jane b changed'])
})

test('a RoleBinding prints its role, and in wide output its subjects', () => {
  const { cells } = tryRules(defineRoleBinding())
  assert.deepEqual(cells(binding), ['b', 'Role/r', '<unknown>', 'u', 'g', 'n/s'])
  const more = { ...binding, subjects: [...binding.subjects, { kind: 'User', name: 'v' }] }
  assert.deepEqual(cells(more).slice(3), ['u, v', 'g', 'n/s'])
  assert.deepEqual(cells(changed(binding, 'subjects', undefined)).slice(3), ['', '', ''])
})
