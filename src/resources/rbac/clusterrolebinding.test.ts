import assert from 'node:assert/strict'
import { test } from 'node:test'

import type { EscalationChecks } from '#apiserver/authorizers/rbac/escalation.ts'

import { changed, judge } from '../rules.fixture.ts'
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

test('a ClusterRoleBinding binds cluster roles only', async () => {
  const { create } = judge(defineClusterRoleBinding())
  assert.deepEqual((await create(binding)).errors, [])
  assert.deepEqual((await create(changed(binding, 'roleRef.kind', 'Role'))).errors, [
    'roleRef.kind: Unsupported value: "Role": supported values: "ClusterRole"',
  ])
})

test('in a ClusterRoleBinding a service account has its namespace', async () => {
  const { create } = judge(defineClusterRoleBinding())
  assert.deepEqual((await create(changed(binding, 'subjects.1.namespace', undefined))).errors, [
    'subjects[1].namespace: Required value',
  ])
  assert.deepEqual((await create(changed(binding, 'subjects.0.namespace', 'n'))).errors, [])
})

test('a ClusterRoleBinding gets its groups, and keeps its role', async () => {
  const { read, update } = judge(defineClusterRoleBinding())
  const { roleRef, subjects } = read(binding)
  assert.deepEqual([roleRef.apiGroup, subjects?.map(({ apiGroup }) => apiGroup)], [GROUP, [GROUP, undefined]])
  assert.deepEqual((await update(changed(binding, 'roleRef.kind', 'Role'), binding)).errors, [
    'roleRef.kind: Unsupported value: "Role": supported values: "ClusterRole"',
    `roleRef: Invalid value: {"apiGroup":"${GROUP}","kind":"Role","name":"r"}: cannot change roleRef`,
  ])
  assert.deepEqual((await update({ ...binding, subjects: [] }, binding)).errors, [])
})

test('nobody writes a ClusterRoleBinding that the checks refuse', async () => {
  const asked: string[] = []
  const checks: EscalationChecks = {
    roleWrite: async () => assert.fail('A binding is no role'),
    async bindingWrite(user, next, old) {
      asked.push(`${user.name} ${next.metadata.name} ${old === undefined ? 'new' : 'changed'}`)
    },
  }
  const { create, update } = judge(defineClusterRoleBinding(checks))
  assert.deepEqual((await create(binding)).errors, [])
  assert.deepEqual((await update(binding, binding)).errors, [])
  assert.deepEqual(asked, ['jane system:b new', 'jane system:b changed'])
})

test('a ClusterRoleBinding shows its role, and in wide output its subjects', () => {
  assert.deepEqual(judge(defineClusterRoleBinding()).cells(binding), [
    'system:b',
    'ClusterRole/r',
    '<unknown>',
    '',
    'system:masters',
    'n/s',
  ])
})
