/** Starts the thread that owns a history file, and calls it. */
import { Worker } from 'node:worker_threads'

import { StorageError } from '#storage/backend.ts'

import {
  buffersIn,
  type CallName,
  type Calls,
  type FromThread,
  type PlainError,
  type ThreadSettings,
  type ToThread,
} from './messages.ts'
import { HistoryGapError } from './recorded-change.ts'

/** Enough for the changes that are sorted at once. */
const resourceLimits = { maxYoungGenerationSizeMb: 2 }

interface Waiting {
  readonly resolve: (result: never) => void
  readonly reject: (error: Error) => void
}

export class HistoryThread {
  readonly #worker: Worker
  readonly #waiting = new Map<number, Waiting>()
  #count = 0
  #isEnded = false
  /** Resolves when the thread has ended for any reason. */
  readonly ended: Promise<void>

  constructor(settings: ThreadSettings) {
    this.#worker = new Worker(new URL('./history.worker.ts', import.meta.url), {
      workerData: settings,
      name: 'history',
      resourceLimits,
    })
    this.#worker.on('message', (answer: FromThread) => this.#deliver(answer))
    let cause: unknown
    this.#worker.on('error', (error) => (cause = error))
    this.ended = new Promise((resolve) => {
      this.#worker.on('exit', () => {
        this.#isEnded = true
        const reason = cause instanceof Error ? `: ${cause.message}` : ''
        const error = new StorageError('unavailable', `The thread of the history has ended${reason}`, { cause })
        for (const { reject } of this.#waiting.values()) reject(error)
        this.#waiting.clear()
        resolve()
      })
    })
  }

  call<Name extends CallName>(name: Name, ...args: Calls[Name]['arguments']): Promise<Calls[Name]['result']> {
    if (this.#isEnded) return Promise.reject(new StorageError('unavailable', 'The thread of the history has ended'))
    const id = this.#count++
    return new Promise((resolve, reject) => {
      this.#waiting.set(id, { resolve, reject })
      this.#worker.postMessage({ id, name, arguments: args } satisfies ToThread, buffersIn(args))
    })
  }

  /** Finishes the calls before. */
  async close(): Promise<void> {
    await this.call('close').catch(() => undefined)
    await this.ended
  }

  async kill(): Promise<void> {
    await this.#worker.terminate()
  }

  #deliver({ id, result, error }: FromThread): void {
    const waiting = this.#waiting.get(id)
    this.#waiting.delete(id)
    if (error === undefined) waiting?.resolve(result as never)
    else waiting?.reject(fromPlain(error))
  }
}

function fromPlain({ message, code = 'unavailable', compactedRevision, gap }: PlainError): StorageError {
  if (gap !== undefined) return new HistoryGapError(gap)
  return new StorageError(code, message, compactedRevision === undefined ? {} : { compactedRevision })
}
