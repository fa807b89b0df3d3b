/** `up --from-snapshot FILE[@REVISION]`: starts a new cluster from a snapshot or from an earlier revision in it. */
import { existsSync } from 'node:fs'
import { copyFile, mkdtemp, rm } from 'node:fs/promises'
import { dirname, join, resolve } from 'node:path'

import type { Invocation } from '#lib/program.ts'
import { ProgramError } from '#lib/program.ts'
import { openBackend } from '#storage/index.ts'
import { restoreSnapshot } from '#storage/snapshot/snapshot.ts'

import type { DataDir } from './data-dir.ts'

/** Returns the file of the store. Throws ProgramError if it already exists. */
export function refuseExisting({ path, location }: DataDir): string {
  if (!location.startsWith('sqlite:')) throw new ProgramError('--from-snapshot needs --datastore sqlite')
  const target = location.slice('sqlite:'.length)
  if (existsSync(target))
    throw new ProgramError(`There is already a cluster in ${path} ; choose another --data-dir, or "hyperkube reset" it`)
  return target
}

/** Returns a description of the restored state. Throws ProgramError. */
export async function restoreForUp(
  from: string,
  { path, location }: DataDir,
  { cwd, clock, random }: Pick<Invocation<never>, 'cwd' | 'clock' | 'random'>,
): Promise<string> {
  const [, name = '', at] = /^(.*?)(?:@(\d+))?$/.exec(from) ?? []
  const file = resolve(cwd, name)
  const target = refuseExisting({ path, location })
  if (!existsSync(file)) throw new ProgramError(`There is no snapshot "${file}"; "hyperkube snapshot list" lists them`)
  try {
    if (at === undefined) await restoreSnapshot(file, target, clock.now())
    else await forkAt(file, target, { revision: Number(at), clock, random })
  } catch (cause) {
    throw new ProgramError(`Cannot restore "${from}": ${(cause as Error).message}`, { cause })
  }
  // Encrypted objects need the key of the saved cluster.
  const key = join(dirname(dirname(file)), 'encryption.key')
  if (existsSync(key)) await copyFile(key, join(path, 'encryption.key'))
  return from
}

/** A snapshot is a complete store with the history of the cluster. */
async function forkAt(
  file: string,
  target: string,
  { revision, ...tools }: { readonly revision: number } & Pick<Invocation<never>, 'clock' | 'random'>,
): Promise<void> {
  const folder = await mkdtemp(`${target}.from-`)
  try {
    const copy = join(folder, 'store.db')
    await copyFile(file, copy)
    const backend = await openBackend(`sqlite:${copy}`, tools)
    try {
      const fork = await backend.fork({ revision, file: target })
      await fork.close()
    } finally {
      await backend.close()
    }
  } finally {
    await rm(folder, { recursive: true, force: true })
  }
}
