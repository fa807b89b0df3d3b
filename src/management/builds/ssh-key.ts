/** Generates an SSH key pair in the formats of OpenSSH, which does not read Ed25519 keys in PKCS#8. */
import { createPublicKey } from 'node:crypto'

import type { Random } from '#lib/random.ts'
import { createKey } from '#lib/x509/key.ts'

export interface SshKey {
  /** PEM. */
  readonly privateKey: string
  /** A line for `authorized_keys`. */
  readonly publicKey: string
}

const TYPE = 'ssh-ed25519'
const BLOCK = 8
const WIDTH = 70

export function createSshKey(comment: string, random: Random): SshKey {
  const key = createKey('ed25519')
  const { x = '' } = createPublicKey(key).export({ format: 'jwk' })
  const { d = '' } = key.export({ format: 'jwk' })
  const [open, secret] = [Buffer.from(x, 'base64url'), Buffer.from(d, 'base64url')]
  const shared = Buffer.concat([field(TYPE), field(open)])
  // Twice the same number: who decrypts the key sees whether the passphrase was right.
  const check = random.bytes(4)
  const inner = [check, check, field(TYPE), field(open), field(Buffer.concat([secret, open])), field(comment)]
  const encoded = Buffer.concat([
    Buffer.from('openssh-key-v1\0'),
    field('none'),
    field('none'),
    field(''),
    count(1),
    field(shared),
    field(padded(Buffer.concat(inner))),
  ]).toString('base64')
  const lines = encoded.match(new RegExp(`.{1,${WIDTH}}`, 'g')) ?? []
  return {
    privateKey: ['-----BEGIN OPENSSH PRIVATE KEY-----', ...lines, '-----END OPENSSH PRIVATE KEY-----', ''].join('\n'),
    publicKey: `${TYPE} ${shared.toString('base64')} ${comment}`,
  }
}

function count(value: number): Buffer {
  const bytes = Buffer.alloc(4)
  bytes.writeUInt32BE(value)
  return bytes
}

function field(content: string | Buffer): Buffer {
  const bytes = Buffer.from(content)
  return Buffer.concat([count(bytes.length), bytes])
}

/** 1, 2, 3 … up to a whole block. */
function padded(bytes: Buffer): Buffer {
  const missing = (BLOCK - (bytes.length % BLOCK)) % BLOCK
  return Buffer.concat([bytes, Buffer.from(Array.from({ length: missing }, (_, at) => at + 1))])
}
