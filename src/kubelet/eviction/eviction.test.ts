import assert from 'node:assert/strict'
import { mkdir, mkdtemp, rm, symlink, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { test } from 'node:test'

import type { Container, Pod } from '#apis/core/v1.ts'
import { createLog } from '#lib/log/log.ts'

import { sizeOf } from '../machine/file-sizes.ts'
import { fileUse, memoryOf, tasksOf } from '../machine/node-usage.ts'
import type { NodeUse, PodUse } from '../machine/node-use.ts'
import { createKubeletMeters } from '../metrics/kubelet-families.ts'
import { type Bed, bedOf, containerOf, podOf } from '../pods/worker.fixture.ts'
import { EvictionManager, type EvictionOptions } from './eviction-manager.ts'
import { Pressure } from './pressure.ts'
import { evictionText, excessOf, rankPods } from './ranking.ts'
import { observationsOf, parseThresholds } from './thresholds.ts'

const MI = 2 ** 20
const GI = 2 ** 30

const diskOf = (availableBytes: number): NonNullable<NodeUse['nodeDisk']> => ({
  capacityBytes: 100 * GI,
  availableBytes,
  inodes: 1000,
  inodesFree: 900,
})

const nodeOf = (availableBytes: number, more: Partial<NodeUse> = {}): NodeUse => ({
  memory: { availableBytes, capacityBytes: 4 * GI },
  nodeDisk: diskOf(90 * GI),
  imageDisk: diskOf(90 * GI),
  hasImageDisk: false,
  pods: [],
  ...more,
})

interface PodUsage {
  readonly priority?: number
  readonly asks?: string
  readonly uses?: number
  readonly disk?: number
}

function useOf(name: string, { priority = 0, asks, uses = 0, disk = 0 }: PodUsage): PodUse {
  const resources: Container['resources'] =
    asks === undefined ? {} : { requests: { memory: asks, 'ephemeral-storage': asks } }
  const pod = podOf({ priority, containers: [containerOf('c', { resources })] }, { name, uid: name })
  const container = { name: 'c', memoryBytes: uses, rootfsBytes: disk, rootfsInodes: 1, logBytes: 0, logInodes: 0 }
  return { pod, isKnown: true, memoryBytes: uses, processes: 1, containers: [container], volumes: [] }
}

const namesOf = (uses: readonly PodUse[]): (string | undefined)[] => uses.map(({ pod }) => pod.metadata.name)

test('parseThresholds() accepts and rejects eviction thresholds as upstream does', () => {
  const [first] = parseThresholds({})
  assert.equal(first?.signal, 'memory.available')
  assert.equal(parseThresholds({}).length, 5)
  assert.deepEqual(parseThresholds({ evictionHard: { 'nodefs.available': '0%' } }), [])
  const bad =
    (evictionHard: Record<string, string>): (() => void) =>
    () =>
      void parseThresholds({ evictionHard })
  assert.throws(bad({ 'moon.available': '1' }), /^Error: unsupported eviction signal moon\.available$/)
  assert.throws(bad({ 'memory.available': '0' }), /eviction threshold memory\.available must be positive: 0/)
  assert.throws(bad({ 'nodefs.available': '101%' }), /must be <= 100%: 101%/)
  const soft = { evictionHard: {}, evictionSoft: { 'memory.available': '1Gi' } }
  assert.throws(() => parseThresholds(soft), /grace period must be specified for the soft eviction threshold/)
})

test('eviction respects the grace period of a soft threshold, the transition period of conditions and minimum reclaim', () => {
  const thresholds = parseThresholds({
    evictionHard: {},
    evictionSoft: { 'memory.available': '1Gi' },
    evictionSoftGracePeriod: { 'memory.available': '30s' },
    evictionMinimumReclaim: { 'memory.available': '500Mi' },
  })
  const pressure = new Pressure(thresholds, 300_000)
  const at = (seconds: number, available: number): [number, readonly string[]] => [
    pressure.observe(observationsOf(nodeOf(available)), seconds * 1000).length,
    pressure.conditions,
  ]
  const memory = ['MemoryPressure']
  assert.deepEqual(at(0, 2 * GI), [0, []])
  assert.deepEqual(at(10, 0.9 * GI), [0, memory])
  assert.deepEqual(at(40, 0.9 * GI), [1, memory])
  assert.deepEqual(at(50, 1.2 * GI), [1, memory])
  assert.deepEqual(at(60, 1.6 * GI), [0, memory])
  assert.deepEqual(at(349, 2 * GI), [0, memory])
  assert.deepEqual(at(350, 2 * GI), [0, []])
})

test('eviction ranks pods above their requests first, then low priorities, then large excess', () => {
  const uses = [
    useOf('modest', { asks: '2Gi', uses: GI }),
    useOf('greedy', { asks: '1Gi', uses: 3 * GI }),
    useOf('important', { asks: '1Gi', uses: 3.5 * GI, priority: 100 }),
    useOf('over', { asks: '1Gi', uses: 2 * GI }),
    { ...useOf('unknown', {}), isKnown: false },
  ]
  assert.deepEqual(namesOf(rankPods(uses, 'memory.available', false)), [
    'unknown',
    'greedy',
    'over',
    'important',
    'modest',
  ])
  const disks = [
    useOf('layer', { disk: GI }),
    { ...useOf('volume', {}), volumes: [{ name: 'v', bytes: MI, inodes: 1 }] },
  ]
  assert.deepEqual(namesOf(rankPods(disks, 'nodefs.available', false)), ['layer', 'volume'])
  assert.deepEqual(namesOf(rankPods(disks, 'nodefs.available', true)), ['volume', 'layer'])
})

test('the message of an evicted pod equals upstream’s', () => {
  const [threshold] = parseThresholds({ evictionHard: { 'memory.available': '22Gi' } })
  assert.ok(threshold !== undefined)
  const { message, annotations } = evictionText(
    useOf('web', { asks: '1Gi', uses: 2 * GI }),
    threshold,
    observationsOf(nodeOf(15_749_032 * 1024)),
  )
  assert.equal(
    message,
    'The node was low on resource: memory. Threshold quantity: 22Gi, available: 15749032Ki. Container c was using 2Gi, request is 1Gi, has larger consumption of memory. ',
  )
  assert.deepEqual(annotations, {
    offending_containers: 'c',
    offending_containers_usage: '2Gi',
    starved_resource: 'memory',
  })
})

test('eviction checks local storage limits of volumes, pods and containers', () => {
  const limits = { 'ephemeral-storage': '1Mi' }
  const volumes = [{ name: 'e', emptyDir: { sizeLimit: '1Mi' } }]
  const of = (
    spec: Partial<Pod['spec']>,
    disk: number,
    volume: number,
    more: Partial<PodUse> = {},
  ): string | undefined => {
    const use = useOf('web', { disk })
    const pod = { ...use.pod, spec: { ...use.pod.spec, ...spec } }
    return excessOf({ ...use, pod, volumes: [{ name: 'e', bytes: volume, inodes: 1 }], ...more }, false)?.message
  }
  assert.equal(of({ volumes }, 0, MI), undefined)
  assert.equal(of({ volumes }, 0, MI + 1), 'Usage of EmptyDir volume "e" exceeds the limit "1Mi". ')
  const containers = [containerOf('c', { resources: { limits } })]
  assert.equal(of({ containers }, MI, 0), undefined)
  assert.equal(
    of({ containers }, MI, 1),
    'Pod ephemeral local storage usage exceeds the total limit of containers 1Mi. ',
  )
  // CVE-2020-8557: a container may write to its hosts file.
  assert.match(of({ containers }, MI, 0, { files: { bytes: 1, inodes: 1 } }) ?? '', /^Pod ephemeral local storage/)
  const two = [...containers, containerOf('d', { resources: { limits: { 'ephemeral-storage': '1Gi' } } })]
  assert.equal(of({ containers: two }, 2 * MI, 0), 'Container c exceeded its local ephemeral storage limit "1Mi". ')
})

interface Watched {
  readonly state: { readonly pressures: readonly string[] }
  readonly nodeEvents: string[]
  readonly calls: string[]
  readonly stop: AbortController
}

function watch({ clock, workers }: Bed, options: Partial<EvictionOptions>): Watched {
  const [nodeEvents, calls]: [string[], string[]] = [[], []]
  const stop = new AbortController()
  const { logger: log } = createLog({ stream: { write: (_, done) => done() }, clock })
  const state = { pressures: [] as readonly string[] }
  const manager = new EvictionManager({
    clock,
    log,
    signal: stop.signal,
    thresholds: parseThresholds({}),
    measure: async () => nodeOf(2 * GI),
    evict: (pod, eviction) => workers.evict(pod, eviction),
    removeDeadContainers: async () => void calls.push('containers'),
    removeUnusedImages: async () => calls.push('images'),
    recordEvent: ({ reason, message }) => void nodeEvents.push(`${reason}: ${message}`),
    meters: createKubeletMeters(),
    onPressures: (pressures) => void (state.pressures = pressures),
    ...options,
  })
  void manager.run()
  return { state, nodeEvents, calls, stop }
}

test('memory pressure causes the eviction of one pod, and the condition ends after five minutes', async () => {
  const bed = bedOf()
  const { clock, workers, patches, events } = bed
  const pods = ['a', 'b'].map((name) => podOf({ containers: [containerOf('c')] }, { name, uid: name }))
  for (const object of pods) workers.updatePod({ type: 'ADDED', object })
  const measure = async (): Promise<NodeUse> => {
    const active = Array.from(workers.registry.activePods(), ({ pod }) => pod)
    const uses = active.map((pod) => ({ ...useOf('', { uses: pod.metadata.name === 'b' ? GI : MI }), pod }))
    return nodeOf(active.length < 2 || clock.elapsed() < 5000 ? 2 * GI : 50 * MI, { pods: uses })
  }
  const { state, nodeEvents, stop } = watch(bed, { measure })
  await clock.advance(15_000)
  assert.deepEqual(nodeEvents, ['EvictionThresholdMet: Attempting to reclaim memory'])
  assert.deepEqual(state.pressures, ['MemoryPressure'])
  const message =
    'The node was low on resource: memory. Threshold quantity: 100Mi, available: 50Mi. Container c was using 1Gi, request is 0, has larger consumption of memory. '
  assert.ok(events.includes(`Evicted: ${message}`))
  const { status } = workers.registry.find('default', 'b')?.pod ?? {}
  assert.deepEqual([status?.phase, status?.reason, status?.message], ['Failed', 'Evicted', message])
  const [condition] = status?.conditions ?? []
  assert.deepEqual(
    [condition?.type, condition?.reason, condition?.message],
    ['DisruptionTarget', 'TerminationByKubelet', message],
  )
  assert.equal(workers.registry.find('default', 'a')?.pod.status.phase, 'Running')
  assert.ok(patches.some(({ status: sent }) => sent['reason'] === 'Evicted'))
  await clock.advance(310_000)
  assert.deepEqual(state.pressures, [])
  stop.abort()
  await workers.stop()
})

test('the eviction manager removes unused containers and images from a full disk before it evicts a pod', async () => {
  const bed = bedOf()
  let available = 5 * GI
  const free = async (): Promise<void> => void (available = 50 * GI)
  const { calls, state, stop } = watch(bed, {
    measure: async () => nodeOf(2 * GI, { nodeDisk: diskOf(available), imageDisk: diskOf(available) }),
    removeUnusedImages: free,
    evict: async () => assert.fail('evicts no pod'),
  })
  await bed.clock.advance(11_000)
  assert.deepEqual([calls, state.pressures], [['containers'], ['DiskPressure']])
  stop.abort()
  await bed.workers.stop()
})

test('eviction of a pod that exceeds its volume limit causes no node event', async () => {
  const bed = bedOf()
  const { clock, workers, events } = bed
  const volumes = [{ name: 'e', emptyDir: { sizeLimit: '1Mi' } }]
  workers.updatePod({ type: 'ADDED', object: podOf({ volumes }) })
  await clock.advance(2000)
  const measure = async (): Promise<NodeUse> => ({
    ...nodeOf(2 * GI),
    pods: Array.from(workers.registry.activePods(), ({ pod }) => ({
      ...useOf('', {}),
      pod,
      volumes: [{ name: 'e', bytes: 2 * MI, inodes: 1 }],
    })),
  })
  const { stop } = watch(bed, { measure })
  await clock.advance(12_000)
  const message = 'Usage of EmptyDir volume "e" exceeds the limit "1Mi". '
  assert.ok(events.includes(`Evicted: ${message}`))
  const { status } = workers.registry.find('default', 'web')?.pod ?? {}
  assert.deepEqual([status?.phase, status?.message], ['Failed', message])
  assert.ok(!status?.conditions?.some(({ type }) => type === 'DisruptionTarget'))
  stop.abort()
  await workers.stop()
})

test('eviction spares critical pods', async () => {
  const bed = bedOf()
  const { clock, workers } = bed
  workers.updatePod({ type: 'ADDED', object: podOf({ priority: 2_000_000_000 }) })
  await clock.advance(2000)
  const measure = async (): Promise<NodeUse> =>
    nodeOf(MI, { pods: Array.from(workers.registry.activePods(), ({ pod }) => ({ ...useOf('', {}), pod })) })
  const { stop } = watch(bed, { measure })
  await clock.advance(30_000)
  assert.equal(workers.registry.find('default', 'web')?.pod.status.phase, 'Running')
  stop.abort()
  await workers.stop()
})

test('eviction signals for memory, processes and disks are read from the kernel as in upstream', async () => {
  const text = 'MemTotal:       1000 kB\nMemFree:         100 kB\nInactive(file):   50 kB\n'
  assert.deepEqual(memoryOf(text), { capacityBytes: 1_024_000, availableBytes: 153_600 })
  assert.equal(tasksOf('0.00 0.01 0.05 1/230 4242\n'), 230)
  const dir = await mkdtemp(join(tmpdir(), 'use-'))
  try {
    await mkdir(join(dir, 'a'))
    await writeFile(join(dir, 'a', 'f'), Buffer.alloc(100_000, 1))
    await symlink('/', join(dir, 'a', 'root'))
    const { bytes, inodes } = await sizeOf(dir)
    assert.ok(bytes >= 100_000 && bytes < MI)
    assert.equal(inodes, 3)
    await mkdir(join(dir, 'containers', 'c'), { recursive: true })
    await writeFile(join(dir, 'etc-hosts'), Buffer.alloc(50_000, 1))
    await writeFile(join(dir, 'containers', 'c', 'message'), Buffer.alloc(50_000, 1))
    const files = await fileUse(dir)
    assert.ok(files.bytes >= 100_000 && files.bytes < MI)
    assert.equal(files.inodes, 3)
  } finally {
    await rm(dir, { recursive: true })
  }
})
