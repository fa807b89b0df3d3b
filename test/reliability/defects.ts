/**
 * Backends with seeded defects, to test the reliability harness. Each sometimes breaks one guarantee, like a defect of
 * a real store; the harness must find it.
 */
import type { Random } from '#lib/random.ts'
import type { Backend, RangeResult, Revision, StorageEvent, WatchBatch, WatchOptions, Write } from '#storage/backend.ts'

type Defect = (backend: Backend, random: Random) => Partial<Backend>

/** Defects by name. */
export const DEFECTS: Readonly<Record<string, Defect>> = {
  'dropped-event': onEvents((events, random) =>
    isDue(random, 60) ? events.toSpliced(random.int(events.length), 1) : events,
  ),
  'duplicated-event': onEvents((events, random) => (isDue(random, 60) ? [...events, ...events.slice(-1)] : events)),
  'reordered-event': onBatches(reorder),
  'early-bookmark': onBatches(reportEarly),
  'lost-tail': onBatches(loseTail),
  'stale-get': staleGet,
  'revision-back': (backend, random) => ({
    currentRevision: async (signal) =>
      (await backend.currentRevision(signal)) - (isDue(random, 10) ? 1 + random.int(5) : 0),
  }),
  'wrong-previous': wrongPrevious,
  'gap-at-compaction': gapAtCompaction,
  'split-list': splitList,
  'torn-batch': (backend, random) => ({
    async commit(writes, signal) {
      const [first, ...rest] = writes
      const isPlain = writes.every(({ expected }) => expected === undefined)
      if (first === undefined || rest.length === 0 || !isPlain || !isDue(random, 4))
        return backend.commit(writes, signal)
      await backend.commit([first], signal)
      return backend.commit(rest, signal)
    },
  }),
  'lost-lease': (backend, random) => ({
    commit: (writes, signal) =>
      backend.commit(
        writes.map(({ lease, ...write }) => (lease === undefined || isDue(random, 3) ? write : { ...write, lease })),
        signal,
      ),
  }),
  'lost-write': (backend, random) => ({
    async commit(writes, signal) {
      if (!isDue(random, 200)) return backend.commit(writes, signal)
      const items = await Promise.all(writes.map(async ({ key }) => (await backend.range({ start: key })).items[0]))
      return { ok: true, revision: await backend.currentRevision(signal), previous: items }
    },
  }),
  'ignored-guard': (backend, random) => ({
    commit: (writes, signal) => backend.commit(isDue(random, 20) ? writes.map(unguarded) : writes, signal),
  }),
  'split-revision': onBatches(splitRevision),
  'unfiltered-event': (backend, random) => ({
    watch: (options) => backend.watch(isDue(random, 8) ? { ...options, start: '/', end: '0' } : options),
  }),
  'false-creation': onEvents((events, random) =>
    isDue(random, 60) ? events.map((event) => ({ ...event, createRevision: event.modRevision })) : events,
  ),
  'old-events': (backend, random) => ({
    watch({ from, ...options }) {
      const earlier = from !== undefined && from > 20 && isDue(random, 4) ? from - 3 : from
      return backend.watch({ ...options, ...(earlier !== undefined && { from: earlier }) })
    },
  }),
}

/** The backend with the defect of that name; without a name, the backend. */
export function withDefect(backend: Backend, name: string | undefined, random: Random): Backend {
  if (name === undefined) return backend
  const defect = DEFECTS[name]
  if (defect === undefined)
    throw new TypeError(`"${name}" is no defect; use one of: ${Object.keys(DEFECTS).join(', ')}`)
  return { ...bound(backend), ...defect(backend, random) }
}

function bound(backend: Backend): Backend {
  return {
    name: backend.name,
    commit: (writes, signal) => backend.commit(writes, signal),
    range: (options) => backend.range(options),
    currentRevision: (signal) => backend.currentRevision(signal),
    timeOf: (revision) => backend.timeOf(revision),
    revisionAt: (timeMs) => backend.revisionAt(timeMs),
    watch: (options) => backend.watch(options),
    compact: (revision) => backend.compact(revision),
    grantLease: (ttlMs) => backend.grantLease(ttlMs),
    keepAliveLease: (lease) => backend.keepAliveLease(lease),
    revokeLease: (lease) => backend.revokeLease(lease),
    health: (signal, options) => backend.health(signal, options),
    snapshot: (file, signal) => backend.snapshot(file, signal),
    fork: (options) => backend.fork(options),
    close: () => backend.close(),
  }
}

function unguarded({ key, value, lease }: Write): Write {
  return { key, value, ...(lease !== undefined && { lease }) }
}

/** Once in `times`. */
function isDue(random: Random, times: number): boolean {
  return random.int(times) === 0
}

type Batches = AsyncIterable<WatchBatch>

function onBatches(change: (batches: Batches, random: Random) => Batches): Defect {
  return (backend, random) => ({ watch: (options: WatchOptions) => change(backend.watch(options), random) })
}

function onEvents(change: (events: readonly StorageEvent[], random: Random) => readonly StorageEvent[]): Defect {
  return onBatches(async function* (batches, random) {
    for await (const { revision, events } of batches) {
      yield { revision, events: events.length === 0 ? events : change(events, random) }
    }
  })
}

async function* reorder(batches: Batches, random: Random): Batches {
  let held: WatchBatch | undefined
  for await (const batch of batches) {
    if (held === undefined && batch.events.length > 0 && isDue(random, 40)) {
      held = batch
      continue
    }
    yield batch
    if (held !== undefined) yield held
    held = undefined
  }
}

async function* reportEarly(batches: Batches, random: Random): Batches {
  for await (const batch of batches) {
    const isEarly = batch.events.length > 0 && isDue(random, 40)
    if (isEarly) yield { revision: batch.revision + 2, events: [] }
    yield batch
  }
}

/** Stops without an end, as a connection does whose other side was forgotten. */
async function* loseTail(batches: Batches, random: Random): Batches {
  let isLost = false
  for await (const batch of batches) {
    isLost ||= batch.events.length > 0 && isDue(random, 200)
    if (!isLost) yield batch
  }
}

async function* splitRevision(batches: Batches): Batches {
  for await (const { revision, events } of batches) {
    const [last] = events.slice(-1)
    const whole = last === undefined ? [] : events.filter(({ modRevision }) => modRevision === last.modRevision)
    if (last === undefined || whole.length < 2) {
      yield { revision, events }
      continue
    }
    yield { revision: last.modRevision - 1, events: events.slice(0, -1) }
    yield { revision, events: [last] }
  }
}

function staleGet(backend: Backend, random: Random): Partial<Backend> {
  const before = new Map<string, RangeResult>()
  return {
    async range(options) {
      const { start, end, revision, limit } = options
      const id = `${start} ${end} ${limit}`
      const old = before.get(id)
      if (revision !== undefined) return backend.range(options)
      if (old !== undefined && isDue(random, 20)) return old
      const answer = await backend.range(options)
      before.set(id, answer)
      return answer
    },
  }
}

/** The value before the value before. */
function wrongPrevious(backend: Backend, random: Random): Partial<Backend> {
  const seen = new Map<string, StorageEvent['previous']>()
  return {
    async *watch(options) {
      for await (const { revision, events } of backend.watch(options)) {
        const changed = events.map((event) => {
          const { key, previous } = event
          const older = seen.get(key)
          seen.set(key, previous)
          const isWrong = previous !== undefined && older !== undefined && isDue(random, 60)
          return isWrong ? { ...event, previous: older } : event
        })
        yield { revision, events: changed }
      }
    },
  }
}

/** A watch from before the compaction goes on from after it, and does not say so. */
function gapAtCompaction(backend: Backend): Partial<Backend> {
  let compacted: Revision = 0
  return {
    async compact(revision) {
      await backend.compact(revision)
      compacted = Math.max(compacted, revision)
    },
    watch({ from, ...options }) {
      const later = from === undefined ? undefined : Math.max(from, compacted + 1)
      return backend.watch({ ...options, ...(later !== undefined && { from: later }) })
    },
  }
}

/** The first half of a list is older than the second, and than its revision. */
function splitList(backend: Backend, random: Random): Partial<Backend> {
  const before = new Map<string, RangeResult>()
  return {
    async range(options) {
      const answer = await backend.range(options)
      const { start, end, revision, limit, countOnly, keysOnly } = options
      if (end === undefined || revision !== undefined || limit !== undefined || countOnly || keysOnly) return answer
      const id = `${start} ${end}`
      const old = before.get(id)
      before.set(id, answer)
      if (old === undefined || !isDue(random, 4)) return answer
      const middle = answer.items[answer.items.length >> 1]?.key ?? ''
      const items = [...old.items.filter(({ key }) => key < middle), ...answer.items.filter(({ key }) => key >= middle)]
      return { ...answer, items, count: items.length }
    },
  }
}
