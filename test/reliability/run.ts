/**
 * One run of the reliability tests: an empty store, traffic, one fault, more traffic. Then a final write, the end of
 * all leases and watches, and a complete read of the history, which is checked.
 */
import { performance } from 'node:perf_hooks'

import { createSeededRandom } from '#lib/random.ts'
import type { Revision } from '#storage/backend.ts'

import { type Arena, type BackendName, createArena } from './arena.ts'
import { checkHistory } from './check/check.ts'
import type { Violation } from './check/violation.ts'
import { FAULTS, type FaultName } from './faults.ts'
import { isUnknown, Recorder } from './history.ts'
import { pause } from './pause.ts'
import { COLLECTIONS, NotSentError, under } from './store.ts'
import { Traffic } from './traffic.ts'

export interface RunOptions {
  readonly backend: BackendName
  readonly fault: FaultName
  readonly seed: number
  readonly defect?: string
  /** Traffic before the fault, and after it, at least. */
  readonly trafficMs?: number
}

export interface RunResult {
  readonly violations: readonly Violation[]
  readonly operations: number
  /** Commits that were acknowledged. */
  readonly commits: number
  /** The number of writes without a response. */
  readonly unknown: number
  readonly events: number
  readonly revision: Revision
  /** Of each start of the store after the first, until it served. */
  readonly restartsMs: readonly number[]
  readonly tookMs: number
}

interface Setting {
  readonly ttlMs: number
  readonly pauseMs: number
  readonly callTimeoutMs: number
  /** How long what must happen in the end may take. */
  readonly patienceMs: number
}

const SETTINGS: Readonly<Record<BackendName, Setting>> = {
  memory: { ttlMs: 150, pauseMs: 4, callTimeoutMs: 500, patienceMs: 1500 },
  sqlite: { ttlMs: 400, pauseMs: 2, callTimeoutMs: 3000, patienceMs: 10_000 },
  // A lease lives 2 s at least, and begins anew with every leader.
  etcd: { ttlMs: 2000, pauseMs: 2, callTimeoutMs: 2000, patienceMs: 30_000 },
}

export async function runOnce(options: RunOptions): Promise<RunResult> {
  const { backend, fault, seed, defect } = options
  const begun = performance.now()
  const arena = await createArena({ backend, seed, ...FAULTS[fault].arena, ...(defect !== undefined && { defect }) })
  const recorder = new Recorder(arena.store, SETTINGS[backend].callTimeoutMs)
  const found: Violation[] = []
  try {
    await playOut(options, arena, recorder, found)
  } catch (error) {
    found.push({ rule: 'alive', detail: `${String(error)} ${arena.output()}` })
  }
  const trouble = await arena.close()
  if (trouble !== undefined) found.push({ rule: 'alive', detail: trouble })
  found.push(...checkHistory(recorder, { leaseGraceMs: SETTINGS[backend].patienceMs }))
  return {
    ...summarize(recorder),
    violations: found,
    restartsMs: arena.server?.startsMs.slice(1) ?? [],
    tookMs: performance.now() - begun,
  }
}

async function playOut(options: RunOptions, arena: Arena, recorder: Recorder, violations: Violation[]): Promise<void> {
  const { backend, fault, seed, trafficMs = 300 } = options
  const { ttlMs, pauseMs, patienceMs } = SETTINGS[backend]
  const random = createSeededRandom(seed)
  const { valueBytes = 2000 } = FAULTS[fault]
  const traffic = new Traffic({
    recorder,
    seed,
    writers: 8,
    watchers: 8,
    ttlMs,
    pauseMs,
    compactEveryMs: 150,
    valueBytes,
  })
  try {
    await flow(recorder, trafficMs + random.int(trafficMs))
    await FAULTS[fault].inject({ arena, recorder, random, violations })
    await flow(recorder, trafficMs + random.int(trafficMs))
    await traffic.stop()
    violations.push(...(await comeToRest(recorder, traffic, { patienceMs, ttlMs })))
  } finally {
    await traffic.stop()
    // Watches that have arrived have ended; after a failure the others must too.
    await traffic.drain(0, 0)
  }
}

/** The end of every run: all that was promised to happen eventually happens now. */
async function comeToRest(
  recorder: Recorder,
  traffic: Traffic,
  { patienceMs, ttlMs }: Pick<Setting, 'patienceMs' | 'ttlMs'>,
): Promise<Violation[]> {
  const violations: Violation[] = []
  const last = await lastWrite(recorder, patienceMs)
  if (last === undefined) {
    violations.push({ rule: 'alive', detail: `No write was acknowledged within ${patienceMs} ms after the fault` })
  }
  await leasesEnd(recorder, patienceMs + 2 * ttlMs)
  const revision = (await recorder.call(99, 'revision', null)) ?? last ?? 0
  await traffic.drain(revision, patienceMs)
  await readAll(recorder, revision, patienceMs)
  const { repairs = [] } = (await recorder.call(99, 'status', null)) ?? {}
  const differing = repairs.filter(({ reason }) => reason === 'mismatch')
  const inCache = differing.map(({ prefix, revision }) => `The cache of ${prefix} differed at ${revision}`)
  return [...violations, ...inCache.map((detail) => ({ rule: 'cache', detail }))]
}

/** Lets the traffic go on for a time, and for longer when it was slow: a fault in an idle store proves nothing. */
async function flow({ operations }: Recorder, ms: number): Promise<void> {
  const before = operations.length
  await pause(ms)
  const commits = (): number =>
    operations.slice(before).filter(({ method, result }) => method === 'commit' && result).length
  for (let waitedMs = 0; waitedMs < FLOW_PATIENCE_MS && commits() < FLOW_COMMITS; waitedMs += 50) await pause(50)
}

const FLOW_COMMITS = 50
const FLOW_PATIENCE_MS = 10_000

/** The store has recovered when a write is acknowledged. */
async function lastWrite(recorder: Recorder, patienceMs: number): Promise<Revision | undefined> {
  const deadline = performance.now() + patienceMs
  for (let n = 0; performance.now() < deadline; n++) {
    try {
      const result = await recorder.call(99, 'commit', [{ key: '/registry/things/ns/last', value: `last-${n}~` }])
      if (result !== undefined) return result.revision
    } catch (error) {
      if (!(error instanceof NotSentError)) throw error
    }
    await pause(50)
  }
  return undefined
}

/** Waits until nothing is left that has a lease; the check finds out when it took too long. */
async function leasesEnd(recorder: Recorder, patienceMs: number): Promise<void> {
  const deadline = performance.now() + patienceMs
  for (;;) {
    const list = await recorder.call(99, 'range', { ...under('/registry/'), via: 'backend' })
    if (list !== undefined && list.items.every(({ lease }) => lease === 0)) return
    if (performance.now() >= deadline) return
    await pause(50)
  }
}

/** The state, through the backend and the cache, and once more every event that is still kept. */
async function readAll(recorder: Recorder, revision: Revision, patienceMs: number): Promise<void> {
  for (const prefix of COLLECTIONS) {
    for (const via of ['backend', 'cache'] as const) await recorder.call(99, 'range', { ...under(prefix), via })
  }
  const { compacted = 0 } = (await recorder.call(99, 'status', null)) ?? {}
  const stop = new AbortController()
  const timer = setTimeout(() => stop.abort(), patienceMs)
  const range = { ...under('/registry/'), from: compacted + 1, via: 'backend' } as const
  if (revision > compacted) await followTo(recorder.watch(99, range, stop.signal), revision)
  clearTimeout(timer)
}

async function followTo(batches: ReturnType<Recorder['watch']>, revision: Revision): Promise<void> {
  for (let step = await batches.next(); ; step = await batches.next()) {
    if (step.done) return void (step.value.stuckBefore = revision)
    if (step.value.revision < revision) continue
    await batches.return(undefined as never)
    return
  }
}

function summarize({
  operations,
  watches,
}: Recorder): Pick<RunResult, 'operations' | 'commits' | 'unknown' | 'events' | 'revision'> {
  const commits = operations.filter((operation) => operation.method === 'commit')
  return {
    operations: operations.length,
    commits: commits.filter(({ result }) => result?.ok).length,
    unknown: commits.filter(isUnknown).length,
    events: watches.reduce((sum, { batches }) => sum + batches.reduce((all, { events }) => all + events.length, 0), 0),
    revision: Math.max(0, ...commits.map(({ result }) => result?.revision ?? 0)),
  }
}
