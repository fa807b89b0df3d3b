import assert from 'node:assert/strict'
import { describe, it } from 'node:test'

import type { Cluster } from '../kinds/cluster.ts'
import { planUpCluster } from './plan.ts'
import type { FoundCluster } from './programs.ts'

const running: FoundCluster = { endpoint: { url: 'https://127.0.0.1:1', ca: '', certificate: '', key: '' } }
const stopped: FoundCluster = { endpoint: undefined }
const cluster = (isWanted: boolean | undefined, deletionTimestamp?: string): Cluster => ({
  metadata: { name: 'c-1', ...(deletionTimestamp !== undefined && { deletionTimestamp }) },
  spec: {
    displayName: 'a',
    source: 'up',
    up: { runtime: 'simulated', nodes: 1, ...(isWanted !== undefined && { running: isWanted }) },
  },
})

describe('planUpCluster', () => {
  const deleted = '2026-11-19T00:00:00Z'
  for (const [what, object, found, action] of [
    ['starts a new cluster', cluster(undefined), undefined, 'start'],
    ['starts a stopped cluster that must run', cluster(true), stopped, 'start'],
    ['leaves a running cluster alone', cluster(true), running, 'none'],
    ['stops a running cluster that must not run', cluster(false), running, 'stop'],
    ['leaves a stopped cluster alone', cluster(false), stopped, 'none'],
    ['does not create a cluster that must not run', cluster(false), undefined, 'none'],
    ['removes a deleted cluster that runs', cluster(true, deleted), running, 'remove'],
    ['removes a deleted cluster that does not exist', cluster(true, deleted), undefined, 'remove'],
  ] as const) {
    it(what, () => assert.equal(planUpCluster(object, found), action))
  }
})
