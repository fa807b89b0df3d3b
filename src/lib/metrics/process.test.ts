import assert from 'node:assert/strict'
import { describe, it } from 'node:test'

import { createVirtualClock, realClock } from '../clock.ts'
import { createRegistry } from './metrics.ts'
import {
  type LoopDelay,
  type ProcessSource,
  readProcess,
  registerLoopMetrics,
  registerProcessMetrics,
  watchLoopDelay,
} from './process.ts'

const LIMITS = [
  'Limit                     Soft Limit           Hard Limit           Units     ',
  'Max cpu time              unlimited            unlimited            seconds   ',
  'Max open files            1024                 1048576              files     ',
  'Max address space         unlimited            unlimited            bytes     ',
  '',
].join('\n')

const NETSTAT = 'TcpExt: A B\nTcpExt: 1 2\nIpExt: InNoRoutes InOctets OutOctets\nIpExt: 0 700 900\n'

const source: ProcessSource = {
  cpuSeconds: () => 1.25,
  memory: () => ({ rss: 52_428_800, heapTotal: 3, heapUsed: 2, external: 1 }),
  startTimeSeconds: () => 1_700_000_000.5,
  openFds: () => 23,
  proc: (file) =>
    file === 'limits'
      ? LIMITS
      : file === 'net/netstat'
        ? NETSTAT
        : 'Name:\tnode\nVmPeak:\t    5000 kB\nVmSize:\t    4000 kB\n',
}

/** The exposition without comments, as name and value. */
function samples(text: string): Record<string, string> {
  const lines = text.split('\n').filter((line) => line !== '' && !line.startsWith('#'))
  return Object.fromEntries(lines.map((line) => line.split(' ') as [string, string]))
}

describe('process metrics', () => {
  it('have the names, types and help texts of every Prometheus client', () => {
    const registry = createRegistry()
    registerProcessMetrics(registry, source)
    const text = registry.render()
    assert.deepEqual(samples(text), {
      nodejs_external_memory_bytes: '1',
      nodejs_heap_size_total_bytes: '3',
      nodejs_heap_size_used_bytes: '2',
      process_cpu_seconds_total: '1.25',
      process_max_fds: '1024',
      process_network_receive_bytes_total: '700',
      process_network_transmit_bytes_total: '900',
      process_open_fds: '23',
      process_resident_memory_bytes: '5.24288e+07',
      process_start_time_seconds: '1.7000000005e+09',
      process_virtual_memory_bytes: '4.096e+06',
      process_virtual_memory_max_bytes: '1.8446744073709552e+19',
    })
    assert.match(text, /^# HELP process_cpu_seconds_total Total user and system CPU time spent in seconds\.$/m)
    assert.match(text, /^# TYPE process_cpu_seconds_total counter$/m)
    assert.match(text, /^# TYPE process_open_fds gauge$/m)
  })

  it('omit values that the platform does not provide', () => {
    const registry = createRegistry()
    registerProcessMetrics(registry, { ...source, openFds: () => undefined, proc: () => undefined })
    const names = Object.keys(samples(registry.render()))
    assert.deepEqual(
      names.filter((name) => name.startsWith('process_')),
      ['process_cpu_seconds_total', 'process_resident_memory_bytes', 'process_start_time_seconds'],
    )
  })

  it('have plausible values for this process', () => {
    const registry = createRegistry()
    registerProcessMetrics(registry, readProcess(realClock))
    const seen = samples(registry.render())
    assert.ok(Number(seen['process_cpu_seconds_total']) > 0)
    assert.ok(Number(seen['process_resident_memory_bytes']) > 1e6)
    const clock = createVirtualClock(1_000_000_000)
    const started = readProcess(clock).startTimeSeconds()
    assert.ok(started < 1_000_000 && started > 1_000_000 - 3600)
  })
})

describe('event loop metrics', () => {
  it('cover the time since the previous scrape', () => {
    let resets = 0
    const delay: LoopDelay = {
      min: 0.001,
      max: 0.25,
      mean: 0.002,
      stddev: 0.003,
      percentile: (percent) => percent / 1000,
      reset: () => resets++,
    }
    const registry = createRegistry()
    registerLoopMetrics(registry, delay)
    assert.deepEqual(samples(registry.render()), {
      nodejs_eventloop_lag_max_seconds: '0.25',
      nodejs_eventloop_lag_mean_seconds: '0.002',
      nodejs_eventloop_lag_min_seconds: '0.001',
      nodejs_eventloop_lag_p50_seconds: '0.05',
      nodejs_eventloop_lag_p90_seconds: '0.09',
      nodejs_eventloop_lag_p99_seconds: '0.099',
      nodejs_eventloop_lag_stddev_seconds: '0.003',
    })
    assert.equal(resets, 1)
  })

  it('are numbers for this process, even before the first scrape', () => {
    using delay = watchLoopDelay()
    for (const value of [delay.min, delay.max, delay.mean, delay.stddev, delay.percentile(99)]) assert.ok(value >= 0)
    delay.reset()
    assert.equal(delay.max, 0)
  })
})
