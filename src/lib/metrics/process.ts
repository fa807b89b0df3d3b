/**
 * Process metrics under the names and helps of every Prometheus client, and Node's own: heap and event loop. Values
 * that the platform does not provide (no /proc) are omitted instead of reported as 0.
 */
import { readdirSync, readFileSync } from 'node:fs'
import { monitorEventLoopDelay } from 'node:perf_hooks'

import { attempt } from '../attempt.ts'
import type { Clock } from '../clock.ts'
import type { Registry } from './metrics.ts'

/** Where the numbers come from. Each is read at scrape time; undefined leaves the metric out. */
export interface ProcessSource {
  cpuSeconds(): number
  memory(): { readonly rss: number; readonly heapTotal: number; readonly heapUsed: number; readonly external: number }
  startTimeSeconds(): number
  openFds(): number | undefined
  /** Text of a file below /proc/self. */
  proc(file: 'limits' | 'net/netstat' | 'status'): string | undefined
}

/** The distribution of the event loop's delay since the last call, in seconds. */
export interface LoopDelay {
  readonly min: number
  readonly max: number
  readonly mean: number
  readonly stddev: number
  percentile(percent: number): number
  reset(): void
}

type Row = readonly [
  type: 'counter' | 'gauge',
  name: string,
  help: string,
  read: (source: ProcessSource) => number | undefined,
]

const ROWS: readonly Row[] = [
  ['counter', 'process_cpu_seconds_total', 'Total user and system CPU time spent in seconds.', (s) => s.cpuSeconds()],
  ['gauge', 'process_max_fds', 'Maximum number of open file descriptors.', (s) => limit(s, 'Max open files')],
  [
    'counter',
    'process_network_receive_bytes_total',
    'Number of bytes received by the process over the network.',
    (s) => octets(s, 'InOctets'),
  ],
  [
    'counter',
    'process_network_transmit_bytes_total',
    'Number of bytes sent by the process over the network.',
    (s) => octets(s, 'OutOctets'),
  ],
  ['gauge', 'process_open_fds', 'Number of open file descriptors.', (s) => s.openFds()],
  ['gauge', 'process_resident_memory_bytes', 'Resident memory size in bytes.', (s) => s.memory().rss],
  [
    'gauge',
    'process_start_time_seconds',
    'Start time of the process since unix epoch in seconds.',
    (s) => s.startTimeSeconds(),
  ],
  ['gauge', 'process_virtual_memory_bytes', 'Virtual memory size in bytes.', virtualBytes],
  [
    'gauge',
    'process_virtual_memory_max_bytes',
    'Maximum amount of virtual memory available in bytes.',
    (s) => limit(s, 'Max address space'),
  ],
  ['gauge', 'nodejs_external_memory_bytes', 'Node.js external memory size in bytes.', (s) => s.memory().external],
  ['gauge', 'nodejs_heap_size_total_bytes', 'Process heap size from Node.js in bytes.', (s) => s.memory().heapTotal],
  ['gauge', 'nodejs_heap_size_used_bytes', 'Process heap size used from Node.js in bytes.', (s) => s.memory().heapUsed],
]

/** As in every Prometheus client: of the network namespace of the process. */
function octets(source: ProcessSource, name: string): number | undefined {
  const lines = (source.proc('net/netstat') ?? '').split('\n').filter((line) => line.startsWith('IpExt:'))
  const [names = [], values = []] = lines.map((line) => line.split(' '))
  const value = values[names.indexOf(name)]
  return value === undefined ? undefined : Number(value)
}

/** Declares the metrics. Call once for a registry. */
export function registerProcessMetrics(registry: Registry, source: ProcessSource): void {
  for (const [type, name, help, read] of ROWS) {
    const collect = (emit: (value: number) => void): void => {
      const value = read(source)
      if (value !== undefined) emit(value)
    }
    registry.callback({ type, name, help, collect })
  }
}

/** Declares `nodejs_eventloop_lag_*_seconds`. Each scrape tells of the time since the one before. */
export function registerLoopMetrics(registry: Registry, delay: LoopDelay): void {
  const rows: readonly (readonly [name: string, what: string, read: () => number])[] = [
    ['max', 'maximum', () => delay.max],
    ['mean', 'mean', () => delay.mean],
    ['min', 'minimum', () => delay.min],
    ['p50', '50th percentile', () => delay.percentile(50)],
    ['p90', '90th percentile', () => delay.percentile(90)],
    ['p99', '99th percentile', () => delay.percentile(99)],
    ['stddev', 'standard deviation', () => delay.stddev],
  ]
  const last = rows.length - 1
  for (const [at, [name, what, read]] of rows.entries()) {
    registry.callback({
      type: 'gauge',
      name: `nodejs_eventloop_lag_${name}_seconds`,
      help: `The ${what} of the recorded event loop delays.`,
      collect(emit) {
        emit(read())
        // Families are written in order of name and the rows stand in that order: after the last, start anew.
        if (at === last) delay.reset()
      },
    })
  }
}

/** This process. `clock` only tells when it started. */
export function readProcess(clock: Clock): ProcessSource {
  const startedAtMs = clock.now() - process.uptime() * 1000
  return {
    cpuSeconds() {
      const { user, system } = process.cpuUsage()
      return (user + system) / 1e6
    },
    memory: () => process.memoryUsage(),
    startTimeSeconds: () => startedAtMs / 1000,
    // Where it is not Linux, or /proc is hidden from us, the metric is left out. Of descriptors one is that of the listing itself.
    openFds: () => attempt(() => readdirSync('/proc/self/fd').length - 1),
    proc: (file) => attempt(() => readFileSync(`/proc/self/${file}`, 'utf8')),
  }
}

/** Each look wakes the process: ten times as many cost a cluster at rest a quarter of a percent of a core. */
const RESOLUTION_MS = 100

/** Watches this process's event loop until disposed of. Does not keep the process alive. */
export function watchLoopDelay(): LoopDelay & Disposable {
  const histogram = monitorEventLoopDelay({ resolution: RESOLUTION_MS })
  histogram.enable()
  // Node records the whole time between two samples; the delay is the excess over the interval.
  const lag = (nanos: number): number => (histogram.count === 0 ? 0 : Math.max(0, nanos / 1e9 - RESOLUTION_MS / 1000))
  return {
    get min() {
      return lag(histogram.min)
    },
    get max() {
      return lag(histogram.max)
    },
    get mean() {
      return lag(histogram.mean)
    },
    get stddev() {
      return histogram.count === 0 ? 0 : histogram.stddev / 1e9
    },
    percentile: (percent) => lag(histogram.percentile(percent)),
    reset: () => histogram.reset(),
    [Symbol.dispose]: () => void histogram.disable(),
  }
}

/** The soft limit in a line such as `Max open files   1024   4096   files`. */
function limit(source: ProcessSource, name: string): number | undefined {
  const soft = source
    .proc('limits')
    ?.split('\n')
    .find((line) => line.startsWith(name))
    ?.slice(name.length)
    .trim()
    .split(/\s+/)[0]
  if (soft === undefined) return undefined
  // Go's value of "unlimited": the largest unsigned 64-bit number.
  return soft === 'unlimited' ? 2 ** 64 : Number(soft)
}

/** From a line such as `VmSize:	  123456 kB`. */
function virtualBytes(source: ProcessSource): number | undefined {
  const kib = source.proc('status')?.match(/^VmSize:\s*(\d+) kB$/m)?.[1]
  return kib === undefined ? undefined : Number(kib) * 1024
}
