/**
 * EncryptionConfiguration, upstream's file (apiserver.config.k8s.io/v1), and the one we make ourselves: secrets sealed
 * with a key of the cluster's own, in a file only its owner can read.
 */
import { chmod, mkdir, readFile } from 'node:fs/promises'
import { dirname } from 'node:path'

import { writeFileAtomically } from '#lib/atomic-file.ts'
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

export interface ProviderConfig {
  readonly type: 'aesgcm' | 'aescbc' | 'identity'
  /** The first seals; none for identity. */
  readonly keys: readonly EncryptionKey[]
}

/** Nothing is sealed. */
export const NO_ENCRYPTION: EncryptionConfig = { resources: [] }

interface FileKey {
  readonly name?: unknown
  readonly secret?: unknown
}

/** Reads a parsed EncryptionConfiguration. Throws an Error that says what is wrong and where. */
export function parseEncryptionConfig(document: unknown): EncryptionConfig {
  const { kind, apiVersion, resources } = asRecord(document, 'the configuration')
  if (kind !== 'EncryptionConfiguration' || (apiVersion !== 'apiserver.config.k8s.io/v1' && apiVersion !== 'v1')) {
    throw new Error(
      `Not an EncryptionConfiguration of apiserver.config.k8s.io/v1: kind "${String(kind)}", apiVersion "${String(apiVersion)}"`,
    )
  }
  return { resources: asList(resources, 'resources').map((rule, at) => parseRule(rule, `resources[${at}]`)) }
}

function parseRule(rule: unknown, path: string): ResourceRule {
  const { resources, providers } = asRecord(rule, path)
  const names = asList(resources, `${path}.resources`).map(String)
  const parsed = asList(providers, `${path}.providers`).map((provider, at) =>
    parseProvider(provider, `${path}.providers[${at}]`),
  )
  if (names.length === 0) throw new Error(`${path}.resources: Required value`)
  if (parsed.length === 0) throw new Error(`${path}.providers: Required value`)
  return { resources: names, providers: parsed }
}

function parseProvider(provider: unknown, path: string): ProviderConfig {
  const entries = Object.entries(asRecord(provider, path))
  const [first] = entries
  if (first === undefined || entries.length > 1)
    throw new Error(`${path}: exactly one provider type should be specified`)
  const [type, settings] = first
  if (type === 'identity') return { type, keys: [] }
  if (type !== 'aesgcm' && type !== 'aescbc') {
    throw new Error(`${path}.${type}: this provider is not supported; use aesgcm, aescbc or identity`)
  }
  const keys = asList(asRecord(settings, `${path}.${type}`)['keys'], `${path}.${type}.keys`)
  if (keys.length === 0) throw new Error(`${path}.${type}.keys: Required value`)
  return { type, keys: keys.map((key, at) => parseKey(key as FileKey, `${path}.${type}.keys[${at}]`)) }
}

function parseKey({ name, secret }: FileKey, path: string): EncryptionKey {
  if (typeof name !== 'string' || name === '' || name.includes(':'))
    throw new Error(`${path}.name: must be a name without ":"`)
  const bytes = Buffer.from(typeof secret === 'string' ? secret : '', 'base64')
  if (bytes.length !== 16 && bytes.length !== 24 && bytes.length !== 32) {
    throw new Error(`${path}.secret: must be base64 of 16, 24 or 32 bytes, got ${bytes.length}`)
  }
  return { name, secret: bytes }
}

function asRecord(value: unknown, path: string): Record<string, unknown> {
  if (typeof value === 'object' && value !== null && !Array.isArray(value)) return value as Record<string, unknown>
  throw new Error(`${path}: must be an object`)
}

function asList(value: unknown, path: string): unknown[] {
  if (Array.isArray(value)) return value
  throw new Error(`${path}: must be a list`)
}

const KEY_BYTES = 32

/** The default: secrets are sealed with the key in `file`, which is made, for its owner only, when it is not there. */
export async function defaultEncryption(file: string, random: Random): Promise<EncryptionConfig> {
  const secret = (await readKey(file)) ?? (await makeKey(file, random))
  const keys = [{ name: 'hyperkube', secret }]
  return {
    resources: [
      {
        resources: ['secrets'],
        providers: [
          { type: 'aesgcm', keys },
          { type: 'identity', keys: [] },
        ],
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
