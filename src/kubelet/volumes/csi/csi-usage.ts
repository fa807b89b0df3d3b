/** Converts the volume usage that a CSI driver reports. Pure. */
import type { FsUse } from '../../machine/node-stats.ts'
import type { VolumeUsage } from './csi-node-service.ts'

const BYTES = 1
const INODES = 2

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
