/** `up --from-snapshot FILE[@MOMENT]`: starts a new cluster from a snapshot or from an earlier state in it. */
import { existsSync } from 'node:fs'
import { copyFile, mkdtemp, rm } from 'node:fs/promises'
import { dirname, join, resolve } from 'node:path'

import type { Invocation } from '#lib/program.ts'
import { ProgramError } from '#lib/program.ts'
import { type Moment, parseMoment } from '#lib/time/moment.ts'
import { openBackend } from '#storage/index.ts'
import { revisionOf } from '#storage/revision-of.ts'
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
  const { name, moment } = parseSource(from, cwd, clock.now())
  const file = resolve(cwd, name)
  const target = refuseExisting({ path, location })
  if (!existsSync(file)) throw new ProgramError(`There is no snapshot "${file}"; "hyperkube snapshot list" lists them`)
  try {
    if (moment === undefined) await restoreSnapshot(file, target, clock.now())
    else await forkAt(file, target, { moment, clock, random })
  } catch (cause) {
    throw new ProgramError(`Cannot restore "${from}": ${(cause as Error).message}`, { cause })
  }
  // Encrypted objects need the key of the saved cluster.
  const key = join(dirname(dirname(file)), 'encryption.key')
  if (existsSync(key)) await copyFile(key, join(path, 'encryption.key'))
  return from
}

/** A name may contain "@": it is a moment only if the file does not exist. Throws ProgramError. */
function parseSource(from: string, cwd: string, nowMs: number): { readonly name: string; readonly moment?: Moment } {
  const at = from.lastIndexOf('@')
  if (at <= 0 || existsSync(resolve(cwd, from))) return { name: from }
  const [name, text] = [from.slice(0, at), from.slice(at + 1)]
  try {
    return { name, moment: parseMoment(/^\d+$/.test(text) ? `rv:${text}` : text, nowMs) }
  } catch (error) {
    throw new ProgramError(`--from-snapshot: ${(error as Error).message}`)
  }
}

/** A snapshot is a complete store with the history of the cluster. */
async function forkAt(
  file: string,
  target: string,
  { moment, ...tools }: { readonly moment: Moment } & Pick<Invocation<never>, 'clock' | 'random'>,
): Promise<void> {
  const folder = await mkdtemp(`${target}.from-`)
  try {
    const copy = join(folder, 'store.db')
    await copyFile(file, copy)
    const backend = await openBackend(`sqlite:${copy}`, tools)
    try {
      const fork = await backend.fork({ revision: revisionOf(backend, moment), file: target })
      await fork.close()
    } finally {
      await backend.close()
    }
  } finally {
    await rm(folder, { recursive: true, force: true })
  }
}
