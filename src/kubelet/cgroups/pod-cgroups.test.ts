import assert from 'node:assert/strict'
import { mkdir, mkdtemp, readdir, readFile, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { test } from 'node:test'

import type { Container, Pod } from '#apis/core/v1.ts'
import { realClock } from '#lib/clock.ts'

import { bedOf, containerOf, podOf } from '../pods/worker.fixture.ts'
import { allowance, cpuWeight, filesOf } from './cgroup-files.ts'
import { cgroupTree } from './cgroup-tree.ts'
import { createPodCgroups, NO_CGROUPS } from './pod-cgroups.ts'

const sized = (...all: Container['resources'][]): Pod => ({
  ...podOf({ containers: all.map((resources, at) => containerOf(`c${at}`, { resources })) }),
  status: {},
})

const values = (pod: Pod, version: 1 | 2): string[] =>
  filesOf(pod, version).map(({ name, value }) => `${name}=${value}`)

test('a pod cgroup has a limit if all containers of the pod have a limit', () => {
  const limits = { cpu: '50m', memory: '16Mi' }
  assert.deepEqual(values(sized({ limits, requests: limits }), 1), [
    'cpu.shares=51',
    'cpu.cfs_period_us=100000',
    'cpu.cfs_quota_us=5000',
    'memory.limit_in_bytes=16777216',
  ])
  assert.deepEqual(values(sized({ limits, requests: limits }, { requests: { cpu: '1' } }), 1).slice(0, 4), [
    'cpu.shares=1075',
    'cpu.cfs_period_us=100000',
    'cpu.cfs_quota_us=-1',
    'memory.limit_in_bytes=-1',
  ])
  assert.deepEqual(values(sized({}), 2), ['cpu.weight=1', 'cpu.max=max 100000', 'memory.max=max'])
  assert.deepEqual(values(sized({ limits, requests: limits }), 2), [
    'cpu.weight=11',
    'cpu.max=5000 100000',
    'memory.max=16777216',
  ])
  assert.deepEqual([2, 51, 1024, 2048, 262_144].map(cpuWeight), [1, 11, 100, 174, 10_000])
  assert.deepEqual(['max 100000', '-1', '5000 100000'].map(allowance), [Infinity, Infinity, 5000])
})

/** Directories in place of cgroups, with their files already present. */
async function withTree(work: (root: string, seed: (path: string) => Promise<void>) => Promise<void>): Promise<void> {
  const root = await mkdtemp(join(tmpdir(), 'cgroups-'))
  const seed = async (path: string): Promise<void> => {
    await mkdir(dirname(join(root, path)), { recursive: true })
    await writeFile(join(root, path), '-1')
  }
  try {
    await work(root, seed)
  } finally {
    await rm(root, { recursive: true })
  }
}

test('with cgroup v1 a resize raises the limit of the pod before those of its containers', async () => {
  await withTree(async (root, seed) => {
    const facts = { cgroupDriver: 'cgroupfs', cgroupRoot: '/mine' } as const
    const cgroups = createPodCgroups({ tree: cgroupTree(root, 1), facts, clock: realClock })
    const path = 'mine/kubepods/podu1'
    for (const name of ['cpu.shares', 'cpu.cfs_period_us', 'cpu.cfs_quota_us']) await seed(`cpu/${path}/${name}`)
    await seed(`memory/${path}/memory.limit_in_bytes`)
    const of = (cpu: string, memory: string): Pod => sized({ limits: { cpu, memory }, requests: { cpu, memory } })
    const read = async (): Promise<string[]> => [
      await readFile(join(root, 'cpu', path, 'cpu.cfs_quota_us'), 'utf8'),
      await readFile(join(root, 'memory', path, 'memory.limit_in_bytes'), 'utf8'),
    ]
    await cgroups.ensure(of('100m', '1Mi'), false)
    assert.deepEqual(await read(), ['10000', '1048576'])
    const next = of('200m', '1Ki')
    await cgroups.grow(next, false)
    assert.deepEqual(await read(), ['20000', '1048576'])
    await cgroups.ensure(next, false)
    assert.deepEqual(await read(), ['20000', '1024'])
    await cgroups.ensure(next, true)
    assert.deepEqual(await read(), ['-1', '1024'], 'who has processors of its own may use them up')
  })
})

test('cgroups of removed pods are deleted, and cgroups of other programs stay', async () => {
  await withTree(async (root) => {
    const facts = { cgroupDriver: 'cgroupfs' } as const
    const cgroups = createPodCgroups({ tree: cgroupTree(root, 1), facts, clock: realClock })
    for (const path of ['kubepods/besteffort/podu1/abc', 'kubepods/podu2', 'kubepods/burstable/podu3']) {
      for (const controller of ['cpu', 'pids']) await mkdir(join(root, controller, path), { recursive: true })
    }
    await cgroups.remove(podOf())
    assert.deepEqual(await readdir(join(root, 'pids', 'kubepods', 'besteffort')), [])
    await cgroups.sweep((uid) => uid === 'u3')
    assert.deepEqual(await readdir(join(root, 'cpu', 'kubepods', 'burstable')), [])
    assert.deepEqual((await readdir(join(root, 'cpu', 'kubepods'))).toSorted(), ['besteffort', 'burstable', 'podu2'])
  })
})

test('a pod cgroup is created before the sandbox and removed after it; if that fails, the pod does not start', async () => {
  const calls: string[] = []
  let isBroken = true
  const cgroups = {
    ...NO_CGROUPS,
    ensure: async (): Promise<void> => {
      calls.push('ensure')
      if (isBroken) throw new Error('read-only file system')
    },
    remove: async () => void calls.push('remove'),
  }
  const { clock, workers, events, runtime } = bedOf({}, { cgroups })
  workers.updatePod({ type: 'ADDED', object: podOf() })
  await clock.advance(1000)
  assert.deepEqual(events, ['FailedCreatePodContainer: unable to ensure pod container exists: read-only file system'])
  assert.deepEqual((await runtime.listPodSandbox({})).items, [])
  isBroken = false
  await clock.advance(20_000)
  assert.equal(workers.registry.find('default', 'web')?.pod.status.phase, 'Running')
  workers.updatePod({ type: 'DELETED', object: podOf() })
  await clock.advance(5000)
  assert.deepEqual(calls, ['ensure', 'ensure', 'remove'])
  await workers.stop()
})

test('pod cgroups have CPU quotas for the configured CFS period, or none if CFS quotas are off', () => {
  const limits = { cpu: '500m' }
  const pod = sized({ limits, requests: limits })
  const cpu = (version: 1 | 2, cfsPeriodUs: number): string[] =>
    filesOf(pod, version, { cfsPeriodUs }).flatMap(({ name, value }) =>
      /cfs|max/.test(name) && !name.startsWith('memory') ? [`${name}=${value}`] : [],
    )
  assert.deepEqual(cpu(1, 20_000), ['cpu.cfs_period_us=20000', 'cpu.cfs_quota_us=10000'])
  assert.deepEqual(cpu(2, 20_000), ['cpu.max=10000 20000'])
  assert.deepEqual(cpu(1, 0), ['cpu.cfs_period_us=100000', 'cpu.cfs_quota_us=-1'])
  assert.deepEqual(cpu(2, 0), ['cpu.max=max 100000'])
})
