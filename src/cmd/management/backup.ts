/**
 * The commands `hyperkube server backup` and `hyperkube server restore`: save the state of the management server to a
 * file, and restore it.
 */
import { stat } from 'node:fs/promises'
import { join, resolve } from 'node:path'

import { type Command, defineProgram, type Invocation, type Program, ProgramError } from '#lib/program.ts'
import { BackupError } from '#management/backup/archive.ts'
import { saveBackup } from '#management/backup/backup.ts'
import { restoreBackup, type RestoredBackup } from '#management/backup/restore.ts'
import { hyperkubeVersion } from '#model/version.ts'
import { StorageError } from '#storage/backend.ts'

import { formatBytes } from '../bytes.ts'
import { DATA_FLAGS, datastoreOf, ETCD_FLAGS, etcdCredentials, lockData, serverDataDir } from './server-data.ts'

const BACKUP_FLAGS = { backup: DATA_FLAGS, etcd: ETCD_FLAGS } as const
const RESTORE_FLAGS = { restore: DATA_FLAGS } as const

const backup: Program = defineProgram({
  name: 'backup',
  long:
    'backup saves the state of a server, which may be running, to one file: all objects, the authority of its certificates and ' +
    'the key that encrypts Secrets.\n\n' +
    'The file is readable by its owner only. A reader can log in as any user of the server: keep it as safe as the data ' +
    'directory. It has no certificate of --tls-cert-file, no audit log and no password.',
  use: '[FILE] [flags]',
  operands: true,
  flags: BACKUP_FLAGS,
  run: runBackup,
})

async function runBackup(invocation: Invocation<typeof BACKUP_FLAGS>, signal: AbortSignal): Promise<number> {
  const { flags, operands, clock, random, cwd, stdout, env } = invocation
  const [file, ...others] = operands
  if (others.length > 0) throw new ProgramError('Give one file for the backup, or none')
  const dataDir = serverDataDir(flags['data-dir'], { cwd, env })
  const name = `${new Date(clock.now()).toISOString().replaceAll(':', '-')}.tar`
  const target = file === undefined ? join(dataDir, 'backups', name) : resolve(cwd, file)
  const etcd = { tls: await etcdCredentials(flags, invocation) }
  const datastore = datastoreOf(flags.datastore, dataDir, cwd)
  const options = { dataDir, datastore, etcd, target, program: hyperkubeVersion(), clock, random, signal }
  const { revision } = await explained(() => saveBackup(options))
  const { size } = await stat(target)
  stdout.write(
    `Saved the server at revision ${revision} (${formatBytes(size)}) to ${target}\n` +
      'It contains the authority and the key that encrypts Secrets: keep it safe.\n',
  )
  return 0
}

const restore: Program = defineProgram({
  name: 'restore',
  long:
    'restore brings a backup into the data directory of a server that does not run, on this or another machine. Agents and users ' +
    'come back by themselves if the server has the same URL.\n\n' +
    'What the directory had before is kept beside it.',
  use: 'FILE [flags]',
  operands: true,
  flags: RESTORE_FLAGS,
  run: runRestore,
})

async function runRestore({ flags, operands, ...context }: Invocation<typeof RESTORE_FLAGS>): Promise<number> {
  const [file, ...others] = operands
  if (file === undefined || others.length > 0) throw new ProgramError('Give the file of the backup to restore')
  const { clock, cwd, stdout } = context
  const dataDir = serverDataDir(flags['data-dir'], context)
  const datastore = datastoreOf(flags.datastore, dataDir, cwd)
  await using closing = new AsyncDisposableStack()
  await lockData(dataDir, closing)
  const storeFile = datastore.startsWith('sqlite:') ? datastore.slice('sqlite:'.length) : join(dataDir, 'store.db')
  const source = resolve(cwd, file)
  const restored = await explained(() => restoreBackup({ source, dataDir, storeFile, nowMs: clock.now() }))
  stdout.write(`${reportOf(restored, dataDir)}\n`)
  return 0
}

function reportOf({ manifest, keptKeys, keptStore, etcdSnapshot }: RestoredBackup, dataDir: string): string {
  const kept = [keptKeys, keptStore].filter((path) => path !== undefined)
  return [
    `Restored the server of ${manifest.createdAt} at revision ${manifest.revision} to ${dataDir}`,
    ...(kept.length === 0
      ? []
      : [`What was there before is in ${kept.join(' and ')}; delete it when it is no longer needed`]),
    ...(etcdSnapshot === undefined
      ? []
      : [
          `The objects are in ${etcdSnapshot}. Restore them on every member of etcd before the server starts: ` +
            `"etcdctl snapshot restore ${etcdSnapshot} --bump-revision 1000000 --mark-compacted …" ` +
            '(etcd before 3.4.27 lacks the last two flags: omit them)',
        ]),
  ].join('\n')
}

/** Problems that the user can solve, without a stack trace. */
async function explained<T>(task: () => Promise<T>): Promise<T> {
  try {
    return await task()
  } catch (cause) {
    const isKnown = cause instanceof BackupError || cause instanceof StorageError
    if (isKnown || (cause instanceof Error && 'syscall' in cause)) throw new ProgramError(cause.message, { cause })
    throw cause
  }
}

export const SERVER_COMMANDS: readonly Command[] = [
  { name: 'backup', short: 'Save the state of a server to a file', load: () => Promise.resolve(backup) },
  { name: 'restore', short: 'Restore a saved state', load: () => Promise.resolve(restore) },
]
