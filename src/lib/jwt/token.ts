/**
 * Signs and verifies JSON Web Tokens (JWS compact) with node:crypto. It is synchronous, because a verification takes
 * only a tenth of a millisecond. Claims are trusted only after the signature was verified, and the algorithm only if
 * the key allows it.
 */
import type { KeyObject } from 'node:crypto'
import { sign, verify } from 'node:crypto'

import type { Clock } from '../clock.ts'
import { JwtError } from './error.ts'
import type { JwtAlgorithm, VerifyingKey } from './key.ts'
import { algorithmOf, isRecord, keyIdOf, ruleFor } from './key.ts'

export type Claims = Readonly<Record<string, unknown>>

export interface TokenHeader {
  readonly alg: string
  readonly kid?: string
  readonly [name: string]: unknown
}

export interface TokenSigner {
  readonly alg: JwtAlgorithm
  readonly kid: string
  /** A token with these claims, as they are. */
  sign(claims: Claims): string
}

/** A signer with a private key: ES256 for P-256, RS256 for RSA, and so on. Throws `JwtError` for unusable kinds. */
export function createSigner(privateKey: KeyObject, kid: string = keyIdOf(privateKey)): TokenSigner {
  const alg = algorithmOf(privateKey)
  const rule = ruleFor(alg, privateKey)
  if (rule === undefined || privateKey.type !== 'private') throw new JwtError('key', 'Signing needs a private key')
  const head = encodePart({ alg, kid })
  const key = { key: privateKey, ...rule.options }
  return {
    alg,
    kid,
    sign(claims) {
      const input = `${head}.${encodePart(claims)}`
      return `${input}.${sign(rule.hash, Buffer.from(input), key).toString('base64url')}`
    },
  }
}

function encodePart(value: unknown): string {
  return Buffer.from(JSON.stringify(value)).toString('base64url')
}

export interface VerifyOptions {
  readonly keys: readonly VerifyingKey[]
  readonly clock: Clock
  /** How far clocks may be apart. Default one minute, as go-jose. */
  readonly leewayMs?: number
  /** Accepted values of `iss`; any unless given. */
  readonly issuers?: readonly string[]
  /** One of them must be in `aud`; not looked at unless given. */
  readonly audiences?: readonly string[]
  /** Refuse tokens without `exp`. */
  readonly requireExpiry?: boolean
}

export interface VerifiedToken {
  readonly header: TokenHeader
  readonly claims: Claims
  /** The key that verified it. */
  readonly key: VerifyingKey
  /** The values of `aud`. */
  readonly audiences: readonly string[]
}

/** Real tokens are under 4 KiB; nothing larger is even decoded. */
const MAX_CHARACTERS = 64 << 10

const LEEWAY_MS = 60_000

/** Checks signature, time, issuer and audience, in that order. Throws `JwtError` and nothing else. */
export function verifyToken(token: string, options: VerifyOptions): VerifiedToken {
  const parts = splitToken(token)
  const header = readHeader(parts.head)
  const key = findKey(parts, header, options.keys)
  const claims = decodePart(parts.body, 'claims')
  checkTimes(claims, options)
  const audiences = readAudiences(claims)
  if (options.issuers !== undefined && !options.issuers.some((issuer) => issuer === claims['iss'])) {
    throw new JwtError('issuer', `Token was issued by ${JSON.stringify(claims['iss'])}, who is not accepted here`)
  }
  if (options.audiences !== undefined && !audiences.some((one) => options.audiences?.includes(one))) {
    throw new JwtError(
      'audience',
      `Token is for ${JSON.stringify(audiences)}, not for ${JSON.stringify(options.audiences)}`,
    )
  }
  return { header, claims, key, audiences }
}

/** Header and claims of the token, NOT verified: only for choosing the verifier. */
export function readUnverified(token: string): { header: TokenHeader; claims: Claims } {
  const { head, body } = splitToken(token)
  return { header: readHeader(head), claims: decodePart(body, 'claims') }
}

interface TokenParts {
  readonly head: string
  readonly body: string
  /** The signed text. */
  readonly input: string
  readonly signature: Buffer
}

function splitToken(token: string): TokenParts {
  if (token.length > MAX_CHARACTERS) throw new JwtError('malformed', 'Token is too long')
  const [head, body, tail, ...others] = token.split('.')
  if (head === undefined || body === undefined || tail === undefined || others.length > 0) {
    throw new JwtError('malformed', 'Token does not have three parts')
  }
  const signature = Buffer.from(tail, 'base64url')
  // The decoder is lenient; a signature must have one spelling only, or one token would have many.
  if (signature.length === 0 || signature.toString('base64url') !== tail) {
    throw new JwtError('malformed', 'Signature of the token is not base64url')
  }
  return { head, body, input: token.slice(0, head.length + 1 + body.length), signature }
}

function decodePart(text: string, what: string): Claims {
  if (!/^[A-Za-z0-9_-]+$/.test(text)) throw new JwtError('malformed', `The ${what} of the token are not base64url`)
  let value: unknown
  try {
    value = JSON.parse(Buffer.from(text, 'base64url').toString())
  } catch (cause) {
    throw new JwtError('malformed', `The ${what} of the token are not JSON`, { cause })
  }
  if (!isRecord(value)) throw new JwtError('malformed', `The ${what} of the token are not an object`)
  return value
}

function readHeader(text: string): TokenHeader {
  const header = decodePart(text, 'headers')
  const { alg, kid, crit } = header
  if (typeof alg !== 'string') throw new JwtError('malformed', 'Token names no algorithm')
  if (kid !== undefined && typeof kid !== 'string') throw new JwtError('malformed', 'Key identifier is not a string')
  if (crit !== undefined) throw new JwtError('unsupported', 'Token demands extensions that are not supported')
  return { ...header, alg, ...(kid === undefined ? {} : { kid }) }
}

/** The identifier is a hint, as in Kubernetes: keys that have it are tried, or else all that fit the algorithm. */
function findKey(
  { input, signature }: TokenParts,
  { alg, kid }: TokenHeader,
  keys: readonly VerifyingKey[],
): VerifyingKey {
  const hinted = kid === undefined ? [] : keys.filter((key) => key.kid === kid)
  const data = Buffer.from(input)
  for (const key of hinted.length > 0 ? hinted : keys) {
    const rule = ruleFor(alg, key.publicKey)
    if (rule !== undefined && verify(rule.hash, data, { key: key.publicKey, ...rule.options }, signature)) return key
  }
  throw new JwtError('signature', 'Token is not signed by any key that is accepted here')
}

function checkTimes(claims: Claims, { clock, leewayMs = LEEWAY_MS, requireExpiry = false }: VerifyOptions): void {
  const now = clock.now()
  const expiry = readTime(claims, 'exp')
  const notBefore = readTime(claims, 'nbf')
  const issued = readTime(claims, 'iat')
  if (expiry === undefined && requireExpiry)
    throw new JwtError('expired', 'Token never expires, which is not accepted here')
  if (expiry !== undefined && now > expiry + leewayMs) throw new JwtError('expired', 'Token has expired')
  if (notBefore !== undefined && now < notBefore - leewayMs)
    throw new JwtError('not-yet-valid', 'Token is not valid yet')
  if (issued !== undefined && now < issued - leewayMs)
    throw new JwtError('not-yet-valid', 'Token was issued in the future')
}

/** A claim in seconds, as milliseconds. */
function readTime(claims: Claims, name: string): number | undefined {
  const value = claims[name]
  if (value === undefined) return undefined
  if (typeof value !== 'number' || !Number.isFinite(value))
    throw new JwtError('malformed', `Claim "${name}" is not a time`)
  return value * 1000
}

function readAudiences({ aud }: Claims): readonly string[] {
  if (aud === undefined) return []
  const list: unknown[] = Array.isArray(aud) ? aud : [aud]
  if (!list.every((one) => typeof one === 'string'))
    throw new JwtError('malformed', 'Claim "aud" is not a list of strings')
  return list
}
