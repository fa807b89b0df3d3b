/**
 * The open past states of a server. Each takes about as much memory as the watch cache, so there are few, and one
 * without a request for a minute is closed.
 */
import { type Clock, every } from '#lib/clock.ts'
import { tooManyRequestsError } from '#meta/status-errors.ts'
import type { Revision } from '#storage/backend.ts'

import type { PastMoment } from './past-moment.ts'
import type { PastPlan, PastState } from './past-state.ts'

export interface PastsOptions {
  readonly clock: Clock
  readonly open: (plan: PastPlan) => Promise<PastState>
  /** Throws StatusError for a moment that is not known. */
  readonly parse: (text: string) => PastMoment
  readonly revisionOf: (moment: PastMoment) => Revision
}

/** A past state in use, until `release` is called. */
export interface PastUse {
  readonly state: PastState
  readonly release: () => void
}

interface Open {
  readonly state: Promise<PastState>
  users: number
  usedMs: number
}

const MAX_OPEN = 4
const IDLE_MS = 60_000
const LOOK_EVERY_MS = 10_000

export class Pasts {
  readonly #options: PastsOptions
  /** By revision and speed. */
  readonly #open = new Map<string, Open>()
  /** A text such as `-2h` keeps its revision while it is used: a client's requests see one state. */
  readonly #revisions = new Map<string, { readonly revision: Revision; usedMs: number }>()
  readonly #timer: ReturnType<typeof every>

  constructor(options: PastsOptions) {
    this.#options = options
    this.#timer = every(options.clock, LOOK_EVERY_MS, () => this.#closeIdle())
  }

  /** `isPlaying`: the changes after the moment follow. */
  async use(text: string, isPlaying: boolean): Promise<PastUse> {
    const moment = this.#options.parse(text)
    const plan = { revision: this.#pin(text, moment), ...(isPlaying && { speed: moment.speed }) }
    const key = `${plan.revision}@${plan.speed ?? 0}`
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
      throw error
    }
  }

  async close(): Promise<void> {
    this.#timer.cancel()
    await Promise.all([...this.#open.keys()].map((key) => this.#remove(key)))
  }

  #pin(text: string, moment: PastMoment): Revision {
    const usedMs = this.#options.clock.elapsed()
    const pinned = this.#revisions.get(text)
    if (pinned !== undefined) {
      pinned.usedMs = usedMs
      return pinned.revision
    }
    const revision = this.#options.revisionOf(moment)
    this.#revisions.set(text, { revision, usedMs })
    return revision
  }

  #add(key: string, plan: PastPlan): Open {
    if (this.#open.size >= MAX_OPEN) this.#makeRoom()
    const open = { state: this.#options.open(plan), users: 0, usedMs: this.#options.clock.elapsed() }
    this.#open.set(key, open)
    open.state.catch(() => this.#open.delete(key))
    return open
  }

  /** Closes the state whose last request is the longest ago. Throws 429 if all are in use. */
  #makeRoom(): void {
    const unused = [...this.#open].filter(([, { users }]) => users === 0)
    const [oldest] = unused.sort(([, a], [, b]) => a.usedMs - b.usedMs)
    if (oldest === undefined)
      throw tooManyRequestsError(`${MAX_OPEN} past states are in use; try again when one of them is not`, 1)
    void this.#remove(oldest[0])
  }

  #closeIdle(): void {
    const limitMs = this.#options.clock.elapsed() - IDLE_MS
    for (const [text, { usedMs }] of this.#revisions) if (usedMs < limitMs) this.#revisions.delete(text)
    for (const [key, { users, usedMs }] of this.#open) if (users === 0 && usedMs < limitMs) void this.#remove(key)
  }

  async #remove(key: string): Promise<void> {
    const open = this.#open.get(key)
    this.#open.delete(key)
    const state = await open?.state.catch(() => undefined)
    await state?.[Symbol.asyncDispose]()
  }
}
