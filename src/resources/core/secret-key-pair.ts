/** Checks whether a certificate and a private key match, with the errors of Go's tls.X509KeyPair. */
import type { KeyObject, X509Certificate } from 'node:crypto'

const block = /-----BEGIN ([^-\n]*)-----\r?\n[^]*?-----END \1-----/g

/** Undefined if they match. */
export function keyPairComplaint(certificate: Buffer, key: Buffer): string[] {
  const complaint = certificateComplaint(certificate) ?? keyComplaint(key) ?? mismatch(certificate, key)
  return complaint === undefined ? [] : [`tls: ${complaint}`]
}

function typesOf(pem: Buffer): string[] {
  return [...pem.toString('latin1').matchAll(block)].map(([, type = '']) => type)
}

function isKeyType(type: string): boolean {
  return type === 'PRIVATE KEY' || type.endsWith(' PRIVATE KEY')
}

function certificateComplaint(pem: Buffer): string | undefined {
  const types = typesOf(pem)
  if (types.includes('CERTIFICATE')) return undefined
  if (types.length === 0) return 'failed to find any PEM data in certificate input'
  if (types.length === 1 && types[0]?.endsWith('PRIVATE KEY')) {
    return 'failed to find certificate PEM data in certificate input, but did find a private key; PEM inputs may have been switched'
  }
  return `failed to find "CERTIFICATE" PEM block in certificate input after skipping PEM blocks of the following types: [${types.join(' ')}]`
}

function keyComplaint(pem: Buffer): string | undefined {
  const types = typesOf(pem)
  if (types.some(isKeyType)) return undefined
  if (types.length === 0) return 'failed to find any PEM data in key input'
  if (types.length === 1 && types[0] === 'CERTIFICATE') {
    return 'found a certificate rather than a key in the PEM for the private key'
  }
  return `failed to find PEM block with type ending in "PRIVATE KEY" in key input after skipping PEM blocks of the following types: [${types.join(' ')}]`
}

function mismatch(certificate: Buffer, key: Buffer): string | undefined {
  // Loaded on use: secrets of this type are rare.
  const crypto = process.getBuiltinModule('node:crypto')
  let leaf: X509Certificate
  let secret: KeyObject
  try {
    leaf = new crypto.X509Certificate(firstBlock(certificate, (type) => type === 'CERTIFICATE'))
  } catch {
    return 'failed to parse the certificate'
  }
  try {
    secret = crypto.createPrivateKey(firstBlock(key, isKeyType))
  } catch {
    return 'failed to parse private key'
  }
  if (leaf.publicKey.asymmetricKeyType !== secret.asymmetricKeyType) {
    return 'private key type does not match public key type'
  }
  return leaf.checkPrivateKey(secret) ? undefined : 'private key does not match public key'
}

function firstBlock(pem: Buffer, wanted: (type: string) => boolean): string {
  const match = [...pem.toString('latin1').matchAll(block)].find(([, type = '']) => wanted(type))
  return match?.[0] ?? ''
}
