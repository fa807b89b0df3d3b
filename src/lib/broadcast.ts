/**
 * One producer, many consumers, each with a bounded buffer of its own. Publishing never waits: what a consumer cannot
 * take is settled by that consumer's own policy, and no other consumer notices.
 */
import { abortError, onAbort } from './abort.ts'
import { Fifo } from './fifo.ts'

export interface SubscribeOptions {
  /** How many values may wait for this consumer. At least 1. */
  readonly capacity: number
  /**
   * What happens to a value too many. `drop-oldest` makes room, for those who want to know how things are now;
   * `close` ends the subscription, for those who must not miss one: they get all that was buffered, then the error.
   */
  readonly onFull: 'drop-oldest' | 'close'
  /** Ends the subscription: what is buffered is dropped, and `next` rejects with the reason. */
  readonly signal?: AbortSignal
}

/**
 * What one consumer sees, from the moment it subscribed. Leaving a `for await` loop ends it, as does `await using`.
 * Values arrive in order of publication; several `next` calls may wait at once and are served in turn.
 */
export interface Subscription<T> extends AsyncIterableIterator<T, undefined>, AsyncDisposable {
  next(): Promise<IteratorResult<T, undefined>>
  /** Ends the subscription. */
  return(): Promise<IteratorResult<T, undefined>>
  [Symbol.asyncIterator](): Subscription<T>
  /** How many values were thrown away for lack of room. */
  readonly dropped: number
}

export interface Broadcast<T> {
  /** Hands the value to every subscription there is now. Does nothing once closed. */
  publish(value: T): void
  /** Ends every subscription after what it has buffered, with the error if there is one; later ones end at once. */
  close(error?: Error): void
  subscribe(options: SubscribeOptions): Subscription<T>
  readonly subscribers: number
}

/** Why a subscription with policy `close` ended: its consumer was slower than the producer for too long. */
export class SlowConsumerError extends Error {
  readonly capacity: number

  constructor(capacity: number) {
    super(
      `Consumer is too slow: more than "${capacity}" values were waiting; subscribe again and start from the current state`,
    )
    this.name = 'SlowConsumerError'
    this.capacity = capacity
  }
}

export function createBroadcast<T>(): Broadcast<T> {
  const consumers = new Set<Consumer<T>>()
  let closed: { readonly error: Error | undefined } | undefined
  return {
    publish(value) {
      for (const consumer of consumers) consumer.offer(value)
    },
    close(error) {
      closed ??= { error }
      for (const consumer of consumers) consumer.end(error)
    },
    subscribe(options) {
      const consumer = new Consumer<T>(options, () => consumers.delete(consumer))
      if (closed !== undefined) consumer.end(closed.error)
      else {
        consumers.add(consumer)
        consumer.listen()
      }
      return consumer
    },
    get subscribers() {
      return consumers.size
    },
  }
}

interface Waiter<T> {
  resolve(result: IteratorResult<T, undefined>): void
  reject(error: Error): void
}

const DONE: IteratorResult<never, undefined> = { done: true, value: undefined }

class Consumer<T> implements Subscription<T> {
  readonly #options: SubscribeOptions
  readonly #leave: () => void
  #release = (): void => undefined
  /** Not empty only while `#waiters` is. */
  readonly #buffer = new Fifo<T>()
  readonly #waiters = new Fifo<Waiter<T>>()
  /** No more values will come. */
  #ended = false
  /** Told once, to the first who asks after the last value. */
  #error: Error | undefined
  #dropped = 0

  constructor(options: SubscribeOptions, leave: () => void) {
    if (!(options.capacity >= 1)) throw new RangeError(`Capacity must be at least 1, got "${options.capacity}"`)
    this.#options = options
    this.#leave = leave
  }

  get dropped(): number {
    return this.#dropped
  }

  listen(): void {
    const { signal } = this.#options
    this.#release = onAbort(signal, () => this.end(abortError(signal as AbortSignal)))
  }

  offer(value: T): void {
    const waiter = this.#waiters.shift()
    if (waiter !== undefined) return waiter.resolve({ done: false, value })
    if (this.#buffer.size < this.#options.capacity) return this.#buffer.push(value)
    this.#dropped++
    if (this.#options.onFull === 'close') return this.end(new SlowConsumerError(this.#options.capacity))
    this.#buffer.shift()
    this.#buffer.push(value)
  }

  /** No more values; those buffered can still be taken. */
  end(error?: Error): void {
    if (this.#ended) return
    this.#ended = true
    this.#error = error
    this.#leave()
    this.#release()
    for (let waiter = this.#waiters.shift(); waiter !== undefined; waiter = this.#waiters.shift()) this.#finish(waiter)
  }

  next(): Promise<IteratorResult<T, undefined>> {
    const { signal } = this.#options
    if (signal?.aborted && this.#buffer.size > 0) {
      this.#buffer.clear()
      this.#error = abortError(signal)
    }
    if (this.#buffer.size > 0) return Promise.resolve({ done: false, value: this.#buffer.shift() as T })
    return new Promise((resolve, reject) => {
      if (this.#ended) this.#finish({ resolve, reject })
      else this.#waiters.push({ resolve, reject })
    })
  }

  return(): Promise<IteratorResult<T, undefined>> {
    this.#buffer.clear()
    this.end()
    this.#error = undefined
    return Promise.resolve(DONE)
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.return()
  }

  [Symbol.asyncIterator](): this {
    return this
  }

  #finish(waiter: Waiter<T>): void {
    const error = this.#error
    this.#error = undefined
    if (error === undefined) waiter.resolve(DONE)
    else waiter.reject(error)
  }
}
