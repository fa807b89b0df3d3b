/**
 * What nodes of memory have, and what of it is taken: a table that follows from what the machine has and the blocks that containers
 * hold. A node whose memory is given together with another's is in a group with it, and gives none alone until all of that is free
 * again. Pure.
 */
import { compareText } from '#lib/go-text.ts'

import type { MemoryNode } from './memory-nodes.ts'

/** What a container holds of one kind of memory. In the form of the state file. */
export interface Block {
  readonly numaAffinity: readonly number[]
  /** `memory`, `hugepages-2Mi`. */
  readonly type: string
  readonly size: number
}

/** One kind of memory of one node, in bytes. In the form of the state file. */
export interface MemoryTable {
  readonly total: number
  readonly systemReserved: number
  readonly allocatable: number
  reserved: number
  free: number
}

export interface NodeState {
  /** Blocks that have something of it. */
  numberOfAssignments: number
  readonly memoryMap: Readonly<Record<string, MemoryTable>>
  /** Its group: itself alone, or with those that memory was given together with. */
  cells: readonly number[]
}

/** By node. */
export type MachineState = Readonly<Record<number, NodeState>>

/** For the machine itself: by node, then by kind. */
export type SystemReserved = ReadonlyMap<number, ReadonlyMap<string, number>>

export const MEMORY = 'memory'

/** With nothing taken. */
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

/** With all those blocks taken. The argument stays as it was. Throws what is wrong with a block in upstream's words. */
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

/** From the first node as much as it has, the rest from those after it. */
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

/** How much those nodes have of a kind, together. */
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
 * Whether two tables are of the same machine with the same taken. How much each node of a group has given is left open: that hangs
 * on the order in which blocks were taken and came back.
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
