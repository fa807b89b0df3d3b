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
  /** Nodes of memory, likewise. */
  readonly memoryNodes: string
}

export const NO_GRANT: ContainerGrant = {
  envs: new Map(),
  mounts: [],
  devices: [],
  annotations: new Map(),
  cdiDevices: [],
  cpus: '',
  memoryNodes: '',
}

export interface PodGrants {
  /** Sets aside what the pod asks for. Undefined: it has it. What it has already it keeps. */
  admit(pod: Pod): Promise<Rejection | undefined>
  /** Before its sandbox is made. Rejects with what the pod waits for. */
  prepare(pod: Pod): Promise<void>
  /** For a container that is about to be created. Rejects with what it cannot be created for. */
  grantOf(pod: Pod, container: Container | EphemeralContainer): Promise<ContainerGrant>
  /** All its containers have ended. Harmless when repeated; rejects when it must be tried again. */
  release(uid: string): Promise<void>
  /** Who has something, from before a restart too. */
  uids(): readonly string[]
}

export const NO_GRANTS: PodGrants = {
  admit: async () => undefined,
  prepare: async () => undefined,
  grantOf: async () => NO_GRANT,
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
    memoryNodes: grants.findLast(({ memoryNodes }) => memoryNodes !== '')?.memoryNodes ?? '',
  }
}
