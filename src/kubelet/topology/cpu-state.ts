/** Encodes the checkpoint `cpu_manager_state` of exclusive CPUs, in upstream's format. Pure. */
import { compareText } from '#lib/go/text.ts'
import { fnv1a } from '#model/template-hash.ts'

import type { StateForm } from './state-file.ts'

export interface CpuState {
  readonly policyName: string
  readonly defaultCpuSet: string
  /** By pod and container. */
  readonly entries?: Readonly<Record<string, Readonly<Record<string, string>>>>
}

/** Prints a map as Go does, sorted by key. */
export const mapText = (entries: readonly (readonly [string, string])[]): string =>
  `map[${entries
    .toSorted(([a], [b]) => compareText(a, b))
    .map(([key, value]) => `${key}:${value}`)
    .join(' ')}]`

/** Hashes the text that upstream hashes. */
export function cpuChecksum({ policyName, defaultCpuSet, entries = {} }: CpuState): number {
  const pods = Object.entries(entries).map(([uid, ofPod]) => [uid, mapText(Object.entries(ofPod))] as const)
  const fields = [
    `PolicyName:(string)${policyName}`,
    `DefaultCPUSet:(string)${defaultCpuSet}`,
    `Entries:(map[string]map[string]string)${mapText(pods)}`,
    'Checksum:(checksum.Checksum)0',
  ]
  return fnv1a(Buffer.from(`(*state.CPUManagerCheckpoint){${fields.join(' ')}}`))
}

export const CPU_STATE: StateForm<CpuState> = { manager: 'CPU manager', tag: '', checksum: cpuChecksum }
