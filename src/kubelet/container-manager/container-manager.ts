/** The container manager: allocates devices, resource claims, and exclusive CPUs and memory to pods. */
import type { Container, EphemeralContainer, Pod } from '#apis/core/v1.ts'

import type { Rejection } from '../pod/admission-rules.ts'
import { NO_RUN_OPTIONS, type RunContainerOptions } from '../pod/run-options.ts'

export interface InfeasibleResize {
  readonly text: string
  /** The metric label. */
  readonly label: string
}

export interface ContainerManager {
  /** Allocates the requested resources; existing allocations are kept. Undefined: the pod is admitted. */
  admit(pod: Pod): Promise<Rejection | undefined>
  /** Call before the sandbox is created. Rejects with the reason why the pod has to wait. */
  prepare(pod: Pod): Promise<void>
  /** Settings of a container that is about to be created. Rejects with the reason why it cannot be. */
  getResources(pod: Pod, container: Container | EphemeralContainer): Promise<RunContainerOptions>
  /** Why a resize of exclusive resources is infeasible; undefined if it is not. */
  refuseResize(desired: Pod, granted: Pod): InfeasibleResize | undefined
  /** True if no CPU quota applies, because CPUs are exclusive; without `container`: to any container of the pod. */
  hasExclusiveCpus(uid: string, container?: string): boolean
  /** Call when all containers have ended. Idempotent; rejects when it has to be retried. */
  release(uid: string): Promise<void>
  /** UIDs of pods with allocations, including those from before a restart. */
  uids(): readonly string[]
}

export const STUB_CONTAINER_MANAGER: ContainerManager = {
  admit: async () => undefined,
  prepare: async () => undefined,
  getResources: async () => NO_RUN_OPTIONS,
  refuseResize: () => undefined,
  hasExclusiveCpus: () => false,
  release: async () => undefined,
  uids: () => [],
}
