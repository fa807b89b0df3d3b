/**
 * The types and the default of the encryption configuration. By default, Secrets are encrypted with a generated key, in
 * a file that only its owner can read.
 */
import { chmod, mkdir, readFile } from 'node:fs/promises'
import { dirname } from 'node:path'

import { writeFileAtomically } from '#lib/files/atomic-file.ts'
import type { Random } from '#lib/random.ts'

import type { EncryptionKey } from './transformer.ts'

export interface EncryptionConfig {
  readonly resources: readonly ResourceRule[]
}

export interface ResourceRule {
  readonly resources: readonly string[]
  /** The first seals. */
  readonly providers: readonly ProviderConfig[]
}

export type ProviderConfig = KeyedConfig | KmsConfig | { readonly type: 'identity' }

export interface KeyedConfig {
  readonly type: 'aesgcm' | 'aescbc' | 'secretbox'
  /** The first seals. */
  readonly keys: readonly EncryptionKey[]
}

/** Keys of a plugin (KMS v2). */
export interface KmsConfig {
  readonly type: 'kms'
  readonly name: string
  /** The path of its Unix socket. */
  readonly socket: string
  /** The timeout of one request. */
  readonly timeoutMs: number
}

/** No encryption. */
export const NO_ENCRYPTION: EncryptionConfig = { resources: [] }

const KEY_BYTES = 32

/**
 * The default: seals Secrets with the key in `file`, which is created for its owner only if missing. It uses secretbox,
 * whose long nonces allow one key for ever; AES-GCM needs a new key every 200,000 writes. Values that earlier versions
 * sealed with AES-GCM are still opened, and sealed again at their next write.
 */
export async function defaultEncryption(file: string, random: Random): Promise<EncryptionConfig> {
  const secret = (await readKey(file)) ?? (await makeKey(file, random))
  const keys = [{ name: 'hyperkube', secret }]
  return {
    resources: [
      {
        resources: ['secrets'],
        providers: [{ type: 'secretbox', keys }, { type: 'aesgcm', keys }, { type: 'identity' }],
      },
    ],
  }
}

async function readKey(file: string): Promise<Buffer | undefined> {
  try {
    const text = await readFile(file, 'utf8')
    const secret = Buffer.from(text.trim(), 'base64')
    if (secret.length !== KEY_BYTES)
      throw new Error(
        `"${file}" must hold base64 of ${KEY_BYTES} bytes; restore it from a backup: without it secrets cannot be read`,
      )
    await chmod(file, 0o600)
    return secret
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return undefined
    throw error
  }
}

async function makeKey(file: string, random: Random): Promise<Buffer> {
  const secret = random.bytes(KEY_BYTES)
  await mkdir(dirname(file), { recursive: true, mode: 0o700 })
  await writeFileAtomically(file, `${secret.toString('base64')}\n`, { mode: 0o600 })
  return secret
}
