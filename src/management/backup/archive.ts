/** Reads and writes backup files: a tar archive whose first entry lists the others with their checksums. */
import { createHash } from 'node:crypto'
import { createReadStream, createWriteStream } from 'node:fs'
import { open, rename, rm, stat } from 'node:fs/promises'
import { dirname, join } from 'node:path'
import { pipeline } from 'node:stream/promises'

import { readTar, type TarEntry, TarError } from '#lib/files/tar-read.ts'
import { TAR_END, tarHeaders, tarPadding } from '#lib/files/tar-write.ts'

export interface BackupManifest {
  readonly version: 1
  /** RFC 3339. */
  readonly createdAt: string
  /** Of the program that made it. */
  readonly program: string
  readonly store: 'sqlite' | 'etcd'
  /** Of the datastore. */
  readonly revision: number
  /** By name, in the order of the archive. */
  readonly files: Readonly<Record<string, { readonly sizeBytes: number; readonly sha256: string }>>
}

/** The archive is not a whole backup. */
export class BackupError extends Error {
  override readonly name = 'BackupError'
}

const MANIFEST = 'hyperkube-server-backup.json'
const MAX_MANIFEST_BYTES = 1 << 20
const PRIVATE = 0o600

/** `files` are paths by name. Durable when this resolves; a failed one leaves no file. */
export async function writeArchive(
  target: string,
  about: Omit<BackupManifest, 'version' | 'files'>,
  files: ReadonlyMap<string, string>,
): Promise<void> {
  const described: Record<string, { sizeBytes: number; sha256: string }> = {}
  for (const [name, path] of files)
    described[name] = { sizeBytes: (await stat(path)).size, sha256: await digestOf(path) }
  const manifest: BackupManifest = { version: 1, ...about, files: described }
  const part = `${target}.part`
  try {
    await pipeline(piecesOf(manifest, files), createWriteStream(part, { mode: PRIVATE, flags: 'wx' }))
    await flush(part)
    await rename(part, target)
    await flush(dirname(target))
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'EEXIST') await rm(part, { force: true })
    throw error
  }
}

async function* piecesOf(manifest: BackupManifest, files: ReadonlyMap<string, string>): AsyncGenerator<Buffer> {
  const modifiedS = Math.floor(Date.parse(manifest.createdAt) / 1000)
  const head = (name: string, size: number): Buffer => tarHeaders({ name, mode: PRIVATE, modifiedS }, size)
  const text = Buffer.from(`${JSON.stringify(manifest, undefined, 2)}\n`)
  yield Buffer.concat([head(MANIFEST, text.length), text, tarPadding(text.length)])
  for (const [name, path] of files) {
    const size = manifest.files[name]?.sizeBytes ?? 0
    yield head(name, size)
    for await (const piece of createReadStream(path)) yield piece as Buffer
    yield tarPadding(size)
  }
  yield TAR_END
}

/**
 * Writes the files of an archive to a folder, and checks them. `isKnown` refuses names that no backup has. Throws
 * BackupError for anything but a whole backup.
 */
export async function extractArchive(
  path: string,
  folder: string,
  isKnown: (name: string) => boolean,
): Promise<BackupManifest> {
  let manifest: BackupManifest | undefined
  let missing = new Set<string>()
  try {
    for await (const entry of readTar(createReadStream(path))) {
      if (manifest === undefined) {
        manifest = await readManifest(entry)
        missing = new Set(Object.keys(manifest.files))
      } else if (missing.delete(entry.name) && isKnown(entry.name) && entry.type === 'file') {
        await extract(entry, join(folder, entry.name.replaceAll('/', '-')), manifest)
      } else {
        // Nothing else is written, wherever its name leads.
        throw new BackupError(`"${entry.name}" is no part of a backup`)
      }
    }
  } catch (error) {
    if (error instanceof TarError) throw new BackupError(error.message, { cause: error })
    throw error
  }
  if (manifest === undefined) throw new BackupError('the archive is empty')
  if (missing.size > 0) throw new BackupError(`${[...missing].join(', ')} is missing`)
  return manifest
}

async function readManifest(entry: TarEntry): Promise<BackupManifest> {
  if (entry.name !== MANIFEST || entry.size > MAX_MANIFEST_BYTES)
    throw new BackupError('it is no backup of hyperkube server')
  const pieces: Buffer[] = []
  for await (const piece of entry.content) pieces.push(piece)
  let value: Partial<BackupManifest> | null
  try {
    value = JSON.parse(Buffer.concat(pieces).toString()) as Partial<BackupManifest> | null
  } catch {
    value = null
  }
  if (value?.version !== 1 || typeof value.files !== 'object')
    throw new BackupError('its description is broken, or of a later version')
  return value as BackupManifest
}

async function extract(entry: TarEntry, path: string, { files }: BackupManifest): Promise<void> {
  const hash = createHash('sha256')
  const counted = async function* (): AsyncGenerator<Buffer> {
    for await (const piece of entry.content) {
      hash.update(piece)
      yield piece
    }
  }
  await pipeline(counted(), createWriteStream(path, { mode: PRIVATE, flags: 'wx' }))
  if (hash.digest('hex') !== files[entry.name]?.sha256)
    throw new BackupError(`the contents of "${entry.name}" are not what was saved`)
}

async function digestOf(path: string): Promise<string> {
  const hash = createHash('sha256')
  for await (const piece of createReadStream(path)) hash.update(piece as Buffer)
  return hash.digest('hex')
}

async function flush(path: string): Promise<void> {
  const handle = await open(path, 'r')
  await handle.sync().finally(() => handle.close())
}
