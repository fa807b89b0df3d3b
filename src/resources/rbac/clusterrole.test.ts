import assert from 'node:assert/strict'
import { test } from 'node:test'

import type { EscalationChecks } from '#auth/authorizers/rbac/escalation.ts'

import { changed, tryRules } from '../rules.fixture.ts'
import { defineClusterRole } from './clusterrole.ts'

const SELECTORS = 'aggregationRule.clusterRoleSelectors'

const gathering = {
  metadata: { name: 'a' },
  aggregationRule: { clusterRoleSelectors: [{ matchLabels: { a: 'b' } }] },
}
const selecting = (selector: object): object => changed(gathering, `${SELECTORS}.0`, selector)

test('an aggregating ClusterRole requires selectors', async () => {
  const { create } = tryRules(defineClusterRole())
  assert.deepEqual((await create(gathering)).errors, [])
  assert.deepEqual((await create(changed(gathering, SELECTORS, []))).errors, [
    `${SELECTORS}: Required value: at least one clusterRoleSelector required if aggregationRule is non-nil`,
  ])
  assert.deepEqual(
    (await create(selecting({ matchExpressions: [{ key: 'a', operator: 'Like', values: ['b'] }] }))).errors,
    [
      `${SELECTORS}[0].matchExpressions[0].operator: Invalid value: "Like": not a valid selector operator`,
      `${SELECTORS}[0]: Invalid value: null: invalid label selector.`,
    ],
  )
})

test('a ClusterRole keeps an invalid label value that its old selector has', async () => {
  const { create, update } = tryRules(defineClusterRole())
  const old = selecting({ matchExpressions: [{ key: 'a', operator: 'In', values: ['-'] }] })
  assert.equal((await create(old)).errors.length, 2)
  assert.deepEqual((await update(old, old)).errors, [`${SELECTORS}[0]: Invalid value: null: invalid label selector.`])
  assert.equal((await update(old, gathering)).errors.length, 2)
})

test('a ClusterRole may allow URLs, but no rule has both URLs and resources', async () => {
  const { create } = tryRules(defineClusterRole())
  const rule = { verbs: ['get'], nonResourceURLs: ['/healthz', '/metrics/*'] }
  const role = { metadata: { name: 'system:monitoring' }, rules: [rule] }
  assert.deepEqual((await create(role)).errors, [])
  for (const mixed of [{ apiGroups: [''] }, { resources: ['pods'] }, { resourceNames: ['a'] }]) {
    assert.deepEqual((await create(changed(role, 'rules.0', { ...rule, ...mixed }))).errors, [
      'rules[0].nonResourceURLs: Invalid value: ["/healthz","/metrics/*"]: rules cannot apply to both regular resources and non-resource URLs',
    ])
  }
  assert.deepEqual((await create(changed(role, 'rules.0.verbs', []))).errors, [
    'rules[0].verbs: Required value: verbs must contain at least one value',
  ])
})

test('a ClusterRole is rejected if the escalation check fails', async () => {
  const calls: string[] = []
  const checks: EscalationChecks = {
    async roleWrite(user, next, old) {
      calls.push(`${user.name} ${next.metadata.name} ${old === undefined ? 'new' : 'changed'}`)
    },
    bindingWrite: async () => assert.fail('A role is no binding'),
  }
  const { create, update } = tryRules(defineClusterRole(checks))
  assert.deepEqual((await create(gathering)).errors, [])
  assert.deepEqual((await update(gathering, gathering)).errors, [])
  assert.deepEqual(calls, ['jane a new', 'jane a changed'])
})

test('a ClusterRole prints its creation time', () => {
  const body = { metadata: { name: 'a', creationTimestamp: '2026-01-01T00:00:00Z' } }
  assert.deepEqual(tryRules(defineClusterRole()).cells(body), ['a', '2026-01-01T00:00:00Z'])
})
