/**
 * Encodes the checkpoint `memory_manager_state` of memory per NUMA node and its allocations, in upstream's format.
 * Pure.
 */
import { fnv1a } from '#model/template-hash.ts'

import { mapText } from './cpu-state.ts'
import type { Block, MachineState, MemoryTable, NumaNodeState } from './memory-table.ts'
import type { StateForm } from './state-file.ts'

export interface MemoryState {
  readonly policyName: string
  readonly machineState: MachineState
  /** By pod and container. */
  readonly entries?: Readonly<Record<string, Readonly<Record<string, readonly Block[]>>>>
}

/** Hashes the text that upstream hashes. */
export function memoryChecksum({ policyName, machineState, entries = {} }: MemoryState): number {
  const nodes = Object.entries(machineState)
    .sort(([a], [b]) => Number(a) - Number(b))
    .map(([id, node]) => `${id}:<*>${nodeText(node)}`)
  const pods = Object.entries(entries).map(([uid, containers]) => {
    const texts = Object.entries(containers).map(
      ([name, blocks]) => [name, `[${blocks.map(blockText).join(' ')}]`] as const,
    )
    return [uid, mapText(texts)] as const
  })
  const fields = [
    `PolicyName:(string)${policyName}`,
    `MachineState:(state.NUMANodeMap)map[${nodes.join(' ')}]`,
    `Entries:(state.ContainerMemoryAssignments)${mapText(pods)}`,
    'Checksum:(checksum.Checksum)0',
  ]
  return fnv1a(Buffer.from(`(*state.MemoryManagerCheckpoint){${fields.join(' ')}}`))
}

const listText = (nodes: readonly number[]): string => `([]int)[${nodes.join(' ')}]`

function nodeText({ numberOfAssignments, memoryMap, cells }: NumaNodeState): string {
  const tables = Object.entries(memoryMap).map(([type, table]) => [type, `<*>${tableText(table)}`] as const)
  const fields = [
    `NumberOfAssignments:(int)${numberOfAssignments}`,
    `MemoryMap:(map[v1.ResourceName]*state.MemoryTable)${mapText(tables)}`,
    `Cells:${listText(cells)}`,
  ]
  return `{${fields.join(' ')}}`
}

function tableText({ total, systemReserved, allocatable, reserved, free }: MemoryTable): string {
  const named = [
    ['TotalMemSize', total],
    ['SystemReserved', systemReserved],
    ['Allocatable', allocatable],
    ['Reserved', reserved],
    ['Free', free],
  ] as const
  return `{${named.map(([name, value]) => `${name}:(uint64)${value}`).join(' ')}}`
}

const blockText = ({ numaAffinity, type, size }: Block): string =>
  `{NUMAAffinity:${listText(numaAffinity)} Type:(v1.ResourceName)${type} Size:(uint64)${size}}`

export const MEMORY_STATE: StateForm<MemoryState> = {
  manager: 'memory manager',
  tag: '[memorymanager] ',
  checksum: memoryChecksum,
}
