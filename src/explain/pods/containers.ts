/** Says why a container does not run, is not ready, or was started again. */
import { type ContainerStateTerminated, type ContainerStatus, type Event, type Pod, Pods } from '#apis/core/v1.ts'
import { epochMsOf } from '#meta/time.ts'

import { eventStep, lastMs, newestEvent } from '../events.ts'
import { nameOf, type Step } from '../explanation.ts'
import type { Reader } from '../reader.ts'

/** Why, as the end of a sentence with "because". */
export interface Reason {
  readonly because: string
  readonly steps: readonly Step[]
  readonly wouldHelp?: readonly string[]
}

/** A pod with what is known about it. */
export interface PodCase {
  readonly pod: Pod
  /** Oldest first. */
  readonly events: readonly Event[]
  readonly reader: Reader
}

interface ContainerCase extends PodCase {
  readonly status: ContainerStatus
  /** `status.containerStatuses[app]`. */
  readonly path: string
}

const IMAGE_REASONS = ['ImagePullBackOff', 'ErrImagePull', 'InvalidImageName', 'ErrImageNeverPull', 'ImageInspectError']
const CONFIG_REASONS = ['CreateContainerConfigError', 'CreateContainerError', 'RunContainerError']

/** The containers of a pod in the order in which they start, with the paths of their statuses. */
export function containerCases(one: PodCase): ContainerCase[] {
  const { initContainerStatuses = [], containerStatuses = [] } = one.pod.status
  const paths = [
    ...initContainerStatuses.map((status) => ({ status, path: `status.initContainerStatuses[${status.name}]` })),
    ...containerStatuses.map((status) => ({ status, path: `status.containerStatuses[${status.name}]` })),
  ]
  return paths.map((part) => ({ ...one, ...part }))
}

/** Undefined: it runs, waits for others, or has ended well. */
export function whyNotRunning(one: ContainerCase): Reason | undefined {
  const { status, path } = one
  const { waiting, terminated } = status.state
  if (terminated !== undefined) return terminated.exitCode === 0 ? undefined : whyEnded(one, `${path}.state`)
  const { reason = '', message = '' } = waiting ?? {}
  if (IMAGE_REASONS.includes(reason)) return whyNoImage(one)
  if (CONFIG_REASONS.includes(reason)) {
    const step = kubeletStep(one, `cannot create container ${status.name}: ${message}`, `${path}.state.waiting`)
    return { because: `container ${status.name} cannot be created: ${message}`, steps: [step] }
  }
  if (reason !== 'CrashLoopBackOff') return undefined
  const ended = whyEnded(one, `${path}.lastState`)
  const step = kubeletStep(one, `waits before it starts container ${status.name} again`, `${path}.state.waiting`)
  return { ...ended, steps: [...ended.steps, step] }
}

function whyNoImage({ status, path, events, ...one }: ContainerCase): Reason {
  const { name, image, state } = status
  const event = newestEvent(
    events.filter(({ message = '' }) => message.includes(image) && !/^(Back-off|Error: )/.test(message)),
    'Failed',
    'InspectFailed',
    'ErrImageNeverPull',
  )
  const message = event?.message ?? state.waiting?.message ?? ''
  const step = kubeletStep({ ...one, status }, `cannot pull the image of container ${name}`, `${path}.state.waiting`)
  const cited = one.reader.cite(Pods, one.pod, `spec.containers[${name}].image`)
  return {
    because: `the image ${image} of container ${name} cannot be pulled${message === '' ? '' : `: ${message.trim()}`}`,
    steps: [
      { ...step, evidence: [...step.evidence, ...cited] },
      ...(event === undefined ? [] : [eventStep(event, one.reader)]),
    ],
  }
}

/** `path`: of the state or the last state. */
function whyEnded(one: ContainerCase, path: string): Reason {
  const { status, pod, reader } = one
  const { name, restartCount } = status
  const ended = path.endsWith('lastState') ? status.lastState?.terminated : status.state.terminated
  if (ended === undefined) return { because: `container ${name} ends again and again`, steps: [] }
  const { exitCode, reason = '', finishedAt } = ended
  const times = restartCount > 0 ? ` (restarted ${restartCount} times)` : ''
  const { text, fieldPaths = [], reports = [], wouldHelp = [] } = endOf(one, ended)
  const step: Step = {
    ...(finishedAt != null && { at: finishedAt }),
    revision: pod.metadata.resourceVersion ?? '',
    actor: 'kubelet',
    did: `found that container ${name} ended: ${reason === '' ? 'no reason' : reason}, exit code ${exitCode}`,
    object: `pods/${nameOf(pod)}`,
    because: [],
    evidence: reader.cite(Pods, pod, `${path}.terminated.exitCode`, `${path}.terminated.reason`, ...fieldPaths),
    certainty: 'reported',
  }
  const steps = [step, ...reports.map((event) => eventStep(event, reader))]
  return { because: `container ${name} ${text}${times}`, steps, wouldHelp }
}

interface End {
  readonly text: string
  readonly fieldPaths?: readonly string[]
  readonly reports?: readonly Event[]
  readonly wouldHelp?: readonly string[]
}

function endOf(one: ContainerCase, ended: ContainerStateTerminated): End {
  const { name } = one.status
  if (ended.reason === 'OOMKilled') return endOfMemory(one)
  const { message = '', exitCode } = ended
  const exit = `ended with exit code ${exitCode}${message === '' ? '' : `: ${message.trim()}`}`
  const killing = killingOf(one)
  if (killing === undefined) return { text: exit }
  const probe = /(liveness|startup) probe/.exec(killing.message ?? '')?.[1] ?? 'liveness'
  if (isDuring(killing, ended)) {
    const unhealthy = newestEvent(
      one.events.filter(({ message = '' }) => message.toLowerCase().startsWith(probe)),
      'Unhealthy',
    )
    const reports = unhealthy === undefined ? [killing] : [unhealthy, killing]
    return { text: `failed its ${probe} probe`, reports, fieldPaths: [`spec.containers[${name}].${probe}Probe`] }
  }
  // Kubelets limit the rate of events, so that later runs may have ended for the same reason.
  return { text: `${exit}; an earlier run failed its ${probe} probe`, reports: [killing] }
}

function endOfMemory({ pod, status: { name } }: ContainerCase): End {
  const spec = pod.spec.containers.find((container) => container.name === name)
  const limit = spec?.resources?.limits?.['memory']
  return {
    text: `used more memory than its limit${limit === undefined ? '' : ` of ${limit}`}`,
    fieldPaths: limit === undefined ? [] : [`spec.containers[${name}].resources.limits.memory`],
    wouldHelp: [`a higher memory limit of container ${name}, or a program that needs less`],
  }
}

/** The kubelet killed the container because of a probe, in this run or an earlier one. */
function killingOf({ events, status: { name } }: ContainerCase): Event | undefined {
  const own = events.filter(({ message = '' }) => message.startsWith(`Container ${name} failed `))
  return newestEvent(own, 'Killing')
}

function isDuring(event: Event, { startedAt, finishedAt }: ContainerStateTerminated): boolean {
  if (startedAt == null || finishedAt == null) return false
  return lastMs(event) >= epochMsOf(startedAt) && lastMs(event) <= epochMsOf(finishedAt)
}

/** It runs, and is not ready. Undefined: no component reported why. */
export function whyUnready(container: ContainerCase): Reason | undefined {
  const { status, events, path, pod, reader } = container
  const { name, started, ready, state } = status
  if (ready || state.running === undefined) return undefined
  const kind = started === false ? 'Startup' : 'Readiness'
  const sinceMs = state.running.startedAt == null ? 0 : epochMsOf(state.running.startedAt)
  const event = newestEvent(
    events.filter((one) => {
      const { message = '', involvedObject } = one
      const isOwn = involvedObject.fieldPath === undefined || involvedObject.fieldPath.includes(`{${name}}`)
      return isOwn && message.startsWith(`${kind} probe`) && lastMs(one) >= sinceMs
    }),
    'Unhealthy',
    'ProbeWarning',
  )
  if (event === undefined) return undefined
  const step = kubeletStep(container, `finds container ${name} not ready`, `${path}.ready`)
  const probe = reader.cite(Pods, pod, `spec.containers[${name}].${kind.toLowerCase()}Probe`)
  return {
    because: `the ${kind.toLowerCase()} probe of container ${name} fails: ${event.message?.trim() ?? ''}`,
    steps: [{ ...step, evidence: [...step.evidence, ...probe] }, eventStep(event, reader)],
  }
}

/** Why it was started again, although it runs now. */
export function whyRestarted(one: ContainerCase): Reason | undefined {
  const { restartCount, lastState } = one.status
  return restartCount > 0 && lastState?.terminated !== undefined ? whyEnded(one, `${one.path}.lastState`) : undefined
}

function kubeletStep(
  { pod, reader }: Pick<ContainerCase, 'pod' | 'reader' | 'status'>,
  did: string,
  ...fieldPaths: readonly string[]
): Step {
  return {
    revision: pod.metadata.resourceVersion ?? '',
    actor: 'kubelet',
    did,
    object: `pods/${nameOf(pod)}`,
    because: [],
    evidence: reader.cite(Pods, pod, ...fieldPaths),
    certainty: 'reported',
  }
}
