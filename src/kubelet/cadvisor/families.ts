/** The families of `/metrics/cadvisor`, with the names, labels and texts of cadvisor. One table. Pure. */
import type { DeviceCounts } from '../machine/network-use.ts'
import type { Figure } from './cgroup-figures.ts'
import type { DiskCounts } from './disk-figures.ts'
import type { FsFigures, Labels, MachineFigures, Subject } from './subject.ts'

export interface Sample {
  readonly value: number
  /** Beside those of the subject. */
  readonly more?: Labels
}

type Rows = (subject: Subject, nowMs: number) => readonly Sample[]
type Family = readonly [name: string, type: 'counter' | 'gauge', help: string, rows: Rows]

const known = (value: number | undefined, more: Labels = []): Sample[] => (value === undefined ? [] : [{ value, more }])

const figure =
  (name: Figure, more?: Labels): Rows =>
  ({ figures }) =>
    known(figures[name], more)

/** Whose use of processors is limited. */
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

/** Of one operation, by disk. */
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
    Array.from(bytes, ([operation, value]): Sample => {
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

const CPU: readonly Family[] = [
  [
    'container_cpu_usage_seconds_total',
    'counter',
    'Cumulative cpu time consumed in seconds.',
    figure('cpuUsage', [['cpu', 'total']]),
  ],
  ['container_cpu_user_seconds_total', 'counter', 'Cumulative user cpu time consumed in seconds.', figure('cpuUser')],
  [
    'container_cpu_system_seconds_total',
    'counter',
    'Cumulative system cpu time consumed in seconds.',
    figure('cpuSystem'),
  ],
  [
    'container_cpu_cfs_periods_total',
    'counter',
    'Number of elapsed enforcement period intervals.',
    ifLimited('periods'),
  ],
  [
    'container_cpu_cfs_throttled_periods_total',
    'counter',
    'Number of throttled period intervals.',
    ifLimited('throttledPeriods'),
  ],
  [
    'container_cpu_cfs_throttled_seconds_total',
    'counter',
    'Total time duration the container has been throttled.',
    ifLimited('throttledSeconds'),
  ],
  [
    'container_cpu_cfs_burst_periods_total',
    'counter',
    'Number of periods when burst occurs.',
    ifLimited('burstPeriods'),
  ],
  [
    'container_cpu_cfs_burst_seconds_total',
    'counter',
    'Total time duration the container has been bursted.',
    ifLimited('burstSeconds'),
  ],
]

const MEMORY: readonly Family[] = [
  ['container_memory_cache', 'gauge', 'Number of bytes of page cache memory.', figure('memoryCache')],
  ['container_memory_rss', 'gauge', 'Size of RSS in bytes.', figure('memoryRss')],
  ['container_memory_kernel_usage', 'gauge', 'Size of kernel memory allocated in bytes.', figure('memoryKernel')],
  ['container_memory_mapped_file', 'gauge', 'Size of memory mapped files in bytes.', figure('memoryMapped')],
  ['container_memory_swap', 'gauge', 'Container swap usage in bytes.', figure('memorySwap')],
  ['container_memory_failcnt', 'counter', 'Number of memory usage hits limits', figure('memoryHits')],
  [
    'container_memory_usage_bytes',
    'gauge',
    'Current memory usage in bytes, including all memory regardless of when it was accessed',
    figure('memoryUsage'),
  ],
  ['container_memory_max_usage_bytes', 'gauge', 'Maximum memory usage recorded in bytes', figure('memoryMax')],
  ['container_memory_working_set_bytes', 'gauge', 'Current working set in bytes.', figure('workingSet')],
  ['container_memory_total_active_file_bytes', 'gauge', 'Current total active file in bytes.', figure('activeFile')],
  [
    'container_memory_total_inactive_file_bytes',
    'gauge',
    'Current total inactive file in bytes.',
    figure('inactiveFile'),
  ],
  ['container_memory_failures_total', 'counter', 'Cumulative count of memory allocation failures.', failures],
  [
    'container_oom_events_total',
    'counter',
    'Count of out of memory events observed for the container',
    figure('oomKills'),
  ],
]

const FILES: readonly Family[] = [
  ['container_fs_inodes_free', 'gauge', 'Number of available Inodes', byFilesystem((fs) => fs.inodesFree)],
  ['container_fs_inodes_total', 'gauge', 'Number of Inodes', byFilesystem((fs) => fs.inodes)],
  [
    'container_fs_limit_bytes',
    'gauge',
    'Number of bytes that can be consumed by the container on this filesystem.',
    byFilesystem((fs) => fs.limitBytes),
  ],
  [
    'container_fs_usage_bytes',
    'gauge',
    'Number of bytes that are consumed by the container on this filesystem.',
    usedBytes,
  ],
  ['container_fs_reads_bytes_total', 'counter', 'Cumulative count of bytes read', byDevice('bytes', 'Read')],
  [
    'container_fs_reads_total',
    'counter',
    'Cumulative count of reads completed',
    together(byDevice('count', 'Read'), byDisk('reads')),
  ],
  ['container_fs_sector_reads_total', 'counter', 'Cumulative count of sector reads completed', byDisk('sectorsRead')],
  ['container_fs_reads_merged_total', 'counter', 'Cumulative count of reads merged', byDisk('readsMerged')],
  [
    'container_fs_read_seconds_total',
    'counter',
    'Cumulative count of seconds spent reading',
    byDisk('readMs', MILLISECONDS),
  ],
  ['container_fs_writes_bytes_total', 'counter', 'Cumulative count of bytes written', byDevice('bytes', 'Write')],
  [
    'container_fs_writes_total',
    'counter',
    'Cumulative count of writes completed',
    together(byDevice('count', 'Write'), byDisk('writes')),
  ],
  [
    'container_fs_sector_writes_total',
    'counter',
    'Cumulative count of sector writes completed',
    byDisk('sectorsWritten'),
  ],
  ['container_fs_writes_merged_total', 'counter', 'Cumulative count of writes merged', byDisk('writesMerged')],
  [
    'container_fs_write_seconds_total',
    'counter',
    'Cumulative count of seconds spent writing',
    byDisk('writeMs', MILLISECONDS),
  ],
  ['container_fs_io_current', 'gauge', 'Number of I/Os currently in progress', byDisk('inProgress')],
  [
    'container_fs_io_time_seconds_total',
    'counter',
    'Cumulative count of seconds spent doing I/Os',
    byDisk('ioMs', MILLISECONDS),
  ],
  [
    'container_fs_io_time_weighted_seconds_total',
    'counter',
    'Cumulative weighted I/O time in seconds',
    byDisk('weightedIoMs', MILLISECONDS),
  ],
  ['container_blkio_device_usage_total', 'counter', 'Blkio Device bytes usage', byOperation],
]

const NETWORK: readonly Family[] = (
  [
    ['receive', 'rx', 'received', 'receiving'],
    ['transmit', 'tx', 'transmitted', 'transmitting'],
  ] as const
).flatMap(([way, side, done, doing]): Family[] => [
  [`container_network_${way}_bytes_total`, 'counter', `Cumulative count of bytes ${done}`, byInterface(`${side}Bytes`)],
  [
    `container_network_${way}_packets_total`,
    'counter',
    `Cumulative count of packets ${done}`,
    byInterface(`${side}Packets`),
  ],
  [
    `container_network_${way}_packets_dropped_total`,
    'counter',
    `Cumulative count of packets dropped while ${doing}`,
    byInterface(`${side}Dropped`),
  ],
  [
    `container_network_${way}_errors_total`,
    'counter',
    `Cumulative count of errors encountered while ${doing}`,
    byInterface(`${side}Errors`),
  ],
])

const PROCESSES: readonly Family[] = [
  ['container_processes', 'gauge', 'Number of processes running inside the container.', figure('processes')],
  ['container_file_descriptors', 'gauge', 'Number of open file descriptors for the container.', figure('descriptors')],
  ['container_sockets', 'gauge', 'Number of open sockets for the container.', figure('sockets')],
  [
    'container_threads_max',
    'gauge',
    'Maximum number of threads allowed inside the container, infinity if value is zero',
    figure('threadsMax'),
  ],
  ['container_threads', 'gauge', 'Number of threads running inside the container', figure('threads')],
  [
    'container_ulimits_soft',
    'gauge',
    'Soft ulimit values for the container root process. Unlimited if -1, except priority and nice',
    ({ openFilesLimit }) => known(openFilesLimit, [['ulimit', 'max_open_files']]),
  ],
]

const PRESSURES: readonly Family[] = (
  [
    ['cpu', 'CPU'],
    ['memory', 'memory'],
    ['io', 'IO'],
  ] as const
).flatMap(([what, word]): Family[] => [
  [
    `container_pressure_${what}_stalled_seconds_total`,
    'counter',
    `Total time duration no tasks in the container could make progress due to ${word} congestion.`,
    figure(`${what}Stalled`),
  ],
  [
    `container_pressure_${what}_waiting_seconds_total`,
    'counter',
    `Total time duration tasks in the container have waited due to ${word} congestion.`,
    figure(`${what}Waiting`),
  ],
])

const SPECS: readonly Family[] = [
  [
    'container_last_seen',
    'gauge',
    'Last time a container was seen by the exporter',
    (_, nowMs) => [{ value: Math.trunc(nowMs / 1000) }],
  ],
  [
    'container_start_time_seconds',
    'gauge',
    'Start time of the container since unix epoch in seconds.',
    figure('startedSeconds'),
  ],
  ['container_spec_cpu_period', 'gauge', 'CPU period of the container.', figure('specPeriod')],
  ['container_spec_cpu_quota', 'gauge', 'CPU quota of the container.', ifLimited('specQuota')],
  ['container_spec_cpu_shares', 'gauge', 'CPU share of the container.', figure('specShares')],
  ['container_spec_memory_limit_bytes', 'gauge', 'Memory limit for the container.', figure('specMemory')],
  ['container_spec_memory_swap_limit_bytes', 'gauge', 'Memory swap limit for the container.', figure('specMemorySwap')],
  [
    'container_spec_memory_reservation_limit_bytes',
    'gauge',
    'Memory reservation limit for the container.',
    figure('specMemoryKept'),
  ],
]

/** By name, as upstream's page has them. */
export const FAMILIES: readonly Family[] = [
  ...CPU,
  ...MEMORY,
  ...FILES,
  ...NETWORK,
  ...PROCESSES,
  ...PRESSURES,
  ...SPECS,
].sort(([a], [b]) => (a < b ? -1 : 1))

/** Of the machine as a whole. */
export const MACHINE_FAMILIES: readonly (readonly [name: string, help: string, figure: keyof MachineFigures])[] = [
  ['machine_cpu_cores', 'Number of logical CPU cores.', 'cores'],
  ['machine_cpu_physical_cores', 'Number of physical CPU cores.', 'physicalCores'],
  ['machine_cpu_sockets', 'Number of CPU sockets.', 'sockets'],
  ['machine_memory_bytes', 'Amount of memory installed on the machine.', 'memoryBytes'],
  ['machine_swap_bytes', 'Amount of swap memory available on the machine.', 'swapBytes'],
]
