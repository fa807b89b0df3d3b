/** The table of the kubelet's events, with the reasons and messages of v1.36. Pure. */
import type { Pod } from '#apis/core/v1.ts'
import { messageText } from '#cri/call-text.ts'
import { durationOfMs } from '#lib/go/duration.ts'
import { goQuote } from '#lib/go/text.ts'

export interface EventSpec {
  readonly type: 'Normal' | 'Warning'
  readonly reason: string
  readonly message: string
}

const normal = (reason: string, message: string): EventSpec => ({ type: 'Normal', reason, message })
const warning = (reason: string, message: string): EventSpec => ({ type: 'Warning', reason, message })

/** A pod in messages: `name_namespace(uid)`. */
export function podText({ metadata: { name = '', namespace = '', uid = '' } }: Pick<Pod, 'metadata'>): string {
  return `${name}_${namespace}(${uid})`
}

export const CREATED: EventSpec = normal('Created', 'Container created')
export const STARTED: EventSpec = normal('Started', 'Container started')

export const pulling = (image: string): EventSpec => normal('Pulling', `Pulling image ${goQuote(image)}`)

export interface Pull {
  readonly tookMs: number
  /** Includes the time in the pull queue. */
  readonly withWaitingMs: number
  readonly sizeBytes: number
}

export function pulled(image: string, { tookMs, withWaitingMs, sizeBytes }: Pull): EventSpec {
  const took = `${durationOfMs(Math.round(tookMs))} (${durationOfMs(Math.round(withWaitingMs))} including waiting)`
  const message = `Successfully pulled image ${goQuote(image)} in ${took}. Image size: ${sizeBytes} bytes.`
  return normal('Pulled', message)
}

/** `isChecked`: the kubelet has checked that the pod may use the image. */
export const present = (image: string, isChecked = true): EventSpec => {
  const may = isChecked ? ' and can be accessed by the pod' : ''
  return normal('Pulled', `Container image ${goQuote(image)} already present on machine${may}`)
}

export const pullFailed = (image: string, error: string): EventSpec =>
  warning('Failed', `Failed to pull image ${goQuote(image)}: ${error}`)

export const failed = (what: string): EventSpec => warning('Failed', `Error: ${what}`)

export const pullBackOff = (image: string): EventSpec => normal('BackOff', `Back-off pulling image ${goQuote(image)}`)

export const crashBackOff = (container: string, pod: string): EventSpec =>
  warning('BackOff', `Back-off restarting failed container ${container} in pod ${pod}`)

export const stopping = (container: string): EventSpec => normal('Killing', `Stopping container ${container}`)

export type ProbeKind = 'Liveness' | 'Readiness' | 'Startup'

export const unhealthy = (probe: ProbeKind, output: string): EventSpec =>
  warning('Unhealthy', `${probe} probe failed: ${output}`)

/** For a probe that passed with a warning. */
export const probeWarning = (probe: ProbeKind, output: string): EventSpec =>
  warning('ProbeWarning', `${probe} probe warning: ${output}`)

/** For a changed image: no other field of a container can change. */
export const changed = (container: string, isInit: boolean): EventSpec =>
  normal(
    'Killing',
    isInit
      ? `Init container ${container} definition changed`
      : `Container ${container} definition changed, will be restarted`,
  )

export const SANDBOX_CHANGED: EventSpec = normal(
  'SandboxChanged',
  'Pod sandbox changed, it will be killed and re-created.',
)

export const probeKills = (container: string, probe: ProbeKind, isRestarted = true): EventSpec =>
  normal(
    'Killing',
    `Container ${container} failed ${probe.toLowerCase()} probe${isRestarted ? ', will be restarted' : ''}`,
  )

export const mountFailed = (volume: string, error: string): EventSpec =>
  warning('FailedMount', `MountVolume.SetUp failed for volume ${goQuote(volume)} : ${error}`)

export function claimFailed(volume: string, claim: string, error: string): EventSpec {
  const lists = `unmounted volumes=[${volume}], unattached volumes=[], failed to process volumes=[${volume}]`
  return warning('FailedMount', `Unable to attach or mount volumes: ${lists}: error processing PVC ${claim}: ${error}`)
}

/** The event of a pod that admission rejected. */
export const rejected = (reason: string, text: string): EventSpec => warning(reason, text)

type Resizing = 'Started' | 'Completed' | 'Error' | 'Deferred' | 'Infeasible'

/** `resizes` is the desired resources as JSON. `reason` explains why the resize is pending. */
export function resized(how: Resizing, resizes: string, reason = ''): EventSpec {
  const isPending = how === 'Deferred' || how === 'Infeasible'
  const message = `Pod resize ${isPending ? reason : how.toLowerCase()}: ${resizes}`
  return how === 'Started' || how === 'Completed' ? normal(`Resize${how}`, message) : warning(`Resize${how}`, message)
}

export const resizeRestarts = (container: string): EventSpec =>
  normal('Killing', `Container ${container} resize requires restart`)

export const DEADLINE_MESSAGE = 'Pod was active on the node longer than the specified deadline'
export const DEADLINE_EXCEEDED: EventSpec = normal('DeadlineExceeded', DEADLINE_MESSAGE)

/** The event of every changed node condition. */
export const nodeIs = (node: string, reason: string): EventSpec =>
  normal(reason, `Node ${node} status is now: ${reason}`)

export const STARTING: EventSpec = normal('Starting', 'Starting kubelet.')
export const CGROUP_V1: EventSpec = warning(
  'CgroupV1',
  'cgroup v1 detected. cgroup v1 support is deprecated and will be removed in a future release. Please migrate to cgroup v2. More information at https://git.k8s.io/enhancements/keps/sig-node/5573-remove-cgroup-v1',
)
export const ALLOCATABLE_ENFORCED: EventSpec = normal(
  'NodeAllocatableEnforced',
  'Updated Node Allocatable limit across pods',
)
export const reservedEnforced = (who: 'system' | 'kube', cgroup: string): EventSpec =>
  normal('NodeAllocatableEnforced', `Updated limits on ${who} reserved cgroup ${cgroup}`)
export const enforcementFailed = (what: string, error: unknown): EventSpec =>
  warning('FailedNodeAllocatableEnforcement', `Failed to ${what}: ${messageText(error)}`)
export const rebooted = (node: string, bootId: string): EventSpec =>
  warning('Rebooted', `Node ${node} has been rebooted, boot id: ${bootId}`)

export const NODE_SHUTDOWN: EventSpec = normal('NodeShutdown', 'Shutdown manager detected shutdown event')
export const NODE_SHUTDOWN_CANCELLED: EventSpec = normal(
  'NodeShutdown',
  'Shutdown manager detected shutdown cancellation',
)
