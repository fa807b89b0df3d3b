/** Where a cluster keeps its state: the data directory, and the store in it. */
import { join, resolve } from 'node:path'

import { type Flag, flag } from '#lib/flags/flags.ts'
import { string } from '#lib/flags/kinds.ts'
import { type ProgramContext, ProgramError } from '#lib/program.ts'

/** The flags of every command that works on a cluster of this machine. */
export const DATA_DIR_FLAGS: { readonly 'data-dir': Flag<string>; readonly datastore: Flag<string> } = {
  'data-dir': flag(
    string,
    '',
    'The `directory` with the state of the cluster (default: /var/lib/hyperkube for root, else in the XDG data directory)',
  ),
  datastore: flag(
    string,
    'sqlite',
    'The `store` of the objects: sqlite, sqlite:FILE, or the URLs of an etcd cluster, separated by commas',
  ),
}

export interface DataDir {
  readonly path: string
  /** As `openBackend` takes it. */
  readonly location: string
}

/** Throws ProgramError when there is no telling where. */
export function dataDir(
  flags: { readonly 'data-dir': string; readonly datastore: string },
  { env, cwd }: Pick<ProgramContext, 'env' | 'cwd'>,
): DataDir {
  const path = resolve(cwd, flags['data-dir'] === '' ? defaultDataDir(env) : flags['data-dir'])
  const { datastore } = flags
  if (datastore === 'sqlite') return { path, location: `sqlite:${join(path, 'store.db')}` }
  if (datastore.startsWith('sqlite:'))
    return { path, location: `sqlite:${resolve(cwd, datastore.slice('sqlite:'.length))}` }
  if (datastore === 'memory' || /^https?:/.test(datastore)) return { path, location: datastore }
  throw new ProgramError(
    `--datastore "${datastore}" names no store; use sqlite, sqlite:FILE, or the URLs of an etcd cluster, separated by commas`,
  )
}

function defaultDataDir(env: ProgramContext['env']): string {
  if (process.getuid?.() === 0) return '/var/lib/hyperkube'
  const { XDG_DATA_HOME, HOME } = env
  if (XDG_DATA_HOME) return join(XDG_DATA_HOME, 'hyperkube')
  if (HOME) return join(HOME, '.local', 'share', 'hyperkube')
  throw new ProgramError('There is no home directory: say with --data-dir where the state of the cluster is')
}
