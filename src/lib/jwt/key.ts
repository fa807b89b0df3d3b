/** Keys of JSON Web Tokens: the algorithms of each kind of key, key identifiers, and key sets (JWKS). */
import type { KeyObject, SigningOptions } from 'node:crypto'
import { constants, createHash, createPublicKey } from 'node:crypto'

import { JwtError } from './error.ts'

export type JwtAlgorithm =
  | 'ES256'
  | 'ES384'
  | 'ES512'
  | 'RS256'
  | 'RS384'
  | 'RS512'
  | 'PS256'
  | 'PS384'
  | 'PS512'
  | 'EdDSA'

interface AlgorithmRule {
  /** `asymmetricKeyType`, with the curve for elliptic ones. */
  readonly keyKind: string
  /** Null for EdDSA, which hashes on its own. */
  readonly hash: string | null
  readonly options: SigningOptions
}

const ECDSA: SigningOptions = { dsaEncoding: 'ieee-p1363' }
const PSS: SigningOptions = { padding: constants.RSA_PKCS1_PSS_PADDING, saltLength: constants.RSA_PSS_SALTLEN_DIGEST }

/**
 * Everything that is accepted, each with the one kind of key it goes with. There is no `none` and nothing symmetric, so
 * that a public key can never be taken for a shared secret. The first line of a kind of key is what it signs with.
 */
const RULES: ReadonlyMap<string, AlgorithmRule> = new Map<JwtAlgorithm, AlgorithmRule>([
  ['ES256', { keyKind: 'ec prime256v1', hash: 'sha256', options: ECDSA }],
  ['ES384', { keyKind: 'ec secp384r1', hash: 'sha384', options: ECDSA }],
  ['ES512', { keyKind: 'ec secp521r1', hash: 'sha512', options: ECDSA }],
  ['RS256', { keyKind: 'rsa', hash: 'sha256', options: {} }],
  ['RS384', { keyKind: 'rsa', hash: 'sha384', options: {} }],
  ['RS512', { keyKind: 'rsa', hash: 'sha512', options: {} }],
  ['PS256', { keyKind: 'rsa', hash: 'sha256', options: PSS }],
  ['PS384', { keyKind: 'rsa', hash: 'sha384', options: PSS }],
  ['PS512', { keyKind: 'rsa', hash: 'sha512', options: PSS }],
  ['EdDSA', { keyKind: 'ed25519', hash: null, options: {} }],
])

/** Smaller RSA keys can be broken. */
const MIN_RSA_BITS = 2048

function keyKind(key: KeyObject): string {
  const type = key.asymmetricKeyType ?? key.type
  return type === 'ec' ? `ec ${key.asymmetricKeyDetails?.namedCurve}` : type
}

/** The rule for `alg` if this kind of key may be used with it. */
export function ruleFor(alg: string, key: KeyObject): AlgorithmRule | undefined {
  const rule = RULES.get(alg)
  return rule?.keyKind === keyKind(key) ? rule : undefined
}

/** The algorithm of this key. Throws `JwtError` for keys that cannot sign tokens. */
export function algorithmOf(key: KeyObject): JwtAlgorithm {
  const kind = keyKind(key)
  for (const [alg, rule] of RULES) if (rule.keyKind === kind) return alg as JwtAlgorithm
  throw new JwtError('key', `Keys of kind "${kind}" cannot sign tokens; use P-256`)
}

/** A key that tokens are verified with. */
export interface VerifyingKey {
  readonly kid: string
  readonly publicKey: KeyObject
}

/** The identifier Kubernetes gives a key: the SHA-256 of its SubjectPublicKeyInfo in base64url. */
export function keyIdOf(key: KeyObject): string {
  const publicKey = key.type === 'private' ? createPublicKey(key) : key
  return createHash('sha256')
    .update(publicKey.export({ format: 'der', type: 'spki' }))
    .digest('base64url')
}

/** A public key (or the public half of a private one) to verify with. Throws `JwtError` for unusable kinds. */
export function verifyingKey(key: KeyObject, kid: string = keyIdOf(key)): VerifyingKey {
  const publicKey = key.type === 'private' ? createPublicKey(key) : key
  algorithmOf(publicKey)
  const bits = publicKey.asymmetricKeyDetails?.modulusLength ?? MIN_RSA_BITS
  if (bits < MIN_RSA_BITS) throw new JwtError('key', `An RSA key of ${bits} bits is too short`)
  return { kid, publicKey }
}

/** A JSON Web Key Set, as served under `jwks_uri`. */
export interface KeySet {
  readonly keys: readonly PublicWebKey[]
}

/** Members in the order in which Kubernetes writes them. */
export interface PublicWebKey {
  readonly use: 'sig'
  readonly kty: string
  readonly kid: string
  readonly crv?: string
  readonly alg: JwtAlgorithm
  readonly x?: string
  readonly y?: string
  readonly n?: string
  readonly e?: string
}

export function toKeySet(keys: readonly VerifyingKey[]): KeySet {
  return {
    keys: keys.map(({ kid, publicKey }): PublicWebKey => {
      const { kty = '', crv, x, y, n, e } = publicKey.export({ format: 'jwk' })
      const curve = definedOnly({ crv })
      return { use: 'sig', kty, kid, ...curve, alg: algorithmOf(publicKey), ...definedOnly({ x, y, n, e }) }
    }),
  }
}

/** A provider has a handful; a hostile one must not make us import keys for minutes. */
const MAX_KEYS = 100

/** The keys of a set that can verify tokens; those for other purposes or of unknown kinds are left out. */
export function parseKeySet(document: unknown): VerifyingKey[] {
  const list = isRecord(document) ? document['keys'] : undefined
  if (!Array.isArray(list)) throw new JwtError('malformed', 'A key set needs a list "keys"')
  if (list.length > MAX_KEYS) throw new JwtError('malformed', `A key set of ${list.length} keys is too large`)
  return list.flatMap((item: unknown) => {
    if (!isRecord(item) || (item['use'] !== undefined && item['use'] !== 'sig')) return []
    const key = importKey(item)
    return key === undefined ? [] : [key]
  })
}

function importKey(jwk: Record<string, unknown>): VerifyingKey | undefined {
  // Only public members are handed over, so that a set with private ones does no harm either.
  const { kty, crv, x, y, n, e, kid } = jwk as Record<string, string>
  try {
    const publicKey = createPublicKey({ key: definedOnly({ kty, crv, x, y, n, e }), format: 'jwk' })
    return verifyingKey(publicKey, typeof kid === 'string' ? kid : keyIdOf(publicKey))
  } catch {
    // Kinds we do not know are for others; a broken key verifies nothing, which is what leaving it out does.
    return undefined
  }
}

function definedOnly<K extends string>(members: Record<K, string | undefined>): { [_ in K]?: string } {
  const defined = Object.entries(members).filter(([, value]) => value !== undefined)
  return Object.fromEntries(defined) as { [_ in K]?: string }
}

export function isRecord(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
}

/** The content of `/.openid-configuration` for an issuer of id tokens only. */
export interface DiscoveryDocument {
  readonly issuer: string
  readonly jwks_uri: string
  readonly response_types_supported: readonly string[]
  readonly subject_types_supported: readonly string[]
  readonly id_token_signing_alg_values_supported: readonly string[]
}

export function discoveryDocument(issuer: string, keySetUrl: string, keys: readonly VerifyingKey[]): DiscoveryDocument {
  const algorithms = new Set(keys.map(({ publicKey }) => algorithmOf(publicKey)))
  return {
    issuer,
    jwks_uri: keySetUrl,
    response_types_supported: ['id_token'],
    subject_types_supported: ['public'],
    id_token_signing_alg_values_supported: [...algorithms].toSorted(),
  }
}
