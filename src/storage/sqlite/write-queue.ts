/**
 * The main thread's side of the writer: sends what has gathered in this turn of the event loop as one message, and
 * matches results, which come in the same order, with those who wait for them.
 */
import type { Clock } from '#lib/clock.ts'

import type { StorageError } from '../backend.ts'
import { fromPlain } from './failures.ts'
import type { Operation, Result } from './messages.ts'

/** Answers given in one turn: each sets off a response, and hundreds at once would hold up everybody else. */
const ANSWERS_PER_TURN = 32

interface Waiting {
  /** Called in order of revision, as soon as the result is known to be durable. */
  readonly publish: (result: Result) => void
  readonly resolve: (result: Result) => void
  readonly reject: (error: StorageError) => void
}

export class WriteQueue {
  readonly #send: (operations: readonly Operation[]) => void
  readonly #clock: Pick<Clock, 'during'>
  #gathered: Operation[] = []
  /** Those without a result, in order; the part before `#next` is done. */
  #waiting: Waiting[] = []
  #next = 0
  /** Those with a result that have not been told yet. */
  #answers: (() => void)[] = []
  #failure: StorageError | undefined
  #onDrained: (() => void)[] = []

  constructor(send: (operations: readonly Operation[]) => void, clock: Pick<Clock, 'during'>) {
    this.#send = send
    this.#clock = clock
  }

  /** `publish` sees the result before anybody else, and in order; the promise is settled a little later. */
  submit(operation: Operation, publish: (result: Result) => void): Promise<Result> {
    if (this.#failure !== undefined) return Promise.reject(this.#failure)
    const result = new Promise<Result>((resolve, reject) => {
      this.#waiting.push({ publish, resolve, reject })
      if (this.#gathered.push(operation) === 1) queueMicrotask(() => this.#flush())
    })
    return this.#clock.during(result)
  }

  /** Resolves when everything submitted so far and meanwhile has been answered. */
  drained(): Promise<void> {
    return new Promise((resolve) => {
      this.#onDrained.push(resolve)
      this.#noteDrained()
    })
  }

  deliver(results: readonly Result[]): void {
    for (const result of results) {
      const waiting = this.#waiting[this.#next++] as Waiting
      if (result[0] === 'error') {
        const error = fromPlain(result[1])
        this.#answers.push(() => waiting.reject(error))
      } else {
        waiting.publish(result)
        this.#answers.push(() => waiting.resolve(result))
      }
    }
    if (this.#next === this.#waiting.length || this.#next > 4096) {
      this.#waiting = this.#waiting.slice(this.#next)
      this.#next = 0
    }
    if (this.#answers.length === results.length) this.#answer()
  }

  /** Everything that waits, and everything submitted later, fails. */
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

  /** Tells some who wait, and the others in turns of their own. */
  #answer(): void {
    const batch = this.#answers.slice(0, ANSWERS_PER_TURN)
    this.#answers = this.#answers.slice(ANSWERS_PER_TURN)
    for (const tell of batch) tell()
    if (this.#answers.length > 0) setImmediate(() => this.#answer())
    else this.#noteDrained()
  }
}
