/** Parses the file systems of the machine and the I/O counters of its disks. Pure. */

/** A file system mounted from a disk. */
export interface Mounted {
  readonly device: string
  readonly path: string
}

/** Types of file systems on disks. */
const ON_DISK = /^(?:ext[234]|xfs|btrfs|zfs|f2fs)$/

/** Parses `/proc/self/mounts`: each device once, at its first mount point. */
export function disksIn(mounts: string): Mounted[] {
  const found = new Map<string, string>()
  for (const line of mounts.split('\n')) {
    const [device = '', path = '', type = ''] = line.split(' ')
    if (ON_DISK.test(type) && !found.has(device)) found.set(device, path)
  }
  return Array.from(found, ([device, path]) => ({ device, path }))
}

const COUNTS = [
  'reads',
  'readsMerged',
  'sectorsRead',
  'readMs',
  'writes',
  'writesMerged',
  'sectorsWritten',
  'writeMs',
  'inProgress',
  'ioMs',
  'weightedIoMs',
] as const

export type DiskCounts = Readonly<Record<(typeof COUNTS)[number], number>>

/** Parses `/proc/diskstats`, by device: `/dev/vda`. */
export function diskCounts(diskstats: string): Map<string, DiskCounts> {
  return new Map(
    diskstats.split('\n').flatMap((line) => {
      const [, , name, ...values] = line.trim().split(/\s+/)
      if (name === undefined) return []
      const counts = Object.fromEntries(COUNTS.map((count, at) => [count, Number(values[at] ?? 0)]))
      return [[`/dev/${name}`, counts as DiskCounts] as const]
    }),
  )
}

/** Device names in `/proc/diskstats`: `/dev/vda` for `253:0`. */
export function deviceNames(diskstats: string): Map<string, string> {
  return new Map(
    diskstats.split('\n').flatMap((line) => {
      const [major, minor, name] = line.trim().split(/\s+/)
      return name === undefined ? [] : [[`${major}:${minor}`, `/dev/${name}`] as const]
    }),
  )
}
