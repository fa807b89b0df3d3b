/**
 * Reads usage and limits of a cgroup. A table for each cgroup version lists the file, position and unit of every value.
 * Pure.
 */

/** The index of a word in the file, or the name at the beginning of a line. */
type Spot = number | string
/** A divisor, or a conversion function. */
type Unit = number | ((value: number) => number)
type ValueSource = readonly [file: string, spot: Spot, unit?: Unit]

/** Values in cgroup files; pressure exists only in version 2. */
type CgroupFigure =
  | 'cpuUsage'
  | 'cpuUser'
  | 'cpuSystem'
  | 'periods'
  | 'throttledPeriods'
  | 'throttledSeconds'
  | 'burstPeriods'
  | 'burstSeconds'
  | 'memoryUsage'
  | 'memoryMax'
  | 'memoryCache'
  | 'memoryRss'
  | 'memoryKernel'
  | 'memoryMapped'
  | 'memorySwap'
  | 'memoryHits'
  | 'activeFile'
  | 'inactiveFile'
  | 'faults'
  | 'majorFaults'
  | 'oomKills'
  | 'threads'
  | 'threadsMax'
  | 'specShares'
  | 'specPeriod'
  | 'specQuota'
  | 'specMemory'
  | 'specMemorySwap'
  | 'specMemoryKept'
  | 'cpuWaiting'
  | 'cpuStalled'
  | 'memoryWaiting'
  | 'memoryStalled'
  | 'ioWaiting'
  | 'ioStalled'

const NANOSECONDS = 1e9
const MICROSECONDS = 1e6
/** Linux counts CPU time in hundredths of a second. */
const TICKS = 100

/** Version 1, with a hierarchy per controller. */
const V1: Readonly<Partial<Record<CgroupFigure, ValueSource>>> = {
  cpuUsage: ['cpuacct/cpuacct.usage', 0, NANOSECONDS],
  cpuUser: ['cpuacct/cpuacct.stat', 'user', TICKS],
  cpuSystem: ['cpuacct/cpuacct.stat', 'system', TICKS],
  periods: ['cpu/cpu.stat', 'nr_periods'],
  throttledPeriods: ['cpu/cpu.stat', 'nr_throttled'],
  throttledSeconds: ['cpu/cpu.stat', 'throttled_time', NANOSECONDS],
  burstPeriods: ['cpu/cpu.stat', 'nr_bursts'],
  burstSeconds: ['cpu/cpu.stat', 'burst_time', NANOSECONDS],
  memoryUsage: ['memory/memory.usage_in_bytes', 0],
  memoryMax: ['memory/memory.max_usage_in_bytes', 0],
  memoryCache: ['memory/memory.stat', 'total_cache'],
  memoryRss: ['memory/memory.stat', 'total_rss'],
  memoryKernel: ['memory/memory.kmem.usage_in_bytes', 0],
  memoryMapped: ['memory/memory.stat', 'total_mapped_file'],
  memorySwap: ['memory/memory.stat', 'total_swap'],
  memoryHits: ['memory/memory.failcnt', 0],
  activeFile: ['memory/memory.stat', 'total_active_file'],
  inactiveFile: ['memory/memory.stat', 'total_inactive_file'],
  faults: ['memory/memory.stat', 'pgfault'],
  majorFaults: ['memory/memory.stat', 'pgmajfault'],
  oomKills: ['memory/memory.oom_control', 'oom_kill'],
  threads: ['pids/pids.current', 0],
  threadsMax: ['pids/pids.max', 0],
  specShares: ['cpu/cpu.shares', 0],
  specPeriod: ['cpu/cpu.cfs_period_us', 0],
  specQuota: ['cpu/cpu.cfs_quota_us', 0],
  specMemory: ['memory/memory.limit_in_bytes', 0],
  specMemorySwap: ['memory/memory.memsw.limit_in_bytes', 0],
  specMemoryKept: ['memory/memory.soft_limit_in_bytes', 0],
}

/** Converts weights to shares: 1 to 10000 becomes 2 to 262144. */
const sharesOf = (weight: number): number => (weight === 0 ? 0 : 2 + Math.trunc(((weight - 1) * 262_142) / 9999))

const V2: Readonly<Record<CgroupFigure, ValueSource>> = {
  cpuUsage: ['cpu.stat', 'usage_usec', MICROSECONDS],
  cpuUser: ['cpu.stat', 'user_usec', MICROSECONDS],
  cpuSystem: ['cpu.stat', 'system_usec', MICROSECONDS],
  periods: ['cpu.stat', 'nr_periods'],
  throttledPeriods: ['cpu.stat', 'nr_throttled'],
  throttledSeconds: ['cpu.stat', 'throttled_usec', MICROSECONDS],
  burstPeriods: ['cpu.stat', 'nr_bursts'],
  burstSeconds: ['cpu.stat', 'burst_usec', MICROSECONDS],
  memoryUsage: ['memory.current', 0],
  memoryMax: ['memory.peak', 0],
  memoryCache: ['memory.stat', 'file'],
  memoryRss: ['memory.stat', 'anon'],
  memoryKernel: ['memory.stat', 'kernel'],
  memoryMapped: ['memory.stat', 'file_mapped'],
  memorySwap: ['memory.swap.current', 0],
  memoryHits: ['memory.events', 'max'],
  activeFile: ['memory.stat', 'active_file'],
  inactiveFile: ['memory.stat', 'inactive_file'],
  faults: ['memory.stat', 'pgfault'],
  majorFaults: ['memory.stat', 'pgmajfault'],
  oomKills: ['memory.events', 'oom_kill'],
  threads: ['pids.current', 0],
  threadsMax: ['pids.max', 0],
  specShares: ['cpu.weight', 0, sharesOf],
  specPeriod: ['cpu.max', 1],
  specQuota: ['cpu.max', 0],
  specMemory: ['memory.max', 0],
  specMemorySwap: ['memory.swap.max', 0],
  specMemoryKept: ['memory.min', 0],
  cpuWaiting: ['cpu.pressure', 'some', MICROSECONDS],
  cpuStalled: ['cpu.pressure', 'full', MICROSECONDS],
  memoryWaiting: ['memory.pressure', 'some', MICROSECONDS],
  memoryStalled: ['memory.pressure', 'full', MICROSECONDS],
  ioWaiting: ['io.pressure', 'some', MICROSECONDS],
  ioStalled: ['io.pressure', 'full', MICROSECONDS],
}

/** Values from cgroup files and derived ones. */
export type Figure =
  | CgroupFigure
  | 'workingSet'
  | 'processes'
  | 'descriptors'
  | 'sockets'
  | 'startedSeconds'
  | 'layerBytes'
export type Figures = Readonly<Partial<Record<Figure, number>>>

/** I/O of one disk. */
export interface DeviceIo {
  readonly major: string
  readonly minor: string
  /** By operation: `Read`, `Write` and others of the kernel. */
  readonly bytes: ReadonlyMap<string, number>
  readonly count: ReadonlyMap<string, number>
}

/** The content of a cgroup file, by its name in the tables; undefined if it does not exist. */
export type ReadText = (file: string) => string | undefined

/** The file that lists the processes. */
export const PROCS_FILE = { 1: 'cpu/cgroup.procs', 2: 'cgroup.procs' } as const

/** Missing values are omitted. */
export function figuresOf(version: 1 | 2, read: ReadText): Figures {
  const texts = new Map<string, string | undefined>()
  const once = (file: string): string | undefined => {
    if (!texts.has(file)) texts.set(file, read(file))
    return texts.get(file)
  }
  const found = Object.entries<ValueSource>(version === 1 ? V1 : V2).flatMap(([figure, [file, spot, unit = 1]]) => {
    const word = wordAt(once(file) ?? '', spot)
    if (word === undefined) return []
    const value = limited(word)
    return [[figure, typeof unit === 'number' ? value / unit : unit(value)] as const]
  })
  const figures = Object.fromEntries(found) as Figures
  const { memoryUsage, inactiveFile = 0 } = figures
  return { ...figures, ...(memoryUsage !== undefined && { workingSet: Math.max(0, memoryUsage - inactiveFile) }) }
}

/** The last word of a line, as in `some avg10=0.00 avg60=0.00 avg300=0.00 total=123`. */
function wordAt(text: string, spot: Spot): string | undefined {
  if (typeof spot === 'number') return text.trim().split(/\s+/)[spot] || undefined
  const line = text.split('\n').find((each) => each.startsWith(`${spot} `))
  return line?.slice(Math.max(line.lastIndexOf(' '), line.lastIndexOf('=')) + 1)
}

/** Higher values mean no limit. */
const UNLIMITED = 2 ** 62

function limited(word: string): number {
  const value = Number(word)
  return Number.isNaN(value) || value < 0 || value > UNLIMITED ? 0 : value
}

/** By disk. */
export function deviceIoOf(version: 1 | 2, read: ReadText): DeviceIo[] {
  if (version === 2) return unifiedIo(read('io.stat') ?? '')
  const bytes = operationsIn(read('blkio/blkio.throttle.io_service_bytes_recursive') ?? '')
  const count = operationsIn(read('blkio/blkio.throttle.io_serviced_recursive') ?? '')
  return Array.from(bytes, ([device, own]) => {
    const [major = '', minor = ''] = device.split(':')
    return { major, minor, bytes: own, count: count.get(device) ?? new Map() }
  })
}

/** `253:0 Read 4096`. */
function operationsIn(text: string): Map<string, Map<string, number>> {
  const devices = new Map<string, Map<string, number>>()
  for (const [, device = '', operation = '', value] of text.matchAll(/^(\d+:\d+) (\w+) (\d+)$/gm)) {
    const own = devices.get(device) ?? new Map<string, number>()
    devices.set(device, own.set(operation, Number(value)))
  }
  return devices
}

const UNIFIED = [
  ['Read', 'r'],
  ['Write', 'w'],
  ['Discard', 'd'],
] as const

/** `253:0 rbytes=4096 wbytes=0 rios=1 wios=0 dbytes=0 dios=0`. */
function unifiedIo(text: string): DeviceIo[] {
  return [...text.matchAll(/^(\d+):(\d+) (.*)$/gm)].map(([, major = '', minor = '', rest = '']) => {
    const words = new Map([...rest.matchAll(/(\w+)=(\d+)/g)].map(([, name = '', value]) => [name, Number(value)]))
    const of = (what: 'bytes' | 'ios'): Map<string, number> =>
      new Map(UNIFIED.map(([operation, letter]) => [operation, words.get(`${letter}${what}`) ?? 0]))
    return { major, minor, bytes: of('bytes'), count: of('ios') }
  })
}
