/** `kubelet_internal_checkpoint`: who has which devices, in upstream's form. */
import { readFile } from 'node:fs/promises'

import { writeFileAtomically } from '#lib/atomic-file.ts'
import { compareText } from '#lib/go-text.ts'
import { fnv1a } from '#model/template-hash.ts'

/** Devices without a place of their own. */
export const NOWHERE = -1

export interface DeviceEntry {
  readonly PodUID: string
  readonly ContainerName: string
  readonly ResourceName: string
  /** By node of memory. */
  readonly DeviceIDs: Readonly<Record<string, readonly string[]>>
  /** Base64 of the plugin's answer. */
  readonly AllocResp: string
}

export interface DeviceState {
  readonly PodDeviceEntries: readonly DeviceEntry[] | null
  readonly RegisteredDevices: Readonly<Record<string, readonly string[]>>
}

/** Pure. As upstream prints what it hashes. */
export function checksumOf({ PodDeviceEntries, RegisteredDevices }: DeviceState): number {
  const list = (texts: readonly string[]): string => `[${texts.join(' ')}]`
  const entries = (PodDeviceEntries ?? []).map((entry) => {
    const nodes = Object.entries(entry.DeviceIDs).sort(([a], [b]) => Number(a) - Number(b))
    const texts = [
      `PodUID:(string)${entry.PodUID}`,
      `ContainerName:(string)${entry.ContainerName}`,
      `ResourceName:(string)${entry.ResourceName}`,
      `DeviceIDs:(checkpoint.DevicesPerNUMA)map[${nodes.map(([node, ids]) => `${node}:${list(ids)}`).join(' ')}]`,
      `AllocResp:([]uint8)[${[...Buffer.from(entry.AllocResp, 'base64')].join(' ')}]`,
    ]
    return `{${texts.join(' ')}}`
  })
  const registered = Object.entries(RegisteredDevices)
    .sort(([a], [b]) => compareText(a, b))
    .map(([name, ids]) => `${name}:${list(ids)}`)
  const there = PodDeviceEntries === null ? '<nil>' : `[${entries.join(' ')}]`
  const text =
    `(checkpoint.checkpointData){PodDeviceEntries:([]checkpoint.PodDevicesEntry)${there} ` +
    `RegisteredDevices:(map[string][]string)map[${registered.join(' ')}]}`
  return fnv1a(Buffer.from(text))
}

/** Undefined when there is none that can be read. */
export async function readDeviceState(path: string): Promise<DeviceState | undefined> {
  try {
    return (JSON.parse(await readFile(path, 'utf8')) as { Data: DeviceState }).Data
  } catch {
    return undefined
  }
}

export async function writeDeviceState(path: string, state: DeviceState): Promise<void> {
  await writeFileAtomically(path, JSON.stringify({ Data: state, Checksum: checksumOf(state) }), { mode: 0o600 })
}
