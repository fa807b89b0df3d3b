import assert from 'node:assert/strict'
import { describe, it, type TestContext } from 'node:test'

import type { Pod } from '#apis/core/v1.ts'
import { createVirtualClock, sleep, type VirtualClock } from '#lib/clock.ts'
import { createLog } from '#lib/log/log.ts'
import { createRegistry } from '#lib/metrics/metrics.ts'

import { bedOf, podOf as podInBed } from '../pods/worker.fixture.ts'
import { graceOf, groupsOf, periodsOf, type ShutdownPeriod } from './shutdown-groups.ts'
import { ShutdownManager, type ShutdownWatch } from './shutdown-manager.ts'

function podOf(name: string, priority: number, graceSeconds = 30): Pod {
  const spec = { containers: [], priority, terminationGracePeriodSeconds: graceSeconds }
  return { metadata: { name, namespace: 'default', uid: name }, spec, status: {} }
}

const period = (priority: number, shutdownGracePeriodSeconds: number): ShutdownPeriod => ({
  priority,
  shutdownGracePeriodSeconds,
})

describe('periodsOf() for a node shutdown', () => {
  const of = (shutdownGracePeriod: string, critical = '0s', byPriority: ShutdownPeriod[] = []): object =>
    periodsOf({
      shutdownGracePeriod,
      shutdownGracePeriodCriticalPods: critical,
      shutdownGracePeriodByPodPriority: byPriority,
    })

  it('returns no periods without configured grace periods', () => assert.deepEqual(of('0s'), []))

  it('derives two periods from shutdownGracePeriod and shutdownGracePeriodCriticalPods', () => {
    assert.deepEqual(of('30s', '10s'), [period(0, 20), period(2_000_000_000, 10)])
  })

  it('sorts the periods by pod priority', () => {
    assert.deepEqual(of('0s', '0s', [period(100, 5), period(-1, 3)]), [period(-1, 3), period(100, 5)])
  })

  it('uses shutdownGracePeriod and shutdownGracePeriodCriticalPods if the priority gate is off', () => {
    const settings = { shutdownGracePeriod: '5s', shutdownGracePeriodCriticalPods: '0s' }
    const byPriority = { ...settings, shutdownGracePeriodByPodPriority: [period(1, 1)] }
    assert.deepEqual(periodsOf(byPriority, false), [period(0, 5), period(2_000_000_000, 0)])
  })
})

describe('groupsOf() for pods at a node shutdown', () => {
  it('assigns each pod to the group with the highest priority that is not above that of the pod', () => {
    const pods = [podOf('lower', -5), podOf('low', 0), podOf('between', 50), podOf('at', 100), podOf('above', 5000)]
    const groups = groupsOf([period(0, 1), period(100, 2), period(1000, 3)], pods)
    const names = groups.map((group) => group.pods.map(({ metadata }) => metadata.name))
    assert.deepEqual(names, [['lower', 'low', 'between'], ['at'], ['above']])
  })

  it('limits the grace period of each pod to terminationGracePeriodSeconds', () => {
    assert.equal(graceOf(podOf('p', 0, 2), period(0, 10)), 2)
    assert.equal(graceOf(podOf('p', 0, 60), period(0, 10)), 10)
  })
})

class Source {
  tell: (isShuttingDown: boolean) => void = () => undefined
  wantedSeconds = 0
  activeLocks = 0
  locks = 0
  watches = 0
  cut: () => void = () => undefined

  async watch(wantedSeconds: number, changed: (isShuttingDown: boolean) => void): Promise<ShutdownWatch> {
    this.watches++
    this.wantedSeconds = wantedSeconds
    this.tell = changed
    const closed = Promise.withResolvers<void>()
    this.cut = closed.resolve
    const lock = async (): Promise<{ release: () => Promise<void> }> => {
      this.activeLocks++
      this.locks++
      return { release: async () => void this.activeLocks-- }
    }
    return { closed: closed.promise, lock, close: closed.resolve }
  }
}

interface Scene {
  readonly clock: VirtualClock
  readonly source: Source
  /** `name after seconds with grace`. */
  readonly ended: string[]
  readonly events: string[]
  readonly page: () => string
  readonly saved: string[]
  readonly state: { readonly isShuttingDown: boolean }
}

/** A pod takes as many seconds to end as its name says. */
async function begin(t: TestContext, pods: readonly Pod[]): Promise<Scene> {
  const stop = new AbortController()
  t.after(() => stop.abort())
  const clock = createVirtualClock()
  const startMs = clock.now()
  const source = new Source()
  const ended: string[] = []
  const events: string[] = []
  const registry = createRegistry()
  const saved: string[] = []
  const state = { isShuttingDown: false }
  const manager = new ShutdownManager({
    source,
    periods: [period(0, 20), period(2_000_000_000, 10)],
    clock,
    log: createLog({ stream: { write: (_, done) => done() }, clock }).logger,
    signal: stop.signal,
    registry,
    save: async (state) => void saved.push(state),
    pods: () => pods,
    end: async ({ metadata: { name = '' } }, graceSeconds) => {
      await sleep(clock, Number(name.split('-')[1]) * 1000)
      ended.push(`${name} after ${(clock.now() - startMs) / 1000} with ${graceSeconds}`)
    },
    changed: (isShuttingDown) => {
      state.isShuttingDown = isShuttingDown
      if (isShuttingDown) events.push('the node says how it is')
    },
    recordEvent: ({ reason, message }) => events.push(`${reason}: ${message}`),
  })
  void manager.run()
  await clock.advance(0)
  return { clock, source, state, ended, events, page: () => registry.render(), saved }
}

describe('ShutdownManager of a node', () => {
  it('stops pods with low priority first, then critical ones', async (t) => {
    const pods = [podOf('critical-1', 2_000_001_000), podOf('plain-3', 0), podOf('quick-1', 5, 1)]
    const { clock, source, state, ended, events } = await begin(t, pods)
    assert.deepEqual([source.wantedSeconds, source.activeLocks], [30, 1])
    source.tell(true)
    await clock.advance(0)
    assert.equal(state.isShuttingDown, true)
    await clock.advance(60_000)
    await clock.advance(0)
    assert.deepEqual(ended, ['quick-1 after 1 with 1', 'plain-3 after 3 with 20', 'critical-1 after 4 with 10'])
    assert.deepEqual(events, ['NodeShutdown: Shutdown manager detected shutdown event', 'the node says how it is'])
    assert.equal(source.activeLocks, 0)
  })

  it('waits for no group of pods longer than its grace period', async (t) => {
    const { clock, source, ended } = await begin(t, [podOf('critical-1', 2_000_001_000), podOf('slow-100', 0)])
    source.tell(true)
    await clock.advance(0)
    await clock.advance(22_000)
    await clock.advance(0)
    assert.deepEqual(ended, ['critical-1 after 21 with 10'])
    assert.equal(source.activeLocks, 0)
  })

  it('admits pods again after a cancelled shutdown, and handles the next shutdown', async (t) => {
    const { clock, source, state, events } = await begin(t, [])
    source.tell(true)
    source.tell(false)
    await clock.advance(0)
    assert.equal(state.isShuttingDown, false)
    assert.equal(events.at(-1), 'NodeShutdown: Shutdown manager detected shutdown cancellation')
    assert.deepEqual([source.activeLocks, source.locks], [1, 2])
  })

  it('watches for shutdowns again after the connection to D-Bus was lost', async (t) => {
    const { clock, source } = await begin(t, [])
    source.cut()
    await clock.advance(0)
    assert.equal(source.activeLocks, 0)
    await clock.advance(1000)
    await clock.advance(0)
    assert.deepEqual([source.watches, source.activeLocks], [2, 1])
  })

  it('records the start and end of a shutdown as a metric and in a file', async (t) => {
    const { clock, source, page, saved } = await begin(t, [podOf('p-2', 0)])
    source.tell(true)
    await clock.advance(0)
    await clock.advance(10_000)
    await clock.advance(0)
    assert.match(page(), /^kubelet_graceful_shutdown_start_time_seconds 1\.7672256e\+09$/m)
    assert.match(page(), /^kubelet_graceful_shutdown_end_time_seconds 1\.767225602e\+09$/m)
    assert.deepEqual(JSON.parse(saved.at(-1) ?? ''), {
      startTime: '2026-01-01T00:00:00.000Z',
      endTime: '2026-01-01T00:00:02.000Z',
    })
  })
})

it('a pod on a node that shuts down fails with a reason and DisruptionTarget', async () => {
  const bed = bedOf()
  bed.workers.updatePod({ type: 'ADDED', object: podInBed({}) })
  await bed.clock.advance(3000)
  const [view] = bed.workers.registry.activePods()
  assert.ok(view !== undefined)
  const ending = bed.workers.shutDown(view.pod, 1)
  await bed.clock.advance(5000)
  await ending
  const status = Object.assign({}, ...bed.patches.map((patch) => patch.status)) as Record<string, unknown>
  assert.equal(status['phase'], 'Failed')
  assert.equal(status['reason'], 'Terminated')
  assert.equal(status['message'], 'Pod was terminated in response to imminent node shutdown.')
  const conditions = bed.patches.flatMap(({ status: { conditions = [] } }) => conditions)
  const disrupted = conditions.find(({ type }) => type === 'DisruptionTarget') as Record<string, unknown> | undefined
  assert.equal(disrupted?.['reason'], 'TerminationByKubelet')
})
