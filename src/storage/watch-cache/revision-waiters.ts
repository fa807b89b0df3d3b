/** Lets callers wait until the watch cache has reached a revision. */
import { type Revision, StorageError } from '../backend.ts'

interface Waiter {
  readonly revision: Revision
  readonly resolve: () => void
}

export class RevisionWaiters {
  /** The maximum wait. */
  readonly #stop: AbortSignal
  #applied: Revision = 0
  #waiters: Waiter[] = []

  constructor(stop: AbortSignal) {
    this.#stop = stop
  }

  /** Everything up to here has been applied. */
  get applied(): Revision {
    return this.#applied
  }

  /** Without resolving waiters: more must be done before readers may see it. */
  set(revision: Revision): void {
    this.#applied = revision
  }

  /** Everything up to `revision` has been applied; never goes back. */
  reach(revision: Revision): void {
    this.#applied = Math.max(this.#applied, revision)
    if (this.#waiters.length === 0) return
    const ready = this.#waiters.filter((waiter) => waiter.revision <= this.#applied)
    if (ready.length === 0) return
    this.#waiters = this.#waiters.filter((waiter) => waiter.revision > this.#applied)
    for (const { resolve } of ready) resolve()
  }

  /** Resolves when everything up to `revision` has been applied; rejects when the signal is aborted first. */
  waitFor(revision: Revision, signal?: AbortSignal): Promise<void> {
    if (this.#applied >= revision) return Promise.resolve()
    return new Promise((resolve, reject) => {
      const stop = signal === undefined ? this.#stop : AbortSignal.any([signal, this.#stop])
      const onAbort = (): void => {
        this.#waiters = this.#waiters.filter((waiter) => waiter !== mine)
        reject(new StorageError('timeout', `The cache did not reach revision ${revision}; it is at ${this.#applied}`))
      }
      const mine = {
        revision,
        resolve: () => {
          stop.removeEventListener('abort', onAbort)
          resolve()
        },
      }
      if (stop.aborted) return onAbort()
      stop.addEventListener('abort', onAbort, { once: true })
      this.#waiters.push(mine)
    })
  }
}
