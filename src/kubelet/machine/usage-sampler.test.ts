import assert from 'node:assert/strict'
import { test } from 'node:test'

import type { Runtime } from '#cri/runtime.ts'
import { createVirtualClock } from '#lib/clock.ts'

import type { PodOfNode } from '../pod/pod-of-node.ts'
import { LABELS } from '../pod/sandbox-config.ts'
import { busyNanoSeconds, UsageSampler, usedBytes, WINDOW_MS } from './usage-sampler.ts'

test('CPU usage is the average of the last seconds, however often it is measured', async () => {
  const clock = createVirtualClock()
  const startMs = clock.elapsed()
  // Always half a CPU.
  const spent = (): number => (clock.elapsed() - startMs) * 500_000
  const labels = new Map([
    [LABELS.podUid, 'u1'],
    [LABELS.containerName, 'c'],
  ])
  const stats = (): object => ({ attributes: { id: 'x', labels }, cpu: { usageCoreNanoSeconds: { value: spent() } } })
  const runtime = { listContainerStats: async () => ({ stats: [stats()] }) } as unknown as Runtime
  const pods = (): PodOfNode[] => [
    {
      pod: { metadata: { uid: 'u1' }, spec: {}, status: {} },
      sandboxId: 's',
      containers: new Map(),
    } as unknown as PodOfNode,
  ]
  const sampler = new UsageSampler({ name: 'n', clock, runtime, capacityBytes: 1, pods })
  const used = async (): Promise<number | undefined> => (await sampler.measure()).pods[0]?.all.cpuNanoCores
  assert.equal(await used(), 0)
  for (const ms of [WINDOW_MS, 0, 1, 1, WINDOW_MS - 3, 1, 5, WINDOW_MS, 0]) {
    await clock.advance(ms)
    assert.equal(await used(), 500_000_000, `after ${ms} ms`)
  }
})

test('the first sample of CPU usage covers the time since the start', async () => {
  const clock = createVirtualClock()
  const startedMs = clock.now()
  await clock.advance(4000)
  const labels = new Map([
    [LABELS.podUid, 'u1'],
    [LABELS.containerName, 'c'],
  ])
  const stats = [{ attributes: { id: 'x', labels }, cpu: { usageCoreNanoSeconds: { value: 1e9 } } }]
  const runtime = { listContainerStats: async () => ({ stats }) } as unknown as Runtime
  const containers = new Map([['c', { record: { run: { startedMs } } }]])
  const pods = (): PodOfNode[] => [{ pod: { metadata: { uid: 'u1' } }, containers } as unknown as PodOfNode]
  const sampler = new UsageSampler({ name: 'n', clock, runtime, capacityBytes: 1, pods })
  assert.equal((await sampler.measure()).pods[0]?.all.cpuNanoCores, 250_000_000)
})

test('CPU usage counters are parsed from the kernel’s format', () => {
  assert.equal(busyNanoSeconds('cpu  1 2 3 400 50 6 7 8 0 0\ncpu0 1\n'), 19 * 1e7)
  assert.equal(usedBytes('MemTotal:  100 kB\nMemFree: 1 kB\nMemAvailable:   40 kB\n'), 60 * 1024)
})
