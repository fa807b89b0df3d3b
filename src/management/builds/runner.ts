/** Runs the work of this process on built clusters: at most one task for each cluster, and a few at the same time. */
import { onAbort } from '#lib/abort.ts'

interface Running {
  readonly operation: string
  readonly stop: AbortController
  readonly ended: Promise<void>
}

/** Each has connections to all machines of its cluster. */
const MAX_AT_ONCE = 8

export class BuildRunner {
  readonly #running = new Map<string, Running>()

  /** The Operation that is worked on. */
  active(cluster: string): string | undefined {
    return this.#running.get(cluster)?.operation
  }

  /** False: this process has enough to do. The task must not reject. `ended` is called when it is no longer active. */
  start(
    {
      cluster,
      operation,
      signal,
    }: { readonly cluster: string; readonly operation: string; readonly signal: AbortSignal },
    task: (signal: AbortSignal) => Promise<void>,
    ended: () => void,
  ): boolean {
    if (this.#running.size >= MAX_AT_ONCE || this.#running.has(cluster)) return false
    const stop = new AbortController()
    const release = onAbort(signal, () => stop.abort(signal.reason))
    const work = async (): Promise<void> => {
      try {
        await task(stop.signal)
      } finally {
        release()
        this.#running.delete(cluster)
        ended()
      }
    }
    this.#running.set(cluster, { operation, stop, ended: Promise.resolve().then(work) })
    return true
  }

  /** The work ends soon, after the calls that are under way. */
  stop(cluster: string): void {
    this.#running.get(cluster)?.stop.abort(new Error('The operation was cancelled'))
  }

  /** Resolves when all work has ended. */
  async ended(): Promise<void> {
    await Promise.allSettled([...this.#running.values()].map(({ ended }) => ended))
  }
}
