/** Reads the usage of the node's file systems from the kernel. */
import { statfs } from 'node:fs/promises'

import type { Runtime } from '#cri/runtime.ts'
import type { Clock } from '#lib/clock.ts'

import type { Size } from './file-sizes.ts'
import type { FsUse } from './node-stats.ts'

/** Size and free space of a file system. */
export interface Disk {
  readonly capacityBytes: number
  readonly availableBytes: number
  readonly inodes: number
  readonly inodesFree: number
}

/** The file system of `path`. */
export async function readDisk(path: string, clock: Clock): Promise<Disk> {
  const { blocks, bavail, bsize, files, ffree } = await clock.during(statfs(path))
  return { capacityBytes: blocks * bsize, availableBytes: bavail * bsize, inodes: files, inodesFree: ffree }
}

const NO_DISK: Disk = { capacityBytes: 0, availableBytes: 0, inodes: 0, inodesFree: 0 }

/** The file system of the runtime's images. */
export async function readImageDisk(runtime: Runtime, clock: Clock): Promise<Disk> {
  const { imageFilesystems } = await runtime.imageFsInfo({})
  const { mountpoint } = imageFilesystems[0]?.fsId ?? {}
  if (mountpoint === undefined || mountpoint === '') return NO_DISK
  // The path of a remote runtime may not exist on this node.
  return readDisk(mountpoint, clock).catch(() => NO_DISK)
}

/** One user's share of the file system. Pure. */
export const shareOf = ({ availableBytes, capacityBytes, inodes, inodesFree }: Disk, used: Size): FsUse => ({
  availableBytes,
  capacityBytes,
  usedBytes: used.bytes,
  inodesFree,
  inodes,
  inodesUsed: used.inodes,
})

/** The usage of the whole file system. Pure. */
export const wholeDisk = (disk: Disk): FsUse =>
  shareOf(disk, { bytes: disk.capacityBytes - disk.availableBytes, inodes: disk.inodes - disk.inodesFree })
