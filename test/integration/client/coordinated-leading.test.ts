/** Tests coordinated leader election on a complete API server with a virtual clock: the server selects the leader. */
import assert from 'node:assert/strict'
import { afterEach, beforeEach, describe, it } from 'node:test'

import { Leases } from '#apis/coordination/v1.ts'
import { LeaseCandidates } from '#apis/coordination/v1beta1.ts'
import { ApiClient } from '#client/api-client.ts'
import { lead, LeadershipLost } from '#client/leader-election.ts'
import { keepLeaseCandidate } from '#client/lease-candidate.ts'
import { createVirtualClock, sleep, type VirtualClock } from '#lib/clock.ts'
import { createSeededRandom } from '#lib/random.ts'
import { type ControlPlane, startControlPlane } from '#testing/control-plane.ts'

const ADMIN = { name: 'tester', uid: '', groups: ['system:masters', 'system:authenticated'], extra: {} }
const WHERE = { namespace: 'kube-system', name: 'boss' }

let clock: VirtualClock
let plane: ControlPlane
let log: string[]
let stops: AbortController[]

beforeEach(async () => {
  clock = createVirtualClock(Date.UTC(2026, 0, 1))
  log = []
  stops = []
  plane = await startControlPlane({
    clock,
    settings: {
      'feature-gates': new Map([['CoordinatedLeaderElection', true]]),
      'runtime-config': new Map([['coordination.k8s.io/v1beta1', 'true']]),
    },
  })
})

afterEach(async () => {
  for (const stop of stops) stop.abort()
  await plane.stop()
})

const client = (): ApiClient =>
  new ApiClient({ transport: plane.running.server.clientAs(ADMIN), clock, userAgent: 'tester/v1' })

/** A program of some version that would lead. */
function stand(identity: string, emulationVersion: string): AbortController {
  const stop = new AbortController()
  stops.push(stop)
  const tools = {
    client: client(),
    random: createSeededRandom(1),
    namespace: WHERE.namespace,
    onError: () => undefined,
  }
  const versions = { binaryVersion: '1.36.4', emulationVersion, leaseName: WHERE.name }
  void keepLeaseCandidate({ ...tools, ...versions, name: identity }, stop.signal)
  void lead({ ...tools, name: WHERE.name, identity, coordinated: true }, stop.signal, async (signal) => {
    log.push(`${identity} leads`)
    await sleep(clock, 1e9, signal).catch(() => undefined)
  }).catch((error: unknown) => {
    assert.ok(error instanceof LeadershipLost)
    log.push(`${identity} lost`)
  })
  return stop
}

const holder = async (): Promise<string | undefined> => (await client().get(Leases, WHERE)).spec.holderIdentity

describe('coordinated leader election', () => {
  it('assigns the Lease to a candidate, and to another when the first is gone', async () => {
    const first = stand('a', '1.36.0')
    await clock.advance(10_000)
    assert.deepEqual(log, ['a leads'])
    const { spec } = await client().get(Leases, WHERE)
    assert.deepEqual([spec.holderIdentity, spec.strategy], ['a', 'OldestEmulationVersion'])
    stand('b', '1.36.0')
    await clock.advance(10_000)
    assert.equal(await holder(), 'a')
    first.abort()
    await clock.advance(30_000)
    assert.equal(await holder(), 'b')
    assert.deepEqual(log, ['a leads', 'b leads'])
  })

  it('moves the Lease to a candidate that emulates an older version', async () => {
    stand('new', '1.36.0')
    await clock.advance(10_000)
    stand('old', '1.35.0')
    await clock.advance(7000)
    assert.equal((await client().get(Leases, WHERE)).spec.preferredHolder, 'old')
    await clock.advance(40_000)
    assert.deepEqual(log, ['new leads', 'new lost', 'old leads'])
    assert.equal(await holder(), 'old')
  })

  it('never lets a candidate acquire a Lease that the server did not assign', async () => {
    await client().create(Leases, { metadata: WHERE, spec: {} })
    const stop = new AbortController()
    stops.push(stop)
    const options = { client: client(), random: createSeededRandom(1), ...WHERE, identity: 'x', coordinated: true }
    void lead(options, stop.signal, async () => void log.push('x leads'))
    await clock.advance(60_000)
    assert.deepEqual(log, [])
  })

  it('deletes candidates that were not renewed for half an hour', async () => {
    const stop = stand('a', '1.36.0')
    await clock.advance(10_000)
    stop.abort()
    await clock.advance(65 * 60_000)
    await assert.rejects(client().get(LeaseCandidates, { namespace: WHERE.namespace, name: 'a' }), /not found/)
  })
})
