/**
 * Browser sessions of the console of one cluster: cookies of 256 random bits, of which only hashes are kept. A session
 * ends after 16 hours, or after an hour without requests.
 */
import { hash } from 'node:crypto'

import type { Clock, Timer } from '#lib/clock.ts'
import type { Random } from '#lib/random.ts'

export interface StoredSession {
  /** SHA-256 of the cookie's value, in hex. */
  readonly hash: string
  readonly expiresAtMs: number
  readonly usedAtMs: number
}

/** Keeps sessions over restarts. */
export interface SessionStore {
  read(): Promise<readonly StoredSession[]>
  write(sessions: readonly StoredSession[]): Promise<void>
}

export interface SessionsOptions {
  readonly clock: Clock
  readonly random: Random
  /** Absent: sessions end with the process. */
  readonly store?: SessionStore | undefined
  /** Called when the store fails. Sessions then end with the process. */
  readonly onError: (error: unknown) => void
}

export interface Session {
  readonly hash: string
  readonly expiresAtMs: number
  usedAtMs: number
  /** Requests under way. */
  open: number
  /** Aborted when the session ends. */
  readonly ending: AbortController
  timer: Timer | undefined
}

export const LIFETIME_MS = 57_600_000
export const IDLE_MS = 3_600_000
const SECRET_BYTES = 32
/** The one that was not used for the longest time ends when there are more. */
const MAX_SESSIONS = 100
/** Watches, logs and shells of one browser. */
export const MAX_OPEN = 500
/** The stored time of the last request may be older by this. */
const STORED_USE_MS = 300_000

export class Sessions {
  readonly #options: SessionsOptions
  readonly #sessions = new Map<string, Session>()
  #written: Promise<void> = Promise.resolve()
  #writtenAtMs = -Infinity

  private constructor(options: SessionsOptions) {
    this.#options = options
  }

  /** Continues the sessions of the store. */
  static async open(options: SessionsOptions): Promise<Sessions> {
    const sessions = new Sessions(options)
    const stored = await (options.store?.read() ?? Promise.resolve([])).catch((error: unknown) => {
      options.onError(error)
      return []
    })
    for (const one of stored) sessions.#add(one)
    return sessions
  }

  /** Returns the value of the cookie. */
  start(): string {
    const nowMs = this.#options.clock.now()
    const secret = this.#options.random.bytes(SECRET_BYTES).toString('base64url')
    this.#endOldest()
    this.#add({ hash: hashOf(secret), expiresAtMs: nowMs + LIFETIME_MS, usedAtMs: nowMs })
    this.#write()
    return secret
  }

  /** The session of one of the values, which counts as used now. Undefined if none is valid. */
  find(secrets: readonly string[]): Session | undefined {
    const nowMs = this.#options.clock.now()
    for (const secret of secrets.slice(0, MAX_COOKIES)) {
      const session = this.#sessions.get(hashOf(secret))
      if (session === undefined) continue
      if (!isOver(session, nowMs)) {
        session.usedAtMs = nowMs
        if (nowMs - this.#writtenAtMs >= STORED_USE_MS) this.#write()
        return session
      }
      this.end(session)
    }
    return undefined
  }

  /** Aborts the requests of the session that are under way. */
  end(session: Session): void {
    session.timer?.cancel()
    session.ending.abort(new Error('The session has ended'))
    if (this.#sessions.delete(session.hash)) this.#write()
  }

  /** Runs a request. While one is under way, the session is in use. Undefined: there are too many. */
  async during<T>(session: Session, work: (signal: AbortSignal) => Promise<T>): Promise<T | undefined> {
    if (session.open >= MAX_OPEN) return undefined
    session.open++
    try {
      return await work(session.ending.signal)
    } finally {
      session.open--
      session.usedAtMs = this.#options.clock.now()
    }
  }

  /** Aborts all requests. Stored sessions continue after a restart. */
  async close(): Promise<void> {
    this.#write()
    for (const { timer, ending } of this.#sessions.values()) {
      timer?.cancel()
      ending.abort(new Error('The console is stopping'))
    }
    await this.#written
  }

  #add(stored: StoredSession): void {
    const { clock } = this.#options
    const session: Session = { ...stored, open: 0, ending: new AbortController(), timer: undefined }
    if (isOver(session, clock.now())) return
    const leftMs = session.expiresAtMs - clock.now()
    session.timer = clock.after(leftMs, () => this.end(session), { background: true })
    this.#sessions.set(session.hash, session)
  }

  #endOldest(): void {
    const byUse = [...this.#sessions.values()].toSorted((one, other) => one.usedAtMs - other.usedAtMs)
    for (const session of byUse.slice(0, Math.max(0, byUse.length - MAX_SESSIONS + 1))) this.end(session)
  }

  /** One write after the other; the last one has the newest state. */
  #write(): void {
    const { store, clock, onError } = this.#options
    if (store === undefined) return
    this.#writtenAtMs = clock.now()
    this.#written = this.#written.then(() => store.write(this.#stored())).catch(onError)
  }

  #stored(): readonly StoredSession[] {
    const nowMs = this.#options.clock.now()
    return [...this.#sessions.values()].map(({ hash: id, expiresAtMs, usedAtMs, open }) => ({
      hash: id,
      expiresAtMs,
      usedAtMs: open > 0 ? nowMs : usedAtMs,
    }))
  }
}

/** A browser sends one, unless another server on this machine has set more. */
const MAX_COOKIES = 10

function isOver({ expiresAtMs, usedAtMs, open }: Session, nowMs: number): boolean {
  return nowMs >= expiresAtMs || (open === 0 && nowMs - usedAtMs >= IDLE_MS)
}

function hashOf(secret: string): string {
  return hash('sha256', secret)
}
