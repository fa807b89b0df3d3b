/** The metric families of `/metrics/cadvisor`, with cadvisor's names and labels. Pure. */
import type { DeviceCounts } from '../machine/network-use.ts'
import type { Figure } from './cgroup-figures.ts'
import type { DiskCounts } from './disk-figures.ts'
import type { FsFigures, Labels, MachineFigures, Subject } from './subject.ts'

export interface MetricSample {
  readonly value: number
  /** Labels in addition to those of the subject. */
  readonly more?: Labels
}

type Rows = (subject: Subject, nowMs: number) => readonly MetricSample[]
type Family = readonly [name: string, type: 'counter' | 'gauge', help: string, rows: Rows]
/** By name: type and help as one text, and the samples. */
type FamilyTable = Readonly<Record<string, readonly [row: `${'counter' | 'gauge'} ${string}`, rows: Rows]>>

const known = (value: number | undefined, more: Labels = []): MetricSample[] =>
  value === undefined ? [] : [{ value, more }]

const figure =
  (name: Figure, more?: Labels): Rows =>
  ({ figures }) =>
    known(figures[name], more)

/** Only for cgroups with a CPU quota. */
const ifLimited =
  (name: Figure): Rows =>
  ({ figures }) =>
    (figures.specQuota ?? 0) === 0 ? [] : known(figures[name])

const byInterface =
  (count: keyof Omit<DeviceCounts, 'name'>): Rows =>
  ({ interfaces }) =>
    interfaces.map((each) => ({ value: each[count], more: [['interface', each.name]] }))

const byFilesystem =
  (read: (fs: FsFigures) => number | undefined): Rows =>
  ({ filesystems }) =>
    filesystems.flatMap((fs) => known(read(fs), [['device', fs.device]]))

const byDisk = (count: keyof DiskCounts, unit = 1): Rows =>
  byFilesystem(({ counts }) => (counts === undefined ? undefined : counts[count] * unit))

const MILLISECONDS = 1e-3

/** Values of one operation, by disk. */
const byDevice =
  (what: 'bytes' | 'count', operation: 'Read' | 'Write'): Rows =>
  ({ io }) =>
    io.map((each) => ({ value: each[what].get(operation) ?? 0, more: [['device', each.device]] }))

const together =
  (...all: readonly Rows[]): Rows =>
  (subject, nowMs) =>
    all.flatMap((rows) => rows(subject, nowMs))

const byOperation: Rows = ({ io }) =>
  io.flatMap(({ device, major, minor, bytes }) =>
    Array.from(bytes, ([operation, value]): MetricSample => {
      const more: Labels = [
        ['device', device],
        ['major', major],
        ['minor', minor],
        ['operation', operation],
      ]
      return { value, more }
    }),
  )

const failures: Rows = ({ figures: { faults, majorFaults } }) =>
  ['container', 'hierarchy'].flatMap((scope) => [
    ...known(faults, [
      ['failure_type', 'pgfault'],
      ['scope', scope],
    ]),
    ...known(majorFaults, [
      ['failure_type', 'pgmajfault'],
      ['scope', scope],
    ]),
  ])

const usedBytes: Rows = together(
  byFilesystem((fs) => fs.usedBytes),
  figure('layerBytes', [['device', '']]),
)

const CPU: FamilyTable = {
  container_cpu_usage_seconds_total: ['counter CPU time, in seconds.', figure('cpuUsage', [['cpu', 'total']])],
  container_cpu_user_seconds_total: ['counter CPU time in user mode, in seconds.', figure('cpuUser')],
  container_cpu_system_seconds_total: ['counter CPU time in the kernel, in seconds.', figure('cpuSystem')],
  container_cpu_cfs_periods_total: ['counter Periods of the CPU quota that have passed.', ifLimited('periods')],
  container_cpu_cfs_throttled_periods_total: ['counter Periods that used up the quota.', ifLimited('throttledPeriods')],
  container_cpu_cfs_throttled_seconds_total: ['counter Time without CPU for the quota.', ifLimited('throttledSeconds')],
  container_cpu_cfs_burst_periods_total: ['counter Periods above the quota by a burst.', ifLimited('burstPeriods')],
  container_cpu_cfs_burst_seconds_total: ['counter CPU time above the quota, in seconds.', ifLimited('burstSeconds')],
}

const MEMORY: FamilyTable = {
  container_memory_cache: ['gauge Page cache, in bytes.', figure('memoryCache')],
  container_memory_rss: ['gauge Resident memory, in bytes.', figure('memoryRss')],
  container_memory_kernel_usage: ['gauge Memory of the kernel, in bytes.', figure('memoryKernel')],
  container_memory_mapped_file: ['gauge Files mapped into memory, in bytes.', figure('memoryMapped')],
  container_memory_swap: ['gauge Swap in use, in bytes.', figure('memorySwap')],
  container_memory_failcnt: ['counter How often the memory limit was hit.', figure('memoryHits')],
  container_memory_usage_bytes: ['gauge All memory in use, with caches.', figure('memoryUsage')],
  container_memory_max_usage_bytes: ['gauge The most memory that was in use.', figure('memoryMax')],
  container_memory_working_set_bytes: ['gauge Memory that cannot be reclaimed easily.', figure('workingSet')],
  container_memory_total_active_file_bytes: ['gauge Page cache in active use.', figure('activeFile')],
  container_memory_total_inactive_file_bytes: ['gauge Page cache that can be reclaimed.', figure('inactiveFile')],
  container_memory_failures_total: ['counter Page faults, by type and scope.', failures],
  container_oom_events_total: ['counter Processes killed for lack of memory.', figure('oomKills')],
}

const FILES: FamilyTable = {
  container_fs_inodes_free: ['gauge Free inodes of the filesystem.', byFilesystem((fs) => fs.inodesFree)],
  container_fs_inodes_total: ['gauge Inodes of the filesystem.', byFilesystem((fs) => fs.inodes)],
  container_fs_limit_bytes: ['gauge Size of the filesystem.', byFilesystem((fs) => fs.limitBytes)],
  container_fs_usage_bytes: ['gauge Bytes in use on the filesystem.', usedBytes],
  container_fs_reads_bytes_total: ['counter Bytes read.', byDevice('bytes', 'Read')],
  container_fs_reads_total: ['counter Reads completed.', together(byDevice('count', 'Read'), byDisk('reads'))],
  container_fs_sector_reads_total: ['counter Sectors read.', byDisk('sectorsRead')],
  container_fs_reads_merged_total: ['counter Reads merged into others.', byDisk('readsMerged')],
  container_fs_read_seconds_total: ['counter Time spent on reads, in seconds.', byDisk('readMs', MILLISECONDS)],
  container_fs_writes_bytes_total: ['counter Bytes written.', byDevice('bytes', 'Write')],
  container_fs_writes_total: ['counter Writes completed.', together(byDevice('count', 'Write'), byDisk('writes'))],
  container_fs_sector_writes_total: ['counter Sectors written.', byDisk('sectorsWritten')],
  container_fs_writes_merged_total: ['counter Writes merged into others.', byDisk('writesMerged')],
  container_fs_write_seconds_total: ['counter Time spent on writes, in seconds.', byDisk('writeMs', MILLISECONDS)],
  container_fs_io_current: ['gauge Reads and writes in progress.', byDisk('inProgress')],
  container_fs_io_time_seconds_total: ['counter Time with I/O in progress.', byDisk('ioMs', MILLISECONDS)],
  container_fs_io_time_weighted_seconds_total: [
    'counter Time with I/O in progress, times its amount.',
    byDisk('weightedIoMs', MILLISECONDS),
  ],
  container_blkio_device_usage_total: ['counter Bytes read and written, by device.', byOperation],
}

function network(way: 'receive' | 'transmit', side: 'rx' | 'tx', done: string): FamilyTable {
  return {
    [`container_network_${way}_bytes_total`]: [`counter Bytes ${done}.`, byInterface(`${side}Bytes`)],
    [`container_network_${way}_packets_total`]: [`counter Packets ${done}.`, byInterface(`${side}Packets`)],
    [`container_network_${way}_packets_dropped_total`]: [
      `counter Packets dropped instead of ${done}.`,
      byInterface(`${side}Dropped`),
    ],
    [`container_network_${way}_errors_total`]: [
      `counter Packets not ${done} for an error.`,
      byInterface(`${side}Errors`),
    ],
  }
}

const PROCESSES: FamilyTable = {
  container_processes: ['gauge Processes.', figure('processes')],
  container_file_descriptors: ['gauge Open file descriptors.', figure('descriptors')],
  container_sockets: ['gauge Open sockets.', figure('sockets')],
  container_threads_max: ['gauge Limit of threads; 0: none.', figure('threadsMax')],
  container_threads: ['gauge Threads.', figure('threads')],
  container_ulimits_soft: [
    'gauge Soft limits of the first process; -1: none.',
    ({ openFilesLimit }) => known(openFilesLimit, [['ulimit', 'max_open_files']]),
  ],
}

function pressure(what: 'cpu' | 'memory' | 'io', word: string): FamilyTable {
  return {
    [`container_pressure_${what}_stalled_seconds_total`]: [
      `counter Time in which all tasks waited for ${word}, in seconds.`,
      figure(`${what}Stalled`),
    ],
    [`container_pressure_${what}_waiting_seconds_total`]: [
      `counter Time in which some task waited for ${word}, in seconds.`,
      figure(`${what}Waiting`),
    ],
  }
}

const SPECS: FamilyTable = {
  container_last_seen: [
    'gauge Time of this sample, in seconds since 1970.',
    (_, nowMs) => [{ value: Math.trunc(nowMs / 1000) }],
  ],
  container_start_time_seconds: ['gauge Time of the start, in seconds since 1970.', figure('startedSeconds')],
  container_spec_cpu_period: ['gauge Period of the CPU quota.', figure('specPeriod')],
  container_spec_cpu_quota: ['gauge CPU quota of a period.', ifLimited('specQuota')],
  container_spec_cpu_shares: ['gauge CPU shares.', figure('specShares')],
  container_spec_memory_limit_bytes: ['gauge Memory limit.', figure('specMemory')],
  container_spec_memory_swap_limit_bytes: ['gauge Limit of swap.', figure('specMemorySwap')],
  container_spec_memory_reservation_limit_bytes: ['gauge Soft memory limit.', figure('specMemoryKept')],
}

const NETWORK: readonly FamilyTable[] = [network('receive', 'rx', 'received'), network('transmit', 'tx', 'sent')]
const PRESSURES: readonly FamilyTable[] = [pressure('cpu', 'CPU'), pressure('memory', 'memory'), pressure('io', 'I/O')]

/** Sorted by name, as on upstream's page. */
export const FAMILIES: readonly Family[] = [CPU, MEMORY, FILES, ...NETWORK, PROCESSES, ...PRESSURES, SPECS]
  .flatMap((table) => Object.entries(table))
  .map(([name, [row, rows]]): Family => {
    const [type, ...help] = row.split(' ')
    return [name, type === 'counter' ? 'counter' : 'gauge', help.join(' '), rows]
  })
  .sort(([a], [b]) => (a < b ? -1 : 1))

/** Families of the whole machine. */
export const MACHINE_FAMILIES: readonly (readonly [name: string, help: string, figure: keyof MachineFigures])[] = [
  ['machine_cpu_cores', 'Logical CPUs of the machine.', 'cores'],
  ['machine_cpu_physical_cores', 'CPU cores of the machine.', 'physicalCores'],
  ['machine_cpu_sockets', 'CPU sockets of the machine.', 'sockets'],
  ['machine_memory_bytes', 'Memory of the machine.', 'memoryBytes'],
  ['machine_swap_bytes', 'Swap of the machine.', 'swapBytes'],
]
