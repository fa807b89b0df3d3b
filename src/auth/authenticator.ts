/**
 * The interface of authenticators, which find the user of a connection or a token. Each handles one kind of credentials
 * and throws if they are wrong. The request fails unless another authenticator accepts it.
 */
import type { Exchange } from '#lib/http/exchange.ts'

import type { User } from './user.ts'

/** Wrong credentials of a known kind. The text goes to TokenReviews and the log, never to the refused client. */
export class CredentialError extends Error {
  override readonly name = 'CredentialError'
}

/**
 * Authenticates by connection or headers. Undefined if there are no credentials of this kind. Throws CredentialError.
 */
export type RequestAuthenticator = (exchange: Exchange) => User | undefined

export interface TokenIdentity {
  readonly user: User
  /** The requested audiences for which the token is valid. */
  readonly audiences: readonly string[]
}

/**
 * Authenticates by token. Undefined if the token is not of this kind. Throws CredentialError. The token must be valid
 * for one of `audiences`; an empty list accepts every audience.
 */
export type TokenAuthenticator = (
  token: string,
  audiences: readonly string[],
) => TokenIdentity | undefined | Promise<TokenIdentity | undefined>

export function intersect(a: readonly string[], b: readonly string[]): string[] {
  return a.filter((one) => b.includes(one))
}

/** For tokens without audiences, which are valid for the API server's own audiences. */
export function forAudiences(user: User, wanted: readonly string[], own: readonly string[]): TokenIdentity | undefined {
  if (wanted.length === 0) return { user, audiences: [] }
  const audiences = intersect(wanted, own)
  return audiences.length === 0 ? undefined : { user, audiences }
}
