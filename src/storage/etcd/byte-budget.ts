/**
 * ByteBudget: limits the bytes of concurrent writes to etcd, first come, first served. Node's HTTP/2 drops answers once
 * a session exceeds its memory limit.
 */
import { onAbort } from '#lib/abort.ts'
import { Fifo } from '#lib/collections/fifo.ts'

interface Waiter {
  readonly bytes: number
  /** Undefined once its signal was aborted. */
  start: (() => void) | undefined
}

export class ByteBudget {
  readonly #bytes: number
  #free: number
  readonly #waiting = new Fifo<Waiter>()
  /** The longest waiting task, taken out of the queue because it did not fit. */
  #first: Waiter | undefined

  constructor(bytes: number) {
    this.#bytes = bytes
    this.#free = bytes
  }

  /**
   * Runs `task` when its bytes fit; one larger than the budget runs alone. Rejects with the signal's reason if it is
   * aborted before that.
   */
  async run<T>(bytes: number, signal: AbortSignal | undefined, task: () => Promise<T>): Promise<T> {
    signal?.throwIfAborted()
    const share = Math.min(bytes, this.#bytes)
    if (this.#first !== undefined || share > this.#free) await this.#turn(share, signal)
    else this.#free -= share
    try {
      return await task()
    } finally {
      this.#free += share
      this.#admit()
    }
  }

  #turn(bytes: number, signal: AbortSignal | undefined): Promise<void> {
    return new Promise((resolve, reject) => {
      const waiter: Waiter = {
        bytes,
        start() {
          release()
          resolve()
        },
      }
      const release = onAbort(signal, () => {
        waiter.start = undefined
        // oxlint-disable-next-line typescript/prefer-promise-reject-errors -- the contract: the signal's own reason
        reject(signal?.reason)
        this.#admit()
      })
      if (this.#first === undefined) this.#first = waiter
      else this.#waiting.push(waiter)
    })
  }

  #admit(): void {
    for (; this.#first !== undefined; this.#first = this.#waiting.shift()) {
      const { start, bytes } = this.#first
      if (start === undefined) continue
      if (bytes > this.#free) return
      this.#free -= bytes
      start()
    }
  }
}
