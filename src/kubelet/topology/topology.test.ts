import assert from 'node:assert/strict'
import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { test } from 'node:test'

import fc from 'fast-check'

import type { Pod } from '#apis/core/v1.ts'
import { realClock } from '#lib/clock.ts'

import { createKubeletMeters } from '../metrics/kubelet-families.ts'
import { CpuManager, type CpuManagerOptions } from './cpu-manager.ts'
import { pickCpus } from './cpu-picking.ts'
import { cpuChecksum } from './cpu-state.ts'
import { type Cpu, cpuIds, cpuSetText } from './cpu-topology.ts'
import { decide, type Hint, hintsFor, isNarrower, type TopologyPolicy } from './hints.ts'

/** Linux numbers one thread of each core first, then the siblings. */
function machine({ nodes = 1, cores = 4, threads = 2 } = {}): Cpu[] {
  const perThread = nodes * cores
  return Array.from({ length: perThread * threads }, (_, id) => {
    const core = id % perThread
    const node = Math.trunc(core / cores)
    return { id, core: `${node}/${core}`, socket: node, node }
  })
}

const idsOf = (cpus: readonly Cpu[]): Set<number> => new Set(cpus.map(({ id }) => id))

test('cpuSetText() writes Linux’ format of CPU lists', () => {
  assert.equal(cpuSetText([8, 0, 1, 3, 2]), '0-3,8')
  assert.deepEqual(cpuIds('0-2,7\n'.trim()), [0, 1, 2, 7])
  fc.assert(
    fc.property(fc.uniqueArray(fc.nat(200)), (ids) => {
      assert.deepEqual(
        cpuIds(cpuSetText(ids)),
        ids.toSorted((a, b) => a - b),
      )
    }),
  )
})

test('the CPU manager takes whole cores first, then siblings of cores in use', () => {
  const cpus = machine()
  assert.equal(cpuSetText(pickCpus(cpus, idsOf(cpus), 2)), '0,4')
  const left = new Set([0, 1, 2, 5, 6])
  assert.deepEqual([...pickCpus(cpus, left, 1)], [0], 'the core that is no longer whole')
  assert.equal(cpuSetText(pickCpus(cpus, left, 2)), '1,5')
  assert.throws(() => pickCpus(cpus, new Set([1]), 2), {
    message: 'not enough cpus available to satisfy request: requested=2, available=1',
  })
})

test('the CPU manager takes a whole NUMA node if that many CPUs are requested', () => {
  const cpus = machine({ nodes: 2 })
  const picked = pickCpus(cpus, new Set([...idsOf(cpus)].filter((id) => id !== 0)), 8)
  assert.ok([...picked].every((id) => cpus[id]?.node === 1))
})

test('the CPU manager takes available CPUs in the requested number on as few cores as possible', () => {
  const anyMachine = fc.record({ nodes: fc.integer({ min: 1, max: 4 }), cores: fc.integer({ min: 1, max: 6 }) })
  fc.assert(
    fc.property(anyMachine, fc.infiniteStream(fc.boolean()), fc.nat(48), (shape, flags, count) => {
      const cpus = machine(shape)
      const available = new Set([...idsOf(cpus)].filter(() => flags.next().value))
      if (count > available.size) {
        assert.throws(() => pickCpus(cpus, available, count))
        return
      }
      const picked = pickCpus(cpus, available, count)
      assert.equal(picked.size, count)
      assert.ok([...picked].every((id) => available.has(id)))
      const all = pickCpus(cpus, idsOf(cpus), count)
      const cores = new Set([...all].map((id) => cpus[id]?.core))
      assert.equal(cores.size, Math.ceil(count / 2))
    }),
  )
})

test('topology hints list all sets of NUMA nodes with enough CPUs, and prefer the smallest sets', () => {
  const request = { nodes: [0, 1], count: 3, all: [[0], [0], [0], [1], [1], [1]], reusable: [] }
  assert.deepEqual(hintsFor({ ...request, available: [[0], [0], [1], [1], [1]] }), [
    { nodes: [1], isPreferred: true },
    { nodes: [0, 1], isPreferred: false },
  ])
  assert.deepEqual(hintsFor({ ...request, available: [[0], [1], [1]] }), [{ nodes: [0, 1], isPreferred: false }])
})

test('the topology manager merges hints according to its policy', () => {
  const [zero, one, both]: Hint[] = [
    { nodes: [0], isPreferred: true },
    { nodes: [1], isPreferred: true },
    { nodes: [0, 1], isPreferred: false },
  ]
  const outcomes = (hints: (readonly Hint[] | undefined)[]): string[] =>
    (['best-effort', 'restricted', 'single-numa-node'] as TopologyPolicy[]).map((policy) => {
      const { nodes, isAdmitted } = decide(policy, [0, 1], hints)
      return `${nodes?.join() ?? 'any'} ${isAdmitted}`
    })
  assert.ok(zero && one && both)
  assert.deepEqual(
    outcomes([
      [zero, one, both],
      [one, both],
    ]),
    ['1 true', '1 true', '1 true'],
  )
  assert.deepEqual(outcomes([[zero], [one]]), ['0,1 true', '0,1 false', 'any false'])
  assert.deepEqual(outcomes([[both], undefined]), ['0,1 true', '0,1 false', 'any false'])
  assert.deepEqual(outcomes([[], [zero]]), ['0 true', '0 false', 'any false'])
  assert.deepEqual(outcomes([undefined]), ['0,1 true', '0,1 true', 'any true'])
  assert.deepEqual(decide('none', [0, 1], [[]]), { nodes: undefined, isPreferred: false, isAdmitted: true })
})

test('the topology manager prefers NUMA nodes with lower numbers in sets of equal size', () => {
  const hint = (...nodes: number[]): Hint => ({ nodes, isPreferred: true })
  assert.ok(isNarrower(hint(3), hint(0, 1)))
  assert.ok(isNarrower(hint(1, 2), hint(0, 3)), 'as numbers: 6 is less than 9')
  assert.ok(!isNarrower(hint(0, 3), hint(1, 2)))
  assert.ok(!isNarrower(hint(0, 1), hint(0, 1)))
})

test('the checksum of the CPU manager checkpoint equals upstream’s', () => {
  assert.equal(cpuChecksum({ policyName: 'none', defaultCpuSet: '' }), 1353318690)
})

function guaranteed(uid: string, ...cpus: string[]): Pod {
  const containers = cpus.map((cpu, at) => {
    const resources = { cpu, memory: '1Gi' }
    return { name: `c${at}`, resources: { requests: resources, limits: resources } }
  })
  return { metadata: { uid, name: uid, namespace: 'ns' }, spec: { containers }, status: {} }
}

test('the CPU manager gives Guaranteed containers with whole CPUs exclusive ones, also after a restart', async (t) => {
  const dir = await mkdtemp(join(tmpdir(), 'cpus-'))
  t.after(() => rm(dir, { recursive: true }))
  const cpus = machine()
  const open = async (more: Partial<CpuManagerOptions> = {}): Promise<CpuManager> => {
    const path = join(dir, 'cpu_manager_state')
    const reserved = new Set([0])
    const rules = { isFullCoresOnly: false, isStrict: false, meters: createKubeletMeters() }
    const manager = new CpuManager({
      path,
      policy: 'static',
      cpus,
      reserved,
      ...rules,
      clock: realClock,
      ...more,
    })
    await manager.start()
    return manager
  }
  const first = await open()
  const pod = guaranteed('u1', '2', '500m')
  for (const container of pod.spec.containers) await first.allocate(pod, container, undefined)
  assert.deepEqual([first.cpusOf('u1', 'c0'), first.cpusOf('u1', 'c1')], ['1,5', '0,2-4,6-7'])
  const again = await open()
  assert.deepEqual([again.cpusOf('u1', 'c0'), again.cpusOf('u2', 'c')], ['1,5', '0,2-4,6-7'])
  const greedy = guaranteed('u3', '6')
  const [container] = greedy.spec.containers
  assert.ok(container)
  await assert.rejects(again.allocate(greedy, container, undefined), {
    message: 'not enough cpus available to satisfy request: requested=6, available=5',
  })
  const odd = guaranteed('u4', '3')
  const [asking] = odd.spec.containers
  assert.ok(asking)
  await assert.rejects((await open({ isFullCoresOnly: true })).allocate(odd, asking, undefined), {
    message: 'SMT Alignment Error: requested 3 cpus not multiple cpus per core = 2',
  })
  await again.release('u1')
  assert.equal(again.cpusOf('u1', 'c0'), '0-7')
  await assert.rejects(
    open({ policy: 'none' }),
    /configured policy "none" differs from state checkpoint policy "static"/,
  )
  const file = join(dir, 'cpu_manager_state')
  await writeFile(file, (await readFile(file, 'utf8')).replace('0-7', '0-6'))
  await assert.rejects(open(), /checkpoint is corrupted/)
})
