import assert from 'node:assert/strict'
import { test } from 'node:test'

import { interfacesIn } from './network-use.ts'
import { type FsUse, type MeasuredNode, statsSummary, sumOfMeasures } from './node-stats.ts'

const MEASURE = { startedMs: 0, cpuNanoCores: 1, cpuNanoSeconds: 2, memoryBytes: 3 }
const FS: FsUse = { availableBytes: 1, capacityBytes: 4, usedBytes: 3, inodesFree: 5, inodes: 9, inodesUsed: 4 }
const ETH0 = { name: 'eth0', rxBytes: 1, rxErrors: 0, txBytes: 2, txErrors: 0 }
const TIME = '1970-01-01T00:00:01Z'

test('/stats/summary contains file systems, networks, processes and volumes under upstream’s names', () => {
  const node: MeasuredNode = {
    name: 'n',
    all: { ...MEASURE, swap: { usageBytes: 1, availableBytes: 2 } },
    capacityBytes: 10,
    fs: FS,
    imageFs: FS,
    network: { outward: ETH0, interfaces: [ETH0] },
    processes: { most: 100, now: 7 },
    parts: [{ name: 'pods', ...MEASURE }],
    pods: [
      {
        pod: { metadata: { name: 'p', namespace: 'ns', uid: 'u' } },
        all: MEASURE,
        containers: [{ name: 'c', ...MEASURE, rootfs: FS, logs: FS }],
        volumes: [{ ...FS, name: 'v', claim: { name: 'claim', namespace: 'ns' }, isAbnormal: true }],
        ephemeralStorage: FS,
        processes: 3,
        network: { outward: undefined, interfaces: [] },
      },
    ],
  }
  const summary = JSON.parse(JSON.stringify(statsSummary(node, 1000))) as {
    node: Record<string, unknown>
    pods: Record<string, unknown>[]
  }
  const fs = { time: TIME, ...FS }
  assert.deepEqual(summary.node['fs'], fs)
  assert.deepEqual(summary.node['runtime'], { imageFs: fs, containerFs: fs })
  assert.deepEqual(summary.node['rlimit'], { time: TIME, maxpid: 100, curproc: 7 })
  assert.deepEqual(summary.node['swap'], { time: TIME, swapAvailableBytes: 2, swapUsageBytes: 1 })
  assert.deepEqual(summary.node['network'], { time: TIME, ...ETH0, interfaces: [ETH0] })
  const [pod] = summary.pods
  assert.deepEqual(pod?.['ephemeral-storage'], fs)
  assert.deepEqual(pod?.['process_stats'], { process_count: 3 })
  assert.deepEqual(pod?.['volume'], [
    { ...fs, name: 'v', pvcRef: { name: 'claim', namespace: 'ns' }, volumeHealthStats: { abnormal: true } },
  ])
  const [container] = (pod?.['containers'] ?? []) as Record<string, unknown>[]
  assert.deepEqual(container?.['logs'], fs)
})

test('/stats/summary has the sum of the containers as the usage of a pod', () => {
  const memory = { usageBytes: 5, rssBytes: 1, pageFaults: 2, majorPageFaults: 0, availableBytes: 9 }
  const sum = sumOfMeasures([MEASURE, { ...MEASURE, startedMs: -1, memory }])
  const { availableBytes: _, ...known } = memory
  assert.deepEqual(sum, { startedMs: -1, cpuNanoCores: 2, cpuNanoSeconds: 4, memoryBytes: 6, memory: known })
})

test('statistics of network interfaces are parsed from /proc/net/dev', () => {
  const text = [
    'Inter-|   Receive                                                |  Transmit',
    ' face |bytes    packets errs drop fifo frame compressed multicast|bytes    packets errs drop fifo colls carrier compressed',
    '    lo:     100       1    0    0    0     0          0         0      100       1    0    0    0     0       0          0',
    '  eth0: 7000      10    1    0    0     0          0         0    8000      20    2    0    0     0       0          0',
    'veth12: 1 1 0 0 0 0 0 0 1 1 0 0 0 0 0 0',
  ].join('\n')
  assert.deepEqual(interfacesIn(text), [{ name: 'eth0', rxBytes: 7000, rxErrors: 1, txBytes: 8000, txErrors: 2 }])
})
