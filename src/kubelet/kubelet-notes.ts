/** What kubelets say in events, to the letter of v1.36. Pure. */
import type { Pod } from '#apis/core/v1.ts'
import { goQuote } from '#lib/go-text.ts'
import { durationOfMs } from '#meta/duration.ts'

import { messageText } from './cri/call-text.ts'

export interface Note {
  readonly type: 'Normal' | 'Warning'
  readonly reason: string
  readonly message: string
}

const normal = (reason: string, message: string): Note => ({ type: 'Normal', reason, message })
const warning = (reason: string, message: string): Note => ({ type: 'Warning', reason, message })

/** `name_namespace(uid)`: a pod in messages. */
export function podText({ metadata: { name = '', namespace = '', uid = '' } }: Pick<Pod, 'metadata'>): string {
  return `${name}_${namespace}(${uid})`
}

export const CREATED: Note = normal('Created', 'Container created')
export const STARTED: Note = normal('Started', 'Container started')

export const pulling = (image: string): Note => normal('Pulling', `Pulling image ${goQuote(image)}`)

export interface Pull {
  readonly tookMs: number
  /** For other pulls as well. */
  readonly withWaitingMs: number
  readonly sizeBytes: number
}

export function pulled(image: string, { tookMs, withWaitingMs, sizeBytes }: Pull): Note {
  const took = `${durationOfMs(Math.round(tookMs))} (${durationOfMs(Math.round(withWaitingMs))} including waiting)`
  const message = `Successfully pulled image ${goQuote(image)} in ${took}. Image size: ${sizeBytes} bytes.`
  return normal('Pulled', message)
}

/** `isChecked`: whether it was asked if the pod may use it. */
export const present = (image: string, isChecked = true): Note => {
  const may = isChecked ? ' and can be accessed by the pod' : ''
  return normal('Pulled', `Container image ${goQuote(image)} already present on machine${may}`)
}

export const pullFailed = (image: string, error: string): Note =>
  warning('Failed', `Failed to pull image ${goQuote(image)}: ${error}`)

export const failed = (what: string): Note => warning('Failed', `Error: ${what}`)

export const pullBackOff = (image: string): Note => normal('BackOff', `Back-off pulling image ${goQuote(image)}`)

export const crashBackOff = (container: string, pod: string): Note =>
  warning('BackOff', `Back-off restarting failed container ${container} in pod ${pod}`)

export const stopping = (container: string): Note => normal('Killing', `Stopping container ${container}`)

export type ProbeKind = 'Liveness' | 'Readiness' | 'Startup'

export const unhealthy = (probe: ProbeKind, output: string): Note =>
  warning('Unhealthy', `${probe} probe failed: ${output}`)

/** A probe that has passed, though not as its author meant. */
export const probeWarning = (probe: ProbeKind, output: string): Note =>
  warning('ProbeWarning', `${probe} probe warning: ${output}`)

/** An image of another name: nothing else of a container can change. */
export const changed = (container: string, isInit: boolean): Note =>
  normal(
    'Killing',
    isInit
      ? `Init container ${container} definition changed`
      : `Container ${container} definition changed, will be restarted`,
  )

export const SANDBOX_CHANGED: Note = normal('SandboxChanged', 'Pod sandbox changed, it will be killed and re-created.')

export const probeKills = (container: string, probe: ProbeKind, isRestarted = true): Note =>
  normal(
    'Killing',
    `Container ${container} failed ${probe.toLowerCase()} probe${isRestarted ? ', will be restarted' : ''}`,
  )

export const mountFailed = (volume: string, error: string): Note =>
  warning('FailedMount', `MountVolume.SetUp failed for volume ${goQuote(volume)} : ${error}`)

export function claimFailed(volume: string, claim: string, error: string): Note {
  const lists = `unmounted volumes=[${volume}], unattached volumes=[], failed to process volumes=[${volume}]`
  return warning('FailedMount', `Unable to attach or mount volumes: ${lists}: error processing PVC ${claim}: ${error}`)
}

/** What a node did not take. */
export const rejected = (reason: string, text: string): Note => warning(reason, text)

type Resizing = 'Started' | 'Completed' | 'Error' | 'Deferred' | 'Infeasible'

/** `resizes` is what containers are to have, as JSON. `reason`: why it is put off. */
export function resized(how: Resizing, resizes: string, reason = ''): Note {
  const isPending = how === 'Deferred' || how === 'Infeasible'
  const message = `Pod resize ${isPending ? reason : how.toLowerCase()}: ${resizes}`
  return how === 'Started' || how === 'Completed' ? normal(`Resize${how}`, message) : warning(`Resize${how}`, message)
}

export const resizeRestarts = (container: string): Note =>
  normal('Killing', `Container ${container} resize requires restart`)

export const DEADLINE_MESSAGE = 'Pod was active on the node longer than the specified deadline'
export const DEADLINE_EXCEEDED: Note = normal('DeadlineExceeded', DEADLINE_MESSAGE)

/** All that a node says of its conditions. */
export const nodeIs = (node: string, reason: string): Note => normal(reason, `Node ${node} status is now: ${reason}`)

export const STARTING: Note = normal('Starting', 'Starting kubelet.')
export const CGROUP_V1: Note = warning(
  'CgroupV1',
  'cgroup v1 detected. cgroup v1 support is deprecated and will be removed in a future release. Please migrate to cgroup v2. More information at https://git.k8s.io/enhancements/keps/sig-node/5573-remove-cgroup-v1',
)
export const ALLOCATABLE_ENFORCED: Note = normal(
  'NodeAllocatableEnforced',
  'Updated Node Allocatable limit across pods',
)
export const reservedEnforced = (who: 'system' | 'kube', cgroup: string): Note =>
  normal('NodeAllocatableEnforced', `Updated limits on ${who} reserved cgroup ${cgroup}`)
export const enforcementFailed = (what: string, error: unknown): Note =>
  warning('FailedNodeAllocatableEnforcement', `Failed to ${what}: ${messageText(error)}`)
export const rebooted = (node: string, bootId: string): Note =>
  warning('Rebooted', `Node ${node} has been rebooted, boot id: ${bootId}`)

export const NODE_SHUTDOWN: Note = normal('NodeShutdown', 'Shutdown manager detected shutdown event')
export const NODE_SHUTDOWN_CANCELLED: Note = normal('NodeShutdown', 'Shutdown manager detected shutdown cancellation')
