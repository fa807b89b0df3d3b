/** Encrypts and decrypts text with a token: AES-256-GCM with a key that scrypt derives from the token. */
import { createCipheriv, createDecipheriv, scrypt } from 'node:crypto'
import { promisify } from 'node:util'

import type { Random } from '#lib/random.ts'

export interface Sealed {
  readonly version: 1
  /** Readable in the datastore without the token; part of the authenticated data. */
  readonly fingerprint: string
  readonly salt: string
  readonly nonce: string
  readonly sealed: string
}

const CIPHER = 'aes-256-gcm'
const SALT_BYTES = 16
const NONCE_BYTES = 12
const TAG_BYTES = 16
const KEY_BYTES = 32
/** About a tenth of a second and 64 MiB, once for each start of a new replica: people may choose weak tokens. */
const COST = { N: 1 << 16, r: 8, p: 1, maxmem: 128 << 20 }

const derive = promisify<string, Buffer, number, typeof COST, Buffer>(scrypt)

export async function seal(
  { text, token, fingerprint }: { readonly text: string; readonly token: string; readonly fingerprint: string },
  random: Random,
): Promise<Sealed> {
  const [salt, nonce] = [random.bytes(SALT_BYTES), random.bytes(NONCE_BYTES)]
  const cipher = createCipheriv(CIPHER, await derive(token, salt, KEY_BYTES, COST), nonce)
  cipher.setAAD(Buffer.from(fingerprint))
  const sealed = Buffer.concat([cipher.update(text), cipher.final(), cipher.getAuthTag()])
  const [saltText, nonceText, sealedText] = [salt, nonce, sealed].map((bytes) => bytes.toString('base64'))
  return { version: 1, fingerprint, salt: saltText ?? '', nonce: nonceText ?? '', sealed: sealedText ?? '' }
}

/** Undefined: the token is wrong, or the text was changed. */
export async function openSealed({ fingerprint, ...texts }: Sealed, token: string): Promise<string | undefined> {
  const [salt, nonce, sealed] = [texts.salt, texts.nonce, texts.sealed].map((text) => Buffer.from(text, 'base64'))
  if (salt === undefined || nonce?.length !== NONCE_BYTES || sealed === undefined || sealed.length <= TAG_BYTES)
    return undefined
  const key = await derive(token, salt, KEY_BYTES, COST)
  const decipher = createDecipheriv(CIPHER, key, nonce, { authTagLength: TAG_BYTES })
  decipher.setAAD(Buffer.from(fingerprint))
  decipher.setAuthTag(sealed.subarray(-TAG_BYTES))
  try {
    return Buffer.concat([decipher.update(sealed.subarray(0, -TAG_BYTES)), decipher.final()]).toString()
  } catch {
    return undefined
  }
}

export function isSealed(value: unknown): value is Sealed {
  const { version, ...texts } = (value ?? {}) as Partial<Sealed>
  return (
    version === 1 && [texts.fingerprint, texts.salt, texts.nonce, texts.sealed].every((one) => typeof one === 'string')
  )
}
