/**
 * Restores a backup into the data directory of a stopped management server. Existing files are renamed, not deleted.
 */
import { existsSync } from 'node:fs'
import { mkdir, mkdtemp, readFile, rename, rm } from 'node:fs/promises'
import { dirname, join } from 'node:path'

import { writeFileAtomically } from '#lib/files/atomic-file.ts'
import { restoreSnapshot } from '#storage/snapshot/snapshot.ts'

import { type BackupManifest, extractArchive } from './archive.ts'
import { KEY_FILES, STORE_FILES } from './backup.ts'

export interface RestoreOptions {
  /** The file of the backup. */
  readonly source: string
  readonly dataDir: string
  /** The SQLite file that gets the objects. */
  readonly storeFile: string
  readonly nowMs: number
}

export interface RestoredBackup {
  readonly manifest: BackupManifest
  /** The folder with the keys that were replaced; undefined if there were none. */
  readonly keptKeys: string | undefined
  /** The store that was replaced; undefined if there was none. */
  readonly keptStore: string | undefined
  /** The snapshot of etcd, which etcd's own tool restores; undefined for SQLite. */
  readonly etcdSnapshot: string | undefined
}

const PRIVATE = { mode: 0o600 }
const ETCD_SNAPSHOT = 'etcd.snapshot'

/**
 * Nothing changes before the whole backup has been checked. A restore that was interrupted can be repeated. Throws
 * BackupError, StorageError or an error of the file system.
 */
export async function restoreBackup(options: RestoreOptions): Promise<RestoredBackup> {
  const { source, dataDir, storeFile, nowMs } = options
  await mkdir(dataDir, { recursive: true, mode: 0o700 })
  const folder = await mkdtemp(join(dataDir, '.restore-'))
  try {
    const known = new Set<string>([...KEY_FILES, ...STORE_FILES])
    const manifest = await extractArchive(source, folder, (name) => known.has(name))
    const snapshot = join(folder, STORE_FILES[0])
    const keptKeys = await keepKeys(dataDir, nowMs)
    const names = KEY_FILES.filter((name) => manifest.files[name] !== undefined)
    for (const name of names) {
      const text = await readFile(join(folder, name.replaceAll('/', '-')), 'utf8')
      await mkdir(dirname(join(dataDir, name)), { recursive: true, mode: 0o700 })
      await writeFileAtomically(join(dataDir, name), text, PRIVATE)
    }
    if (manifest.store === 'etcd') {
      const etcdSnapshot = join(dataDir, ETCD_SNAPSHOT)
      await rename(snapshot, etcdSnapshot)
      return { manifest, keptKeys, keptStore: undefined, etcdSnapshot }
    }
    const { kept } = await restoreSnapshot(snapshot, storeFile, nowMs)
    return { manifest, keptKeys, keptStore: kept, etcdSnapshot: undefined }
  } finally {
    await rm(folder, { recursive: true, force: true })
  }
}

/** Moves all keys and certificates of the data directory aside: those signed by another authority are of no use. */
async function keepKeys(dataDir: string, nowMs: number): Promise<string | undefined> {
  const found = ['pki', 'encryption.key', 'replica-token'].filter((name) => existsSync(join(dataDir, name)))
  if (found.length === 0) return undefined
  const kept = join(dataDir, `keys.before-${new Date(nowMs).toISOString().replaceAll(':', '-')}`)
  await mkdir(kept, { mode: 0o700 })
  for (const name of found) await rename(join(dataDir, name), join(kept, name))
  return kept
}
