/** Measures the usage of volumes: by counting files or from the file system. */
import { stat } from 'node:fs/promises'

import type { Clock } from '#lib/clock.ts'

import { readDisk, wholeDisk } from '../machine/disks.ts'
import { sizeOf } from '../machine/file-sizes.ts'
import type { FsUse } from '../machine/node-stats.ts'
import type { VolumePlugin } from './volume-plugin.ts'

/** Undefined for plugins without usage. */
export async function measureDirectory(
  usage: VolumePlugin['usage'],
  path: string,
  clock: Clock,
): Promise<FsUse | undefined> {
  if (usage === undefined) return undefined
  const disk = await readDisk(path, clock)
  if (usage === 'file-system' || (await isMountPoint(path))) return wholeDisk(disk)
  const { bytes, inodes } = await clock.during(sizeOf(path))
  return { ...wholeDisk(disk), usedBytes: bytes, inodesUsed: inodes }
}

/** A memory-backed volume is its own file system. */
async function isMountPoint(path: string): Promise<boolean> {
  const [here, above] = await Promise.all([stat(path), stat(`${path}/..`)])
  return here.dev !== above.dev
}
