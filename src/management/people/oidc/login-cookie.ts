/**
 * Stores the state of an OpenID log-in in an encrypted cookie, so that only the browser that began it can complete
 * it. The server remembers only which states were used.
 */
import { createCipheriv, createDecipheriv } from 'node:crypto'

import { cookieValues } from '#component/console/cookies.ts'
import type { Clock } from '#lib/clock.ts'
import { ExpiringCache } from '#lib/collections/expiring-cache.ts'
import type { Random } from '#lib/random.ts'

export interface LoginState {
  readonly provider: string
  /** Sent to the provider, which sends it back. */
  readonly state: string
  /** Sent to the provider, which signs it. */
  readonly nonce: string
  /** The secret of PKCE. */
  readonly verifier: string
  readonly returnTo: string
  readonly expiresAtMs: number
}

const COOKIE = '__Host-hk-login'
export const LOGIN_SECONDS = 600

const CIPHER = 'aes-256-gcm'
const KEY_BYTES = 32
const IV_BYTES = 12
const TAG_BYTES = 16
/** Browsers keep no longer cookies. */
const MAX_CHARACTERS = 4096
/** When more log-ins are completed within ten minutes, the oldest could be repeated; the provider's code could not. */
const MAX_USED = 100_000

export class LoginCookies {
  readonly #clock: Clock
  readonly #random: Random
  /** A restart ends log-ins that are under way. */
  readonly #key: Buffer
  readonly #used: ExpiringCache<true>

  constructor(clock: Clock, random: Random) {
    this.#clock = clock
    this.#random = random
    this.#key = random.bytes(KEY_BYTES)
    this.#used = new ExpiringCache(clock, MAX_USED)
  }

  /** The value of `Set-Cookie`. */
  seal(state: LoginState): string {
    const iv = this.#random.bytes(IV_BYTES)
    const cipher = createCipheriv(CIPHER, this.#key, iv)
    const sealed = Buffer.concat([iv, cipher.update(JSON.stringify(state)), cipher.final(), cipher.getAuthTag()])
    return cookie(sealed.toString('base64url'), LOGIN_SECONDS)
  }

  /** The state in the header `Cookie`, once. Undefined if there is none, it has expired, or it was used before. */
  take(header: string): LoginState | undefined {
    const [value, ...others] = cookieValues(header, COOKIE)
    if (value === undefined || others.length > 0 || value.length > MAX_CHARACTERS) return undefined
    const state = this.#open(Buffer.from(value, 'base64url'))
    if (state === undefined || this.#clock.now() >= state.expiresAtMs) return undefined
    if (this.#used.get(state.state) !== undefined) return undefined
    this.#used.set(state.state, true, LOGIN_SECONDS * 1000)
    return state
  }

  #open(sealed: Buffer): LoginState | undefined {
    if (sealed.length <= IV_BYTES + TAG_BYTES) return undefined
    const decipher = createDecipheriv(CIPHER, this.#key, sealed.subarray(0, IV_BYTES), { authTagLength: TAG_BYTES })
    decipher.setAuthTag(sealed.subarray(-TAG_BYTES))
    try {
      const text = Buffer.concat([decipher.update(sealed.subarray(IV_BYTES, -TAG_BYTES)), decipher.final()])
      return JSON.parse(text.toString()) as LoginState
    } catch {
      return undefined
    }
  }
}

/** The value of `Set-Cookie` that deletes the cookie. */
export const ENDED_LOGIN: string = cookie('', 0)

/** Lax, because the browser comes back from another site. */
function cookie(value: string, maxAgeSeconds: number): string {
  return `${COOKIE}=${value}; Path=/; Max-Age=${maxAgeSeconds}; Secure; HttpOnly; SameSite=Lax`
}
