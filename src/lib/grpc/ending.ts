/**
 * Ends a gRPC call early: when its caller aborts it, its deadline passes, its peer resets it or the server stops. An
 * AbortSignal is created only on demand, because it is expensive.
 */
import type { GrpcError } from './status.ts'

export class Ending {
  #error: GrpcError | undefined
  #listeners: ((error: GrpcError) => void)[] = []
  #control: AbortController | undefined

  /** Why the call was ended, once it was. */
  get error(): GrpcError | undefined {
    return this.#error
  }

  /** Ends the call; only the first reason counts. */
  end(error: GrpcError): void {
    if (this.#error !== undefined) return
    this.#error = error
    const listeners = this.#listeners
    this.#listeners = []
    for (const listener of listeners) listener(error)
    this.#control?.abort(error)
  }

  /** Runs `task` when the call is ended, at once if it is already. Returns a function that takes this back. */
  onEnd(task: (error: GrpcError) => void): () => void {
    if (this.#error !== undefined) {
      task(this.#error)
      return () => undefined
    }
    this.#listeners.push(task)
    return () => {
      const at = this.#listeners.indexOf(task)
      if (at >= 0) this.#listeners.splice(at, 1)
    }
  }

  get signal(): AbortSignal {
    if (this.#control === undefined) {
      this.#control = new AbortController()
      if (this.#error !== undefined) this.#control.abort(this.#error)
    }
    return this.#control.signal
  }
}
