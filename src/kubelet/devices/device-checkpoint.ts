/** Encodes the checkpoint `kubelet_internal_checkpoint` of allocated devices, in upstream's format. Pure. */
import { compareText } from '#lib/go/text.ts'
import { fnv1a } from '#model/template-hash.ts'

import type { CheckpointForm } from '../checkpoint/checkpoint.ts'

/** The node of devices without NUMA affinity. */
export const NO_NODE = -1

export interface DeviceEntry {
  readonly PodUID: string
  readonly ContainerName: string
  readonly ResourceName: string
  /** By NUMA node. */
  readonly DeviceIDs: Readonly<Record<string, readonly string[]>>
  /** The plugin's response in base64. */
  readonly AllocResp: string
}

export interface DeviceState {
  readonly PodDeviceEntries: readonly DeviceEntry[] | null
  readonly RegisteredDevices: Readonly<Record<string, readonly string[]>>
}

/** Hashes the text that upstream hashes. */
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

export const DEVICE_STATE: CheckpointForm<DeviceState> = {
  print: (state) => JSON.stringify({ Data: state, Checksum: checksumOf(state) }),
  parse: (text) => {
    const { Data, Checksum } = JSON.parse(text) as { Data: DeviceState; Checksum: number }
    return Checksum === checksumOf(Data) ? Data : undefined
  },
}
