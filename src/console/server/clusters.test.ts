/** Tests the states of clusters in words. */
import assert from 'node:assert/strict'
import { describe, it } from 'node:test'

import { type ManagedCluster, stateOf } from './clusters.ts'

const cluster = (
  source: ManagedCluster['spec']['source'],
  conditions: Readonly<Record<string, string>>,
  more: { up?: ManagedCluster['spec']['up']; agent?: NonNullable<ManagedCluster['status']>['agent'] } = {},
): ManagedCluster => ({
  metadata: { name: 'c-1' },
  spec: { displayName: 'one', source, ...(more.up && { up: more.up }) },
  status: {
    conditions: Object.entries(conditions).map(([type, status]) => ({ type, status, message: `${type} is ${status}` })),
    ...(more.agent && { agent: more.agent }),
  },
})

const UP = { runtime: 'simulated', nodes: 1 }
const CASES: readonly (readonly [cluster: ManagedCluster, text: string, tone: string, isReachable: boolean])[] = [
  [cluster('local', {}), 'Ready', 'good', true],
  [cluster('imported', { Ready: 'True', Connected: 'True' }), 'Ready', 'good', true],
  [cluster('imported', {}), 'Waits for its agent', 'busy', false],
  [
    cluster('imported', { Ready: 'False' }, { agent: { connectedAt: 'a', disconnectedAt: '14:02' } }),
    'Disconnected',
    'bad',
    false,
  ],
  [
    cluster('imported', { Ready: 'False', Connected: 'True' }, { agent: { connectedAt: 'a' } }),
    'Not ready',
    'bad',
    true,
  ],
  [cluster('built', { Pending: 'True' }), 'Waits for approval', 'busy', false],
  [cluster('up', { Running: 'True' }, { up: UP }), 'Starting', 'busy', false],
  [cluster('up', { Ready: 'True' }, { up: { ...UP, running: false } }), 'Stopped', 'busy', false],
]

describe('stateOf()', () => {
  for (const [one, text, tone, isReachable] of CASES) {
    it(`returns "${text}" for source ${one.spec.source}`, () => {
      const state = stateOf(one)
      assert.deepEqual([state.text, state.tone, state.isReachable], [text, tone, isReachable])
    })
  }

  it('is "Start failed" after a start on the machine of the server that failed', () => {
    const one = cluster('up', {}, { up: UP })
    const conditions = [{ type: 'Running', status: 'False', reason: 'StartFailed', message: 'no containerd' }]
    const { text, tone, causes } = stateOf({ ...one, status: { conditions } })
    assert.deepEqual([text, tone, causes], ['Start failed', 'bad', ['Running: no containerd']])
  })

  it('names a cause of several conditions once', () => {
    const one = cluster('imported', {})
    const conditions = ['Connected', 'Ready'].map((type) => ({ type, status: 'False', message: 'away' }))
    assert.deepEqual(stateOf({ ...one, status: { conditions } }).causes, ['Connected: away'])
  })

  it('names what is wrong', () => {
    assert.deepEqual(stateOf(cluster('imported', { Ready: 'False' })).causes, ['Ready: Ready is False'])
  })
})
