/**
 * The open past states of a server. Each takes about as much memory as the watch cache, so there are few, and one
 * without a request for a minute is closed.
 */
import { type Clock, every } from '#lib/clock.ts'
import { serviceUnavailableError, tooManyRequestsError } from '#meta/status-errors.ts'
import type { Revision } from '#storage/backend.ts'

import type { PastMoment } from './past-moment.ts'
import type { PastPlan, PastState } from './past-state.ts'

export interface PastStatesOptions {
  readonly clock: Clock
  readonly open: (plan: PastPlan) => Promise<PastState>
  /** Throws StatusError for a moment that is not known. */
  readonly parse: (text: string) => PastMoment
  readonly revisionOf: (moment: PastMoment) => Revision
  /** Called if a state fails to close. */
  readonly onError: (error: unknown) => void
}

/** A past state in use, until `release` is called. */
export interface PastUse {
  readonly state: PastState
  readonly release: () => void
}

/** The revision of a text. */
interface Pin {
  readonly revision: Revision
  readonly timeMs: number | undefined
  usedMs: number
  /** The store has dropped the revision. The text keeps it until the next look, so that no request sees two. */
  isLost: boolean
}

interface Open {
  readonly state: Promise<PastState>
  users: number
  usedMs: number
}

const MAX_OPEN = 4
const IDLE_MS = 60_000
const LOOK_EVERY_MS = 10_000

export class PastStates {
  readonly #options: PastStatesOptions
  /** By revision, speed and time. */
  readonly #open = new Map<string, Open>()
  /** A text such as `-2h` keeps its revision while it is used: a client's requests see one state. */
  readonly #pins = new Map<string, Pin>()
  readonly #timer: ReturnType<typeof every>
  #isClosed = false

  constructor(options: PastStatesOptions) {
    this.#options = options
    this.#timer = every(options.clock, LOOK_EVERY_MS, () => this.#closeIdle())
  }

  /** `isPlaying`: the changes after the moment follow. */
  async use(text: string, isPlaying: boolean): Promise<PastUse> {
    if (this.#isClosed) throw serviceUnavailableError('the server is stopping')
    const moment = this.#options.parse(text)
    const pin = this.#pin(text, moment)
    const plan = { revision: pin.revision, timeMs: pin.timeMs, ...(isPlaying && { speed: moment.speed }) }
    const key = `${plan.revision}@${plan.speed ?? 0}@${plan.timeMs ?? ''}`
    const open = this.#open.get(key) ?? this.#add(key, plan)
    open.users++
    const release = (): void => {
      open.users--
      open.usedMs = this.#options.clock.elapsed()
    }
    try {
      return { state: await open.state, release }
    } catch (error) {
      release()
      pin.isLost = true
      throw error
    }
  }

  async close(): Promise<void> {
    this.#isClosed = true
    this.#timer.cancel()
    await this.closeAll()
  }

  /** Ends their requests. */
  async closeAll(): Promise<void> {
    await Promise.all([...this.#open].map((entry) => this.#remove(...entry)))
  }

  #pin(text: string, moment: PastMoment): Pin {
    const usedMs = this.#options.clock.elapsed()
    const pinned = this.#pins.get(text)
    if (pinned !== undefined) {
      pinned.usedMs = usedMs
      return pinned
    }
    const timeMs = 'timeMs' in moment.moment ? moment.moment.timeMs : undefined
    const pin = { revision: this.#options.revisionOf(moment), timeMs, usedMs, isLost: false }
    this.#pins.set(text, pin)
    return pin
  }

  #add(key: string, plan: PastPlan): Open {
    if (this.#open.size >= MAX_OPEN) this.#makeRoom()
    const open = { state: this.#options.open(plan), users: 0, usedMs: this.#options.clock.elapsed() }
    this.#open.set(key, open)
    open.state.then(
      ({ stopped }) => void stopped.then(() => this.#remove(key, open)),
      () => this.#open.delete(key),
    )
    return open
  }

  /** Closes the state whose last request is the longest ago. Throws 429 if all are in use. */
  #makeRoom(): void {
    const unused = [...this.#open].filter(([, { users }]) => users === 0)
    const [oldest] = unused.sort(([, a], [, b]) => a.usedMs - b.usedMs)
    if (oldest === undefined)
      throw tooManyRequestsError(`${MAX_OPEN} past states are in use; try again when one of them is not`, 1)
    void this.#remove(...oldest)
  }

  #closeIdle(): void {
    const limitMs = this.#options.clock.elapsed() - IDLE_MS
    for (const [text, { usedMs, isLost }] of this.#pins) if (isLost || usedMs < limitMs) this.#pins.delete(text)
    for (const [key, open] of this.#open) if (open.users === 0 && open.usedMs < limitMs) void this.#remove(key, open)
  }

  /** Ends the watches of the state. */
  async #remove(key: string, open: Open): Promise<void> {
    if (this.#open.get(key) === open) this.#open.delete(key)
    const state = await open.state.catch(() => undefined)
    try {
      await state?.[Symbol.asyncDispose]()
    } catch (error) {
      this.#options.onError(error)
    }
  }
}
