/**
 * Benchmarks the stores SQLite and etcd, in turns on the same disk. It measures durable writes of more and more
 * clients, the delay until a watcher gets a change, and the memory of ten thousand objects.
 */
import { Buffer } from 'node:buffer'
import { execFile } from 'node:child_process'
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { monitorEventLoopDelay, performance } from 'node:perf_hooks'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'

import { realClock } from '#lib/clock.ts'
import { createSeededRandom } from '#lib/random.ts'
import type { Backend } from '#storage/backend.ts'
import { openEtcdBackend } from '#storage/etcd.ts'
import { startCluster, type TestCluster, whyNoEtcd } from '#storage/etcd/etcd-cluster.fixture.ts'
import { openBackend } from '#storage/index.ts'
import { WatchCache } from '#storage/watch-cache/watch-cache.ts'

import { ETCD_NAME, etcdProgram } from '../upstream/etcd.ts'
import { missingGo } from '../upstream/programs.ts'
import { type Bench, quantile } from './bench.ts'
import type { MemoryReport } from './storage-memory.ts'
import { describeEntry, PREFIX } from './stored-entry.ts'
import { figure, type Table, times } from './table.ts'

/** One client twice: in a young store, whose log still grows, and in one that has seen use. */
const LOADS: readonly (readonly [name: string, clients: number])[] = [
  ['1 client', 1],
  ['16 clients', 16],
  ['64 clients', 64],
  ['256 clients', 256],
  ['1 client, store in use', 1],
]
const VALUE_BYTES = 1024
const WARM_UP_MS = 300
/** Each contender in turn, so often: a disk has moods, and so has a machine that others use too. */
const ROUNDS = 3
const RUN_MS = 700
const WATCH_MS = 1500
const OBJECTS = 10_000
const WATCHERS = 100

interface Contender {
  readonly name: string
  readonly backend: Backend
}

interface Load {
  readonly perSecond: number
  readonly loopDelayP99Ms: number
}

export const bench: Bench = {
  about: `commits of ${VALUE_BYTES} bytes, each acknowledged when durable; ${WARM_UP_MS} ms warm-up, ${RUN_MS} ms measured, medians of ${ROUNDS}`,
  async run() {
    // Both stores are among the system's temporary files, so TMPDIR chooses the disk.
    const folder = await mkdtemp(join(tmpdir(), 'hyperkube-bench-'))
    const missingBuild = missingGo(['etcd'])
    if (missingBuild === undefined) process.env['HYPERKUBE_ETCD'] = await etcdProgram()
    const missing = missingBuild ?? whyNoEtcd()
    const cluster = missing === undefined ? await startCluster() : undefined
    try {
      const contenders = await openAll(folder, cluster)
      const notes = missing === undefined ? [] : [`etcd is not compared: ${missing}`]
      const tables = [await measureWrites(contenders, notes), await measureWatches(contenders)]
      for (const { backend } of contenders) await backend.close()
      return [...tables, await measureMemory(folder)]
    } finally {
      await cluster?.stop()
      await rm(folder, { recursive: true, force: true })
    }
  },
}

async function openAll(folder: string, cluster: TestCluster | undefined): Promise<Contender[]> {
  const options = { clock: realClock, random: createSeededRandom(1) }
  const sqlite = await openBackend(`sqlite:${join(folder, 'state.db')}`, options)
  if (cluster === undefined) return [{ name: 'sqlite', backend: sqlite }]
  const etcd = await openEtcdBackend(cluster.urls, options)
  return [
    { name: 'sqlite', backend: sqlite },
    { name: ETCD_NAME, backend: etcd },
  ]
}

async function measureWrites(contenders: readonly Contender[], notes: readonly string[]): Promise<Table> {
  const rows: string[][] = []
  for (const [name, clients] of LOADS) {
    const loads: Load[][] = contenders.map(() => [])
    for (let round = 0; round < ROUNDS; round++) {
      for (const [index, { backend }] of contenders.entries()) loads[index]?.push(await measureLoad(backend, clients))
    }
    const [sqlite = Number.NaN, etcd] = loads.map((rounds) => medianOf(rounds, 'perSecond'))
    const cells = loads.flatMap((rounds) => [medianOf(rounds, 'perSecond'), medianOf(rounds, 'loopDelayP99Ms')])
    rows.push([name, ...cells.map(figure), ...(etcd === undefined ? [] : [times(sqlite / etcd)])])
  }
  const heads = contenders.flatMap(({ name }) => [`${name} writes/s`, 'loop delay p99 ms'])
  const columns = ['', ...heads, ...(contenders.length > 1 ? [`sqlite over ${ETCD_NAME}`] : [])]
  return { title: 'durable writes', columns, rows, notes }
}

function medianOf(loads: readonly Load[], figure: keyof Load): number {
  return quantile(
    loads.map((load) => load[figure]),
    0.5,
  )
}

/** Every client writes its own key, again when the last write is durable. */
async function measureLoad(backend: Backend, clients: number): Promise<Load> {
  const state = { counting: false, written: 0, stopped: false }
  const client = async (index: number): Promise<void> => {
    const value = Buffer.alloc(VALUE_BYTES, index)
    for (let turn = 0; !state.stopped; turn++) {
      value.writeUInt32LE(turn)
      await backend.commit([{ key: `${PREFIX}bench/client-${index}`, value }])
      if (state.counting) state.written++
    }
  }
  const running = Array.from({ length: clients }, (_, index) => client(index))
  await pause(WARM_UP_MS)
  const delay = monitorEventLoopDelay({ resolution: 1 })
  delay.enable()
  state.counting = true
  const start = performance.now()
  await pause(RUN_MS)
  const spentMs = performance.now() - start
  state.counting = false
  delay.disable()
  state.stopped = true
  await Promise.all(running)
  // The histogram records the time between two ticks, which are due every millisecond.
  return { perSecond: (state.written * 1000) / spentMs, loopDelayP99Ms: Math.max(0, delay.percentile(99) / 1e6 - 1) }
}

interface Delivery {
  readonly acknowledgedMs: readonly number[]
  readonly deliveredMs: readonly number[]
}

async function measureWatches(contenders: readonly Contender[]): Promise<Table> {
  const rows: string[][] = []
  for (const { name, backend } of contenders) {
    for (const clients of [1, 16]) {
      const { acknowledgedMs, deliveredMs } = await measureDelivery(backend, clients)
      const cells = [acknowledgedMs, deliveredMs].flatMap((times) => [quantile(times, 0.5), quantile(times, 0.99)])
      rows.push([`${name}, ${clients} writing`, ...cells.map(figure)])
    }
  }
  return {
    title: `watch delivery through the watch cache to the last of ${WATCHERS} watchers, in ms from the call of commit`,
    columns: ['', 'acknowledged p50', 'p99', 'delivered p50', 'p99'],
    rows,
  }
}

async function measureDelivery(backend: Backend, clients: number): Promise<Delivery> {
  const cache = new WatchCache({ backend, clock: realClock, prefix: PREFIX })
  const collection = await cache.open({ prefix: `${PREFIX}watched/`, describe: describeEntry })
  await cache.start()
  const sentAt = new Map<string, number>()
  const acknowledgedMs: number[] = []
  const deliveredMs: number[] = []
  const since = (key: string): number => performance.now() - (sentAt.get(key) ?? Number.NaN)
  const everything = { id: '', matches: () => true }
  const nothing = { change: () => true, expired: () => undefined }
  const last = { ...nothing, change: (_: string, { key }: { key: string }) => deliveredMs.push(since(key)) > 0 }
  for (let index = 1; index < WATCHERS; index++) collection.watch(everything, cache.revision, nothing)
  collection.watch(everything, cache.revision, last)
  const end = performance.now() + WATCH_MS
  const client = async (index: number): Promise<void> => {
    const key = `${PREFIX}watched/client-${index}`
    while (performance.now() < end) {
      sentAt.set(key, performance.now())
      const { revision } = await backend.commit([{ key, value: Buffer.alloc(VALUE_BYTES, index) }])
      acknowledgedMs.push(since(key))
      await cache.waitFor(revision)
    }
  }
  await Promise.all(Array.from({ length: clients }, (_, index) => client(index)))
  await cache.close()
  return { acknowledgedMs, deliveredMs }
}

/** In processes of their own, so that nothing that came before is counted, or counted as freed. */
async function measureMemory(folder: string): Promise<Table> {
  const rows: string[][] = []
  for (const [name, location] of [
    ['memory', 'memory'],
    ['sqlite', `sqlite:${join(folder, 'memory.db')}`],
  ] as const) {
    const script = fileURLToPath(new URL('storage-memory.ts', import.meta.url))
    const args = [
      '--expose-gc',
      '--disable-warning=ExperimentalWarning',
      script,
      location,
      String(OBJECTS),
      String(VALUE_BYTES),
    ]
    const { stdout } = await promisify(execFile)(process.execPath, args)
    const { heapBytes, residentBytes } = JSON.parse(stdout) as MemoryReport
    const cells = [heapBytes / 2 ** 20, residentBytes / 2 ** 20, heapBytes / OBJECTS]
    rows.push([`${name} and watch cache`, ...cells.map(figure)])
  }
  return {
    title: `memory for ${OBJECTS} objects of ${VALUE_BYTES} bytes, with the history of their creation`,
    columns: ['', 'heap and buffers MiB', 'resident MiB', 'bytes an object'],
    rows,
    notes: ['The worker threads of sqlite are in what is resident, not in the heap'],
  }
}

function pause(durationMs: number): Promise<void> {
  return new Promise((resolve) => setTimeout(resolve, durationMs))
}
