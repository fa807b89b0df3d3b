import assert from 'node:assert/strict'
import { mkdir, mkdtemp, readFile, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { test, type TestContext } from 'node:test'

import type { Pod } from '#apis/core/v1.ts'
import { realClock } from '#lib/clock.ts'

import { containerOf, podOf } from '../pods/worker.fixture.ts'
import { filesOf } from './cgroup-files.ts'
import { cgroupTree } from './cgroup-tree.ts'
import { createPodCgroups } from './pod-cgroups.ts'
import { type SliceManager, slices } from './systemd-slices.ts'

const UID = '0a1b-2c3d'
const PARENT = 'kubepods.slice/kubepods-burstable.slice'
const UNIT = 'kubepods-burstable-pod0a1b_2c3d.slice'
const FACTS = { cgroupDriver: 'systemd' } as const

const limited = (cpu: string, memory: string): Pod => {
  const resources = { limits: { cpu, memory }, requests: { cpu: '100m' } }
  const pod = podOf({ containers: [containerOf('c', { resources })] })
  return { ...pod, metadata: { ...pod.metadata, uid: UID }, status: {} }
}

/** Directories in place of cgroups, created as systemd and the kernel do, and the recorded systemd calls. */
async function standIn(t: TestContext): Promise<{ readonly root: string; calls: string[]; manager: SliceManager }> {
  const root = await mkdtemp(join(tmpdir(), 'slices-'))
  t.after(() => rm(root, { recursive: true }))
  await writeFile(join(root, 'cgroup.controllers'), 'cpu memory pids')
  const calls: string[] = []
  const manager: SliceManager = {
    async start(unit, parent) {
      calls.push(`start ${unit} in ${parent}`)
      if (unit !== UNIT) return
      await mkdir(join(root, PARENT, UNIT), { recursive: true })
      for (const name of ['cpu.weight', 'cpu.max', 'memory.max']) await writeFile(join(root, PARENT, UNIT, name), 'max')
    },
    async set(unit, properties) {
      calls.push(`set ${unit} ${properties.map(([name, value]) => `${name}=${value}`).join(' ')}`)
    },
    async stop(unit) {
      calls.push(`stop ${unit}`)
    },
  }
  return { root, calls, manager }
}

test('systemd slices are started from parent to child, and limits are set in systemd and in cgroup files', async (t) => {
  const { root, calls, manager } = await standIn(t)
  const cgroups = createPodCgroups({ tree: slices(cgroupTree(root, 2), manager), facts: FACTS, clock: realClock })
  await cgroups.ensure(limited('250m', '16Mi'), false)
  assert.deepEqual(calls.splice(0), [
    'start kubepods.slice in -.slice',
    'start kubepods-burstable.slice in kubepods.slice',
    `start ${UNIT} in kubepods-burstable.slice`,
    `set ${UNIT} CPUWeight=17`,
    `set ${UNIT} CPUQuotaPerSecUSec=250000 CPUQuotaPeriodUSec=100000`,
    `set ${UNIT} MemoryMax=16777216`,
  ])
  assert.equal(await readFile(join(root, PARENT, UNIT, 'cpu.max'), 'utf8'), '25000 100000')
  await cgroups.grow(limited('500m', '8Mi'), false)
  assert.deepEqual(calls.splice(0), [`set ${UNIT} CPUQuotaPerSecUSec=500000 CPUQuotaPeriodUSec=100000`])
})

test('a systemd slice is stopped only when it is empty', async (t) => {
  const { root, calls, manager } = await standIn(t)
  const cgroups = createPodCgroups({ tree: slices(cgroupTree(root, 2), manager), facts: FACTS, clock: realClock })
  await mkdir(join(root, PARENT, UNIT, 'cri-containerd-a.scope'), { recursive: true })
  // A file stands for a process, so that the directory cannot be removed.
  const inUse = join(root, PARENT, UNIT, 'cri-containerd-a.scope', 'process')
  await writeFile(inUse, '')
  await cgroups.sweep((uid) => uid === UID)
  assert.deepEqual(calls, [])
  await rm(inUse)
  await cgroups.sweep((uid) => uid !== UID)
  assert.deepEqual(calls, [])
  await cgroups.sweep((uid) => uid === UID)
  assert.deepEqual(calls, [`stop ${UNIT}`])
})

test('property names of systemd slices depend on the cgroup version', () => {
  const properties = (pod: Pod, version: 1 | 2): string[] =>
    filesOf(pod, version, { pidsLimit: 100 }).flatMap(({ properties: all }) =>
      all.map(([name, value]) => `${name}=${value}`),
    )
  assert.deepEqual(properties(limited('333m', '1Mi'), 1), [
    'CPUShares=102',
    'CPUQuotaPerSecUSec=340000',
    'CPUQuotaPeriodUSec=100000',
    'MemoryLimit=1048576',
    'TasksMax=100',
  ])
  const free = podOf({ containers: [containerOf('c')] })
  assert.deepEqual(properties({ ...free, status: {} }, 2), [
    'CPUWeight=1',
    'CPUQuotaPerSecUSec=18446744073709551615',
    'CPUQuotaPeriodUSec=100000',
    'MemoryMax=18446744073709551615',
    'TasksMax=100',
  ])
})
