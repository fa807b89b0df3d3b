/**
 * The interface of time, passed as an argument. Only this file reads the machine's time or sets a timer (linted). So
 * all code runs with a real or a virtual clock; a day of virtual time takes as long as its work.
 */
/** A timer that can be taken back. */
export interface Timer {
  /** Harmless after the timer has run, and when repeated. */
  cancel(): void
}

export interface Clock {
  /** Milliseconds since the Unix epoch. The value jumps when an administrator sets the machine's clock. */
  now(): number
  /** Milliseconds that only ever grow, from an arbitrary start: for measuring how long something took. */
  elapsed(): number
  /**
   * Runs `task` once, `delayMs` from now (less than 0 counts as 0), never before this call has returned. A `background`
   * timer is for periodic work: it does not keep the process alive.
   */
  after(delayMs: number, task: () => void, options?: { readonly background?: boolean }): Timer
  /**
   * Registers work outside of the event loop, such as in a worker: virtual time stands still until it is done. Returns
   * the work, which must not itself wait for this clock.
   */
  during<T>(work: Promise<T>): Promise<T>
}

/** Resolves after `delayMs`; rejects with the signal's reason when it is aborted. */
export function sleep(
  clock: Clock,
  delayMs: number,
  signal?: AbortSignal,
  options?: { readonly background?: boolean },
): Promise<void> {
  return new Promise((resolve, reject) => {
    if (signal?.aborted) return reject(asError(signal.reason))
    const onAbort = (): void => {
      timer.cancel()
      reject(asError(signal?.reason))
    }
    const slept = (): void => {
      signal?.removeEventListener('abort', onAbort)
      resolve()
    }
    const timer = clock.after(delayMs, slept, options)
    signal?.addEventListener('abort', onAbort, { once: true })
  })
}

/** Runs `task` every `periodMs`, the first time one period from now, until cancelled (the task itself may do so). */
export function every(clock: Clock, periodMs: number, task: () => void): Timer {
  let timer: Timer
  const next = (): void => {
    timer = clock.after(
      periodMs,
      () => {
        next()
        task()
      },
      { background: true },
    )
  }
  next()
  return { cancel: () => timer.cancel() }
}

/** The same time, in which what is done in the background is done so many times less often. */
export function slowBackground(clock: Clock, factor: number): Clock {
  return {
    now: () => clock.now(),
    elapsed: () => clock.elapsed(),
    during: (work) => clock.during(work),
    after: (delayMs, task, options) =>
      clock.after(options?.background === true ? delayMs * factor : delayMs, task, options),
  }
}

/** The longest delay setTimeout can hold; a longer one would fire at once. */
const MAX_DELAY_MS = 2 ** 31 - 1

/** Not `performance.now()`, which costs the same, but makes Node load 5 ms of code first: a tenth of what kubectl takes. */
function monotonicMs(): number {
  const [seconds, nanoseconds] = process.hrtime()
  return seconds * 1e3 + nanoseconds / 1e6
}

/** The machine's own time. */
export const realClock: Clock = {
  now: () => Date.now(),
  elapsed: monotonicMs,
  after(delayMs, task, options) {
    let [handle, restMs] = [undefined as NodeJS.Timeout | undefined, Math.max(0, delayMs)]
    const arm = (): void => {
      const partMs = Math.min(restMs, MAX_DELAY_MS)
      restMs -= partMs
      handle = setTimeout(restMs > 0 ? arm : task, partMs)
      if (options?.background) handle.unref()
    }
    arm()
    return { cancel: () => clearTimeout(handle) }
  },
  during: (work) => work,
}

interface Pending {
  readonly due: number
  /** Order of arrival: timers due at the same moment run first come, first served. */
  readonly order: number
  readonly task: () => void
  cancelled: boolean
}

export interface VirtualClock extends Clock {
  /**
   * Moves time forward by `ms` and runs every due timer, in order of due time and then of arrival, with `now()` at
   * exactly its due time. Before time moves, everything that can go on without it does: promises, requested turns of
   * the event loop (`setImmediate`), and work in workers (`during`), but not network I/O. Timers set on the way run too
   * if they fall inside the span. Two runs with the same inputs run the same tasks in the same order.
   */
  advance(ms: number): Promise<void>
  /** Moves to the next timer and runs everything due at that moment; false when there is none. */
  next(): Promise<boolean>
  /** How many timers are set. */
  readonly pending: number
}

/** A clock that moves only on command. Starts at `startMs` (default: 2026-01-01T00:00:00Z). */
export function createVirtualClock(startMs: number = Date.UTC(2026, 0, 1)): VirtualClock {
  let now = startMs
  let order = 0
  let live = 0
  const heap = new TimerHeap()
  const { during, settle } = createStillness()

  const after = (delayMs: number, task: () => void): Timer => {
    const entry: Pending = { due: now + Math.max(0, delayMs), order: order++, task, cancelled: false }
    heap.push(entry)
    live++
    return {
      cancel() {
        if (entry.cancelled) return
        entry.cancelled = true
        live--
      },
    }
  }

  const runUntil = async (end: number): Promise<void> => {
    await settle()
    for (let entry = heap.peek(); entry !== undefined && entry.due <= end; entry = heap.peek()) {
      heap.pop()
      if (entry.cancelled) continue
      entry.cancelled = true
      live--
      now = entry.due
      entry.task()
      await settle()
    }
    now = Math.max(now, end)
  }

  return {
    now: () => now,
    elapsed: () => now - startMs,
    after,
    during,
    advance: (ms) => runUntil(now + ms),
    async next() {
      await settle()
      while (heap.peek()?.cancelled) heap.pop()
      const entry = heap.peek()
      if (entry === undefined) return false
      await runUntil(entry.due)
      return true
    },
    get pending() {
      return live
    },
  }
}

interface Stillness extends Pick<Clock, 'during'> {
  /** Resolves when nothing can go on without time. */
  readonly settle: () => Promise<void>
}

function createStillness(): Stillness {
  const elsewhere = new Set<Promise<unknown>>()
  return {
    during(work) {
      elsewhere.add(work)
      void Promise.allSettled([work]).then(() => elsewhere.delete(work))
      return work
    },
    async settle() {
      for (let turns = 0; turns < MAX_TURNS; turns++) {
        await turn()
        while (elsewhere.size > 0) await Promise.allSettled(elsewhere).then(turn)
        if (!isTurnWanted()) return
      }
    },
  }
}

/** Code that requests one turn after the other waits for time: nearly always a test. */
const MAX_TURNS = 1000

/** One turn of the check phase empties the whole microtask queue, however long its chains. */
function turn(): Promise<void> {
  return new Promise((resolve) => setImmediate(resolve))
}

/** True if another turn was requested. */
function isTurnWanted(): boolean {
  return process.getActiveResourcesInfo().includes('Immediate')
}

function asError(reason: unknown): Error {
  return reason instanceof Error ? reason : new Error('Aborted', { cause: reason })
}

/** Binary heap by (due, order). Kept here, without keys or removal, because ten thousand timers pass through it. */
class TimerHeap {
  readonly #items: Pending[] = []

  peek(): Pending | undefined {
    return this.#items[0]
  }

  push(item: Pending): void {
    const items = this.#items
    let at = items.push(item) - 1
    while (at > 0) {
      const up = (at - 1) >> 1
      const parent = items[up] as Pending
      if (!earlier(item, parent)) break
      items[at] = parent
      at = up
    }
    items[at] = item
  }

  pop(): void {
    const items = this.#items
    const last = items.pop()
    if (last === undefined || items.length === 0) return
    let at = 0
    for (;;) {
      let child = 2 * at + 1
      if (child >= items.length) break
      if (child + 1 < items.length && earlier(items[child + 1] as Pending, items[child] as Pending)) child++
      if (!earlier(items[child] as Pending, last)) break
      items[at] = items[child] as Pending
      at = child
    }
    items[at] = last
  }
}

function earlier(a: Pending, b: Pending): boolean {
  return a.due < b.due || (a.due === b.due && a.order < b.order)
}
