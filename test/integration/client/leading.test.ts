/** Tests the client's leader election on a complete API server with a virtual clock. */
import assert from 'node:assert/strict'
import { afterEach, beforeEach, describe, it } from 'node:test'

import { Leases } from '#apis/coordination/v1.ts'
import { ApiClient, type Transport } from '#client/api-client.ts'
import { lead, LeadershipLost } from '#client/leader-election.ts'
import { createVirtualClock, sleep, type VirtualClock } from '#lib/clock.ts'
import { HttpError } from '#lib/http/http-error.ts'
import { createSeededRandom } from '#lib/random.ts'
import { type ControlPlane, startControlPlane } from '#testing/control-plane.ts'

const ADMIN = { name: 'tester', uid: '', groups: ['system:masters', 'system:authenticated'], extra: {} }
const START_MS = Date.UTC(2026, 0, 1)

let clock: VirtualClock
let plane: ControlPlane

beforeEach(async () => {
  clock = createVirtualClock(START_MS)
  plane = await startControlPlane({ clock })
})

afterEach(() => plane.stop())

const client = (transport: Transport = plane.running.server.clientAs(ADMIN)): ApiClient =>
  new ApiClient({ transport, clock, userAgent: 'tester/v1' })

interface Leading {
  /** The actions with their second. */
  readonly log: string[]
  readonly stop: AbortController
  readonly ended: Promise<void>
}

function campaign(identity: string, log: string[], transport?: Transport): Leading {
  const stop = new AbortController()
  const say = (what: string): void =>
    void log.push(`${Math.round((clock.now() - START_MS) / 1000)} ${identity} ${what}`)
  const options = {
    client: client(transport),
    random: createSeededRandom(1),
    namespace: 'kube-system',
    name: 'boss',
    identity,
  }
  const ended = lead(options, stop.signal, async (signal) => {
    say('leads')
    await sleep(clock, 1e9, signal).catch(() => undefined)
    say('ends')
  }).catch((error: unknown) => {
    assert.ok(error instanceof LeadershipLost)
    say('lost')
  })
  return { log, stop, ended }
}

describe('leader election', () => {
  it('has one leader, and another one after the first releases the Lease', async () => {
    const log: string[] = []
    const a = campaign('a', log)
    await clock.advance(1000)
    const b = campaign('b', log)
    await clock.advance(59_000)
    assert.deepEqual(log, ['0 a leads'])
    const lease = await client().get(Leases, { namespace: 'kube-system', name: 'boss' })
    assert.equal(lease.spec.holderIdentity, 'a')
    assert.equal(lease.spec.leaseDurationSeconds, 15)
    a.stop.abort()
    await clock.advance(5000)
    await a.ended
    assert.deepEqual(log.slice(1, 2), ['60 a ends'])
    assert.match(log[2] ?? '', /^6[0-5] b leads$/)
    const taken = await client().get(Leases, { namespace: 'kube-system', name: 'boss' })
    assert.deepEqual([taken.spec.holderIdentity, taken.spec.leaseTransitions], ['b', 1])
    b.stop.abort()
    await clock.advance(1000)
    await b.ended
  })

  it('ends the work of a leader that cannot renew the Lease before another one starts', async () => {
    const log: string[] = []
    let isCut = false
    const wire = plane.running.server.clientAs(ADMIN)
    const cut: Transport = {
      request: (request) => (isCut ? Promise.reject(new HttpError('connect', 'cut off')) : wire.request(request)),
    }
    const a = campaign('a', log, cut)
    await clock.advance(1000)
    const b = campaign('b', log)
    await clock.advance(10_000)
    isCut = true
    await clock.advance(60_000)
    await a.ended
    const [endedAt, ledAt] = [
      log.findIndex((line) => line.endsWith('a lost')),
      log.findIndex((line) => line.endsWith('b leads')),
    ]
    assert.ok(endedAt > 0 && endedAt < ledAt, log.join('; '))
    b.stop.abort()
    await clock.advance(1000)
    await b.ended
  })
})
