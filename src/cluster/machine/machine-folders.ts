/** The paths of node directories below the cluster's data directory, and their removal. */
import { readdir, rm } from 'node:fs/promises'
import { join } from 'node:path'

import { createMounter, type Mounter } from '#kubelet/volumes/mounts/mounter.ts'
import { mountsBelow } from '#lib/files/mount-table.ts'

/** Usually `/var/lib/kubelet`. */
export const kubeletFolder = (dataDir: string): string => join(dataDir, 'kubelet')

/** Usually `/var/log/pods`. */
export const podLogsFolder = (dataDir: string): string => join(dataDir, 'pod-logs')

/** Usually `/var/log/containers`. */
export const containerLogsFolder = (dataDir: string): string => join(dataDir, 'container-logs')

/** Volumes of the default class. */
export const volumesFolder = (dataDir: string): string => join(kubeletFolder(dataDir), 'local-path')

/**
 * Returns whether there were any. Never deletes inside of a mount, which belongs to the machine or another owner.
 * Throws if an unmount fails.
 */
export async function removeMachineFolders(dataDir: string, mounter: Mounter = createMounter()): Promise<boolean> {
  const folders = [kubeletFolder(dataDir), podLogsFolder(dataDir), containerLogsFolder(dataDir)]
  const found = await Promise.all(folders.map((folder) => isThere(folder)))
  const there = folders.filter((_, at) => found[at])
  for (const folder of there) {
    for (const { path } of mountsBelow(await mounter.list(), folder)) await mounter.unmount(path)
    const [left] = mountsBelow(await mounter.list(), folder)
    if (left !== undefined) throw new Error(`${left.path} is still mounted`)
    await rm(folder, { recursive: true, force: true })
  }
  return there.length > 0
}

async function isThere(folder: string): Promise<boolean> {
  return readdir(folder).then(
    () => true,
    () => false,
  )
}
