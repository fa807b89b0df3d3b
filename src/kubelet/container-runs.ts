/**
 * What has become of the containers of a pod on its node: from these records the kubelet decides what to do next
 * (`container-plan.ts`) and says how the pod is (`pod-status.ts`), whatever it is that runs containers.
 */
import type { Container, ContainerStatus, EphemeralContainer, PodSpec, ResourceRequirements } from '#apis/core/v1.ts'

export type Role = 'init' | 'sidecar' | 'main' | 'ephemeral'

/** From the start of a container to its end. */
export interface Run {
  /** `containerd://…`. */
  readonly id: string
  readonly startedMs: number
  end?: RunEnd
  /** Of a sandbox that has gone: nothing in the present one was made ready by it. */
  isPast?: boolean
}

export interface RunEnd {
  readonly finishedMs: number
  readonly exitCode: number
  /** `Completed`, `Error`, `OOMKilled`: the runtime's word. */
  readonly reason: string
  readonly message?: string
}

export interface Waiting {
  readonly reason: string
  readonly message?: string
}

/** How long a container that ended waits before it is started again; of images, before they are pulled again. */
export interface BackOff {
  readonly delayMs: number
  /** When the delay was last made longer. */
  readonly updatedMs: number
}

/** Belongs to whoever runs the pod, who alone changes it. */
export interface ContainerRecord {
  spec: Container | EphemeralContainer
  readonly role: Role
  restartCount: number
  /** The newest. */
  run?: Run
  /** The one before, ended. */
  lastRun?: Run
  /** Why it does not run, when that is not just that its turn has not come. */
  waiting?: Waiting | undefined
  /** Its startup probe has passed, or it has none and runs. */
  isStarted: boolean
  isReady: boolean
  imageId: string
  /** As the runtime names its image, where that tells. */
  image?: string
  /** Who it runs as; null when the runtime does not tell. */
  user?: ContainerStatus['user'] | null
  /** Tells whether what runs is still what is wanted, where the runtime keeps it. */
  hash?: string | undefined
  /** To be started again once it has ended, whatever its policy says: what it is has changed. */
  isDue?: boolean
  /** What its cgroup was given last; undefined when that is what it is granted. */
  actual?: ResourceRequirements
  restarts?: BackOff | undefined
  pulls?: BackOff
}

/** In the order in which they are started. */
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

/** How the newest run ended, of the sandbox before if there is none in this one; undefined while it runs. */
export function lastEndOf({ run, lastRun }: Pick<ContainerRecord, 'run' | 'lastRun'>): RunEnd | undefined {
  return run === undefined ? lastRun?.end : run.end
}

/** What kinds of containers are called where they are counted. */
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

/** Where events about it point to. */
export function fieldPathOf({ role, spec }: Pick<ContainerRecord, 'role' | 'spec'>): string {
  return `spec.${FIELDS[role]}{${spec.name}}`
}
