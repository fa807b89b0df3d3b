import assert from 'node:assert/strict'
import { test } from 'node:test'

import type { APIService } from '#apis/apiregistration/v1.ts'

import { planAnnouncement } from './roster.ts'

const service = (name: string, groupPriorityMinimum: number, versionPriority: number): APIService => {
  const [version = '', ...group] = name.split('.')
  const spec = { group: group.join('.'), version, groupPriorityMinimum, versionPriority }
  return { kind: 'APIService', apiVersion: 'apiregistration.k8s.io/v1', metadata: { name }, spec, status: {} }
}

const planned = (...services: readonly APIService[]): string[] =>
  planAnnouncement(services).map(({ name, versions }) => `${name}: ${versions.map(({ version }) => version).join(' ')}`)

test('API groups are ordered by their highest priority, then by the name of the APIService', () => {
  const low = service('v1.b.io', 10, 1)
  assert.deepEqual(planned(low, service('v1.a.io', 20, 1)), ['a.io: v1', 'b.io: v1'])
  assert.deepEqual(planned(low, service('v1.a.io', 10, 1)), ['a.io: v1', 'b.io: v1'])
  // By version before group, as upstream.
  assert.deepEqual(planned(low, service('v1beta1.a.io', 10, 1)), ['b.io: v1', 'a.io: v1beta1'])
  assert.deepEqual(planned(low, service('v1.a.io', 1, 1), service('v2.a.io', 11, 1)), ['a.io: v2 v1', 'b.io: v1'])
})

test('versions of an API group are ordered by priority, then by age', () => {
  const some = [service('v1alpha1.a.io', 1, 9), service('v1.a.io', 1, 1), service('v2.a.io', 1, 1)]
  assert.deepEqual(planned(...some, service('v1beta1.a.io', 1, 1)), ['a.io: v1alpha1 v2 v1 v1beta1'])
})
