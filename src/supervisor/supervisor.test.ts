import assert from 'node:assert/strict'
import { describe, it } from 'node:test'

import { SimulatedWindows, type SimulatedWindowsOptions } from '#kits/supervisor/simulated-windows.ts'
import { createVirtualClock } from '#lib/clock.ts'
import { createSeededRandom } from '#lib/random.ts'

import type { Host } from './host.ts'
import { WINDOWS_SETTINGS } from './settings.fixture.ts'
import type { NodeSettings } from './settings.ts'
import { changedProcesses, Supervisor, type SupervisorEvent } from './supervisor.ts'

const SETTINGS: NodeSettings = { ...WINDOWS_SETTINGS, kubeletOptions: [], kubeProxyOptions: [] }
const NAMES = ['kubelet', 'flanneld', 'kube-proxy'] as const
const NO_POLICIES = { 'kube-network-policies': 0 }
const MINUTE = 60_000

async function supervised(
  options: Omit<SimulatedWindowsOptions, 'clock'>,
  use: (bed: {
    clock: ReturnType<typeof createVirtualClock>
    machine: SimulatedWindows
    supervisor: Supervisor
    events: SupervisorEvent[]
    sick: Set<string>
  }) => Promise<void>,
): Promise<void> {
  const clock = createVirtualClock()
  const machine = new SimulatedWindows({ clock, ended: () => supervisor.wake(), ...options })
  const events: SupervisorEvent[] = []
  const sick = new Set<string>()
  const web: Host['web'] = {
    get: async (url) => {
      if (sick.has(url)) throw new Error('no answer')
      return 'ok'
    },
  }
  const health = { kubelet: 'kubelet', 'kube-proxy': 'kube-proxy' }
  const host = { ...machine.host, web }
  const random = createSeededRandom(1)
  const supervisor: Supervisor = new Supervisor({
    host,
    random,
    settings: SETTINGS,
    health,
    report: (event) => events.push(event),
  })
  const stop = new AbortController()
  const running = supervisor.run(stop.signal).catch(() => undefined)
  await use({ clock, machine, supervisor, events, sick })
  stop.abort()
  await clock.advance(MINUTE)
  await running
}

const namesOf = (machine: SimulatedWindows): string[] =>
  machine
    .running()
    .map(({ name }) => name)
    .sort()
const ALL = [...NAMES].sort()

describe("supervisor of a worker's processes", () => {
  it('restarts processes after any exits, and never runs one twice', () =>
    supervised({}, async ({ clock, machine }) => {
      const random = createSeededRandom(17)
      await clock.advance(3 * MINUTE)
      for (let round = 0; round < 200; round++) {
        assert.deepEqual(namesOf(machine), ALL, `round ${round}`)
        machine.kill(...NAMES.filter(() => random.int(2) === 0))
        await clock.advance(4 * MINUTE)
      }
      assert.equal(machine.doubles, 0)
    }))

  it('handles simultaneous exits as one event, in any order', () =>
    supervised({}, async ({ clock, machine, supervisor }) => {
      await clock.advance(3 * MINUTE)
      const before = machine.journal.length
      machine.kill('kube-proxy')
      supervisor.wake()
      await clock.advance(500)
      machine.kill('kubelet')
      supervisor.wake()
      await clock.advance(3 * MINUTE)
      const launched = machine.journal.slice(before).flatMap((line) => / launch (.*)/.exec(line)?.[1] ?? [])
      assert.deepEqual(launched, NAMES)
      assert.deepEqual(supervisor.status.starts, { kubelet: 2, flanneld: 2, 'kube-proxy': 2, ...NO_POLICIES })
    }))

  it('reports the process that is being started', () =>
    supervised({}, async ({ clock, supervisor }) => {
      await clock.advance(10_000)
      assert.equal(supervisor.status.starting, 'kubelet')
      await clock.advance(3 * MINUTE)
      assert.equal(supervisor.status.starting, undefined)
      assert.equal(supervisor.status.outcomes.ok, supervisor.status.looks)
    }))

  it('restarts a process after three failed health checks', () =>
    supervised({}, async ({ clock, machine, events, sick, supervisor }) => {
      await clock.advance(3 * MINUTE)
      sick.add('kube-proxy')
      await clock.advance(15_000)
      sick.clear()
      await clock.advance(MINUTE)
      assert.deepEqual(
        events.map(({ reason }) => reason),
        ['Missing', 'Missing', 'Started'],
      )
      sick.add('kube-proxy')
      await clock.advance(35_000)
      sick.clear()
      await clock.advance(2 * MINUTE)
      assert.deepEqual(
        events.map(({ reason }) => reason),
        ['Missing', 'Missing', 'Started', 'Unhealthy', 'Missing', 'Started'],
      )
      assert.deepEqual(supervisor.status.starts, { kubelet: 1, flanneld: 1, 'kube-proxy': 2, ...NO_POLICIES })
      assert.deepEqual(namesOf(machine), ALL)
    }))

  it('retries failed starts with backoff, and at once on request', () =>
    supervised({ livesMs: { kubelet: [1000] } }, async ({ clock, events, supervisor }) => {
      await clock.advance(30 * MINUTE)
      const looks = supervisor.status.looks
      assert.ok(events.every(({ reason }) => reason === 'Retry' || reason === 'Missing'))
      assert.ok(looks >= 7 && looks <= 9, `${looks} looks of 106 s in half an hour, two minutes apart in the end`)
      assert.equal(supervisor.status.last?.kind, 'retry')
    }))

  it('restarts only processes whose flags changed', () =>
    supervised({}, async ({ clock, machine, supervisor }) => {
      await clock.advance(3 * MINUTE)
      supervisor.change({ ...SETTINGS, kubeProxyOptions: ['--v=4'] })
      await clock.advance(2 * MINUTE)
      const proxies = machine.running().filter(({ name }) => name === 'kube-proxy')
      assert.deepEqual(
        proxies.map(({ launch }) => launch.args),
        [['--cluster-cidr=10.42.0.0/16', '--v=4']],
      )
      assert.deepEqual(supervisor.status.starts, { kubelet: 1, flanneld: 1, 'kube-proxy': 2, ...NO_POLICIES })
    }))

  it('returns the processes that a change affects', () => {
    assert.deepEqual(changedProcesses(SETTINGS, { ...SETTINGS }), [])
    assert.deepEqual(changedProcesses(SETTINGS, { ...SETTINGS, kubeletOptions: ['--v=1'] }), ['kubelet'])
    assert.deepEqual(changedProcesses(SETTINGS, { ...SETTINGS, nodeIp: '10.1.2.4' }), [...NAMES])
  })
})
