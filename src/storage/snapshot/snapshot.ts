/**
 * Snapshots: copies of a store in a folder, each a file and a description with its checksum. They are made while the
 * store is in use. A snapshot without a description is incomplete; one with a wrong checksum is never restored.
 */
import { createHash } from 'node:crypto'
import { createReadStream, existsSync } from 'node:fs'
import { mkdir, readdir, readFile, stat } from 'node:fs/promises'
import { dirname, join } from 'node:path'

import { writeFileAtomically } from '#lib/files/atomic-file.ts'

import { StorageError, type Revision } from '../backend.ts'
import { openBackend, type OpenBackendOptions } from '../index.ts'

export interface SnapshotDescription {
  readonly name: string
  /** The type of its store: only the same type can restore it. */
  readonly store: 'sqlite' | 'etcd'
  readonly revision: Revision
  readonly sizeBytes: number
  /** RFC 3339. */
  readonly createdAt: string
  /** Of the file, in hex. */
  readonly sha256: string
}

export interface ListedSnapshot extends Partial<SnapshotDescription> {
  readonly name: string
  readonly file: string
  /** The reason why it cannot be restored, if any. */
  readonly problem?: string
}

const FILE_ENDING = '.snapshot'
const DESCRIPTION_ENDING = '.json'
/** A name is part of a path and is typed by people. */
const NAME = /^[A-Za-z0-9][A-Za-z0-9._-]{0,127}$/

export function isSnapshotName(name: string): boolean {
  return NAME.test(name)
}

export interface SaveOptions extends OpenBackendOptions {
  /** Default: the time. */
  readonly name?: string
  readonly signal?: AbortSignal
}

/**
 * Copies the store at `location` (see `openBackend`) to the folder, which is created if missing. A server may be using
 * the store: the copy is one picture at one revision and blocks nothing. Durable when this resolves.
 */
export async function saveSnapshot(
  location: string,
  folder: string,
  options: SaveOptions,
): Promise<SnapshotDescription & { readonly file: string }> {
  const createdAt = new Date(options.clock.now()).toISOString()
  const { name = createdAt.replaceAll(':', '-'), signal } = options
  if (!isSnapshotName(name)) throw new TypeError(`"${name}" cannot be the name of a snapshot`)
  await mkdir(folder, { recursive: true, mode: 0o700 })
  const file = join(folder, `${name}${FILE_ENDING}`)
  if (existsSync(file))
    throw new StorageError('unavailable', `There is a snapshot "${name}" already; name it otherwise`)
  const store = location.startsWith('sqlite:') ? 'sqlite' : 'etcd'
  const revision = store === 'sqlite' ? await saveSqlite(location, file) : await saveOther(location, file, options)
  signal?.throwIfAborted()
  const { size: sizeBytes } = await stat(file)
  const description = { name, store, revision, sizeBytes, createdAt, sha256: await digestOf(file) } as const
  await writeFileAtomically(`${file}${DESCRIPTION_ENDING}`, `${JSON.stringify(description, undefined, 2)}\n`, {
    mode: 0o600,
  })
  return { ...description, file }
}

/** Every snapshot in the folder, oldest first, each verified. */
export async function listSnapshots(folder: string): Promise<ListedSnapshot[]> {
  const names = await readdir(folder).catch((cause: NodeJS.ErrnoException) => {
    if (cause.code === 'ENOENT') return []
    throw cause
  })
  const files = names.filter((name) => name.endsWith(FILE_ENDING)).map((name) => join(folder, name))
  const listed = await Promise.all(files.map((file) => inspectSnapshot(file)))
  return listed.sort((a, b) => compare(a.createdAt ?? '', b.createdAt ?? '') || compare(a.name, b.name))
}

/** The path of the snapshot with that name; a name with a slash is a path already. */
export function snapshotFile(folder: string, name: string): string {
  return name.includes('/') ? name : join(folder, `${name}${FILE_ENDING}`)
}

/** The description of a snapshot, and whether it matches the file. */
export async function inspectSnapshot(file: string): Promise<ListedSnapshot> {
  const name = file.slice(dirname(file).length + 1).replace(FILE_ENDING, '')
  const description = await readDescription(`${file}${DESCRIPTION_ENDING}`)
  if (description === undefined) {
    return { name, file, problem: 'it has no description: it was never finished, or comes from elsewhere' }
  }
  const found = { ...description, name, file }
  const size = (await stat(file)).size
  if (size !== description.sizeBytes)
    return { ...found, problem: `it has ${size} bytes instead of ${description.sizeBytes}` }
  if ((await digestOf(file)) !== description.sha256) return { ...found, problem: 'its contents are not what was saved' }
  return found
}

async function readDescription(file: string): Promise<SnapshotDescription | undefined> {
  const text = await readFile(file, 'utf8').catch(() => '')
  try {
    const found = JSON.parse(text) as Partial<SnapshotDescription> | null
    return typeof found?.sha256 === 'string' ? (found as SnapshotDescription) : undefined
  } catch {
    return undefined
  }
}

export interface Restored {
  readonly revision: Revision
  /** The path of the replaced store; absent if there was none. */
  readonly kept?: string
}

/**
 * Replaces an unused sqlite store by a snapshot. The old store is kept beside it. Revisions continue above those of
 * both, and everything before is compacted: watchers have to list again. Fails with `corrupt` for a damaged snapshot,
 * and with `unavailable` if the store is in use.
 */
export async function restoreSnapshot(snapshot: string, target: string, nowMs: number): Promise<Restored> {
  if (!existsSync(snapshot)) {
    throw new StorageError('unavailable', `There is no snapshot in "${snapshot}"; name another one`)
  }
  const { problem, name, sha256, store = 'sqlite' } = await inspectSnapshot(snapshot)
  if (store !== 'sqlite') {
    throw new StorageError('unavailable', `Snapshot "${name}" is of an ${store} cluster; a sqlite store cannot take it`)
  }
  // A foreign snapshot has no checksum of ours, but its contents do.
  if (problem !== undefined && sha256 !== undefined) {
    throw new StorageError('corrupt', `Snapshot "${name}" is damaged: ${problem}; take another one`)
  }
  const { replaceSqlite } = await import('../sqlite/replace.ts')
  await mkdir(dirname(target), { recursive: true, mode: 0o700 })
  return replaceSqlite(snapshot, target, `${target}.before-${new Date(nowMs).toISOString().replaceAll(':', '-')}`)
}

async function saveSqlite(location: string, file: string): Promise<Revision> {
  const { copySqlite } = await import('../sqlite/copy.ts')
  return copySqlite(location.slice('sqlite:'.length), file)
}

async function saveOther(location: string, file: string, options: SaveOptions): Promise<Revision> {
  if (location === 'memory') {
    throw new StorageError('unavailable', 'A memory store lives in its process: only that process can save it')
  }
  const backend = await openBackend(location, { ...options, historyMs: Infinity })
  try {
    return await backend.snapshot(file, options.signal)
  } finally {
    await backend.close()
  }
}

async function digestOf(file: string): Promise<string> {
  const hash = createHash('sha256')
  for await (const chunk of createReadStream(file)) hash.update(chunk as Buffer)
  return hash.digest('hex')
}

function compare(a: string, b: string): number {
  return a < b ? -1 : a > b ? 1 : 0
}
