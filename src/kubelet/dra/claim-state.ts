/** Encodes the checkpoint `dra_manager_state` of prepared claims and their pods, in upstream's format. Pure. */
import { crc32 } from 'node:zlib'

import type { CheckpointForm } from '../checkpoint/checkpoint.ts'

export interface DeviceOfClaim {
  readonly PoolName: string
  readonly DeviceName: string
  readonly ShareID: string | null
  readonly RequestNames: readonly string[] | null
  readonly CDIDeviceIDs: readonly string[] | null
}

export interface ClaimState {
  readonly ClaimUID: string
  readonly ClaimName: string
  readonly Namespace: string
  /** A set in Go's encoding. */
  readonly PodUIDs: Readonly<Record<string, object>>
  /** By driver, including drivers without devices. */
  readonly DriverState: Readonly<Record<string, { readonly Devices: readonly DeviceOfClaim[] | null }>>
}

const IDENTITY = { kind: 'DRACheckpoint', apiVersion: 'checkpoint.dra.kubelet.k8s.io/v1' }

export const CLAIM_STATES: CheckpointForm<readonly ClaimState[]> = {
  print: (claims) => {
    const Data = JSON.stringify({ ...IDENTITY, ClaimInfoStateList: claims.length === 0 ? null : claims })
    return JSON.stringify({ Data, Checksum: crc32(Data) })
  },
  parse: (text) => {
    const { Data, Checksum } = JSON.parse(text) as { Data: string; Checksum: number }
    if (crc32(Data) !== Checksum) return undefined
    return (JSON.parse(Data) as { ClaimInfoStateList: ClaimState[] | null }).ClaimInfoStateList ?? []
  },
}
