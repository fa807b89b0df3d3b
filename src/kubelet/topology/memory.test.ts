import assert from 'node:assert/strict'
import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { test } from 'node:test'

import fc from 'fast-check'

import type { Container, Pod } from '#apis/core/v1.ts'
import { realClock } from '#lib/clock.ts'

import { createKubeletMeters, type KubeletMeters } from '../metrics/kubelet-families.ts'
import { ANYWHERE, type Hint } from './hints.ts'
import { MemoryManager, type MemoryManagerOptions, memoryRequest } from './memory-manager.ts'
import { hugePagesName, type MemoryNode, memoryOf } from './memory-nodes.ts'
import { memoryHints, pickMemoryNodes } from './memory-picking.ts'
import { reservedByNode } from './memory-reservations.ts'
import { memoryChecksum } from './memory-state.ts'
import { emptyMachine, isSameMachine, type MachineState, withBlocks } from './memory-table.ts'

const GI = 1024 ** 3

const node = (id: number, gi = 10): MemoryNode => ({ id, memoryBytes: gi * GI, hugePages: new Map() })

const RESERVED = new Map([[0, new Map([['memory', GI]])]])
const TWO = emptyMachine([node(0), node(1)], RESERVED)

const request = (gi: number): Map<string, number> => new Map([['memory', gi * GI]])
const noneReusable = (): number => 0

const shown = (hints: readonly Hint[]): string[] =>
  hints.map(({ nodes, isPreferred }) => `${nodes?.join()}${isPreferred ? '!' : ''}`)

const hintsOf = (machine: MachineState, gi: number): string[] =>
  shown(memoryHints({ machine, request: request(gi), reusable: noneReusable }))

const taken = (machine: MachineState, gi: number, ...numaAffinity: number[]): MachineState =>
  withBlocks(machine, [{ numaAffinity, type: 'memory', size: gi * GI }])

test('the memory manager reads memory types of each NUMA node', () => {
  assert.equal(memoryOf('Node 0 MemTotal:       24682416 kB\nNode 0 MemFree: 1 kB\n'), 24_682_416 * 1024)
  assert.deepEqual([2048, 1_048_576, 64].map(hugePagesName), ['hugepages-2Mi', 'hugepages-1Gi', 'hugepages-64Ki'])
  const hugePages = new Map([['hugepages-1Gi', 2 * GI]])
  const machine = emptyMachine([{ id: 0, memoryBytes: 10 * GI, hugePages }], RESERVED)
  assert.deepEqual(machine[0]?.memoryMap, {
    'hugepages-1Gi': { total: 2 * GI, systemReserved: 0, allocatable: 2 * GI, reserved: 0, free: 2 * GI },
    memory: { total: 10 * GI, systemReserved: GI, allocatable: 7 * GI, reserved: 0, free: 7 * GI },
  })
})

test('the memory manager prefers memory of one NUMA node, and groups only nodes that serve no single containers', () => {
  assert.deepEqual(hintsOf(TWO, 8), ['0!', '1!', '0,1'])
  assert.deepEqual(hintsOf(TWO, 10), ['1!', '0,1'], 'the first keeps some for the machine')
  assert.deepEqual(hintsOf(TWO, 15), ['0,1!'])
  assert.deepEqual(hintsOf(TWO, 20), [])
  const single = taken(TWO, 4, 0)
  assert.deepEqual(hintsOf(single, 4), ['0!', '1!'], 'one that serves a container alone is in no group')
  assert.deepEqual(hintsOf(single, 15), [])
  const grouped = taken(TWO, 12, 0, 1)
  assert.deepEqual(hintsOf(grouped, 4), ['0,1'], 'one in a group serves no container alone')
  assert.deepEqual([grouped[0]?.memoryMap['memory']?.free, grouped[1]?.memoryMap['memory']?.free], [0, 7 * GI])
})

test('the memory manager rejects conflicting requests with upstream’s texts', () => {
  const pick = (machine: MachineState, gi: number, hint: Hint = ANYWHERE): readonly number[] =>
    pickMemoryNodes({ machine, request: request(gi), reusable: noneReusable }, hint)
  const refused = (machine: MachineState, gi: number, hint: Hint, why: string): void =>
    assert.throws(() => pick(machine, gi, hint), { message: `[memorymanager] ${why}` })
  assert.deepEqual(pick(TWO, 4), [0])
  assert.deepEqual(pick(TWO, 15), [0, 1])
  assert.deepEqual(pick(TWO, 15, { nodes: [1], isPreferred: false }), [0, 1], 'widened to what is enough')
  refused(TWO, 20, ANYWHERE, 'failed to get the default NUMA affinity, no NUMA nodes with enough memory is available')
  refused(
    TWO,
    20,
    { nodes: [0, 1], isPreferred: true },
    'failed to find NUMA nodes to extend the current topology hint',
  )
  const single = taken(taken(TWO, 9, 0), 1, 1)
  refused(
    single,
    12,
    { nodes: [0], isPreferred: true },
    'failed to find NUMA nodes to extend the current topology hint',
  )
  refused(single, 2, { nodes: [0, 1], isPreferred: true }, 'preferred hint violates NUMA node allocation')
  const grouped = taken(TWO, 12, 0, 1)
  refused(grouped, 4, { nodes: undefined, isPreferred: true }, 'failed to find the default preferred hint')
  refused(
    grouped,
    9,
    { nodes: [0], isPreferred: true },
    'failed to find NUMA nodes to extend the current topology hint',
  )
  refused(grouped, 4, { nodes: [0], isPreferred: true }, 'failed to find the extended preferred hint')
})

test('allocations and releases of memory keep the totals of each NUMA node', () => {
  const sizes = fc.array(fc.record({ gi: fc.integer({ min: 1, max: 12 }), leaves: fc.boolean() }), { maxLength: 12 })
  fc.assert(
    fc.property(fc.integer({ min: 1, max: 4 }), sizes, (count, requests) => {
      const empty = emptyMachine(
        Array.from({ length: count }, (_, id) => node(id)),
        RESERVED,
      )
      const blocks = new Map<number, { numaAffinity: readonly number[]; type: string; size: number }>()
      for (const [at, { gi, leaves }] of requests.entries()) {
        const machine = withBlocks(empty, blocks.values())
        try {
          const numaAffinity = pickMemoryNodes({ machine, request: request(gi), reusable: noneReusable }, ANYWHERE)
          blocks.set(at, { numaAffinity, type: 'memory', size: gi * GI })
        } catch {
          assert.deepEqual(hintsOf(machine, gi), [], 'refused only when there is no room')
        }
        if (leaves) blocks.delete([...blocks.keys()][0] ?? -1)
      }
      const machine = withBlocks(empty, blocks.values())
      const given = [...blocks.values()].reduce((sum, { size }) => sum + size, 0)
      const tables = Object.values(machine).map(({ memoryMap }) => memoryMap['memory'])
      assert.equal(
        tables.reduce((sum, table) => sum + (table?.reserved ?? 0), 0),
        given,
      )
      assert.ok(
        tables.every(
          (table) => table !== undefined && table.free >= 0 && table.free + table.reserved === table.allocatable,
        ),
      )
      const groups = Object.entries(machine).map(([id, { cells }]) => ({ id: Number(id), cells }))
      assert.ok(
        groups.every(({ id, cells }) => cells.includes(id) && cells.every((cell) => isSameCells(machine, id, cell))),
      )
      assert.ok(isSameMachine(machine, withBlocks(empty, [...blocks.values()].toReversed())))
    }),
  )
})

const isSameCells = (machine: MachineState, a: number, b: number): boolean =>
  JSON.stringify(machine[a]?.cells) === JSON.stringify(machine[b]?.cells)

test('reserved memory of NUMA nodes must add up to the reserved memory of the node', () => {
  const input = {
    policy: 'Static',
    nodes: [node(0), node(1)],
    reserved: {
      kubeReserved: { memory: '512Mi' },
      systemReserved: { memory: '412Mi' },
      evictionHard: { 'memory.available': '100Mi' },
    },
    capacity: { memory: '20Gi' },
  }
  const of = (...reservations: [numaNode: number, memory: string][]): ReturnType<typeof reservedByNode> =>
    reservedByNode({
      ...input,
      reservations: reservations.map(([numaNode, memory]) => ({ numaNode, limits: { memory } })),
    })
  assert.equal(of([0, '1Gi']).get(0)?.get('memory'), GI)
  const first = { ...input, reservations: [{ limits: { memory: '1Gi' } }] }
  assert.equal(reservedByNode(first).get(0)?.get('memory'), GI, 'zero is left out of files')
  assert.equal(of([0, '512Mi'], [1, '512Mi']).get(1)?.get('memory'), GI / 2)
  assert.throws(() => of([0, '1Gi'], [2, '1Gi']), {
    message: 'the reserved memory configuration references a NUMA node 2 that does not exist on this machine',
  })
  assert.throws(() => of([0, '2Gi']), {
    message:
      'the total amount "2Gi" of type "memory" is not equal to the value "1Gi" determined by Node Allocatable feature',
  })
  const none = { ...input, reserved: {}, reservations: [] }
  assert.throws(() => reservedByNode(none), {
    message: '[memorymanager] you should specify the system reserved memory',
  })
  assert.throws(() => reservedByNode({ ...none, policy: 'BestEffort' }), {
    message: 'policy "BestEffort" is not available for platform "linux"',
  })
  assert.throws(() => reservedByNode({ ...none, policy: 'static' }), { message: 'unknown policy: "static"' })
  assert.equal(reservedByNode({ ...none, policy: 'None' }).size, 0)
})

test('the checksum of the memory manager checkpoint equals upstream’s', () => {
  assert.equal(memoryChecksum({ policyName: 'None', machineState: {} }), 4_236_770_233)
})

const sized = (name: string, memory: string, more: Partial<Container> = {}): Container => {
  const amounts = { cpu: '1', memory }
  return { name, resources: { requests: amounts, limits: amounts }, ...more }
}

const podWith = (uid: string, containers: Container[], initContainers: Container[] = []): Pod => ({
  metadata: { uid, name: uid, namespace: 'ns' },
  spec: { containers, initContainers },
  status: {},
})

interface Bed {
  readonly path: string
  readonly meters: KubeletMeters
  readonly open: (more?: Partial<MemoryManagerOptions>) => Promise<MemoryManager>
}

async function withBed(work: (bed: Bed) => Promise<void>): Promise<void> {
  const dir = await mkdtemp(join(tmpdir(), 'memory-'))
  const path = join(dir, 'memory_manager_state')
  const meters = createKubeletMeters()
  const nodes = [node(0), node(1)]
  try {
    await work({
      path,
      meters,
      open: async (more = {}) => {
        const manager = new MemoryManager({
          path,
          policy: 'Static',
          nodes,
          reserved: RESERVED,
          clock: realClock,
          meters,
          ...more,
        })
        await manager.start()
        return manager
      },
    })
  } finally {
    await rm(dir, { recursive: true })
  }
}

async function admit(manager: MemoryManager, pod: Pod): Promise<void> {
  for (const container of [...(pod.spec.initContainers ?? []), ...pod.spec.containers]) {
    await manager.allocate(pod, container, ANYWHERE)
  }
}

test('the memory manager assigns Guaranteed containers to NUMA nodes, also after a restart', () =>
  withBed(async ({ path, meters, open }) => {
    const manager = await open()
    const pod = podWith('u1', [sized('a', '8Gi'), sized('b', '8Gi')])
    await admit(manager, pod)
    assert.deepEqual(
      [manager.nodesOf('u1', 'a'), manager.nodesOf('u1', 'b'), manager.nodesOf('u2', 'a')],
      ['0', '1', ''],
    )
    const burstable = podWith('u2', [{ name: 'a', resources: { requests: { memory: '1Gi' } } }])
    await admit(manager, burstable)
    assert.deepEqual(manager.uids(), ['u1'], 'others take memory wherever there is some')
    const again = await open()
    assert.deepEqual([again.nodesOf('u1', 'a'), again.nodesOf('u1', 'b')], ['0', '1'])
    const greedy = podWith('u3', [sized('a', '3Gi')])
    await assert.rejects(admit(again, greedy), {
      message: '[memorymanager] failed to get the default NUMA affinity, no NUMA nodes with enough memory is available',
    })
    const lines = meters.registry.render().split('\n')
    assert.ok(lines.includes('kubelet_memory_manager_pinning_requests_total 3'))
    assert.ok(lines.includes('kubelet_memory_manager_pinning_errors_total 1'))
    assert.deepEqual(shown(again.hints(pod, sized('a', '8Gi')).flatMap((hints) => hints ?? [])), ['0!'])
    assert.deepEqual(
      again.hints(greedy, sized('a', '3Gi')),
      [undefined],
      'nowhere: it is refused when it is given some',
    )
    await again.release('u1')
    assert.deepEqual(again.hints(burstable, { name: 'a', resources: {} }), [])
    assert.deepEqual(
      again.allocatable.map(({ size }) => size / GI),
      [9, 10],
    )
    await assert.rejects(open({ nodes: [node(0), node(1, 11)] }), {
      message: 'start memory manager error: [memorymanager] the expected machine state is different from the real one',
    })
    await assert.rejects(open({ policy: 'None' }), {
      message: `could not restore state from checkpoint: [memorymanager] configured policy "None" differs from state checkpoint policy "Static", please drain this node and delete the memory manager checkpoint file "${path}" before restarting Kubelet`,
    })
    await writeFile(path, (await readFile(path, 'utf8')).replace('"free":', '"free":1'))
    await assert.rejects(open(), /checkpoint is corrupted/)
  }))

test('the memory manager reuses memory of init containers, and frees the rest when main containers start', () =>
  withBed(async ({ path, open }) => {
    const manager = await open()
    const sidecar = sized('side', '2Gi', { restartPolicy: 'Always' })
    const pod = podWith('u1', [sized('app', '4Gi')], [sized('init', '8Gi'), sidecar])
    await admit(manager, pod)
    const sizes = (): Record<string, number> =>
      Object.fromEntries(
        ['init', 'side', 'app'].map((name) => [name, (manager.blocksOf('u1', name)[0]?.size ?? 0) / GI]),
      )
    assert.deepEqual(sizes(), { init: 2, side: 2, app: 4 }, 'together as much as the most that is needed at once')
    const state = JSON.parse(await readFile(path, 'utf8')) as { machineState: MachineState }
    assert.equal(state.machineState[0]?.memoryMap['memory']?.reserved, 8 * GI)
    assert.match(
      await readFile(path, 'utf8'),
      /"numberOfAssignments":3,"memoryMap":.*"cells":\[0\]\}.*"app":.*"init":.*"side":/,
    )
    await manager.releaseInitMemory(pod, sidecar)
    assert.deepEqual(sizes(), { init: 0, side: 2, app: 4 })
    assert.equal(manager.nodesOf('u1', 'init'), '')
    await open()
  }))

test('the memory manager allocates only requests of Guaranteed containers', () => {
  const pod = podWith('u1', [sized('a', '1Gi')])
  assert.deepEqual([...memoryRequest(pod, sized('a', '1Gi'))], [['memory', GI]])
  const amounts = { 'hugepages-2Mi': '4Mi', memory: '1Gi', cpu: '1' }
  const huge = podWith('u2', [{ name: 'a', resources: { requests: amounts, limits: amounts } }])
  assert.deepEqual(
    [...memoryRequest(huge, huge.spec.containers[0] ?? { name: '', resources: {} })],
    [
      ['hugepages-2Mi', 4 * 1024 ** 2],
      ['memory', GI],
    ],
  )
  const whole = { ...pod, spec: { ...pod.spec, resources: { limits: { memory: '1Gi' } } } }
  assert.equal(memoryRequest(whole, sized('a', '1Gi')).size, 0, 'limits of the pod are shared')
})
