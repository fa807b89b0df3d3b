/**
 * Creates, verifies and deletes the tokens of sessions and API clients. Clients send `hk_<name>_<secret>`, and the
 * Token object stores the SHA-256 of the secret. Verification reads only the cache in memory.
 */
import { hashOfSecret, isSameHash, NO_HASH, splitToken } from '#cluster-agent/api-auth/token-text.ts'
import { type PeriodicTask, runPeriodically } from '#lib/periodic.ts'
import { pick } from '#lib/random.ts'
import { badRequestError, forbiddenError } from '#meta/status-errors.ts'
import { epochMsOf, timeOf } from '#meta/time.ts'

import { type Token, Tokens as TokenKind } from '../kinds/token.ts'
import { type User, Users } from '../kinds/user.ts'
import type { ManagementObjects } from '../objects.ts'
import { LastUses } from './last-uses.ts'

export interface TokenPlan {
  /** The name of the User. */
  readonly user: string
  readonly type: 'session' | 'api'
  readonly lifetimeMs: number
  readonly description?: string | undefined
  readonly idleSeconds?: number | undefined
  readonly cluster?: string | undefined
  readonly readOnly?: boolean | undefined
}

export interface NewToken {
  /** `hk_<name>_<secret>`, shown once. */
  readonly text: string
  readonly token: Token
}

export interface VerifiedCaller {
  readonly token: Token
  readonly user: User
}

const DAY_MS = 24 * 3_600_000
/** API tokens always end. */
export const MAX_API_TOKEN_MS: number = 90 * DAY_MS

const SECRET_BYTES = 32
const NAME_ALPHABET = 'bcdfghjklmnpqrstvwxz2456789'
const NAME_LENGTH = 10
const MAX_API_TOKENS_OF_USER = 500
const SWEEP_MS = 10 * 60_000

/** Make it after the objects have synced. */
export class Tokens {
  readonly #objects: ManagementObjects
  readonly #lastUses: LastUses
  readonly #sweeper: PeriodicTask
  readonly #byUser = new Map<string, Map<string, Token>>()
  /** Names that are refused although memory may still have the object. */
  readonly #ended = new Set<string>()

  constructor(objects: ManagementObjects) {
    this.#objects = objects
    this.#lastUses = new LastUses(objects)
    objects.listen(TokenKind, (token, isDeleted) => this.#follow(token, isDeleted))
    const onError = (error: unknown): void => objects.log.error(error, 'Failed to delete expired tokens')
    this.#sweeper = runPeriodically({ clock: objects.clock, periodMs: SWEEP_MS, onError }, () => this.sweep())
  }

  /** Throws StatusError 400 for an API token without a valid end, 403 if the user has too many. */
  async create(plan: TokenPlan): Promise<NewToken> {
    const { clock, random } = this.#objects
    const { lifetimeMs, type, user } = plan
    if (type === 'api') this.#checkApiToken(user, lifetimeMs)
    const name = `t-${pick(random, NAME_ALPHABET, NAME_LENGTH)}`
    const secret = random.bytes(SECRET_BYTES).toString('base64url')
    const { description, idleSeconds, cluster, readOnly } = plan
    const token = await this.#objects.create(TokenKind, {
      metadata: { name },
      spec: {
        user,
        type,
        hash: hashOfSecret(secret),
        expiresAt: timeOf(clock.now() + lifetimeMs),
        ...(description !== undefined && { description }),
        ...(idleSeconds !== undefined && { idleSeconds }),
        ...(cluster !== undefined && { cluster }),
        ...(readOnly !== undefined && { readOnly }),
      },
    })
    return { text: `hk_${name}_${secret}`, token }
  }

  #checkApiToken(user: string, lifetimeMs: number): void {
    if (!(lifetimeMs > 0) || lifetimeMs > MAX_API_TOKEN_MS) {
      throw badRequestError('An API token ends after 90 days at the latest')
    }
    const count = this.ofUser(user).filter(({ spec }) => spec.type === 'api').length
    if (count < MAX_API_TOKENS_OF_USER) return
    const why = `the user has ${count} API tokens; delete some of them first`
    throw forbiddenError({ group: TokenKind.group, resource: TokenKind.plural }, '', why)
  }

  /**
   * The token and its user, if the secret is right, the token has not ended and the user is not disabled. Binding to a
   * cluster and `readOnly` are for the caller to check.
   */
  verify(text: string, type: Token['spec']['type'], address: string): VerifiedCaller | undefined {
    const parts = splitToken(text)
    if (parts === undefined) return undefined
    const { name, secret } = parts
    const token = this.#objects.get(TokenKind, name)
    const isRight = isSameHash(hashOfSecret(secret), token?.spec.hash ?? NO_HASH)
    if (token === undefined || !isRight || token.spec.type !== type || this.#hasEnded(token)) return undefined
    const user = this.#objects.get(Users, token.spec.user)
    if (user === undefined || user.spec.disabled === true) return undefined
    this.#lastUses.note(name, address)
    return { token, user }
  }

  #hasEnded(token: Token): boolean {
    const { spec, metadata } = token
    const { name = '', deletionTimestamp } = metadata
    if (spec.disabled === true || deletionTimestamp !== undefined || this.#ended.has(name)) return true
    return this.#hasExpired(token)
  }

  #hasExpired(token: Token): boolean {
    const { spec } = token
    const now = this.#objects.clock.now()
    if (now >= epochMsOf(spec.expiresAt)) return true
    return spec.idleSeconds !== undefined && now - this.#lastUses.of(token) >= spec.idleSeconds * 1000
  }

  ofUser(user: string): readonly Token[] {
    return [...(this.#byUser.get(user)?.values() ?? [])]
  }

  /** The time of the last use in milliseconds; that of the creation for an unused token. */
  lastUseOf(token: Token): number {
    return this.#lastUses.of(token)
  }

  /** No request with the token is accepted from the moment of this call on. */
  async end(token: Token): Promise<void> {
    const { name = '' } = token.metadata
    this.#ended.add(name)
    await this.#objects.delete(TokenKind, name)
  }

  /** Ends the tokens of a user, except those that `keeps` returns true for. */
  async endOfUser(user: string, keeps: (token: Token) => boolean = () => false): Promise<void> {
    const ending = this.ofUser(user).filter((token) => !keeps(token))
    for (const { metadata } of ending) this.#ended.add(metadata.name ?? '')
    for (const token of ending) await this.end(token)
  }

  /** Deletes tokens that have ended, and those of deleted users. */
  async sweep(): Promise<void> {
    for (const token of this.#objects.list(TokenKind)) {
      const isLeft = this.#ended.has(token.metadata.name ?? '')
      const isOrphan = this.#objects.get(Users, token.spec.user) === undefined
      if (isLeft || isOrphan || this.#hasExpired(token)) await this.end(token)
    }
  }

  /** Stops the sweeper and writes the last uses. */
  async close(): Promise<void> {
    await this.#sweeper.stop()
    await this.#lastUses.close()
  }

  #follow(token: Token, isDeleted: boolean): void {
    const { name = '' } = token.metadata
    const { user } = token.spec
    const known = this.#byUser.get(user) ?? new Map<string, Token>()
    if (!isDeleted) {
      this.#byUser.set(user, known.set(name, token))
      return
    }
    known.delete(name)
    if (known.size === 0) this.#byUser.delete(user)
    this.#ended.delete(name)
    this.#lastUses.forget(name)
  }
}

export function isSession({ spec }: Token): boolean {
  return spec.type === 'session'
}
