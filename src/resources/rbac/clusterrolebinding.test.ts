import assert from 'node:assert/strict'
import { test } from 'node:test'

import type { EscalationChecks } from '#auth/authorizers/rbac/escalation.ts'

import { changed, tryRules } from '../rules.fixture.ts'
import { defineClusterRoleBinding } from './clusterrolebinding.ts'

const GROUP = 'rbac.authorization.k8s.io'

const binding = {
  metadata: { name: 'system:b' },
  roleRef: { kind: 'ClusterRole', name: 'r' },
  subjects: [
    { kind: 'Group', name: 'system:masters' },
    { kind: 'ServiceAccount', name: 's', namespace: 'n' },
  ],
}

test('a ClusterRoleBinding accepts only cluster roles', async () => {
  const { create } = tryRules(defineClusterRoleBinding())
  assert.deepEqual((await create(binding)).errors, [])
  assert.deepEqual((await create(changed(binding, 'roleRef.kind', 'Role'))).errors, [
    'roleRef.kind: Unsupported value: "Role": supported values: "ClusterRole"',
  ])
})

test('a ClusterRoleBinding requires the namespace of service accounts', async () => {
  const { create } = tryRules(defineClusterRoleBinding())
  assert.deepEqual((await create(changed(binding, 'subjects.1.namespace', undefined))).errors, [
    'subjects[1].namespace: Required value',
  ])
  assert.deepEqual((await create(changed(binding, 'subjects.0.namespace', 'n'))).errors, [])
})

test('a ClusterRoleBinding defaults API groups, and keeps its role', async () => {
  const { read, update } = tryRules(defineClusterRoleBinding())
  const { roleRef, subjects } = read(binding)
  assert.deepEqual([roleRef.apiGroup, subjects?.map(({ apiGroup }) => apiGroup)], [GROUP, [GROUP, undefined]])
  assert.deepEqual((await update(changed(binding, 'roleRef.kind', 'Role'), binding)).errors, [
    'roleRef.kind: Unsupported value: "Role": supported values: "ClusterRole"',
    `roleRef: Invalid value: {"apiGroup":"${GROUP}","kind":"Role","name":"r"}: cannot change roleRef`,
  ])
  assert.deepEqual((await update({ ...binding, subjects: [] }, binding)).errors, [])
})

test('a ClusterRoleBinding is rejected if the escalation check fails', async () => {
  const calls: string[] = []
  const checks: EscalationChecks = {
    roleWrite: async () => assert.fail('A binding is no role'),
    async bindingWrite(user, next, old) {
      calls.push(`${user.name} ${next.metadata.name} ${old === undefined ? 'new' : 'changed'}`)
    },
  }
  const { create, update } = tryRules(defineClusterRoleBinding(checks))
  assert.deepEqual((await create(binding)).errors, [])
  assert.deepEqual((await update(binding, binding)).errors, [])
  assert.deepEqual(calls, ['jane system:b new', 'jane system:b changed'])
})

test('a ClusterRoleBinding prints its role, and in wide output its subjects', () => {
  assert.deepEqual(tryRules(defineClusterRoleBinding()).cells(binding), [
    'system:b',
    'ClusterRole/r',
    '<unknown>',
    '',
    'system:masters',
    'n/s',
  ])
})
