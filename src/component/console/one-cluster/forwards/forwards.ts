/** The forwards of all sessions of a console. Each ends with its session and with the process. */
import { onAbort } from '#lib/abort.ts'
import type { Clock } from '#lib/clock.ts'
import type { Random } from '#lib/random.ts'

import type { ConsoleTarget } from '../cluster-route.ts'
import type { Session, Sessions } from '../sessions.ts'
import { Forward, type ForwardView } from './forward.ts'
import type { ForwardTarget } from './target.ts'

export interface ForwardsOptions {
  readonly clock: Clock
  readonly random: Random
  readonly target: ConsoleTarget
  readonly sessions: Sessions
}

/** Of all sessions together. */
export const MAX_FORWARDS = 50
/** Other pages cannot find the host of a forward by trial. */
const ID_BYTES = 8

interface Opened {
  readonly forward: Forward
  readonly session: Session
  readonly stop: AbortController
}

export class Forwards {
  readonly #options: ForwardsOptions
  readonly #opened = new Map<string, Opened>()

  constructor(options: ForwardsOptions) {
    this.#options = options
  }

  /** Undefined: there are too many. Rejects if no port can be opened. */
  async open(session: Session, to: ForwardTarget): Promise<ForwardView | undefined> {
    if (this.#opened.size >= MAX_FORWARDS) return undefined
    const { clock, random, target } = this.#options
    const id = random.bytes(ID_BYTES).toString('hex')
    const stop = new AbortController()
    const forward = new Forward(id, { clock, target, to, signal: stop.signal })
    this.#opened.set(id, { forward, session, stop })
    try {
      await forward.open()
    } catch (error) {
      this.#opened.delete(id)
      throw error
    }
    this.#keep(id, session, stop)
    return forward.view()
  }

  list(session: Session): readonly ForwardView[] {
    return [...this.#opened.values()].filter((one) => one.session === session).map(({ forward }) => forward.view())
  }

  /** False: the session has no such forward. */
  stop(session: Session, id: string): boolean {
    const opened = this.#opened.get(id)
    if (opened === undefined || opened.session !== session) return false
    this.#opened.delete(id)
    opened.stop.abort(new Error('The forward was stopped'))
    return true
  }

  /** A session with a forward is in use, as one with a watch. */
  #keep(id: string, session: Session, stop: AbortController): void {
    const { sessions } = this.#options
    const ended = new Promise<void>((resolve) => void onAbort(stop.signal, resolve))
    const end = (): void => {
      this.#opened.delete(id)
      stop.abort(new Error('The session has ended'))
    }
    const until = async (signal: AbortSignal): Promise<true> => {
      const release = onAbort(signal, end)
      await ended
      release()
      return true
    }
    // Undefined: the session has too many requests under way.
    void sessions.during(session, until).then((kept) => (kept === undefined ? end() : undefined))
  }
}
