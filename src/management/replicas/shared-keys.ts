/**
 * Shares the certificate authorities, the service account key and the key that encrypts Secrets among replicas. The
 * first replica stores them in the datastore, encrypted with a token; others decrypt them once.
 */
import { createHash } from 'node:crypto'

import { openLocalPki, type PkiFiles } from '#cluster/local-pki.ts'
import type { Clock } from '#lib/clock.ts'
import { ProgramError } from '#lib/program.ts'
import type { Random } from '#lib/random.ts'
import type { Backend } from '#storage/backend.ts'

import { isSealed, openSealed, seal, type Sealed } from './sealed.ts'

/** Their names in the data directory. */
export const SHARED_FILES = [
  'pki/ca.crt',
  'pki/ca.key',
  'pki/front-proxy-ca.crt',
  'pki/front-proxy-ca.key',
  'pki/sa.key',
  'encryption.key',
] as const

export type SharedKeys = Readonly<Record<string, string>>

/** Files of the data directory by name; private ones are for their owner only. */
export type KeyFiles = PkiFiles

export interface SharedKeysOptions {
  readonly backend: Pick<Backend, 'range' | 'commit'>
  readonly files: KeyFiles
  /** Of the command line; undefined: the one in the data directory. */
  readonly token: string | undefined
  readonly clock: Clock
  readonly random: Random
}

/** In the datastore, beside the objects of the API. */
const KEY = '/hyperkube/server/keys'
export const TOKEN_FILE = 'replica-token'
const ENCRYPTION = 'encryption.key'
const KEY_BYTES = 32
const TOKEN_BYTES = 32
const MIN_TOKEN = 32

/**
 * Brings the shared keys into the data directory, or those of the data directory into the datastore. Throws ProgramError
 * if both have different ones, or the token is missing or wrong.
 */
export async function openSharedKeys(options: SharedKeysOptions): Promise<void> {
  const local = await readKeys(options.files)
  const stored = await readStored(options.backend)
  if (stored === undefined) return storeFirst(options, local)
  if (!isComplete(local)) return take(options, stored, local)
  if (fingerprintOf(local) !== stored.fingerprint) throw new ProgramError(FOREIGN)
}

const FOREIGN =
  'The keys in the data directory are not those of the server that uses this datastore. Name another --data-dir, or another --datastore'
const NO_TOKEN =
  'Another replica has started on this datastore. Copy the file "replica-token" of its data directory and name the copy with --replica-token-file'
const WRONG_TOKEN = 'The token of --replica-token-file does not open the keys in the datastore'

/** A start that was killed leaves some of them. */
async function readKeys(files: KeyFiles): Promise<SharedKeys> {
  const found = await Promise.all(SHARED_FILES.map(async (name) => [name, await files.read(name)] as const))
  return Object.fromEntries(found.flatMap(([name, text]) => (text === undefined ? [] : [[name, text]])))
}

function isComplete(keys: SharedKeys): boolean {
  return SHARED_FILES.every((name) => keys[name] !== undefined)
}

async function readStored(backend: SharedKeysOptions['backend']): Promise<Sealed | undefined> {
  const { items } = await backend.range({ start: KEY })
  const [item] = items
  if (item === undefined) return undefined
  const value: unknown = JSON.parse(Buffer.from(item.value).toString())
  if (!isSealed(value)) throw new ProgramError('The keys in the datastore are of an unknown version')
  return value
}

/** The files are written after the datastore has the keys: another replica may have been faster. */
async function storeFirst(options: SharedKeysOptions, local: SharedKeys): Promise<void> {
  const { backend, files, random } = options
  const keys = await completed(options, local)
  const token = (await givenToken(options)) ?? random.bytes(TOKEN_BYTES).toString('base64url')
  await files.write(TOKEN_FILE, `${token}\n`)
  const sealed = await seal({ text: JSON.stringify(keys), token, fingerprint: fingerprintOf(keys) }, random)
  const { ok } = await backend.commit([{ key: KEY, value: Buffer.from(JSON.stringify(sealed)), expected: 0 }])
  if (!ok) return openSharedKeys(options)
  await writeKeys(files, keys)
}

async function take(options: SharedKeysOptions, stored: Sealed, local: SharedKeys): Promise<void> {
  const token = await givenToken(options)
  if (token === undefined) throw new ProgramError(NO_TOKEN)
  const text = await openSealed(stored, token)
  if (text === undefined) throw new ProgramError(WRONG_TOKEN)
  const keys = JSON.parse(text) as SharedKeys
  const isForeign = Object.entries(local).some(([name, mine]) => mine.trim() !== keys[name]?.trim())
  if (isForeign) throw new ProgramError(FOREIGN)
  await options.files.write(TOKEN_FILE, `${token}\n`)
  await writeKeys(options.files, keys)
}

async function givenToken({ token, files }: SharedKeysOptions): Promise<string | undefined> {
  const found = (token ?? (await files.read(TOKEN_FILE)))?.trim()
  if (found !== undefined && found.length < MIN_TOKEN)
    throw new ProgramError(`The token of replicas must have at least ${MIN_TOKEN} characters`)
  return found
}

/** With new keys for those that are missing. */
async function completed({ clock, random }: SharedKeysOptions, local: SharedKeys): Promise<SharedKeys> {
  const keys = new Map(Object.entries(local))
  const files: PkiFiles = {
    read: (name) => Promise.resolve(keys.get(`pki/${name}`)),
    write: (name, text) => Promise.resolve(void keys.set(`pki/${name}`, text)),
  }
  await openLocalPki({ files, hosts: [], clock, random })
  if (!keys.has(ENCRYPTION)) keys.set(ENCRYPTION, `${random.bytes(KEY_BYTES).toString('base64')}\n`)
  return Object.fromEntries(SHARED_FILES.map((name) => [name, keys.get(name) ?? '']))
}

async function writeKeys(files: KeyFiles, keys: SharedKeys): Promise<void> {
  for (const name of SHARED_FILES) await files.write(name, keys[name] ?? '')
}

/** Tells no more than whether two sets of keys are the same. */
function fingerprintOf(keys: SharedKeys): string {
  const hash = createHash('sha256')
  for (const name of SHARED_FILES) hash.update(`${name}\n${(keys[name] ?? '').trim()}\n`)
  return hash.digest('hex')
}
