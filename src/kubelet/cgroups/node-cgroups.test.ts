import assert from 'node:assert/strict'
import { access, constants, mkdir, mkdtemp, readFile, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { test } from 'node:test'

import type { Pod } from '#apis/core/v1.ts'
import { createVirtualClock, realClock } from '#lib/clock.ts'
import { createLog } from '#lib/log/log.ts'

import { containerOf, podOf } from '../pods/worker.fixture.ts'
import { cgroupTree } from './cgroup-tree.ts'
import { createNodeCgroups, type NodeCgroupsOptions, sharingCgroups } from './node-cgroups.ts'
import { NO_CGROUPS } from './pod-cgroups.ts'

const CAPACITY = { cpu: '2', memory: '4Gi', 'hugepages-2Mi': '0', pods: '110', pid: '32768' }
const RESERVED = {
  systemReserved: { cpu: '500m', memory: '1Gi', pid: '768' },
  kubeReserved: { memory: '512Mi' },
  evictionHard: { 'memory.available': '100Mi' },
}
const { logger: log } = createLog({ stream: { write: (_, done) => done() }, clock: realClock })
const asking = (uid: string, cpu: string): Pod => {
  const pod = podOf({ containers: [containerOf('c', { resources: { requests: { cpu } } })] })
  return { ...pod, metadata: { ...pod.metadata, uid } }
}

/** Directories and files as the kernel creates them. */
class Tree implements AsyncDisposable {
  readonly root: string
  readonly version: 1 | 2

  constructor(root: string, version: 1 | 2) {
    this.root = root
    this.version = version
  }

  static async of(version: 1 | 2): Promise<Tree> {
    const tree = new Tree(await mkdtemp(join(tmpdir(), 'node-cgroups-')), version)
    if (version === 2) await tree.seed('cgroup.controllers', 'cpuset cpu io memory hugetlb pids')
    for (const path of ['kubepods', 'kubepods/burstable', 'kubepods/besteffort', 'system']) {
      for (const [controller, name] of FILES[version]) await tree.seed(tree.#at(path, controller, name), '1')
      if (version === 2) await tree.seed(join(path, 'cgroup.controllers'), 'cpuset cpu memory hugetlb pids')
    }
    return tree
  }

  async seed(path: string, text: string): Promise<void> {
    await mkdir(dirname(join(this.root, path)), { recursive: true })
    await writeFile(join(this.root, path), text)
  }

  #at(path: string, controller: string, name: string): string {
    return join(this.version === 1 ? controller : '', path, name)
  }

  async of(path: string): Promise<Record<string, string>> {
    const all = FILES[this.version].map(
      async ([controller, name]) =>
        [name, await readFile(join(this.root, this.#at(path, controller, name)), 'utf8')] as const,
    )
    return Object.fromEntries(await Promise.all(all))
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await rm(this.root, { recursive: true })
  }
}

const FILES = {
  1: [
    ['cpu', 'cpu.shares'],
    ['memory', 'memory.limit_in_bytes'],
    ['pids', 'pids.max'],
    ['hugetlb', 'hugetlb.2MB.limit_in_bytes'],
  ],
  2: [
    ['cpu', 'cpu.weight'],
    ['memory', 'memory.max'],
    ['pids', 'pids.max'],
    ['hugetlb', 'hugetlb.2MB.max'],
  ],
} as const

interface Started {
  readonly events: string[]
  readonly error: unknown
}

async function start(
  { root, version }: Tree,
  more: Partial<NodeCgroupsOptions>,
  pods: readonly Pod[] = [],
): Promise<Started> {
  const events: string[] = []
  const stop = new AbortController()
  const usual = { capacity: CAPACITY, reserved: RESERVED, enforced: {}, clock: realClock, log }
  const facts = { cgroupDriver: 'cgroupfs' } as const
  const cgroups = createNodeCgroups({ tree: cgroupTree(root, version), facts, ...usual, ...more })
  const recordEvent = ({ type, reason, message }: { type: string; reason: string; message: string }): void =>
    void events.push(`${type} ${reason}: ${message}`)
  const error: unknown = await cgroups
    .start({ pods: () => pods, recordEvent, signal: stop.signal })
    .catch((why: unknown) => why)
  // Limits of pods are applied in the background.
  while (!events.some((line) => line.includes('Node Allocatable'))) await new Promise(setImmediate)
  stop.abort()
  return { events, error }
}

test('the kubepods cgroup is limited to node allocatable, and each QoS cgroup has the CPU shares of its pods', async () => {
  const pods = [asking('a', '250m'), asking('b', '1'), podOf()]
  const enforced = 'Normal NodeAllocatableEnforced: Updated Node Allocatable limit across pods'
  await using one = await Tree.of(1)
  assert.deepEqual(await start(one, {}, pods), { events: [enforced], error: undefined })
  assert.deepEqual(await one.of('kubepods'), {
    'cpu.shares': '1536',
    'memory.limit_in_bytes': String(2.5 * 2 ** 30),
    'pids.max': '32000',
    'hugetlb.2MB.limit_in_bytes': '0',
  })
  assert.equal((await one.of('kubepods/burstable'))['cpu.shares'], '1280')
  assert.equal((await one.of('kubepods/besteffort'))['cpu.shares'], '2')
  await using two = await Tree.of(2)
  assert.deepEqual(await start(two, {}, pods), { events: [enforced], error: undefined })
  assert.deepEqual(await two.of('kubepods'), {
    'cpu.weight': '138',
    'memory.max': String(2.5 * 2 ** 30),
    'pids.max': '32000',
    'hugetlb.2MB.max': '0',
  })
  assert.equal((await two.of('kubepods/burstable'))['cpu.weight'], '120')
})

test('the kubepods cgroup is limited to the machine’s capacity if node allocatable is not enforced', async () => {
  await using tree = await Tree.of(1)
  await start(tree, { enforced: { enforceNodeAllocatable: ['none'] } })
  assert.equal((await tree.of('kubepods'))['memory.limit_in_bytes'], String(4 * 2 ** 30))
  assert.equal((await tree.of('kubepods'))['cpu.shares'], '2048')
})

test('the limits for system-reserved and kube-reserved apply to existing cgroups', async () => {
  for (const version of [1, 2] as const) {
    await using tree = await Tree.of(version)
    const enforceNodeAllocatable = ['pods', 'system-reserved', 'kube-reserved-compressible']
    const enforced = { enforceNodeAllocatable, systemReservedCgroup: '/system', kubeReservedCgroup: '/kube/all' }
    const { events, error } = await start(tree, { enforced })
    const [shares, memory] = version === 1 ? ['cpu.shares', 'memory.limit_in_bytes'] : ['cpu.weight', 'memory.max']
    const kept = await tree.of('system')
    assert.deepEqual(
      [kept[shares], kept[memory], kept['pids.max']],
      [version === 1 ? '512' : '59', '1073741824', '768'],
    )
    const what =
      version === 1
        ? `has some missing paths: ${['cpu', 'hugetlb', 'memory', 'pids'].map((name) => join(tree.root, name, 'kube/all')).join(', ')}`
        : ''
    const failed = `Failed to enforce Kube Reserved Compressible Cgroup Limits on "/kube/all": `
    assert.ok(events.includes('Normal NodeAllocatableEnforced: Updated limits on system reserved cgroup /system'))
    assert.ok(events.some((line) => line.startsWith(`Warning FailedNodeAllocatableEnforcement: ${failed}`)))
    assert.match(
      (error as Error).message,
      /^Failed to enforce Kube Reserved Compressible Cgroup Limits on "\/kube\/all": /,
    )
    if (version === 1) assert.equal((error as Error).message, `${failed}cgroup ["kube" "all"] ${what}`)
    else assert.match((error as Error).message, /could not read controllers for cgroup \["kube" "all"\]: ENOENT/)
  }
})

test('a failed write of a cgroup limit is retried after a minute', async () => {
  const clock = createVirtualClock()
  const events: string[] = []
  let isBusy = true
  const tree = {
    ...cgroupTree('/nowhere', 1),
    make: async (): Promise<void> => undefined,
    write: async (path: string): Promise<void> => {
      if (isBusy && path === '/mine/kubepods') throw new Error('failed to write "1": EBUSY')
    },
  }
  const facts = { cgroupDriver: 'cgroupfs', cgroupRoot: '/mine' } as const
  const stop = new AbortController()
  const about = { capacity: CAPACITY, reserved: {}, enforced: {}, clock, log }
  const recordEvent = ({ reason, message }: { reason: string; message: string }): void =>
    void events.push(`${reason}: ${message}`)
  await createNodeCgroups({ tree, facts, ...about }).start({ pods: () => [], recordEvent, signal: stop.signal })
  await clock.advance(59_000)
  isBusy = false
  assert.deepEqual(events, [
    'FailedNodeAllocatableEnforcement: Failed to update Node Allocatable Limits ["mine" "kubepods"]: failed to write "1": EBUSY',
  ])
  await clock.advance(2000)
  assert.equal(events.at(-1), 'NodeAllocatableEnforced: Updated Node Allocatable limit across pods')
  assert.equal(events.length, 2)
  stop.abort()
})

test('a new pod adds to the CPU shares of its QoS cgroup, and starts even if that write fails', async () => {
  const calls: string[] = []
  const node = {
    start: async (): Promise<void> => undefined,
    share: async (): Promise<void> => {
      calls.push('share')
      throw new Error('read-only')
    },
  }
  const own = { ...NO_CGROUPS, ensure: async (): Promise<void> => void calls.push('ensure') }
  await sharingCgroups({ pods: own, node }, () => [], log).ensure(podOf(), false)
  assert.deepEqual(calls, ['share', 'ensure'])
})

const CGROUPS = '/sys/fs/cgroup'
const isOne = await access(join(CGROUPS, 'memory', 'memory.limit_in_bytes'), constants.W_OK).then(
  () => true,
  () => false,
)

test(
  'node cgroups have the same settings with cgroup v1',
  { skip: isOne ? false : 'the cgroup version is 2' },
  async () => {
    const cgroupRoot = `/node-cgroups-${process.pid}`
    const tree = cgroupTree(CGROUPS, 1)
    const facts = { cgroupDriver: 'cgroupfs', cgroupRoot } as const
    try {
      await start(new Tree(CGROUPS, 1), { facts, enforced: {} }, [asking('a', '250m')])
      const read = async (controller: string, path: string): Promise<string> =>
        (await readFile(join(CGROUPS, controller, cgroupRoot, path), 'utf8')).trim()
      assert.equal(await read('memory', 'kubepods/memory.limit_in_bytes'), String(2.5 * 2 ** 30))
      assert.equal(await read('cpu', 'kubepods/cpu.shares'), '1536')
      assert.equal(await read('pids', 'kubepods/pids.max'), '32000')
      assert.equal(await read('cpu', 'kubepods/burstable/cpu.shares'), '256')
      assert.equal(await read('cpu', 'kubepods/besteffort/cpu.shares'), '2')
    } finally {
      await tree.remove(cgroupRoot)
    }
    await assert.rejects(access(join(CGROUPS, 'memory', cgroupRoot)))
  },
)
