/**
 * Owns what a program has running: components, started in order and stopped in reverse, and background tasks. Whatever
 * was started or owned last ends first, because it may lean on everything before it. Nothing outlives `stop()`
 * unnoticed: what does not end within the grace time is named in the error.
 */
import { abortError, onAbort } from './abort.ts'
import type { Clock } from './clock.ts'

export interface Component {
  /** Named in errors. */
  readonly name: string
  /**
   * Resolves when the component is ready for those after it. When it rejects it has cleaned up after itself. The
   * signal is aborted when the lifecycle gives up waiting for the start, or when it is this component's turn to stop.
   */
  start(signal: AbortSignal): Promise<void> | void
  /** Resolves when nothing of the component is left. Called at most once, and only after a start that succeeded. */
  stop?(): Promise<void> | void
}

/** Something that runs until it is done or told to end: already begun, or to be begun now. */
export type Task = Promise<unknown> | ((signal: AbortSignal) => Promise<unknown>)

export interface LifecycleOptions {
  readonly clock: Clock
  /** How long stopping may take altogether. Default 30 s, as a Pod gets. */
  readonly graceMs?: number
  /** Stops the lifecycle when aborted. */
  readonly signal?: AbortSignal
}

export interface Lifecycle extends AsyncDisposable {
  /** Aborted as soon as stopping begins: take no new work. */
  readonly signal: AbortSignal
  /**
   * Starts the components one after the other. When one fails, everything started so far is stopped and the error
   * names it, with its own as `cause`. Rejects once stopping has begun. May be called again when it has resolved.
   */
  start(components: readonly Component[]): Promise<void>
  /**
   * Takes charge of a task that runs in the background. It is given a signal that is aborted when it is its turn to
   * end. If it fails before that, the lifecycle stops and ends with its error; if it ends well, nothing happens.
   * Once stopping has begun, a function is not called any more (throws), a promise still waited for.
   */
  own(name: string, task: Task): void
  /**
   * Stops everything, in reverse order, waiting for each; the same promise however often it is called. Rejects with
   * the error of the task that failed, or an AggregateError of everything that went wrong on the way.
   */
  stop(): Promise<void>
  /** Settles as `stop()` does, once something has stopped the lifecycle. Rejections are not reported as unhandled. */
  readonly ended: Promise<void>
}

/** What a Pod gets by default (`terminationGracePeriodSeconds`). */
const GRACE_MS = 30_000

export function createLifecycle(options: LifecycleOptions): Lifecycle {
  return new Running(options)
}

/** Something to end. */
interface Held {
  readonly name: string
  readonly control: AbortController
  readonly end: () => Promise<unknown>
}

class Running implements Lifecycle {
  readonly #clock: Clock
  readonly #graceMs: number
  readonly #control = new AbortController()
  #release = (): void => undefined
  readonly #ended = Promise.withResolvers<void>()
  /** In order of start; the last is ended first. */
  readonly #held = new Set<Held>()
  /** The component being started. */
  #starting: { readonly held: Held; readonly settled: Promise<unknown> } | undefined
  #state: 'running' | 'stopping' | 'over' = 'running'
  /** Why stopping began, if by a failed task. */
  #failure: Error | undefined

  constructor(options: LifecycleOptions) {
    this.#clock = options.clock
    this.#graceMs = options.graceMs ?? GRACE_MS
    // Whoever never asks how it ended must not bring the process down for it.
    this.#ended.promise.catch(() => undefined)
    this.#release = onAbort(options.signal, () => this.#begin(abortError(options.signal as AbortSignal)))
  }

  get signal(): AbortSignal {
    return this.#control.signal
  }

  get ended(): Promise<void> {
    return this.#ended.promise
  }

  async start(components: readonly Component[]): Promise<void> {
    for (const component of components) {
      try {
        await this.#startOne(component)
      } catch (cause) {
        throw await this.#startFailed(component.name, asError(cause))
      }
    }
  }

  own(name: string, task: Task): void {
    const control = new AbortController()
    if (typeof task === 'function') this.signal.throwIfAborted()
    const running = typeof task === 'function' ? Promise.try(task, control.signal) : task
    const held: Held = { name, control, end: () => running }
    this.#held.add(held)
    running.then(
      () => this.#held.delete(held),
      (error: unknown) => {
        // Once stopping has begun, `#endAll` hears of it.
        if (this.#state !== 'running') return
        this.#held.delete(held)
        this.#failure = asError(error)
        this.#begin(this.#failure)
      },
    )
  }

  stop(): Promise<void> {
    this.#begin(new Error('Stopped'))
    return this.#ended.promise
  }

  [Symbol.asyncDispose](): Promise<void> {
    return this.stop()
  }

  async #startOne(component: Component): Promise<void> {
    this.signal.throwIfAborted()
    if (this.#starting !== undefined) throw new Error('Another start is under way; wait for it first')
    const held: Held = {
      name: component.name,
      control: new AbortController(),
      end: async () => component.stop?.(),
    }
    const started = this.#bringUp(component, held)
    this.#starting = { held, settled: started.catch(() => undefined) }
    await started
    this.#starting = undefined
    this.signal.throwIfAborted()
  }

  async #bringUp(component: Component, held: Held): Promise<void> {
    await component.start(held.control.signal)
    if (this.#state !== 'over') this.#held.add(held)
    // It came up after it was given up, and reported: nobody else will stop it.
    else await held.end()
  }

  async #startFailed(name: string, cause: Error): Promise<Error> {
    const message = `Component "${name}" did not start: ${cause.message}`
    try {
      await this.stop()
    } catch (error) {
      const others = (error instanceof AggregateError ? error.errors : [error]).filter((other) => other !== cause)
      if (others.length > 0) return new AggregateError([cause, ...others], message, { cause })
    }
    return new Error(message, { cause })
  }

  #begin(reason: Error): void {
    if (this.#state !== 'running') return
    this.#state = 'stopping'
    this.#release()
    this.#control.abort(reason)
    this.#ended.resolve(this.#endAll())
  }

  async #endAll(): Promise<void> {
    const errors: Error[] = this.#failure === undefined ? [] : [this.#failure]
    const grace = Promise.withResolvers<void>()
    const timer = this.#clock.after(this.#graceMs, () => grace.resolve())
    const end = async (held: Held, ending: () => Promise<unknown>): Promise<void> => {
      this.#held.delete(held)
      held.control.abort(this.signal.reason)
      const error = await this.#outcome(held.name, Promise.try(ending), grace.promise)
      if (error !== undefined) errors.push(error)
    }
    const starting = this.#starting
    if (starting !== undefined) await end(starting.held, () => starting.settled)
    for (let last = [...this.#held].at(-1); last !== undefined; last = [...this.#held].at(-1)) await end(last, last.end)
    this.#state = 'over'
    timer.cancel()
    if (errors.length === 1 && this.#failure !== undefined) throw this.#failure
    if (errors.length > 0) throw new AggregateError(errors, errors.map((error) => error.message).join('; '))
  }

  /** What went wrong with the ending, if anything. */
  #outcome(name: string, ending: Promise<unknown>, grace: Promise<void>): Promise<Error | undefined> {
    const late = grace.then(async () => {
      // One turn of the loop for those that end without waiting for anything, though the time is up.
      await new Promise((resolve) => setImmediate(resolve))
      return new Error(`"${name}" did not stop within ${this.#graceMs} ms`)
    })
    const ended = ending.then(
      () => undefined,
      (cause: unknown) => {
        if (isAbort(cause, this.signal.reason)) return undefined
        return new Error(`"${name}" failed to stop: ${asError(cause).message}`, { cause })
      },
    )
    return Promise.race([ended, late])
  }
}

/** Whether the error only says that its thrower was told to end. */
function isAbort(error: unknown, reason: unknown): boolean {
  return error === reason || (error instanceof Error && (error.name === 'AbortError' || error.cause === reason))
}

function asError(thrown: unknown): Error {
  return thrown instanceof Error ? thrown : new Error(String(thrown), { cause: thrown })
}
