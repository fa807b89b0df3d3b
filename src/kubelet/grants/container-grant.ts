/** What a node sets aside for pods beside what the kernel shares out: devices, claims, processors and memory of their own. */
import type { Container, EphemeralContainer, Pod } from '#apis/core/v1.ts'
import type { Input } from '#lib/protobuf/message.ts'

import type { Rejection } from '../admission-rules.ts'
import type { Device, Mount } from '../cri/container-messages.ts'

/** What a container is created with for that. */
export interface ContainerGrant {
  readonly envs: ReadonlyMap<string, string>
  readonly mounts: readonly Input<Mount>[]
  readonly devices: readonly Input<Device>[]
  readonly annotations: ReadonlyMap<string, string>
  /** Names of CDI devices. */
  readonly cdiDevices: readonly string[]
  /** `0-3,8`; '' for all that are shared. */
  readonly cpus: string
  /** Those are its own: no limit binds it there. */
  readonly hasOwnCpus: boolean
  /** Nodes of memory, `0-1`; '' for all. */
  readonly memoryNodes: string
}

export const NO_GRANT: ContainerGrant = {
  envs: new Map(),
  mounts: [],
  devices: [],
  annotations: new Map(),
  cdiDevices: [],
  cpus: '',
  hasOwnCpus: false,
  memoryNodes: '',
}

export interface InfeasibleResize {
  readonly text: string
  /** As it is counted. */
  readonly label: string
}

export interface PodGrants {
  /** Sets aside what the pod asks for. Undefined: it has it. What it has already it keeps. */
  admit(pod: Pod): Promise<Rejection | undefined>
  /** Before its sandbox is made. Rejects with what the pod waits for. */
  prepare(pod: Pod): Promise<void>
  /** For a container that is about to be created. Rejects with what it cannot be created for. */
  grantOf(pod: Pod, container: Container | EphemeralContainer): Promise<ContainerGrant>
  /** Why what it holds of its own cannot be made another amount of; undefined: it holds nothing of the kind. */
  refuseResize(desired: Pod, granted: Pod): InfeasibleResize | undefined
  /** Limits of processors do not bind it, for it has some of its own; without a container: one of the pod's has. */
  hasOwnCpus(uid: string, container?: string): boolean
  /** All its containers have ended. Harmless when repeated; rejects when it must be tried again. */
  release(uid: string): Promise<void>
  /** Who has something, from before a restart too. */
  uids(): readonly string[]
}

export const NO_GRANTS: PodGrants = {
  admit: async () => undefined,
  prepare: async () => undefined,
  grantOf: async () => NO_GRANT,
  refuseResize: () => undefined,
  hasOwnCpus: () => false,
  release: async () => undefined,
  uids: () => [],
}

/** Several as one. Of what only one can say, the last one counts that says something. Pure. */
export function mergeGrants(grants: readonly ContainerGrant[]): ContainerGrant {
  const byPath = <T extends { readonly containerPath?: string | undefined }>(all: readonly T[]): T[] => [
    ...new Map(all.map((each) => [each.containerPath, each])).values(),
  ]
  return {
    envs: new Map(grants.flatMap(({ envs }) => [...envs])),
    mounts: byPath(grants.flatMap(({ mounts }) => mounts)),
    devices: byPath(grants.flatMap(({ devices }) => devices)),
    annotations: new Map(grants.flatMap(({ annotations }) => [...annotations])),
    cdiDevices: [...new Set(grants.flatMap(({ cdiDevices }) => cdiDevices))],
    cpus: grants.findLast(({ cpus }) => cpus !== '')?.cpus ?? '',
    hasOwnCpus: grants.some(({ hasOwnCpus }) => hasOwnCpus),
    memoryNodes: grants.findLast(({ memoryNodes }) => memoryNodes !== '')?.memoryNodes ?? '',
  }
}
