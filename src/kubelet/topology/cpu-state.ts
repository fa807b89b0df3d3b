/** `cpu_manager_state`: who has which processors for its own, in upstream's form. */
import { readFile } from 'node:fs/promises'

import { writeFileAtomically } from '#lib/atomic-file.ts'
import { compareText } from '#lib/go-text.ts'
import { fnv1a } from '#model/template-hash.ts'

export interface CpuState {
  readonly policyName: string
  readonly defaultCpuSet: string
  /** By pod and container. */
  readonly entries?: Readonly<Record<string, Readonly<Record<string, string>>>>
}

const mapText = (entries: readonly (readonly [string, string])[]): string =>
  `map[${entries
    .toSorted(([a], [b]) => compareText(a, b))
    .map(([key, value]) => `${key}:${value}`)
    .join(' ')}]`

/** Pure. As upstream prints what it hashes. */
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

/** Undefined when there is none. Throws when it is not whole: nobody knows what pods have. */
export async function readCpuState(path: string): Promise<CpuState | undefined> {
  const text = await readFile(path, 'utf8').catch(() => undefined)
  if (text === undefined) return undefined
  const { checksum, ...state } = JSON.parse(text) as CpuState & { checksum: number }
  if (checksum === cpuChecksum(state)) return state
  throw new Error(
    `could not restore state from checkpoint: checkpoint is corrupted, please drain this node and delete the CPU manager checkpoint file "${path}" before restarting Kubelet`,
  )
}

export async function writeCpuState(path: string, state: CpuState): Promise<void> {
  const { policyName, defaultCpuSet, entries = {} } = state
  const hasEntries = Object.keys(entries).length > 0
  const text = JSON.stringify({
    policyName,
    defaultCpuSet,
    ...(hasEntries && { entries }),
    checksum: cpuChecksum(state),
  })
  await writeFileAtomically(path, text, { mode: 0o600 })
}
