/**
 * Sends operations to the writer thread, one message for each turn of the event loop, and passes the results to the
 * callers.
 */
import type { Clock } from '#lib/clock.ts'

import type { StorageError } from '../backend.ts'
import { fromPlain } from './failures.ts'
import type { Operation, Result } from './messages.ts'

/** Promises settled per turn: each causes a response, and hundreds at once would block other work. */
const ANSWERS_PER_TURN = 32

interface Waiting {
  /** Called in order of revision, as soon as the result is durable; returns the value of `submit`. */
  readonly publish: (result: Result, atMs: number) => unknown
  readonly resolve: (outcome: unknown) => void
  readonly reject: (error: StorageError) => void
  /** The result, once available. */
  outcome: unknown
  error: StorageError | undefined
}

export class WriteQueue {
  readonly #send: (operations: readonly Operation[]) => void
  readonly #clock: Pick<Clock, 'during'>
  #gathered: Operation[] = []
  /** Waiting operations in order; those before `#next` are done. */
  #waiting: Waiting[] = []
  #next = 0
  /** Operations with a result and an unsettled promise; those before `#settledCount` are settled. */
  #answers: Waiting[] = []
  #settledCount = 0
  #failure: StorageError | undefined
  #onDrained: (() => void)[] = []

  constructor(send: (operations: readonly Operation[]) => void, clock: Pick<Clock, 'during'>) {
    this.#send = send
    this.#clock = clock
  }

  /** `publish` receives the result first and in order; the promise settles a little later with its return value. */
  submit<T>(operation: Operation, publish: (result: Result, atMs: number) => T): Promise<T> {
    if (this.#failure !== undefined) return Promise.reject(this.#failure)
    const result = new Promise<T>((resolve, reject) => {
      const waiting = { publish, resolve: resolve as Waiting['resolve'], reject, outcome: undefined, error: undefined }
      this.#waiting.push(waiting)
      // Later in the turn: all connections with input run in the same turn, each in separate microtasks, and a message
      // per write costs more than the write.
      if (this.#gathered.push(operation) === 1) setImmediate(() => this.#flush())
    })
    return this.#clock.during(result)
  }

  /** Resolves when all operations submitted so far and meanwhile have results. */
  drained(): Promise<void> {
    return new Promise((resolve) => {
      this.#onDrained.push(resolve)
      this.#noteDrained()
    })
  }

  /** `atMs`: the time of their commits. */
  deliver(results: readonly Result[], atMs: number): void {
    const isTelling = this.#answers.length > 0
    for (const result of results) {
      const waiting = this.#waiting[this.#next++] as Waiting
      if (result[0] === 'error') waiting.error = fromPlain(result[1])
      else waiting.outcome = waiting.publish(result, atMs)
      this.#answers.push(waiting)
    }
    if (this.#next === this.#waiting.length || this.#next > 4096) {
      this.#waiting = this.#waiting.slice(this.#next)
      this.#next = 0
    }
    if (!isTelling) this.#answer()
  }

  /** Fails all pending and later operations. */
  fail(error: StorageError): void {
    this.#failure ??= error
    const waiting = this.#waiting.slice(this.#next)
    this.#waiting = []
    this.#next = 0
    this.#gathered = []
    for (const { reject } of waiting) reject(error)
    this.#noteDrained()
  }

  #noteDrained(): void {
    if (this.#next < this.#waiting.length || this.#answers.length > 0) return
    for (const resolve of this.#onDrained.splice(0)) resolve()
  }

  #flush(): void {
    const operations = this.#gathered
    this.#gathered = []
    if (operations.length > 0) this.#send(operations)
  }

  /** Settles some promises, and the others in later turns. */
  #answer(): void {
    const end = Math.min(this.#answers.length, this.#settledCount + ANSWERS_PER_TURN)
    for (; this.#settledCount < end; this.#settledCount++) settle(this.#answers[this.#settledCount] as Waiting)
    if (this.#settledCount < this.#answers.length) return void setImmediate(() => this.#answer())
    this.#answers = []
    this.#settledCount = 0
    this.#noteDrained()
  }
}

function settle({ outcome, error, resolve, reject }: Waiting): void {
  if (error === undefined) resolve(outcome)
  else reject(error)
}
