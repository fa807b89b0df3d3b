/** Removes the volumes of a pod from disk: unmounts first, then removes directories, and never enters a mount. */
import { readdir, rmdir } from 'node:fs/promises'

import { mountsBelow } from '#lib/files/mount-table.ts'

import { removeTree } from '../safe-files.ts'
import { type PodPaths, podsDir } from '../volume-paths.ts'
import type { Mounter } from './mounter.ts'

/** Idempotent. Fails while a mount is busy, and then removes nothing. */
export async function tearDown(paths: PodPaths, mounter: Mounter): Promise<void> {
  for (const { path } of mountsBelow(await mounter.list(), paths.pod)) await mounter.unmount(path)
  const left = mountsBelow(await mounter.list(), paths.pod)
  if (left.length > 0) throw new Error(`still mounted: ${left.map(({ path }) => path).join(', ')}`)
  // In this order, so that a ready marker and its directory are never left without each other.
  for (const dir of [paths.subPaths, paths.devices, paths.plugins, paths.volumes]) await removeTree(dir)
  await rmdir(paths.pod).catch(ignoreInUse)
}

/** UIDs of all pods with a directory, including those from before a restart. */
export async function uidsOnDisk(rootDir: string): Promise<string[]> {
  try {
    const entries = await readdir(podsDir(rootDir), { withFileTypes: true })
    return entries.filter((entry) => entry.isDirectory()).map(({ name }) => name)
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return []
    throw error
  }
}

/** Other files of the pod may remain there. */
function ignoreInUse(error: unknown): void {
  const { code = '' } = error as NodeJS.ErrnoException
  if (!['ENOENT', 'ENOTEMPTY', 'EEXIST'].includes(code)) throw error
}
