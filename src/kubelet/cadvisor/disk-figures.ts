/** File systems of the machine and what was read and written of their disks, as the kernel counts it. Pure. */

/** A file system that is mounted from a disk. */
export interface Mounted {
  readonly device: string
  readonly path: string
}

/** Kinds of file systems that take room on a disk of the machine. */
const ON_DISK = /^(?:ext[234]|xfs|btrfs|zfs|f2fs)$/

/** Of `/proc/self/mounts`: each device once, where it is mounted first. */
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

/** Of `/proc/diskstats`, by device: `/dev/vda`. */
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

/** Of `/proc/diskstats`: `/dev/vda` of `253:0`. */
export function deviceNames(diskstats: string): Map<string, string> {
  return new Map(
    diskstats.split('\n').flatMap((line) => {
      const [major, minor, name] = line.trim().split(/\s+/)
      return name === undefined ? [] : [[`${major}:${minor}`, `/dev/${name}`] as const]
    }),
  )
}
