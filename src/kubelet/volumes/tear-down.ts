/** Giving back what pods had on the disk: mounts first, then directories, and never anything that is still mounted. */
import { readdir, rmdir } from 'node:fs/promises'

import { mountsBelow } from '#lib/mount-table.ts'

import { removeTree } from './beneath.ts'
import type { Mounter } from './mounter.ts'
import { type PodPaths, podsDir } from './volume-paths.ts'

/** Harmless when repeated. Fails while something is in use, and leaves that and all around it. */
export async function tearDown(paths: PodPaths, mounter: Mounter): Promise<void> {
  for (const { path } of mountsBelow(await mounter.list(), paths.pod)) await mounter.unmount(path)
  const left = mountsBelow(await mounter.list(), paths.pod)
  if (left.length > 0) throw new Error(`still mounted: ${left.map(({ path }) => path).join(', ')}`)
  // In this order: what says that a directory was made whole must not outlive it, nor the other way round.
  for (const dir of [paths.subPaths, paths.devices, paths.plugins, paths.volumes]) await removeTree(dir)
  await rmdir(paths.pod).catch(ignoreInUse)
}

/** Everybody who has a directory, from before a restart too. */
export async function uidsOnDisk(rootDir: string): Promise<string[]> {
  try {
    const entries = await readdir(podsDir(rootDir), { withFileTypes: true })
    return entries.filter((entry) => entry.isDirectory()).map(({ name }) => name)
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return []
    throw error
  }
}

/** Others keep files of the pod there. */
function ignoreInUse(error: unknown): void {
  const { code = '' } = error as NodeJS.ErrnoException
  if (!['ENOENT', 'ENOTEMPTY', 'EEXIST'].includes(code)) throw error
}
