/** What a machine that is a node keeps in the data directory of its cluster, and how that is taken away. */
import { readdir, rm } from 'node:fs/promises'
import { join } from 'node:path'

import { createMounter, type Mounter } from '#kubelet/volumes/mounter.ts'
import { mountsBelow } from '#lib/mount-table.ts'

/** `/var/lib/kubelet` elsewhere. */
export const kubeletFolder = (dataDir: string): string => join(dataDir, 'kubelet')

/** `/var/log/pods` elsewhere. */
export const podLogsFolder = (dataDir: string): string => join(dataDir, 'pod-logs')

/** `/var/log/containers` elsewhere. */
export const containerLogsFolder = (dataDir: string): string => join(dataDir, 'container-logs')

/** Volumes of the default class. */
export const volumesFolder = (dataDir: string): string => join(kubeletFolder(dataDir), 'local-path')

/**
 * Whether there was any. Never goes into anything that is mounted: that belongs to the machine, or to somebody else. Throws when
 * something cannot be unmounted.
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
