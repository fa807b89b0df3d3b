/** Key pairs: making them, reading and writing them as PEM, signing with them. All cryptography is node:crypto's. */
import type { KeyObject } from 'node:crypto'
import { createPrivateKey, createPublicKey, generateKeyPair, generateKeyPairSync, sign, verify } from 'node:crypto'

import * as asn1 from '../asn1.ts'
import { guard, X509Error } from './error.ts'
import { parsePem } from './pem.ts'

export type KeyType = 'ecdsa-p256' | 'ecdsa-p384' | 'rsa-2048' | 'rsa-4096' | 'ed25519'

/**
 * A new private key, made while the caller waits: 0.1 ms for the elliptic curves. RSA takes up to a second, use
 * `generateKey` for it. Keys come from the machine's own randomness, never from a `Random`.
 */
export function createKey(type: KeyType = 'ecdsa-p256'): KeyObject {
  switch (type) {
    case 'ecdsa-p256':
      return generateKeyPairSync('ec', { namedCurve: 'P-256' }).privateKey
    case 'ecdsa-p384':
      return generateKeyPairSync('ec', { namedCurve: 'P-384' }).privateKey
    case 'rsa-2048':
      return generateKeyPairSync('rsa', { modulusLength: 2048 }).privateKey
    case 'rsa-4096':
      return generateKeyPairSync('rsa', { modulusLength: 4096 }).privateKey
    case 'ed25519':
      return generateKeyPairSync('ed25519').privateKey
  }
}

/** A new private key; RSA is made in the thread pool and holds up nothing. */
export function generateKey(type: KeyType = 'ecdsa-p256'): Promise<KeyObject> {
  if (type !== 'rsa-2048' && type !== 'rsa-4096') return Promise.resolve(createKey(type))
  return new Promise((resolve, reject) => {
    const modulusLength = type === 'rsa-2048' ? 2048 : 4096
    generateKeyPair('rsa', { modulusLength }, (error, _publicKey, privateKey) => {
      if (error) reject(new X509Error('key', 'Cannot make an RSA key', { cause: error }))
      else resolve(privateKey)
    })
  })
}

/** PKCS#8 for a private key, SubjectPublicKeyInfo for a public one. */
export function keyToPem(key: KeyObject): string {
  return key.export({ format: 'pem', type: key.type === 'private' ? 'pkcs8' : 'spki' })
}

const PRIVATE_LABELS: ReadonlySet<string> = new Set(['PRIVATE KEY', 'EC PRIVATE KEY', 'RSA PRIVATE KEY'])
const PUBLIC_LABELS: ReadonlySet<string> = new Set(['PUBLIC KEY', 'RSA PUBLIC KEY', 'CERTIFICATE'])

/** The first private key of a PEM text (PKCS#8, SEC1 or PKCS#1); other blocks, such as EC PARAMETERS, are skipped. */
export function parsePrivateKey(pem: string): KeyObject {
  const blocks = parsePem(pem)
  const block = blocks.find(({ label }) => PRIVATE_LABELS.has(label))
  if (block !== undefined) return guard('key', 'Cannot read the private key', () => createPrivateKey(block.text))
  if (blocks.some(({ label }) => label === 'ENCRYPTED PRIVATE KEY')) {
    throw new X509Error('unsupported', 'The private key is encrypted; decrypt it first')
  }
  throw new X509Error('malformed', 'There is no private key in this PEM text')
}

/** Every public key of a PEM text, also those of the certificates and private keys in it. At least one. */
export function parsePublicKeys(pem: string): KeyObject[] {
  const keys = parsePem(pem)
    .filter(({ label }) => PUBLIC_LABELS.has(label) || PRIVATE_LABELS.has(label))
    .map(({ text }) => guard('key', 'Cannot read the public key', () => createPublicKey(text)))
  if (keys.length === 0) throw new X509Error('malformed', 'There is no key in this PEM text')
  return keys
}

/** SubjectPublicKeyInfo of a private or public key. */
export function publicKeyDer(key: KeyObject): Buffer {
  return (key.type === 'private' ? createPublicKey(key) : key).export({ format: 'der', type: 'spki' })
}

/** Whether both hold the same public key. */
export function isSameKey(a: KeyObject, b: KeyObject): boolean {
  return publicKeyDer(a).equals(publicKeyDer(b))
}

interface SignatureAlgorithm {
  readonly oid: string
  readonly keyType: 'rsa' | 'ec' | 'ed25519'
  /** Absent for Ed25519, which hashes on its own. */
  readonly hash: string | null
}

/** SHA-1 and MD5 are missing on purpose, and RSA-PSS, which nobody uses for certificate requests. */
const ALGORITHMS: readonly SignatureAlgorithm[] = [
  { oid: '1.2.840.10045.4.3.2', keyType: 'ec', hash: 'sha256' },
  { oid: '1.2.840.10045.4.3.3', keyType: 'ec', hash: 'sha384' },
  { oid: '1.2.840.10045.4.3.4', keyType: 'ec', hash: 'sha512' },
  { oid: '1.2.840.113549.1.1.11', keyType: 'rsa', hash: 'sha256' },
  { oid: '1.2.840.113549.1.1.12', keyType: 'rsa', hash: 'sha384' },
  { oid: '1.2.840.113549.1.1.13', keyType: 'rsa', hash: 'sha512' },
  { oid: '1.3.101.112', keyType: 'ed25519', hash: null },
]

const CURVE_HASHES: ReadonlyMap<string, string> = new Map([
  ['prime256v1', 'sha256'],
  ['secp384r1', 'sha384'],
  ['secp521r1', 'sha512'],
])

/** Smaller RSA keys can be broken by those who care. */
const MIN_RSA_BITS = 2048

/** Throws unless the key is of a kind certificates may be issued for: RSA from 2048 bits, a NIST curve, Ed25519. */
export function checkKey(key: KeyObject): void {
  if (key.asymmetricKeyType === 'ed25519') return
  const { modulusLength = 0, namedCurve = '' } = key.asymmetricKeyDetails ?? {}
  if (key.asymmetricKeyType === 'rsa' && modulusLength >= MIN_RSA_BITS) return
  if (key.asymmetricKeyType === 'ec' && CURVE_HASHES.has(namedCurve)) return
  const kind = `${key.asymmetricKeyType} ${namedCurve || modulusLength || ''}`.trim()
  throw new X509Error('key', `Keys of kind "${kind}" are not accepted; use P-256, Ed25519 or RSA from 2048 bits`)
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

/** `SEQUENCE { body, algorithm, signature }`: the frame that certificates and requests share. */
export function encodeSigned(body: Buffer, key: KeyObject): Buffer {
  const signature = sign(algorithmFor(key).hash, body, key)
  return asn1.sequence(body, signatureAlgorithm(key), asn1.bitString(signature))
}

/** Whether `signature` over `body` was made with the private half of `key` by the algorithm called `oid`. */
export function isSignatureValid(signed: { body: Buffer; oid: string; signature: Buffer }, key: KeyObject): boolean {
  const algorithm = ALGORITHMS.find(({ oid }) => oid === signed.oid)
  if (algorithm === undefined)
    throw new X509Error('unsupported', `Signatures by algorithm ${signed.oid} are not supported`)
  if (algorithm.keyType !== key.asymmetricKeyType) return false
  return guard('signature', 'Cannot check the signature', () => {
    return verify(algorithm.hash, signed.body, key, signed.signature)
  })
}
