/**
 * Encrypts and decrypts single values in upstream's formats: `k8s:enc:<provider>:v1:<key name>:` and the provider's
 * data. The storage key is authenticated with the value if the format supports it.
 */
import { createCipheriv, createDecipheriv } from 'node:crypto'

import type { Random } from '#lib/random.ts'

import { StorageError } from '../backend.ts'

export interface EncryptionKey {
  readonly name: string
  /** 16, 24 or 32 bytes. */
  readonly secret: Buffer
}

/** Seals and opens with one key. */
export interface Sealer {
  /** The prefix of every value it seals. */
  readonly prefix: string
  seal(storageKey: string, value: Uint8Array): Buffer
  /** `sealed` follows the prefix. Throws `corrupt` if it was not sealed with this key, or was changed. */
  open(storageKey: string, sealed: Uint8Array): Buffer
  /** True if it would be sealed differently now, although the prefix is the same; absent: never. */
  isStale?(sealed: Uint8Array): boolean
  /** Fetches the key of the value; undefined if it is available. Absent: always available. */
  prepare?(sealed: Uint8Array): Promise<void> | undefined
}

const NONCE_BYTES = 12
const TAG_BYTES = 16
const IV_BYTES = 16

/**
 * Authenticated. A key must be replaced after some two hundred thousand writes, because nonces are random and short.
 */
export function createAesGcm({ name, secret }: EncryptionKey, random: Random): Sealer {
  const algorithm = `aes-${secret.length * 8}-gcm` as 'aes-256-gcm'
  return {
    prefix: `k8s:enc:aesgcm:v1:${name}:`,
    seal(storageKey, value) {
      const nonce = random.bytes(NONCE_BYTES)
      const cipher = createCipheriv(algorithm, secret, nonce).setAAD(Buffer.from(storageKey))
      return Buffer.concat([nonce, cipher.update(value), cipher.final(), cipher.getAuthTag()])
    },
    open(storageKey, sealed) {
      if (sealed.length < NONCE_BYTES + TAG_BYTES) throw broken(storageKey, name)
      const end = sealed.length - TAG_BYTES
      const decipher = createDecipheriv(algorithm, secret, sealed.subarray(0, NONCE_BYTES))
      decipher.setAAD(Buffer.from(storageKey)).setAuthTag(sealed.subarray(end))
      return opening(storageKey, name, () =>
        Buffer.concat([decipher.update(sealed.subarray(NONCE_BYTES, end)), decipher.final()]),
      )
    },
  }
}

/** Upstream's older format; not authenticated. For compatibility with other servers. */
export function createAesCbc({ name, secret }: EncryptionKey, random: Random): Sealer {
  const algorithm = `aes-${secret.length * 8}-cbc`
  return {
    prefix: `k8s:enc:aescbc:v1:${name}:`,
    seal(_storageKey, value) {
      const iv = random.bytes(IV_BYTES)
      const cipher = createCipheriv(algorithm, secret, iv)
      return Buffer.concat([iv, cipher.update(value), cipher.final()])
    },
    open(storageKey, sealed) {
      if (sealed.length < 2 * IV_BYTES) throw broken(storageKey, name)
      const decipher = createDecipheriv(algorithm, secret, sealed.subarray(0, IV_BYTES))
      return opening(storageKey, name, () =>
        Buffer.concat([decipher.update(sealed.subarray(IV_BYTES)), decipher.final()]),
      )
    },
  }
}

/** Runs a function that fails for a value that was changed. */
export function opening<T>(storageKey: string, name: string, open: () => T): T {
  try {
    return open()
  } catch (cause) {
    throw broken(storageKey, name, cause)
  }
}

export function broken(storageKey: string, name: string, cause?: unknown): StorageError {
  const message = `The value of "${storageKey}" cannot be opened with the encryption key "${name}": it was changed, moved, or sealed with another key of that name`
  return new StorageError('corrupt', message, { cause })
}
