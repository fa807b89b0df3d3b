/**
 * Recorder: follows a store and hands its changes to the thread of a history file, a batch at a time. It reads no further
 * while a batch is being written, so a slow disk costs no memory: the store still has what comes after.
 */
import { type Clock, sleep } from '#lib/clock.ts'
import { yieldToEventLoop } from '#lib/time-slicing.ts'
import { type Backend, type KeyValue, type Revision, type StorageEvent, StorageError } from '#storage/backend.ts'
import type { CommitTime, CommitTimes } from '#storage/commit-times.ts'

import { encodeChanges } from './change-bytes.ts'
import { ALL_KEYS } from './history-file.ts'
import type { RecordedChange } from './recorded-change.ts'
import type { HistoryThread } from './thread-calls.ts'

export interface RecorderSource {
  readonly backend: Pick<Backend, 'watch' | 'range' | 'currentRevision' | 'timeOf' | 'health'>
  readonly clock: Clock
  /** The part of a value that the history keeps; undefined: nothing. */
  readonly contentOf: (key: string, value: Uint8Array) => Uint8Array | undefined
  /** The writer of the commit and the causes as JSON. Empty: not known. */
  readonly noteOf: (revision: Revision) => string
}

const BATCH_MS = 250
/** A batch is written earlier when it has so many bytes. */
const BATCH_BYTES = 1 << 20
/** How often the position is written when there are no changes to record. */
const IDLE_MS = 10_000
const PAGE_ITEMS = 500

const NOTHING = new Uint8Array()

export class Recorder {
  readonly #source: RecorderSource
  readonly #thread: HistoryThread
  readonly #signal: AbortSignal
  readonly #times: CommitTimes
  /** All changes up to it are recorded. */
  #position: Revision
  #pending: StorageEvent[] = []
  #pendingBytes = 0
  /** The last revision of which all changes are pending or recorded. */
  #seen: Revision
  #wroteMs: number
  #tasks: Promise<void> = Promise.resolve()

  /** `times` gets the times of the recorded commits. */
  constructor(
    source: RecorderSource,
    {
      thread,
      signal,
      times,
    }: { readonly thread: HistoryThread; readonly signal: AbortSignal; readonly times: CommitTimes },
    position: Revision,
  ) {
    this.#source = source
    this.#thread = thread
    this.#signal = signal
    this.#times = times
    this.#position = position
    this.#seen = position
    this.#wroteMs = source.clock.elapsed()
  }

  get position(): Revision {
    return this.#position
  }

  /** Returns only when the signal is aborted, after all that was seen is recorded. */
  async record(): Promise<void> {
    if (this.#position === 0) await this.#recordState()
    for (;;) {
      try {
        await this.#follow()
        return
      } catch (error) {
        if (!isCompacted(error)) throw error
        await this.#write()
        await this.#recordState('the store had dropped the changes before they were recorded')
      }
    }
  }

  /** Records a complete state after the changes so far. */
  refreshState(): Promise<void> {
    return this.#inTurn(async () => {
      await this.#writePending()
      await this.#writeState(this.#position)
    })
  }

  /** Records the oldest state that the store has. With a reason: the changes before are not known. */
  #recordState(gapReason?: string): Promise<void> {
    const { backend } = this.#source
    return this.#inTurn(async () => {
      const { compactedRevision } = await backend.health(this.#signal, { withoutSizes: true })
      let revision = compactedRevision
      try {
        await this.#writeState(revision, gapReason)
      } catch (error) {
        // The store has dropped it meanwhile.
        if (!isCompacted(error)) throw error
        revision = await backend.currentRevision(this.#signal)
        await this.#writeState(revision, gapReason)
      }
      this.#position = revision
      this.#seen = revision
    })
  }

  async #writeState(revision: Revision, gapReason?: string): Promise<void> {
    const { backend, clock, contentOf } = this.#source
    await this.#thread.call('beginState')
    try {
      for (let start = ALL_KEYS.start; ;) {
        const range = { start, end: ALL_KEYS.end, revision, limit: PAGE_ITEMS, signal: this.#signal }
        const { items, more } = await backend.range(range)
        const changes = items.flatMap((item) => stateOf(item, contentOf))
        await this.#thread.call('addState', encodeChanges(changes))
        if (!more) break
        start = `${items.at(-1)?.key ?? ''}\0`
      }
      // A store knows no time of what was before its first commit.
      const atMs = backend.timeOf(revision) ?? backend.timeOf(revision + 1) ?? clock.now()
      await this.#thread.call('endState', revision, atMs, gapReason)
      this.#times.note(revision, atMs)
    } catch (error) {
      await this.#thread.call('dropState').catch(() => undefined)
      throw error
    }
  }

  async #follow(): Promise<void> {
    const stop = new AbortController()
    const signal = AbortSignal.any([this.#signal, stop.signal])
    const writing = this.#writeRegularly(signal)
    const failed = writing.catch((error: unknown) => stop.abort(error))
    try {
      const from = this.#seen + 1
      for await (const { revision, events } of this.#source.backend.watch({ ...ALL_KEYS, from, signal })) {
        for (const event of events) this.#pendingBytes += event.value.length
        this.#pending.push(...events)
        this.#seen = Math.max(this.#seen, revision)
        if (this.#pendingBytes >= BATCH_BYTES) await this.#write()
      }
    } finally {
      stop.abort()
      await failed
    }
    await writing
    await this.#write()
  }

  async #writeRegularly(signal: AbortSignal): Promise<void> {
    while (!signal.aborted) {
      await sleep(this.#source.clock, BATCH_MS, signal, { background: true }).catch(() => undefined)
      const isIdle = this.#pending.length === 0 && this.#source.clock.elapsed() - this.#wroteMs < IDLE_MS
      if (!isIdle) await this.#write()
    }
  }

  #write(): Promise<void> {
    return this.#inTurn(() => this.#writePending())
  }

  /** One task after the other, until one fails. */
  #inTurn(task: () => Promise<void>): Promise<void> {
    this.#tasks = this.#tasks.then(task)
    return this.#tasks
  }

  async #writePending(): Promise<void> {
    // The writers of the newest commits note why in the same turn.
    await yieldToEventLoop()
    const { backend, clock, contentOf, noteOf } = this.#source
    const [events, last] = [this.#pending, this.#seen]
    if (last === this.#position) return
    this.#pending = []
    this.#pendingBytes = 0
    const changes: RecordedChange[] = []
    const times: CommitTime[] = []
    for (const { type, key, value, createRevision, modRevision } of events) {
      const timeMs = backend.timeOf(modRevision) ?? clock.now()
      const noted = this.#times.note(modRevision, timeMs)
      if (noted !== undefined) times.push([modRevision, noted])
      const content = type === 'delete' ? NOTHING : contentOf(key, value)
      if (content !== undefined)
        changes.push({ type, key, value: content, createRevision, modRevision, note: noteOf(modRevision) })
    }
    const fromMs = times[0]?.[1] ?? clock.now()
    const run = { first: this.#position + 1, last, fromMs, times, changes: encodeChanges(changes) }
    const first = await this.#thread.call('append', run, clock.now())
    if (first !== undefined) this.#times.forget(first)
    this.#position = last
    this.#wroteMs = clock.elapsed()
  }
}

function isCompacted(error: unknown): boolean {
  return error instanceof StorageError && error.code === 'compacted'
}

function stateOf(
  { key, value, createRevision, modRevision }: KeyValue,
  contentOf: RecorderSource['contentOf'],
): RecordedChange[] {
  const content = contentOf(key, value)
  return content === undefined ? [] : [{ type: 'state', key, value: content, createRevision, modRevision, note: '' }]
}
