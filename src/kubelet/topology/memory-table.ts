/**
 * Computes the free memory of each NUMA node from the machine and the allocated blocks. Nodes that share a block form a
 * group until the block is freed. Pure.
 */
import { compareText } from '#lib/go/text.ts'

import type { MemoryNode } from './memory-nodes.ts'

/** Memory of one type allocated to a container, in the checkpoint's format. */
export interface Block {
  readonly numaAffinity: readonly number[]
  /** `memory`, `hugepages-2Mi`. */
  readonly type: string
  readonly size: number
}

/** One memory type of one node in bytes, in the checkpoint's format. */
export interface MemoryTable {
  readonly total: number
  readonly systemReserved: number
  readonly allocatable: number
  reserved: number
  free: number
}

export interface NumaNodeState {
  /** Number of blocks that use the node. */
  numberOfAssignments: number
  readonly memoryMap: Readonly<Record<string, MemoryTable>>
  /** The node's group: itself, or all nodes of a shared block. */
  cells: readonly number[]
}

/** By NUMA node. */
export type MachineState = Readonly<Record<number, NumaNodeState>>

/** Reserved for the system: by node, then by type. */
export type SystemReserved = ReadonlyMap<number, ReadonlyMap<string, number>>

export const MEMORY = 'memory'

/** The table without allocations. */
export function emptyMachine(nodes: readonly MemoryNode[], reserved: SystemReserved): MachineState {
  return Object.fromEntries(
    nodes.map(({ id, memoryBytes, hugePages }) => {
      const inPages = [...hugePages.values()].reduce((sum, bytes) => sum + bytes, 0)
      const tables = [...hugePages, [MEMORY, memoryBytes] as const].map(([type, total]) => {
        const systemReserved = reserved.get(id)?.get(type) ?? 0
        const allocatable = total - systemReserved - (type === MEMORY ? inPages : 0)
        return [type, { total, systemReserved, allocatable, reserved: 0, free: allocatable }] as const
      })
      const memoryMap = Object.fromEntries(tables.toSorted(([a], [b]) => compareText(a, b)))
      return [id, { numberOfAssignments: 0, memoryMap, cells: [id] }]
    }),
  )
}

/** Returns a copy with the blocks allocated. Throws upstream's text for an invalid block. */
export function withBlocks(machine: MachineState, blocks: Iterable<Block>): MachineState {
  const next = copyOf(machine)
  for (const block of blocks) take(next, block)
  return next
}

function copyOf(machine: MachineState): MachineState {
  return Object.fromEntries(
    Object.entries(machine).map(([id, node]) => {
      const tables = Object.entries(node.memoryMap).map(([type, table]) => [type, { ...table }] as const)
      return [id, { ...node, memoryMap: Object.fromEntries(tables) }]
    }),
  )
}

/** Takes from the first node as much as possible, the rest from the next ones. */
function take(machine: MachineState, { numaAffinity, type, size }: Block): void {
  let left = size
  for (const id of numaAffinity) {
    const node = machine[id]
    if (node === undefined) throw new Error('the memory assignment uses the NUMA that does not exist')
    node.numberOfAssignments += 1
    node.cells = numaAffinity
    const table = node.memoryMap[type]
    if (table === undefined) throw new Error('the memory assignment uses memory resource that does not exist')
    const taken = Math.min(table.free, left)
    table.reserved += taken
    table.free -= taken
    left -= taken
  }
}

/** The sum over the nodes for one type. */
export function sumOf(
  machine: MachineState,
  nodes: readonly number[],
  type: string,
  of: 'free' | 'reserved' | 'allocatable',
): number {
  return nodes.reduce((sum, id) => sum + (machine[id]?.memoryMap[type]?.[of] ?? 0), 0)
}

export const isSameGroup = (a: readonly number[], b: readonly number[]): boolean =>
  a.length === b.length && a.every((id) => b.includes(id))

/**
 * True if both tables describe the same machine and allocations. The split within a group may differ, because it
 * depends on the order of allocations.
 */
export function isSameMachine(a: MachineState, b: MachineState): boolean {
  const ids = Object.keys(a).map(Number)
  return ids.length === Object.keys(b).length && ids.every((id) => isSameNode(a, b, id))
}

function isSameNode(a: MachineState, b: MachineState, id: number): boolean {
  const [one, other] = [a[id], b[id]]
  if (one === undefined || other === undefined) return false
  if (one.numberOfAssignments !== other.numberOfAssignments || !isSameGroup(one.cells, other.cells)) return false
  const types = Object.keys(one.memoryMap)
  if (types.length !== Object.keys(other.memoryMap).length) return false
  return types.every((type) => {
    const [mine, theirs] = [one.memoryMap[type], other.memoryMap[type]]
    if (mine === undefined || theirs === undefined) return false
    const isSameSize = (['total', 'systemReserved', 'allocatable'] as const).every((of) => mine[of] === theirs[of])
    const sums = (['free', 'reserved'] as const).every(
      (of) => sumOf(a, one.cells, type, of) === sumOf(b, one.cells, type, of),
    )
    return isSameSize && sums
  })
}
