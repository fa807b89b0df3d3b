/** How much volumes hold: counted file by file, told by their file system, or asked of their driver. */
import { stat } from 'node:fs/promises'

import type { Clock } from '#lib/clock.ts'

import { readDisk, wholeDisk } from '../machine/disks.ts'
import { sizeOf } from '../machine/file-sizes.ts'
import type { FsUse } from '../node-stats.ts'
import type { VolumeUsage } from './csi/csi-node-service.ts'

/** Those that share the disk of the node: of its file system only what is in them is theirs. */
const COUNTED: ReadonlySet<string> = new Set([
  'kubernetes.io/configmap',
  'kubernetes.io/downward-api',
  'kubernetes.io/empty-dir',
  'kubernetes.io/projected',
  'kubernetes.io/secret',
])
const WHOLE: ReadonlySet<string> = new Set(['kubernetes.io/local-volume'])

/** Undefined for kinds of which nothing is told. */
export async function measureDirectory(plugin: string, path: string, clock: Clock): Promise<FsUse | undefined> {
  if (WHOLE.has(plugin)) return wholeDisk(await readDisk(path, clock))
  if (!COUNTED.has(plugin)) return undefined
  const disk = await readDisk(path, clock)
  if (await isMountPoint(path)) return wholeDisk(disk)
  const { bytes, inodes } = await clock.during(sizeOf(path))
  return { ...wholeDisk(disk), usedBytes: bytes, inodesUsed: inodes }
}

/** Memory is a file system of its own. */
async function isMountPoint(path: string): Promise<boolean> {
  const [here, above] = await Promise.all([stat(path), stat(`${path}/..`)])
  return here.dev !== above.dev
}

const BYTES = 1
const INODES = 2

/** As its driver tells. Pure. */
export function driverUse(usage: readonly VolumeUsage[]): FsUse {
  const of = (unit: number): { readonly available: number; readonly total: number; readonly used: number } => {
    const { available = 0, total = 0, used = 0 } = usage.find((one) => one.unit === unit) ?? {}
    return { available: Number(available), total: Number(total), used: Number(used) }
  }
  const [bytes, inodes] = [of(BYTES), of(INODES)]
  return {
    availableBytes: bytes.available,
    capacityBytes: bytes.total,
    usedBytes: bytes.used,
    inodesFree: inodes.available,
    inodes: inodes.total,
    inodesUsed: inodes.used,
  }
}
