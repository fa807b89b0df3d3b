import assert from 'node:assert/strict'
import { test } from 'node:test'

import type { HealthOptions } from '#storage/backend.ts'

import type { Registry } from '../registry/registry.ts'
import { healthChecks } from './health-checks.ts'

test('the storage health check does not compute sizes, which can be expensive', async () => {
  const calls: (HealthOptions | undefined)[] = []
  const backend = {
    health: async (_signal?: AbortSignal, options?: HealthOptions) => {
      calls.push(options)
      return { ok: calls.length < 3, message: 'The disk is full' }
    },
  }
  const registry = {
    services: { backend, atRest: {}, isEnabled: () => false },
    served: () => [],
  } as unknown as Registry
  const checks = healthChecks(registry, { stopping: false })
  const ofStore = checks.filter(({ name }) => name.startsWith('etcd'))
  assert.deepEqual(
    ofStore.map(({ name, on }) => [name, on.includes('livez')]),
    [
      ['etcd', true],
      ['etcd-readiness', false],
    ],
  )
  for (const one of ofStore) await one.check()
  assert.deepEqual(calls, [{ withoutSizes: true }, { withoutSizes: true }])
  await assert.rejects(async () => ofStore[0]?.check(), { message: 'The disk is full' })
})

test('a component that a feature gate disables has no health check', () => {
  const named = (isEnabled: () => boolean): string[] => {
    const registry = { services: { backend: {}, atRest: {}, isEnabled }, served: () => [] } as unknown as Registry
    return healthChecks(registry, { stopping: false }).map(({ name }) => name)
  }
  const election = 'poststarthook/start-kube-apiserver-coordinated-leader-election-controller'
  assert.ok(named(() => true).includes(election))
  assert.ok(!named(() => false).includes(election))
})
