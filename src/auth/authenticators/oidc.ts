/**
 * Authenticates OpenID Connect tokens. A provider signs them, and the claims that `--oidc-*` name become the user. The
 * keys are fetched from the provider when first needed and again when a token names an unknown key.
 */
import type { Clock } from '#lib/clock.ts'
import { ExpiringCache } from '#lib/collections/expiring-cache.ts'
import { JwtError } from '#lib/jwt/error.ts'
import { type Claims, readUnverified, verifyToken } from '#lib/jwt/token.ts'
import { tokenKey } from '#lib/token-key.ts'

import { CredentialError, forAudiences, type TokenAuthenticator } from '../authenticator.ts'
import {
  checkClaimRules,
  checkUserRules,
  type ClaimExpressions,
  expressedExtra,
  expressedGroups,
  expressedText,
  expressedUsername,
} from '../credentials/claim-expressions.ts'
import { createProviderKeys, type FetchJson, type ProviderKeys } from '../credentials/provider-keys.ts'
import { EXTRA } from '../credentials/service-account-name.ts'
import type { User } from '../user.ts'

export interface OidcOptions {
  readonly clock: Clock
  /** Fetches a JSON document of the provider, checked against `--oidc-ca-file`. */
  readonly fetchJson: FetchJson
  /** `--oidc-issuer-url`: https. */
  readonly issuerUrl: string
  /** The address of the discovery document, if it is not at OpenID's standard path. */
  readonly discoveryUrl?: string
  /** `--oidc-client-id`: must be among the token's audiences. */
  readonly clientId: string
  /** Instead of `clientId`: the token must have one of these audiences. */
  readonly audiences?: readonly string[]
  /** `--oidc-username-claim`. */
  readonly usernameClaim?: string
  /** `--oidc-username-prefix`; `-` is none. Default: the issuer and `#`, but none for `email`. */
  readonly usernamePrefix?: string
  /** Instead of `usernamePrefix`: the exact prefix. */
  readonly literalPrefix?: string
  readonly groupsClaim?: string
  readonly groupsPrefix?: string
  /** The claim for the user's uid. Without it, the user has no uid. */
  readonly uidClaim?: string
  readonly requiredClaims?: Readonly<Record<string, string>>
  /** Expressions in place of claims, and additional validation rules. */
  readonly expressions?: ClaimExpressions
  /** `--oidc-signing-algs`. */
  readonly signingAlgs?: readonly string[]
  readonly apiAudiences: readonly string[]
}

/** The lifetime of a cached user, as in upstream's token cache. */
const REMEMBERED_MS = 10_000
const MAX_TOKENS = 8192
/** The allowed clock skew for `nbf`. The expiry is strict. */
const NOT_BEFORE_LEEWAY_MS = 5 * 60_000

interface CachedUser {
  readonly user: User
  readonly expiresAtMs: number
}

/** Throws for invalid settings. */
export function createOidcAuthenticator(options: OidcOptions): TokenAuthenticator {
  const { clock, fetchJson, issuerUrl, discoveryUrl, apiAudiences } = options
  if (!issuerUrl.startsWith('https://')) throw new Error(`"--oidc-issuer-url" must be https, not "${issuerUrl}"`)
  if (options.clientId === '') throw new Error('"--oidc-issuer-url" needs "--oidc-client-id" too')
  const keys = createProviderKeys({ clock, fetchJson, issuerUrl, ...(discoveryUrl !== undefined && { discoveryUrl }) })
  const known = new ExpiringCache<CachedUser>(clock, MAX_TOKENS)
  return async (token, audiences) => {
    if (!isFrom(issuerUrl, token)) return undefined
    const key = tokenKey(token)
    let found = known.get(key)
    if (found === undefined) {
      found = await verify(options, keys, token)
      known.set(key, found, REMEMBERED_MS)
    }
    if (clock.now() >= found.expiresAtMs) throw new CredentialError('oidc: verify token: oidc: token is expired')
    return forAudiences(found.user, audiences, apiAudiences)
  }
}

function isFrom(issuerUrl: string, token: string): boolean {
  try {
    return readUnverified(token).claims['iss'] === issuerUrl
  } catch {
    return false
  }
}

async function verify(options: OidcOptions, keys: ProviderKeys, token: string): Promise<CachedUser> {
  const { clock, issuerUrl, clientId, audiences = [clientId], signingAlgs = ['RS256'] } = options
  const { alg, kid } = readUnverified(token).header
  if (!signingAlgs.includes(alg)) {
    throw new CredentialError(`oidc: verify token: oidc: id token signed with unsupported algorithm "${alg}"`)
  }
  const terms = {
    clock,
    issuers: [issuerUrl],
    audiences,
    requireExpiry: true,
    leewayMs: NOT_BEFORE_LEEWAY_MS,
  }
  try {
    const { claims } = verifyToken(token, { ...terms, keys: await keys.for(kid) })
    return { user: userOf(options, claims), expiresAtMs: Number(claims['exp']) * 1000 }
  } catch (cause) {
    if (cause instanceof CredentialError) throw cause
    const text = cause instanceof JwtError || cause instanceof Error ? cause.message : String(cause)
    throw new CredentialError(`oidc: verify token: ${text}`, { cause })
  }
}

function userOf(options: OidcOptions, claims: Claims): User {
  const { expressions = {} } = options
  const tokenId = claims['jti']
  const user = {
    name: nameOf(options, claims),
    groups: groupsOf(options, claims),
    uid: uidOf(options, claims),
    extra: {
      ...(typeof tokenId === 'string' && tokenId !== '' && { [EXTRA.credentialId]: [`JTI=${tokenId}`] }),
      ...expressedExtra(expressions.extra, claims),
    },
  }
  checkRequired(options, claims)
  checkClaimRules(expressions.claimRules, claims)
  checkUserRules(expressions.userRules, user)
  return user
}

function nameOf(options: OidcOptions, claims: Claims): string {
  const { username } = options.expressions ?? {}
  if (username !== undefined) return expressedUsername(username, claims)
  return `${usernamePrefix(options)}${usernameOf(options, claims)}`
}

function uidOf({ uidClaim = '', expressions }: OidcOptions, claims: Claims): string {
  if (uidClaim === '') return expressions?.uid === undefined ? '' : expressedText('uid', expressions.uid, claims)
  if (!Object.hasOwn(claims, uidClaim))
    throw new CredentialError(`oidc: parse uid claim "${uidClaim}": claim not present`)
  const uid = claims[uidClaim]
  if (typeof uid !== 'string') throw new CredentialError(`oidc: parse uid claim "${uidClaim}": not a string`)
  return uid
}

function usernamePrefix(options: OidcOptions): string {
  const { usernameClaim = 'sub', usernamePrefix: prefix = '', literalPrefix, issuerUrl } = options
  if (literalPrefix !== undefined) return literalPrefix
  if (prefix === '-') return ''
  return prefix === '' && usernameClaim !== 'email' ? `${issuerUrl}#` : prefix
}

function usernameOf({ usernameClaim = 'sub' }: OidcOptions, claims: Claims): string {
  const name = claims[usernameClaim]
  if (typeof name !== 'string')
    throw new CredentialError(`oidc: parse username claims "${usernameClaim}": not a string`)
  if (name === '') throw new CredentialError(`oidc: parse username claims "${usernameClaim}": empty`)
  // Without `email_verified` the address may belong to another person.
  if (usernameClaim === 'email' && Object.hasOwn(claims, 'email_verified') && claims['email_verified'] !== true) {
    throw new CredentialError('oidc: email not verified')
  }
  return name
}

/** A single group may be given without a list. */
function groupsOf({ groupsClaim = '', groupsPrefix = '', expressions }: OidcOptions, claims: Claims): string[] {
  if (groupsClaim === '' || !Object.hasOwn(claims, groupsClaim)) {
    return expressions?.groups === undefined ? [] : expressedGroups(expressions.groups, claims)
  }
  const value = claims[groupsClaim]
  const list: unknown[] = Array.isArray(value) ? value : [value]
  if (!list.every((one) => typeof one === 'string')) {
    throw new CredentialError(`oidc: parse groups claim "${groupsClaim}": not a string or a list of strings`)
  }
  return list.map((group) => `${groupsPrefix}${group}`)
}

function checkRequired({ requiredClaims = {} }: OidcOptions, claims: Claims): void {
  for (const [claim, wanted] of Object.entries(requiredClaims)) {
    if (!Object.hasOwn(claims, claim))
      throw new CredentialError(`oidc: required claim ${claim} not present in ID token`)
    const got = claims[claim]
    if (got !== wanted) {
      const text = typeof got === 'string' ? got : JSON.stringify(got)
      throw new CredentialError(`oidc: required claim ${claim} value does not match. Got = ${text}, want = ${wanted}`)
    }
  }
}
