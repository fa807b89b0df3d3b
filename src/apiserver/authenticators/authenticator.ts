/**
 * Authenticators: who is behind this connection, or this token? Each knows one kind of credentials and says nothing about
 * the others; one that knows the kind but finds it wrong throws, and the request fails unless another vouches for it.
 */
import { hash } from 'node:crypto'

import type { Exchange } from '#lib/http/exchange.ts'

import type { User } from '../registry/resource.ts'

/** Credentials of a known kind that do not hold. The text is for TokenReview and the log, never for the one refused. */
export class CredentialError extends Error {
  override readonly name = 'CredentialError'
}

/** By connection or headers. Undefined: no credentials of this kind. Throws CredentialError. */
export type RequestAuthenticator = (exchange: Exchange) => User | undefined

export interface TokenIdentity {
  readonly user: User
  /** For whom the token is good, of those that were asked about. */
  readonly audiences: readonly string[]
}

/**
 * By token. Undefined: no token of this kind. Throws CredentialError. `audiences` are whom the token must be good for:
 * one of them suffices, and none at all means that it does not matter.
 */
export type TokenAuthenticator = (
  token: string,
  audiences: readonly string[],
) => TokenIdentity | undefined | Promise<TokenIdentity | undefined>

/** The last one: the authenticators that a token is shown to in turn all want the key of the same one. */
let last = { token: '', key: hash('sha256', '', 'base64') }

/** A token as a key: caches must not hold tokens, nor tell by their timing how much of one was right. */
export function tokenKey(token: string): string {
  if (token !== last.token) last = { token, key: hash('sha256', token, 'base64') }
  return last.key
}

export function intersect(a: readonly string[], b: readonly string[]): string[] {
  return a.filter((one) => b.includes(one))
}

/** For kinds that know nothing of audiences: their tokens are good for the API server's own. */
export function forAudiences(user: User, wanted: readonly string[], own: readonly string[]): TokenIdentity | undefined {
  if (wanted.length === 0) return { user, audiences: [] }
  const audiences = intersect(wanted, own)
  return audiences.length === 0 ? undefined : { user, audiences }
}
