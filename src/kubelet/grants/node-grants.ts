/** What a node sets aside for its pods, from all who have something to give. */
import type { Container, EphemeralContainer, Pod } from '#apis/core/v1.ts'

import type { Rejection } from '../admission-rules.ts'
import { messageText } from '../cri/call-text.ts'
import type { DeviceManager } from '../devices/device-manager.ts'
import type { ClaimManager } from '../resource-claims/claim-manager.ts'
import { Turns } from '../volumes/turns.ts'
import { type ContainerGrant, mergeGrants, NO_GRANT, type PodGrants } from './container-grant.ts'

export interface NodeGrantsOptions {
  readonly devices: DeviceManager
  readonly claims: ClaimManager
}

/** Pods are admitted one after the other: none sees what another is about to get. */
const ADMISSION = 'admission'

export class NodeGrants implements PodGrants {
  readonly #options: NodeGrantsOptions
  readonly #turns = new Turns()

  constructor(options: NodeGrantsOptions) {
    this.#options = options
  }

  admit(pod: Pod): Promise<Rejection | undefined> {
    return this.#turns.take(ADMISSION, () => this.#admit(pod))
  }

  async #admit(pod: Pod): Promise<Rejection | undefined> {
    const { devices } = this.#options
    try {
      for (const container of containersOf(pod)) await devices.allocate(pod, container, undefined)
      return undefined
    } catch (error) {
      await devices.release(pod.metadata.uid ?? '')
      const text = `Allocate failed due to ${messageText(error)}, which is unexpected`
      return { reason: 'UnexpectedAdmissionError', text }
    }
  }

  prepare(pod: Pod): Promise<void> {
    return this.#options.claims.prepare(pod)
  }

  async grantOf(pod: Pod, container: Container | EphemeralContainer): Promise<ContainerGrant> {
    const { devices, claims } = this.#options
    const ofClaims = { ...NO_GRANT, cdiDevices: claims.cdiDevicesOf(pod, container) }
    return mergeGrants([await devices.grantOf(pod, container), ofClaims])
  }

  async release(uid: string): Promise<void> {
    const { devices, claims } = this.#options
    await devices.release(uid)
    await claims.release(uid)
  }

  uids(): readonly string[] {
    const { devices, claims } = this.#options
    return [...new Set([...devices.uids(), ...claims.uids()])]
  }
}

/** Those that are given something, in the order in which they start. */
export const containersOf = ({ spec: { initContainers = [], containers } }: Pod): Container[] => [
  ...initContainers,
  ...containers,
]
