/**
 * Saves a backup of the management server to one file: all objects, the certificate authority and the key that
 * encrypts Secrets. The server may be running.
 */
import { existsSync } from 'node:fs'
import { mkdir, mkdtemp, rm } from 'node:fs/promises'
import { dirname, join } from 'node:path'

import type { Clock } from '#lib/clock.ts'
import type { Random } from '#lib/random.ts'
import type { OpenBackendOptions } from '#storage/index.ts'
import { saveSnapshot } from '#storage/snapshot/snapshot.ts'

import { SHARED_FILES, TOKEN_FILE } from '../replicas/shared-keys.ts'
import { BackupError, type BackupManifest, writeArchive } from './archive.ts'

export interface BackupOptions {
  readonly dataDir: string
  /** As `openBackend` takes it. */
  readonly datastore: string
  readonly etcd: NonNullable<OpenBackendOptions['etcd']>
  /** The file that is written; it must not exist. */
  readonly target: string
  readonly program: string
  readonly clock: Clock
  readonly random: Random
  readonly signal: AbortSignal
}

/** The files of the datastore in a backup: a snapshot and its description. */
export const STORE_FILES = ['store.snapshot', 'store.snapshot.json'] as const
/** Files of the data directory. The token of replicas exists with etcd only. */
export const KEY_FILES: readonly string[] = [...SHARED_FILES, TOKEN_FILE]

/** Throws BackupError, StorageError or an error of the file system. */
export async function saveBackup(options: BackupOptions): Promise<Omit<BackupManifest, 'version' | 'files'>> {
  const { dataDir, datastore, target, program } = options
  if (existsSync(target)) throw new BackupError(`"${target}" exists already; name another file`)
  await mkdir(dirname(target), { recursive: true, mode: 0o700 })
  const files = new Map<string, string>()
  for (const name of KEY_FILES) if (existsSync(join(dataDir, name))) files.set(name, join(dataDir, name))
  const missing = SHARED_FILES.filter((name) => !files.has(name))
  if (missing.length > 0)
    throw new BackupError(`"${dataDir}" is no data directory of a server: it lacks ${missing.join(', ')}`)
  // On the disk of the backup, which must have room for it anyway.
  const folder = await mkdtemp(join(dirname(target), '.backup-'))
  try {
    const { store, revision, createdAt } = await saveSnapshot(datastore, folder, { ...options, name: 'store' })
    for (const name of STORE_FILES) files.set(name, join(folder, name))
    const about = { createdAt, program, store, revision }
    await writeArchive(target, about, files)
    return about
  } finally {
    await rm(folder, { recursive: true, force: true })
  }
}
