/**
 * Browser sessions of the management server. Each is a Token of type `session` whose secret is in a cookie; each
 * log-in creates a new one.
 */
import { cookieValues } from '#component/console/cookies.ts'

import type { Token } from '../kinds/token.ts'
import type { User } from '../kinds/user.ts'
import { isSession, type Tokens } from './tokens.ts'

const SESSION_COOKIE = '__Host-hk'

const LIFETIME_SECONDS = 16 * 3600
const IDLE_SECONDS = 3600
/** The one that was not used for the longest time ends when there are more. */
const MAX_SESSIONS_OF_USER = 100

export interface NewSession {
  /** The value of `Set-Cookie`. */
  readonly cookie: string
  readonly token: Token
}

export class Sessions {
  readonly #tokens: Tokens

  constructor(tokens: Tokens) {
    this.#tokens = tokens
  }

  async start(user: User): Promise<NewSession> {
    const { name = '' } = user.metadata
    await this.#endOldest(name)
    const lifetimeMs = LIFETIME_SECONDS * 1000
    const plan = { user: name, type: 'session', lifetimeMs, idleSeconds: IDLE_SECONDS } as const
    const { text, token } = await this.#tokens.create(plan)
    return { cookie: cookie(text, LIFETIME_SECONDS), token }
  }

  /** Ends the session that a browser has when it logs in anew. */
  async endSent(cookieHeader: string | undefined, address: string): Promise<void> {
    for (const text of sessionCookies(cookieHeader ?? '').slice(0, 1)) {
      const caller = this.#tokens.verify(text, 'session', address)
      if (caller !== undefined) await this.#tokens.end(caller.token)
    }
  }

  async #endOldest(user: string): Promise<void> {
    const sessions = this.#tokens.ofUser(user).filter(isSession)
    if (sessions.length < MAX_SESSIONS_OF_USER) return
    const byUse = sessions.toSorted((a, b) => this.#tokens.lastUseOf(a) - this.#tokens.lastUseOf(b))
    for (const token of byUse.slice(0, sessions.length - MAX_SESSIONS_OF_USER + 1)) await this.#tokens.end(token)
  }
}

/** The value of `Set-Cookie` that deletes the cookie. */
export const ENDED_SESSION: string = cookie('', 0)

/** The values of the session cookie in the header `Cookie`: one, unless an attacker has set another. */
export function sessionCookies(header: string): string[] {
  return cookieValues(header, SESSION_COOKIE)
}

function cookie(value: string, maxAgeSeconds: number): string {
  return `${SESSION_COOKIE}=${value}; Path=/; Max-Age=${maxAgeSeconds}; Secure; HttpOnly; SameSite=Strict`
}
