/** Says why a container does not run or is not ready. */
import type { ContainerStateTerminated, ContainerStatus, Event } from '#apis/core/v1.ts'

import type { Ref } from '../objects/ref.ts'
import { endReason } from '../objects/state-of.ts'
import { type Cause, newest } from './cause.ts'

/** Finds an object that a message names as missing. */
type FindMissing = (message: string | undefined) => Ref | undefined

export function whyContainer(
  status: ContainerStatus,
  events: readonly Event[],
  missing: FindMissing,
): readonly Cause[] {
  const { name, state } = status
  if (state.waiting !== undefined) return whyWaiting(status, events, missing)
  if (state.terminated !== undefined) {
    if (state.terminated.exitCode === 0) return []
    return [
      { text: `Container ${name} ended: ${endText(state.terminated)}`, detail: state.terminated.message, tone: 'bad' },
    ]
  }
  return state.running === undefined ? [] : [whyUnready(status, events)]
}

function whyWaiting(status: ContainerStatus, events: readonly Event[], missing: FindMissing): readonly Cause[] {
  const { name, image, state, restartCount } = status
  const { reason = '', message } = state.waiting ?? {}
  switch (reason) {
    case 'ImagePullBackOff':
    case 'ErrImagePull':
    case 'InvalidImageName':
    case 'ErrImageNeverPull':
      return [
        {
          text: `Image ${image} of container ${name} cannot be pulled`,
          detail: pullError(message, events),
          tone: 'bad',
        },
      ]
    case 'CrashLoopBackOff':
      return [
        {
          text: `Container ${name} ended ${restartCount} times; the kubelet waits before it starts it again`,
          detail: message,
          tone: 'bad',
        },
        ...whyEnded(status),
      ]
    case 'CreateContainerConfigError':
    case 'CreateContainerError':
    case 'RunContainerError':
      return [{ text: `Container ${name} cannot be created`, detail: message, tone: 'bad', to: missing(message) }]
    case '':
    case 'ContainerCreating':
    case 'PodInitializing':
      return [{ text: `Container ${name} is about to start`, detail: message, tone: 'busy' }]
    default:
      return [{ text: `Container ${name} waits: ${reason}`, detail: message, tone: 'bad' }]
  }
}

/** While the kubelet waits, its message says only that it waits: the error of the registry is in an Event. */
function pullError(message = '', events: readonly Event[]): string {
  const failed = events.find(({ reason, message: words = '' }) => reason === 'Failed' && /pull/i.test(words))
  const isBackOff = message.startsWith('Back-off')
  return isBackOff && failed?.message !== undefined ? failed.message : message
}

function whyEnded({ lastState }: ContainerStatus): readonly Cause[] {
  const { terminated } = lastState
  if (terminated === undefined) return []
  const isOutOfMemory = terminated.reason === 'OOMKilled'
  const text = isOutOfMemory
    ? 'It used more memory than its limit, so the kernel killed it'
    : `Its last run ended: ${endText(terminated)}`
  return [{ text, detail: terminated.message, tone: 'bad' }]
}

function endText(terminated: ContainerStateTerminated): string {
  if (terminated.reason === 'OOMKilled')
    return 'it used more memory than its limit, so the kernel killed it (OOMKilled)'
  return `${endReason(terminated)}, exit code ${terminated.exitCode}`
}

function whyUnready({ name, started }: ContainerStatus, events: readonly Event[]): Cause {
  const unhealthy = newest(
    events.filter(({ message = '' }) => /^(?:Readiness|Startup|Liveness) probe/.test(message)),
    'Unhealthy',
  )
  const probe = started === false ? 'startup probe has not succeeded yet' : 'readiness probe fails'
  return {
    text: `Container ${name} runs, but its ${probe}`,
    detail: unhealthy?.message,
    tone: started === false ? 'busy' : 'bad',
  }
}
