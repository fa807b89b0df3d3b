import assert from 'node:assert/strict'
import { test } from 'node:test'

import { createVirtualClock } from '#lib/clock.ts'

import type { PodOfNode } from '../pod/pod-of-node.ts'
import { Cadvisor, type CadvisorOptions } from './cadvisor.ts'
import { deviceIoOf, figuresOf } from './cgroup-figures.ts'
import { deviceNames, diskCounts, disksIn } from './disk-figures.ts'
import { cadvisorText } from './exposition.ts'
import { softLimit } from './process-figures.ts'
import { labelsOf, type Subject } from './subject.ts'

const from =
  (files: Readonly<Record<string, string>>) =>
  (file: string): string | undefined =>
    files[file]

const ONE = {
  'cpuacct/cpuacct.usage': '2500000000\n',
  'cpuacct/cpuacct.stat': 'user 150\nsystem 25\n',
  'cpu/cpu.stat': 'nr_periods 10\nnr_throttled 4\nthrottled_time 500000000\nnr_bursts 0\nburst_time 0\n',
  'cpu/cpu.cfs_quota_us': '50000\n',
  'cpu/cpu.cfs_period_us': '100000\n',
  'cpu/cpu.shares': '512\n',
  'memory/memory.usage_in_bytes': '4096\n',
  'memory/memory.stat': 'cache 1\ntotal_cache 7\ntotal_rss 100\ntotal_inactive_file 1096\npgfault 3\npgmajfault 1\n',
  'memory/memory.limit_in_bytes': '9223372036854771712\n',
  'memory/memory.oom_control': 'oom_kill_disable 0\nunder_oom 0\noom_kill 2\n',
  'pids/pids.current': '5\n',
  'pids/pids.max': 'max\n',
}

const TWO = {
  'cpu.stat':
    'usage_usec 2500000\nuser_usec 1500000\nsystem_usec 250000\nnr_periods 10\nnr_throttled 4\nthrottled_usec 500000\n',
  'cpu.max': '50000 100000\n',
  'cpu.weight': '39\n',
  'memory.current': '4096\n',
  'memory.stat': 'file 7\nanon 100\ninactive_file 1096\npgfault 3\npgmajfault 1\n',
  'memory.max': 'max\n',
  'memory.events': 'low 0\nhigh 0\nmax 6\noom 2\noom_kill 2\n',
  'cpu.pressure':
    'some avg10=0.00 avg60=0.00 avg300=0.00 total=1500000\nfull avg10=0.00 avg60=0.00 avg300=0.00 total=5\n',
  'pids.current': '5\n',
  'pids.max': 'max\n',
}

test('cAdvisor metrics are the same for both cgroup versions', () => {
  const same = {
    cpuUsage: 2.5,
    cpuUser: 1.5,
    cpuSystem: 0.25,
    periods: 10,
    throttledPeriods: 4,
    throttledSeconds: 0.5,
    specQuota: 50_000,
    specPeriod: 100_000,
    specMemory: 0,
    memoryUsage: 4096,
    workingSet: 3000,
    inactiveFile: 1096,
    memoryCache: 7,
    memoryRss: 100,
    faults: 3,
    majorFaults: 1,
    oomKills: 2,
    threads: 5,
    threadsMax: 0,
  }
  assert.deepEqual(figuresOf(1, from(ONE)), { ...same, specShares: 512, burstPeriods: 0, burstSeconds: 0 })
  const pressure = { cpuWaiting: 1.5, cpuStalled: 0.000_005 }
  assert.deepEqual(figuresOf(2, from(TWO)), { ...same, specShares: 998, memoryHits: 6, ...pressure })
  assert.deepEqual(figuresOf(2, from({ 'cpu.max': 'max 100000\n' })), { specQuota: 0, specPeriod: 100_000 })
  assert.deepEqual(figuresOf(1, from({})), {}, 'what is not there is not known')
})

test('cAdvisor metrics report disk I/O by operation', () => {
  const one = deviceIoOf(
    1,
    from({
      'blkio/blkio.throttle.io_service_bytes_recursive':
        '253:0 Read 4096\n253:0 Write 10\n253:0 Total 4106\nTotal 4106\n',
      'blkio/blkio.throttle.io_serviced_recursive': '253:0 Read 2\nTotal 2\n',
    }),
  )
  const bytes = new Map(Object.entries({ Read: 4096, Write: 10, Total: 4106 }))
  assert.deepEqual(one, [{ major: '253', minor: '0', bytes, count: new Map([['Read', 2]]) }])
  const [two] = deviceIoOf(2, from({ 'io.stat': '8:0 rbytes=1 wbytes=2 rios=3 wios=4 dbytes=0 dios=0\n8:1 \n' }))
  assert.deepEqual([two?.bytes.get('Write'), two?.count.get('Read'), two?.major], [2, 3, '8'])
})

test('cAdvisor metrics list each device of a mounted file system once', () => {
  const mounts = 'proc /proc proc rw 0 0\n/dev/vda / ext4 rw 0 0\ntmpfs /tmp tmpfs rw 0 0\n/dev/vda /var ext4 rw 0 0\n'
  assert.deepEqual(disksIn(mounts), [{ device: '/dev/vda', path: '/' }])
  const diskstats = '   8       0 vda 1 2 3 4 5 6 7 8 9 10 11 0 0\n'
  assert.deepEqual(diskCounts(diskstats).get('/dev/vda')?.weightedIoMs, 11)
  assert.deepEqual([...deviceNames(diskstats)], [['8:0', '/dev/vda']])
  const limits = 'Limit Soft Hard Units\nMax open files            1024                4096                files     \n'
  assert.deepEqual(
    [softLimit(limits), softLimit('Max open files  unlimited  unlimited files'), softLimit('')],
    [1024, -1, undefined],
  )
})

const COUNTS = { rxPackets: 1, rxErrors: 0, rxDropped: 0, txBytes: 0, txPackets: 0, txErrors: 0, txDropped: 0 }

test('cAdvisor metrics have upstream’s names and labels', () => {
  const subject: Subject = {
    labels: labelsOf({
      id: '/kubepods/podu1/c1',
      name: 'c1',
      container: 'c',
      image: 'busybox',
      pod: 'p',
      namespace: 'ns',
    }),
    figures: { ...figuresOf(1, from(ONE)), startedSeconds: 5, processes: 1 },
    io: [
      { device: '/dev/vda', major: '253', minor: '0', bytes: new Map([['Read', 9]]), count: new Map([['Read', 1]]) },
    ],
    interfaces: [{ name: 'eth0', rxBytes: 7, ...COUNTS }],
    filesystems: [],
    openFilesLimit: 1024,
  }
  const machine = { cores: 2, physicalCores: 1, sockets: 1, memoryBytes: 4096, swapBytes: 0 }
  const page = cadvisorText({ subjects: [subject], machine, machineLabels: [['boot_id', 'b']], nowMs: 9000 })
  const own = 'id="/kubepods/podu1/c1",image="busybox"'
  const rest = 'name="c1",namespace="ns",pod="p"'
  for (const line of [
    `container_cpu_usage_seconds_total{container="c",cpu="total",${own},${rest}} 2.5`,
    `container_cpu_cfs_throttled_periods_total{container="c",${own},${rest}} 4`,
    `container_memory_working_set_bytes{container="c",${own},${rest}} 3000`,
    `container_memory_failures_total{container="c",failure_type="pgfault",${own},${rest},scope="hierarchy"} 3`,
    `container_spec_cpu_quota{container="c",${own},${rest}} 50000`,
    `container_spec_memory_limit_bytes{container="c",${own},${rest}} 0`,
    `container_fs_reads_bytes_total{container="c",device="/dev/vda",${own},${rest}} 9`,
    `container_blkio_device_usage_total{container="c",device="/dev/vda",${own},major="253",minor="0",${rest},operation="Read"} 9`.replace(
      'pod="p",operation="Read"',
      'operation="Read",pod="p"',
    ),
    `container_network_receive_bytes_total{container="c",${own},interface="eth0",${rest}} 7`,
    `container_ulimits_soft{container="c",${own},${rest},ulimit="max_open_files"} 1024`,
    `container_start_time_seconds{container="c",${own},${rest}} 5`,
    `container_last_seen{container="c",${own},${rest}} 9`,
    'machine_memory_bytes{boot_id="b"} 4096',
    'container_scrape_error 0',
  ]) {
    assert.ok(page.split('\n').includes(line), `${line}\n${page}`)
  }
  assert.ok(!page.includes('container_pressure'), 'what the kernel does not count is not there')
  const unlimited = { ...subject, figures: { ...subject.figures, specQuota: 0 } }
  const free = cadvisorText({ subjects: [unlimited], machine, machineLabels: [], nowMs: 9000 })
  assert.ok(!/cfs_|cpu_quota/.test(free), 'who is not limited is not throttled')
})

test('cAdvisor metrics use the stats of the runtime without cgroups', async () => {
  const pod = { metadata: { namespace: 'ns', name: 'p', uid: 'u1' }, spec: { containers: [{ name: 'c' }] }, status: {} }
  const view = {
    pod,
    sandboxId: 's1',
    containers: new Map([
      [
        'c',
        {
          record: { role: 'main', spec: { name: 'c', image: 'busybox' }, run: { id: 'x', startedMs: 5000 } },
          current: { containerId: 'c1', logPath: '' },
          previous: undefined,
        },
      ],
    ]),
  } as unknown as PodOfNode
  const runtime = {
    listContainerStats: async () => ({
      stats: [{ attributes: { id: 'c1' }, cpu: { usageCoreNanoSeconds: { value: 2_500_000_000 } } }],
    }),
    listPodSandboxStats: async () => ({
      stats: [
        { attributes: { id: 's1' }, linux: { network: { defaultInterface: { name: 'eth0', rxBytes: { value: 7 } } } } },
      ],
    }),
  } as unknown as CadvisorOptions['runtime']
  const machine = { cgroupVersion: 1, memoryBytes: 4096, machineId: 'm', systemUuid: 's', bootId: 'b' } as const
  const facts = { cgroupDriver: 'cgroupfs' } as const
  const cadvisor = new Cadvisor({
    runtime,
    clock: createVirtualClock(),
    facts,
    machine,
    pods: () => [view],
    root: '/nowhere',
  })
  const lines = (await cadvisor.page()).split('\n')
  const id = '/kubepods/besteffort/podu1'
  for (const line of [
    `container_cpu_usage_seconds_total{container="c",cpu="total",id="${id}/c1",image="busybox",name="c1",namespace="ns",pod="p"} 2.5`,
    `container_start_time_seconds{container="c",id="${id}/c1",image="busybox",name="c1",namespace="ns",pod="p"} 5`,
    `container_network_receive_bytes_total{container="",id="${id}/s1",image="",interface="eth0",name="s1",namespace="ns",pod="p"} 7`,
    'machine_memory_bytes{boot_id="b",machine_id="m",system_uuid="s"} 4096',
  ]) {
    assert.ok(lines.includes(line), `${line}\n${lines.join('\n')}`)
  }
})
