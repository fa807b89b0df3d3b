/** Verifies ID tokens by OpenID Connect Core 3.1.3.7: signature, issuer, audience, times and nonce. */
import { hash, timingSafeEqual } from 'node:crypto'

import type { Clock } from '#lib/clock.ts'
import { JwtError } from '#lib/jwt/error.ts'
import { type Claims, readUnverified, verifyToken } from '#lib/jwt/token.ts'

import { ProviderError } from '../provider-error.ts'
import type { Provider, ProviderTokens } from './provider.ts'

/** Both hash with SHA-256, which `at_hash` depends on. */
const ALGORITHMS: ReadonlySet<string> = new Set(['RS256', 'ES256'])
const SKEW_MS = 60_000
/** The longest name that an object can store. */
const MAX_SUBJECT = 253

/** Throws ProviderError. */
export async function verifyIdToken(
  provider: Pick<Provider, 'spec' | 'keys'>,
  { idToken, accessToken }: ProviderTokens,
  nonce: string,
  clock: Clock,
): Promise<Claims> {
  const { issuer, clientID } = provider.spec
  try {
    const { alg, kid } = readUnverified(idToken).header
    if (!ALGORITHMS.has(alg)) throw new ProviderError(`The algorithm "${alg}" of the ID token is not accepted`)
    const { claims, audiences } = verifyToken(idToken, {
      keys: await provider.keys.for(kid),
      clock,
      leewayMs: SKEW_MS,
      issuers: [issuer],
      audiences: [clientID],
      requireExpiry: true,
    })
    checkParty(claims, audiences, clientID)
    if (typeof claims['iat'] !== 'number') throw new ProviderError('The ID token has no time of issue')
    if (!isSame(claims['nonce'], nonce)) throw new ProviderError('The ID token has another nonce')
    checkAccessToken(claims, accessToken)
    checkSubject(claims)
    return claims
  } catch (cause) {
    if (cause instanceof JwtError) throw new ProviderError(`The ID token is invalid: ${cause.message}`, { cause })
    throw cause
  }
}

/** Other audiences could have received the token from the provider for themselves. */
function checkParty({ azp }: Claims, audiences: readonly string[], clientId: string): void {
  if (azp === undefined && audiences.length === 1) return
  if (azp !== clientId) throw new ProviderError('The ID token was issued to another client')
}

function checkAccessToken({ at_hash: sent }: Claims, accessToken: string | undefined): void {
  if (sent === undefined) return
  const digest = accessToken === undefined ? undefined : hash('sha256', accessToken, 'buffer')
  if (digest === undefined || !isSame(sent, digest.subarray(0, 16).toString('base64url'))) {
    throw new ProviderError('The ID token belongs to another access token')
  }
}

function checkSubject({ sub }: Claims): void {
  if (typeof sub === 'string' && sub !== '' && sub.length <= MAX_SUBJECT) return
  throw new ProviderError('The ID token has no usable subject')
}

function isSame(sent: unknown, wanted: string): boolean {
  if (typeof sent !== 'string') return false
  const [a, b] = [Buffer.from(sent), Buffer.from(wanted)]
  return a.length === b.length && timingSafeEqual(a, b)
}
