/** Flags and lookup of the data directory and the datastore, shared by the commands of the management server. */
import { mkdir } from 'node:fs/promises'
import { join, resolve } from 'node:path'

import { type Flag, flag } from '#lib/flags/flags.ts'
import { string } from '#lib/flags/kinds.ts'
import { takeProcessLock } from '#lib/process/lock.ts'
import { type ProgramContext, ProgramError } from '#lib/program.ts'

export const DATA_FLAGS: Readonly<Record<'data-dir' | 'datastore', Flag<string>>> = {
  'data-dir': flag(
    string,
    '',
    'The `directory` with the state of the server (default: /var/lib/hyperkube-server for root, otherwise hyperkube-server in the XDG data directory)',
  ),
  datastore: flag(
    string,
    'sqlite',
    'The `store` of the objects: sqlite, sqlite:FILE, or comma-separated URLs of an etcd cluster',
  ),
}

type EtcdName = 'etcd-cafile' | 'etcd-certfile' | 'etcd-keyfile'

export const ETCD_FLAGS: Readonly<Record<EtcdName, Flag<string>>> = {
  'etcd-cafile': flag(string, '', 'PEM `file` with the authority of the etcd cluster of --datastore'),
  'etcd-certfile': flag(string, '', 'PEM `file` with the client certificate for the etcd cluster'),
  'etcd-keyfile': flag(string, '', 'PEM `file` with the key of --etcd-certfile'),
}

type EtcdValues = Readonly<Record<EtcdName, string>>

export interface EtcdFileNames {
  readonly ca: string
  readonly certificate: string
  readonly key: string
}

/** Throws ProgramError. */
export function etcdFiles(flags: EtcdValues): EtcdFileNames {
  const [ca, certificate, key] = [flags['etcd-cafile'], flags['etcd-certfile'], flags['etcd-keyfile']]
  if ((certificate === '') !== (key === ''))
    throw new ProgramError('--etcd-certfile and --etcd-keyfile must be set together')
  return { ca, certificate, key }
}

/** Their contents, in PEM. */
export async function etcdCredentials(
  flags: EtcdValues,
  { readFile }: Pick<ProgramContext, 'readFile'>,
): Promise<{ readonly ca?: string; readonly certificate?: string; readonly key?: string }> {
  const { ca, certificate, key } = etcdFiles(flags)
  return {
    ...(ca !== '' && { ca: await readFile(ca) }),
    ...(certificate !== '' && { certificate: await readFile(certificate), key: await readFile(key) }),
  }
}

/** Throws ProgramError if there is no default directory. */
export function serverDataDir(given: string, { cwd, env }: Pick<ProgramContext, 'cwd' | 'env'>): string {
  return resolve(cwd, given === '' ? defaultDataDir(env) : given)
}

function defaultDataDir({ XDG_DATA_HOME, HOME }: ProgramContext['env']): string {
  if (process.getuid?.() === 0) return '/var/lib/hyperkube-server'
  if (XDG_DATA_HOME) return join(XDG_DATA_HOME, 'hyperkube-server')
  if (HOME) return join(HOME, '.local', 'share', 'hyperkube-server')
  throw new ProgramError('There is no home directory: set --data-dir')
}

/** In the form that `openBackend` accepts. */
export function datastoreOf(datastore: string, dataDir: string, cwd: string): string {
  if (datastore === 'sqlite') return `sqlite:${join(dataDir, 'store.db')}`
  if (datastore.startsWith('sqlite:')) return `sqlite:${resolve(cwd, datastore.slice('sqlite:'.length))}`
  return datastore
}

/** Keeps the directory for this process until `closing` is disposed of. Throws ProgramError while a server runs there. */
export async function lockData(dataDir: string, closing: AsyncDisposableStack): Promise<void> {
  await mkdir(dataDir, { recursive: true, mode: 0o700 })
  const attempt = takeProcessLock(join(dataDir, 'server.lock'))
  if (!('lock' in attempt))
    throw new ProgramError(`A server is running in ${dataDir} already (process ${attempt.owner.pid})`)
  closing.defer(() => attempt.lock.release())
}
