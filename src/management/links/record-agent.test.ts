import assert from 'node:assert/strict'
import { describe, it } from 'node:test'

import type { Cluster, ClusterStatus } from '../kinds/cluster.ts'
import { withAgent } from './record-agent.ts'

const NOW = '2026-01-01T00:00:10Z'
const BEFORE = '2026-01-01T00:00:00Z'
const AGENT = { uid: 'u', version: '1', address: '10.0.0.1' }

describe('withAgent() for the status of a Cluster', () => {
  const rows: readonly {
    readonly it: string
    readonly before: ClusterStatus['agent']
    readonly agent: typeof AGENT | undefined
    readonly after: ClusterStatus['agent']
  }[] = [
    {
      it: 'records that the agent has connected',
      before: undefined,
      agent: AGENT,
      after: { version: '1', address: '10.0.0.1', replica: 'mine', connectedAt: NOW },
    },
    {
      it: 'records an agent that was connected to another replica before',
      before: { replica: 'other', connectedAt: BEFORE, disconnectedAt: BEFORE },
      agent: AGENT,
      after: { version: '1', address: '10.0.0.1', replica: 'mine', connectedAt: NOW },
    },
    {
      it: 'records that the agent has disconnected',
      before: { version: '1', replica: 'mine', connectedAt: BEFORE },
      agent: undefined,
      after: { version: '1', connectedAt: BEFORE, disconnectedAt: NOW },
    },
    {
      it: 'changes nothing if the agent has meanwhile connected to another replica',
      before: { version: '1', replica: 'other', connectedAt: BEFORE },
      agent: undefined,
      after: undefined,
    },
    {
      it: 'records that the agent has disconnected if the status names no replica',
      before: { version: '1', connectedAt: BEFORE },
      agent: undefined,
      after: { version: '1', connectedAt: BEFORE, disconnectedAt: NOW },
    },
  ]
  for (const row of rows) {
    it(row.it, () => {
      const status = row.before === undefined ? {} : { status: { agent: row.before } }
      const cluster: Cluster = { metadata: { name: 'c-1' }, spec: { displayName: 'c', source: 'imported' }, ...status }
      const found = withAgent(cluster, { cluster: 'c-1', agent: row.agent, replica: 'mine' }, NOW)
      assert.deepEqual(found?.status?.agent, row.after)
    })
  }
})
