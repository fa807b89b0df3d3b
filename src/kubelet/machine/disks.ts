/** File systems of the node, as the kernel counts them. */
import { statfs } from 'node:fs/promises'

import type { Clock } from '#lib/clock.ts'

import type { Runtime } from '../cri/runtime.ts'
import type { Disk } from '../gc/image-garbage.ts'
import type { FsUse } from '../node-stats.ts'
import type { Size } from './file-sizes.ts'

/** Of the file system that `path` is on. */
export async function readDisk(path: string, clock: Clock): Promise<Disk> {
  const { blocks, bavail, bsize, files, ffree } = await clock.during(statfs(path))
  return { capacityBytes: blocks * bsize, availableBytes: bavail * bsize, inodes: files, inodesFree: ffree }
}

const NO_DISK: Disk = { capacityBytes: 0, availableBytes: 0, inodes: 0, inodesFree: 0 }

/** Of the one that the runtime says its images are on. */
export async function readImageDisk(runtime: Runtime, clock: Clock): Promise<Disk> {
  const { imageFilesystems } = await runtime.imageFsInfo({})
  const { mountpoint } = imageFilesystems[0]?.fsId ?? {}
  if (mountpoint === undefined || mountpoint === '') return NO_DISK
  // A runtime that is asked over the network has them where this node does not see them.
  return readDisk(mountpoint, clock).catch(() => NO_DISK)
}

/** What somebody has on it. Pure. */
export const shareOf = ({ availableBytes, capacityBytes, inodes, inodesFree }: Disk, used: Size): FsUse => ({
  availableBytes,
  capacityBytes,
  usedBytes: used.bytes,
  inodesFree,
  inodes,
  inodesUsed: used.inodes,
})

/** What all have on it. Pure. */
export const wholeDisk = (disk: Disk): FsUse =>
  shareOf(disk, { bytes: disk.capacityBytes - disk.availableBytes, inodes: disk.inodes - disk.inodesFree })
