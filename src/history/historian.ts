/**
 * Historian: keeps a history file of a store. Nothing waits for it: when its thread dies or its disk is full, it logs
 * that, tries again, and at worst leaves a gap.
 */
import { existsSync, renameSync } from 'node:fs'

import { createBackoff } from '#lib/backoff.ts'
import { sleep } from '#lib/clock.ts'
import type { Logger } from '#lib/log/log.ts'
import type { Random } from '#lib/random.ts'
import { type Revision, StorageError } from '#storage/backend.ts'
import { CommitTimes } from '#storage/commit-times.ts'

import { decodeChanges } from './change-bytes.ts'
import type { HistorySummary } from './history-file.ts'
import type { ThreadSettings } from './messages.ts'
import { decodeTimes } from './packed-times.ts'
import type { KeyRange, RecordedChange } from './recorded-change.ts'
import { Recorder, type RecorderSource } from './recorder.ts'
import { HistoryThread } from './thread-calls.ts'

export interface HistorianOptions extends RecorderSource {
  readonly random: Random
  readonly log: Logger
  readonly settings: ThreadSettings
}

/** After a failure. */
const RETRY = { baseMs: 1000, capMs: 60_000, jitter: 0.1 }

interface Open {
  readonly thread: HistoryThread
  readonly recorder: Recorder
}

export class Historian {
  readonly #options: HistorianOptions
  readonly #stop = new AbortController()
  readonly #ended: Promise<void>
  #times = new CommitTimes()
  #open: Open | undefined
  #trouble = ''

  /** Starts to record. */
  constructor(options: HistorianOptions) {
    this.#options = options
    this.#ended = this.#run()
  }

  /** Why nothing is recorded now; empty: it is. */
  get trouble(): string {
    return this.#trouble
  }

  /** The times of the recorded commits. */
  get times(): Pick<CommitTimes, 'timeOf' | 'revisionAt'> {
    return this.#times
  }

  /** All changes up to it are recorded. */
  get position(): Revision {
    return this.#open?.recorder.position ?? 0
  }

  summary(): Promise<HistorySummary> {
    return this.#thread().call('summary')
  }

  /** The state of the keys of the range, in order of key. Fails with `compacted` if the history does not know it. */
  async stateAt(range: KeyRange, revision: Revision): Promise<RecordedChange[]> {
    return decoded(await this.#during(this.#thread().call('stateAt', range, revision)))
  }

  /** Some changes after `from`, oldest first; none if there are none up to `through`. */
  async changesAfter(range: KeyRange, from: Revision, through: Revision): Promise<RecordedChange[]> {
    return decoded(await this.#during(this.#thread().call('changesAfter', range, from, through)))
  }

  /** Deletes the changes of these keys up to the revision. Returns their number. */
  async forget(range: KeyRange, through: Revision, by: string): Promise<number> {
    const count = await this.#thread().call('forget', range, through, { atMs: this.#options.clock.now(), by })
    await this.#open?.recorder.refreshState()
    return count
  }

  /** Records what has happened until now. */
  async close(): Promise<void> {
    this.#stop.abort()
    await this.#ended
  }

  async #run(): Promise<void> {
    const { clock, random, log, settings } = this.#options
    const { signal } = this.#stop
    const backoff = createBackoff(random, RETRY)
    while (!signal.aborted) {
      try {
        await this.#record(() => backoff.reset())
      } catch (error) {
        if (signal.aborted) return
        this.#trouble = (error as Error).message
        log.error(error, 'Failed to record the history; trying again', { file: settings.file })
        await sleep(clock, backoff.next(), signal, { background: true }).catch(() => undefined)
      }
    }
  }

  /** Until it is stopped, or fails. */
  async #record(onStarted: () => void): Promise<void> {
    const { backend, settings, log } = this.#options
    const { signal } = this.#stop
    const thread = new HistoryThread(settings)
    try {
      const { summary, times } = await thread.call('open')
      if (summary.last > (await backend.currentRevision(signal))) {
        await thread.close()
        log.info('The history is of another store; beginning a new one', { old: moveAway(settings.file) })
        return
      }
      this.#times = new CommitTimes(decodeTimes(Buffer.from(times)))
      const recorder = new Recorder(this.#options, { thread, signal, times: this.#times }, summary.last)
      this.#open = { thread, recorder }
      this.#trouble = ''
      onStarted()
      await Promise.race([
        recorder.record(),
        thread.ended.then(() => this.#refuse('The thread of the history has ended')),
      ])
    } finally {
      this.#open = undefined
      await thread.close()
    }
  }

  #thread(): HistoryThread {
    return this.#open?.thread ?? this.#refuse(this.#trouble === '' ? 'The history is not open yet' : this.#trouble)
  }

  #refuse(message: string): never {
    throw new StorageError('unavailable', message)
  }

  /** A virtual clock stands still meanwhile. */
  #during<T>(work: Promise<T>): Promise<T> {
    return this.#options.clock.during(work)
  }
}

function decoded(bytes: Uint8Array): RecordedChange[] {
  return [...decodeChanges(Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength))]
}

/** Renames the file to the first free name and returns that. */
function moveAway(file: string): string {
  for (let number = 1; ; number++) {
    const old = `${file}.old-${number}`
    if (existsSync(old)) continue
    renameSync(file, old)
    for (const suffix of ['-wal', '-shm'])
      if (existsSync(`${file}${suffix}`)) renameSync(`${file}${suffix}`, `${old}${suffix}`)
    return old
  }
}
