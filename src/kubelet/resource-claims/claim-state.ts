/** `dra_manager_state`: which claims drivers have prepared, for which pods, in upstream's form. */
import { readFile } from 'node:fs/promises'
import { crc32 } from 'node:zlib'

import { writeFileAtomically } from '#lib/atomic-file.ts'

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
  /** A set, as Go writes one. */
  readonly PodUIDs: Readonly<Record<string, object>>
  /** By driver, also those that gave no device. */
  readonly DriverState: Readonly<Record<string, { readonly Devices: readonly DeviceOfClaim[] | null }>>
}

/** Pure. */
export function claimStatesText(claims: readonly ClaimState[]): string {
  const identity = { kind: 'DRACheckpoint', apiVersion: 'checkpoint.dra.kubelet.k8s.io/v1' }
  const Data = JSON.stringify({ ...identity, ClaimInfoStateList: claims.length === 0 ? null : claims })
  return JSON.stringify({ Data, Checksum: crc32(Data) })
}

/** Pure. Nothing of a text that is not whole. */
export function parseClaimStates(text: string): readonly ClaimState[] {
  try {
    const { Data, Checksum } = JSON.parse(text) as { Data: string; Checksum: number }
    if (crc32(Data) !== Checksum) return []
    return (JSON.parse(Data) as { ClaimInfoStateList: ClaimState[] | null }).ClaimInfoStateList ?? []
  } catch {
    return []
  }
}

export const readClaimStates = async (path: string): Promise<readonly ClaimState[]> =>
  parseClaimStates(await readFile(path, 'utf8').catch(() => ''))

export const writeClaimStates = (path: string, claims: readonly ClaimState[]): Promise<void> =>
  writeFileAtomically(path, claimStatesText(claims), { mode: 0o600 })
