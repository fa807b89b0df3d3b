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
  /** Called in order of revision, as soon as the result is known to be durable; returns what `submit` resolves to. */
  readonly publish: (result: Result) => unknown
  readonly resolve: (outcome: unknown) => void
  readonly reject: (error: StorageError) => void
  /** Once there is a result: what is to be told. */
  outcome: unknown
  error: StorageError | undefined
}

export class WriteQueue {
  readonly #send: (operations: readonly Operation[]) => void
  readonly #clock: Pick<Clock, 'during'>
  #gathered: Operation[] = []
  /** Those without a result, in order; the part before `#next` is done. */
  #waiting: Waiting[] = []
  #next = 0
  /** Those with a result that have not been told yet; the part before `#told` has been. */
  #answers: Waiting[] = []
  #told = 0
  #failure: StorageError | undefined
  #onDrained: (() => void)[] = []

  constructor(send: (operations: readonly Operation[]) => void, clock: Pick<Clock, 'during'>) {
    this.#send = send
    this.#clock = clock
  }

  /** `publish` sees the result before anybody else, and in order; the promise is settled a little later, with what it returns. */
  submit<T>(operation: Operation, publish: (result: Result) => T): Promise<T> {
    if (this.#failure !== undefined) return Promise.reject(this.#failure)
    const result = new Promise<T>((resolve, reject) => {
      const waiting = { publish, resolve: resolve as Waiting['resolve'], reject, outcome: undefined, error: undefined }
      this.#waiting.push(waiting)
      // Not sooner: every connection that has sent something is heard in the same turn, each in microtasks of its own, and
      // a message for each write costs more than making it.
      if (this.#gathered.push(operation) === 1) setImmediate(() => this.#flush())
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
    const isTelling = this.#answers.length > 0
    for (const result of results) {
      const waiting = this.#waiting[this.#next++] as Waiting
      if (result[0] === 'error') waiting.error = fromPlain(result[1])
      else waiting.outcome = waiting.publish(result)
      this.#answers.push(waiting)
    }
    if (this.#next === this.#waiting.length || this.#next > 4096) {
      this.#waiting = this.#waiting.slice(this.#next)
      this.#next = 0
    }
    if (!isTelling) this.#answer()
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
    const end = Math.min(this.#answers.length, this.#told + ANSWERS_PER_TURN)
    for (; this.#told < end; this.#told++) tell(this.#answers[this.#told] as Waiting)
    if (this.#told < this.#answers.length) return void setImmediate(() => this.#answer())
    this.#answers = []
    this.#told = 0
    this.#noteDrained()
  }
}

function tell({ outcome, error, resolve, reject }: Waiting): void {
  if (error === undefined) resolve(outcome)
  else reject(error)
}
