import assert from 'node:assert/strict'
import { describe, it } from 'node:test'

import type { Node } from '#apis/core/v1.ts'

import { healthz, livez } from './health.ts'

const NOW = Date.UTC(2030, 0, 1)
const facts = (queuedMs?: number): Parameters<typeof livez>[0] => ({
  standing: new Map([['IPv4', { updatedMs: NOW - 5000, queuedMs }]]),
  syncMs: 30_000,
  nowMs: NOW,
})
const node = (more: Partial<Node['spec']> = {}): Node => ({
  kind: 'Node',
  apiVersion: 'v1',
  metadata: { name: 'n' },
  spec: more,
  status: {} as Node['status'],
})

describe('health pages of kube-proxy', () => {
  it('respond with 200 while rules are up to date', () => {
    assert.deepEqual(livez(facts()), {
      isHealthy: true,
      text: '{"lastUpdated":"2030-01-01T00:00:00.000Z","currentTime":"2030-01-01T00:00:00.000Z","healthy":true,"status":{"IPv4":{"lastUpdated":"2029-12-31T23:59:55.000Z","healthy":true}}}',
    })
    assert.equal(livez(facts(NOW - 59_000)).isHealthy, true)
    assert.equal(livez(facts(NOW - 61_000)).isHealthy, false)
  })

  it('respond with 503 on /healthz if the node is being deleted', () => {
    assert.equal(healthz(facts(), node()).isHealthy, true)
    const taints = [{ key: 'ToBeDeletedByClusterAutoscaler', effect: 'NoSchedule' }]
    assert.equal(healthz(facts(), node({ taints })).isHealthy, false)
    assert.equal(healthz(facts(), undefined).isHealthy, false)
  })
})
