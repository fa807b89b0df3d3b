/**
 * Derives the data directory of a cluster, and the location of its store, from the flags `--data-dir` and
 * `--datastore`.
 */
import { join, resolve } from 'node:path'

import { type Flag, flag } from '#lib/flags/flags.ts'
import { string } from '#lib/flags/kinds.ts'
import { type ProgramContext, ProgramError } from '#lib/program.ts'

/** The flags of every command that works on a local cluster. */
export const DATA_DIR_FLAGS: { readonly 'data-dir': Flag<string>; readonly datastore: Flag<string> } = {
  'data-dir': flag(
    string,
    '',
    'The `directory` with the state of the cluster (default: /var/lib/hyperkube for root, otherwise in the XDG data directory)',
  ),
  datastore: flag(
    string,
    'sqlite',
    'The `store` of the objects: sqlite, sqlite:FILE, or comma-separated URLs of an etcd cluster',
  ),
}

export interface DataDir {
  readonly path: string
  /** In the form that `openBackend` accepts. */
  readonly location: string
}

/** Throws ProgramError if there is no default directory. */
export function dataDir(
  flags: { readonly 'data-dir': string; readonly datastore: string },
  { env, cwd }: Pick<ProgramContext, 'env' | 'cwd'>,
): DataDir {
  const path = resolve(cwd, flags['data-dir'] === '' ? requireDefault(env) : flags['data-dir'])
  const { datastore } = flags
  if (datastore === 'sqlite') return { path, location: `sqlite:${join(path, 'store.db')}` }
  if (datastore.startsWith('sqlite:'))
    return { path, location: `sqlite:${resolve(cwd, datastore.slice('sqlite:'.length))}` }
  if (datastore === 'memory' || /^https?:/.test(datastore)) return { path, location: datastore }
  throw new ProgramError(
    `--datastore "${datastore}" is not a store; use sqlite, sqlite:FILE, or comma-separated URLs of an etcd cluster`,
  )
}

/** The flag that makes another command find this cluster; empty for the default directory. */
export function dataDirFlag(path: string, env: ProgramContext['env']): string {
  return path === defaultDataDir(env) ? '' : ` --data-dir=${quoteForShell(path)}`
}

function quoteForShell(text: string): string {
  return /^[\w@%+=:,./-]+$/.test(text) ? text : `'${text.replaceAll("'", String.raw`'\''`)}'`
}

function requireDefault(env: ProgramContext['env']): string {
  const path = defaultDataDir(env)
  if (path !== undefined) return path
  throw new ProgramError('There is no home directory: set --data-dir to the directory with the state of the cluster')
}

function defaultDataDir({ XDG_DATA_HOME, HOME }: ProgramContext['env']): string | undefined {
  if (process.getuid?.() === 0) return '/var/lib/hyperkube'
  if (XDG_DATA_HOME) return join(XDG_DATA_HOME, 'hyperkube')
  return HOME ? join(HOME, '.local', 'share', 'hyperkube') : undefined
}
