/**
 * The provider `secretbox`: NaCl's XSalsa20 with Poly1305. It is in a separate file, because few clusters need its
 * library.
 */
import { xsalsa20poly1305 } from '@noble/ciphers/salsa.js'

import type { Random } from '#lib/random.ts'

import { broken, type EncryptionKey, opening, type Sealer } from './transformer.ts'

const NONCE_BYTES = 24
const TAG_BYTES = 16

/**
 * Nonces are long enough to be random for ever. The format does not authenticate the storage key: instead the registry
 * compares it with the name and namespace in the opened object.
 */
export function createSecretbox({ name, secret }: EncryptionKey, random: Random): Sealer {
  return {
    prefix: `k8s:enc:secretbox:v1:${name}:`,
    seal(_storageKey, value) {
      const nonce = random.bytes(NONCE_BYTES)
      return Buffer.concat([nonce, xsalsa20poly1305(secret, nonce).encrypt(value)])
    },
    open(storageKey, sealed) {
      if (sealed.length < NONCE_BYTES + TAG_BYTES) throw broken(storageKey, name)
      const cipher = xsalsa20poly1305(secret, sealed.subarray(0, NONCE_BYTES))
      const opened = opening(storageKey, name, () => cipher.decrypt(sealed.subarray(NONCE_BYTES)))
      return Buffer.from(opened.buffer, opened.byteOffset, opened.length)
    },
  }
}
