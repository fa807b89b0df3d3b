/** Creates key pairs, and reads and writes them as PEM. All cryptography is node:crypto's. */
import type { KeyObject } from 'node:crypto'
import { createPrivateKey, createPublicKey, generateKeyPair, generateKeyPairSync } from 'node:crypto'

import { guard, X509Error } from './error.ts'
import { parsePem } from './pem.ts'

export type KeyType = keyof typeof RSA_BITS | keyof typeof CURVES | 'ed25519'

const RSA_BITS = { 'rsa-2048': 2048, 'rsa-3072': 3072, 'rsa-4096': 4096 } as const
const CURVES = { 'ecdsa-p256': 'P-256', 'ecdsa-p384': 'P-384', 'ecdsa-p521': 'P-521' } as const

const isRsa = (type: KeyType): type is keyof typeof RSA_BITS => Object.hasOwn(RSA_BITS, type)

/**
 * A new private key, made while the caller waits: 0.1 ms for the elliptic curves. RSA takes up to a second, use
 * `generateKey` for it. Keys come from the machine's own randomness, never from a `Random`.
 */
export function createKey(type: KeyType = 'ecdsa-p256'): KeyObject {
  if (type === 'ed25519') return generateKeyPairSync('ed25519').privateKey
  if (isRsa(type)) return generateKeyPairSync('rsa', { modulusLength: RSA_BITS[type] }).privateKey
  return generateKeyPairSync('ec', { namedCurve: CURVES[type] }).privateKey
}

/** A new private key; RSA is made in the thread pool and holds up nothing. */
export function generateKey(type: KeyType = 'ecdsa-p256'): Promise<KeyObject> {
  if (!isRsa(type)) return Promise.resolve(createKey(type))
  return new Promise((resolve, reject) => {
    generateKeyPair('rsa', { modulusLength: RSA_BITS[type] }, (error, _publicKey, privateKey) => {
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

/** The hash that fits each curve. */
export const CURVE_HASHES: ReadonlyMap<string, string> = new Map([
  ['prime256v1', 'sha256'],
  ['secp384r1', 'sha384'],
  ['secp521r1', 'sha512'],
])

/** Smaller RSA keys can be broken. */
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
