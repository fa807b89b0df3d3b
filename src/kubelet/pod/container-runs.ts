/**
 * Records the runs of a pod's containers: starts, exits and restarts. `container-plan.ts` plans the next step from
 * the records, and `pod-status.ts` derives the status.
 */
import type { Container, ContainerStatus, EphemeralContainer, PodSpec, ResourceRequirements } from '#apis/core/v1.ts'

export type Role = 'init' | 'sidecar' | 'main' | 'ephemeral'

/** One run of a container, from start to end. */
export interface Run {
  /** `containerd://…`. */
  readonly id: string
  readonly startedMs: number
  end?: RunEnd
  /** The run belongs to a previous sandbox, so it did not prepare the present one. */
  isOfOldSandbox?: boolean
}

export interface RunEnd {
  readonly finishedMs: number
  readonly exitCode: number
  /** The reason given by the runtime: `Completed`, `Error`, `OOMKilled`. */
  readonly reason: string
  readonly message?: string
}

export interface Waiting {
  readonly reason: string
  readonly message?: string
}

/** Delay before a container is restarted, or an image is pulled again. */
export interface BackOff {
  readonly delayMs: number
  /** Time at which the delay was last increased. */
  readonly updatedMs: number
}

/** Only the owner of the pod (its worker) changes a record. */
export interface ContainerRecord {
  spec: Container | EphemeralContainer
  readonly role: Role
  restartCount: number
  /** The newest run. */
  run?: Run
  /** The run before, which has ended. */
  lastRun?: Run
  /** Why it does not run; unset when it only waits for its turn. */
  waiting?: Waiting | undefined
  /** The startup probe has passed, or the container has none and runs. */
  isStarted: boolean
  isReady: boolean
  imageId: string
  /** The name of the image in the runtime; unset if the runtime does not report it. */
  image?: string
  /** The user of the process; null when the runtime does not report it. */
  user?: ContainerStatus['user'] | null
  /** Hash of the spec with which it was started; unset if the runtime does not store it. */
  hash?: string | undefined
  /** Restart it when it has ended, whatever its policy, because its spec has changed. */
  mustRestart?: boolean
  /** Resources last applied to its cgroup; undefined when they are the allocated ones. */
  actual?: ResourceRequirements
  restarts?: BackOff | undefined
  pulls?: BackOff
}

/** In start order. */
export function recordsOf(spec: PodSpec): ContainerRecord[] {
  const record = (container: ContainerRecord['spec'], role: Role): ContainerRecord => ({
    spec: container,
    role,
    restartCount: 0,
    isStarted: false,
    isReady: false,
    imageId: '',
  })
  return [
    ...(spec.initContainers ?? []).map((init) => record(init, init.restartPolicy === 'Always' ? 'sidecar' : 'init')),
    ...spec.containers.map((container) => record(container, 'main')),
    ...(spec.ephemeralContainers ?? []).map((container) => record(container, 'ephemeral')),
  ]
}

export function isRunning({ run }: ContainerRecord): boolean {
  return run !== undefined && run.end === undefined
}

const SCHEME = /^.*:\/\//

/** The ID of the newest container in the runtime. */
export function idOf({ run }: Pick<ContainerRecord, 'run'>): string | undefined {
  return run === undefined || run.id === '' ? undefined : run.id.replace(SCHEME, '')
}

/** The end of the newest run, including one in the previous sandbox; undefined while it runs. */
export function lastEndOf({ run, lastRun }: Pick<ContainerRecord, 'run' | 'lastRun'>): RunEnd | undefined {
  return run === undefined ? lastRun?.end : run.end
}

/** Values of the metric label `container_type`. */
export const TYPES: Readonly<Record<Role, string>> = {
  init: 'init_container',
  sidecar: 'init_container',
  main: 'container',
  ephemeral: 'ephemeral_container',
}

const FIELDS: Readonly<Record<Role, string>> = {
  init: 'initContainers',
  sidecar: 'initContainers',
  main: 'containers',
  ephemeral: 'ephemeralContainers',
}

/** The field path of events about the container. */
export function fieldPathOf({ role, spec }: Pick<ContainerRecord, 'role' | 'spec'>): string {
  return `spec.${FIELDS[role]}{${spec.name}}`
}
