import assert from 'node:assert/strict'
import { test } from 'node:test'

import type { EscalationChecks } from '#auth/authorizers/rbac/escalation.ts'
import { forbiddenError } from '#meta/status-errors.ts'

import { changed, tryRules } from '../rules.fixture.ts'
import { defineRole } from './role.ts'

const GROUP = 'rbac.authorization.k8s.io'

const role = {
  metadata: { name: 'system:reader', namespace: 'ns' },
  rules: [{ verbs: ['get'], apiGroups: [''], resources: ['pods'] }],
}

test('a Role requires verbs, API groups and resources, and rejects URLs', async () => {
  const { create } = tryRules(defineRole())
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

test('a Role may be empty, and its rules may change', async () => {
  const { create, update } = tryRules(defineRole())
  assert.deepEqual((await create({ metadata: role.metadata })).errors, [])
  assert.deepEqual((await create({ metadata: role.metadata, rules: [] })).errors, [])
  assert.deepEqual((await update(changed(role, 'rules.0.verbs', ['*']), role)).errors, [])
  assert.deepEqual((await update(changed(role, 'rules.0.verbs', []), role)).errors, [
    'rules[0].verbs: Required value: verbs must contain at least one value',
  ])
})

test('a Role reports errors with the index of their rule', async () => {
  const { errors } = await tryRules(defineRole()).create({ ...role, rules: [...role.rules, {}] })
  assert.deepEqual(errors, [
    'rules[1].verbs: Required value: verbs must contain at least one value',
    'rules[1].apiGroups: Required value: resource rules must supply at least one api group',
    'rules[1].resources: Required value: resource rules must supply at least one resource',
  ])
})

test('a Role is rejected if the escalation check fails', async () => {
  const calls: string[] = []
  const checks: EscalationChecks = {
    async roleWrite(user, next, old) {
      calls.push(`${user.name} ${next.metadata.name} ${old === undefined ? 'new' : 'changed'}`)
      throw forbiddenError({ group: GROUP, resource: 'roles' }, 'system:reader', 'no')
    },
    bindingWrite: async () => assert.fail('A role is no binding'),
  }
  const { create, update } = tryRules(defineRole(checks))
  assert.match(
    (await create(role)).errors[0] ?? '',
    /^roles\.rbac\.authorization\.k8s\.io "system:reader" is forbidden: no$/,
  )
  await update(role, role)
  assert.deepEqual(calls, ['jane system:reader new', 'jane system:reader changed'])
})

test('a Role prints its creation time', () => {
  const { cells } = tryRules(defineRole())
  const metadata = { ...role.metadata, creationTimestamp: '2026-01-01T00:00:00Z' }
  assert.deepEqual(cells({ metadata }), ['system:reader', '2026-01-01T00:00:00Z'])
})
