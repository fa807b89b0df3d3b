/**
 * Signs and verifies certificates and requests. It accepts the algorithms of Go's crypto/x509 and refuses MD5 and, on
 * certificates, SHA-1.
 */
import type { KeyObject } from 'node:crypto'
import { constants, sign, verify } from 'node:crypto'

import * as asn1 from './asn1.ts'
import { guard, X509Error } from './error.ts'
import { checkKey, CURVE_HASHES } from './key.ts'

interface SignatureAlgorithm {
  /** As Go prints it. */
  readonly name: string
  readonly oid: string
  readonly keyType: 'rsa' | 'ec' | 'ed25519'
  /** Absent for Ed25519, which hashes on its own. */
  readonly hash: string | null
  /** RSA-PSS: the identifier of the hash, which is in the parameters. */
  readonly pss?: string
}

const PSS = '1.2.840.113549.1.1.10'

const ALGORITHMS: readonly SignatureAlgorithm[] = [
  { name: 'ECDSA-SHA256', oid: '1.2.840.10045.4.3.2', keyType: 'ec', hash: 'sha256' },
  { name: 'ECDSA-SHA384', oid: '1.2.840.10045.4.3.3', keyType: 'ec', hash: 'sha384' },
  { name: 'ECDSA-SHA512', oid: '1.2.840.10045.4.3.4', keyType: 'ec', hash: 'sha512' },
  { name: 'SHA256-RSA', oid: '1.2.840.113549.1.1.11', keyType: 'rsa', hash: 'sha256' },
  { name: 'SHA384-RSA', oid: '1.2.840.113549.1.1.12', keyType: 'rsa', hash: 'sha384' },
  { name: 'SHA512-RSA', oid: '1.2.840.113549.1.1.13', keyType: 'rsa', hash: 'sha512' },
  { name: 'SHA256-RSAPSS', oid: PSS, keyType: 'rsa', hash: 'sha256', pss: '2.16.840.1.101.3.4.2.1' },
  { name: 'SHA384-RSAPSS', oid: PSS, keyType: 'rsa', hash: 'sha384', pss: '2.16.840.1.101.3.4.2.2' },
  { name: 'SHA512-RSAPSS', oid: PSS, keyType: 'rsa', hash: 'sha512', pss: '2.16.840.1.101.3.4.2.3' },
  { name: 'Ed25519', oid: '1.3.101.112', keyType: 'ed25519', hash: null },
  { name: 'MD5-RSA', oid: '1.2.840.113549.1.1.4', keyType: 'rsa', hash: 'md5' },
  { name: 'SHA1-RSA', oid: '1.2.840.113549.1.1.5', keyType: 'rsa', hash: 'sha1' },
  { name: 'SHA1-RSA', oid: '1.3.14.3.2.29', keyType: 'rsa', hash: 'sha1' },
  { name: 'ECDSA-SHA1', oid: '1.2.840.10045.4.1', keyType: 'ec', hash: 'sha1' },
]

/** The owner of the key signs a request: a collision would gain nothing. Certificates are signed for others. */
const BROKEN_HASHES = { certificate: new Set(['md5', 'sha1']), request: new Set(['md5']) } as const

/** `SEQUENCE { body, algorithm, signature }`, as read; nothing in it has been checked. */
export interface Signed {
  readonly body: asn1.DerElement
  /** The AlgorithmIdentifier. */
  readonly algorithm: asn1.DerElement
  readonly signature: Buffer
}

export function readSigned(der: Buffer, limitBytes: number, what: string): Signed {
  const [body, algorithm, signature] = asn1.expectTag(asn1.readDer(der, limitBytes), asn1.TAG.sequence, what).children()
  return {
    body: asn1.expectTag(body, asn1.TAG.sequence, 'Body'),
    algorithm: asn1.expectTag(algorithm, asn1.TAG.sequence, 'Signature algorithm'),
    signature: asn1.readBitString(signature),
  }
}

function algorithmFor(key: KeyObject): SignatureAlgorithm {
  checkKey(key)
  const curve = key.asymmetricKeyDetails?.namedCurve ?? ''
  const hash = key.asymmetricKeyType === 'ec' ? CURVE_HASHES.get(curve) : 'sha256'
  const found = ALGORITHMS.find(
    (one) => one.keyType === key.asymmetricKeyType && (one.hash === null || one.hash === hash),
  )
  if (found === undefined) throw new X509Error('key', `Cannot sign with a key of kind "${key.asymmetricKeyType}"`)
  return found
}

/** The AlgorithmIdentifier a signature with this key will carry. */
export function signatureAlgorithm(key: KeyObject): Buffer {
  const { oid, keyType } = algorithmFor(key)
  return keyType === 'rsa' ? asn1.sequence(asn1.oid(oid), asn1.nothing()) : asn1.sequence(asn1.oid(oid))
}

/** The frame around `body`, signed with `key`. */
export function encodeSigned(body: Buffer, key: KeyObject): Buffer {
  const signature = sign(algorithmFor(key).hash, body, key)
  return asn1.sequence(body, signatureAlgorithm(key), asn1.bitString(signature))
}

/** Whether it was signed with the private half of `key`. Throws `unsupported` for an algorithm that is not believed. */
export function isSignatureValid(signed: Signed, key: KeyObject, on: 'certificate' | 'request'): boolean {
  const algorithm = guard('signature', 'Cannot read the signature algorithm', () => findAlgorithm(signed.algorithm))
  if (algorithm === undefined || !isKnownKey(key)) {
    throw new X509Error('unsupported', 'x509: cannot verify signature: algorithm unimplemented')
  }
  if (BROKEN_HASHES[on].has(algorithm.hash ?? '')) {
    throw new X509Error('unsupported', `x509: cannot verify signature: insecure algorithm ${algorithm.name}`)
  }
  if (algorithm.keyType !== key.asymmetricKeyType) return false
  const how =
    algorithm.pss !== undefined
      ? { key, padding: constants.RSA_PKCS1_PSS_PADDING, saltLength: constants.RSA_PSS_SALTLEN_DIGEST }
      : key
  return guard('signature', 'Cannot check the signature', () => {
    return verify(algorithm.hash, signed.body.raw, how, signed.signature)
  })
}

/** Go reads no other curves, and no shorter RSA keys. */
function isKnownKey({ asymmetricKeyType, asymmetricKeyDetails = {} }: KeyObject): boolean {
  const { namedCurve = '', modulusLength = 0 } = asymmetricKeyDetails
  if (asymmetricKeyType === 'ec') return namedCurve === 'secp224r1' || CURVE_HASHES.has(namedCurve)
  return asymmetricKeyType === 'rsa' ? modulusLength >= 1024 : asymmetricKeyType === 'ed25519'
}

function findAlgorithm(found: asn1.DerElement): SignatureAlgorithm | undefined {
  const [id, parameters] = found.children()
  const oid = asn1.readOid(id)
  return ALGORITHMS.find((one) => one.oid === oid && (one.pss === undefined || isPss(one, one.pss, parameters?.raw)))
}

const MGF1 = '1.2.840.113549.1.1.8'
const SALT_BYTES: ReadonlyMap<string | null, number> = new Map([
  ['sha256', 32],
  ['sha384', 48],
  ['sha512', 64],
])

/** One hash for both purposes and a salt of its length, as in all common implementations. */
function isPss({ hash }: SignatureAlgorithm, digest: string, parameters: Buffer | undefined): boolean {
  const forms = [[], [asn1.nothing()]].map((nothing) => {
    const id = asn1.sequence(asn1.oid(digest), ...nothing)
    return asn1.sequence(
      asn1.element(asn1.contextTag(0), id),
      asn1.element(asn1.contextTag(1), asn1.sequence(asn1.oid(MGF1), id)),
      asn1.element(asn1.contextTag(2), asn1.integer(SALT_BYTES.get(hash) ?? 0)),
    )
  })
  return parameters !== undefined && forms.some((form) => form.equals(parameters))
}
