/** The state of an object in a word, as the columns of kubectl name it. */
import type { DaemonSet, Deployment, ReplicaSet, StatefulSet } from '#apis/apps/v1.ts'
import type { CronJob, Job } from '#apis/batch/v1.ts'
import type { ContainerStatus, Node, Pod } from '#apis/core/v1.ts'
import type { KubeObject } from '#meta/object.ts'

import { type Tone, toneOf } from '../parts/tone.ts'
import { conditionOf } from './conditions.ts'
import { kubernetesKind } from './kubernetes-kind.ts'
import { rolloutOf } from './rollout.ts'

export interface State {
  readonly text: string
  readonly tone: Tone | undefined
}

const BY_KIND: Readonly<Record<string, (object: KubeObject) => State | undefined>> = {
  Pod: (pod) => named(podState(pod as Pod)),
  Node: (node) => named(nodeState(node as Node)),
  Deployment: (object) =>
    rollingOut(object) ?? replicas((object as Deployment).status.readyReplicas, (object as Deployment).spec.replicas),
  StatefulSet: (object) =>
    rollingOut(object) ?? replicas((object as StatefulSet).status.readyReplicas, (object as StatefulSet).spec.replicas),
  ReplicaSet: (object) => replicas((object as ReplicaSet).status.readyReplicas, (object as ReplicaSet).spec.replicas),
  DaemonSet: (object) =>
    rollingOut(object) ??
    replicas((object as DaemonSet).status.numberReady, (object as DaemonSet).status.desiredNumberScheduled ?? 0),
  Job: (job) => jobState(job as Job),
  CronJob: (object) => ((object as CronJob).spec.suspend === true ? named('Suspended') : undefined),
}

export function stateOf(object: KubeObject): State | undefined {
  if (object.metadata.deletionTimestamp !== undefined && kubernetesKind(object) !== 'Pod') return named('Terminating')
  const whole = { spec: {}, status: {}, ...object }
  return BY_KIND[kubernetesKind(object)]?.(whole) ?? phaseOf(object) ?? readyOf(object)
}

function named(text: string): State {
  return { text, tone: toneOf('Status', text) }
}

function rollingOut(object: KubeObject): State | undefined {
  const rollout = rolloutOf(object)
  return rollout && { text: `${rollout.updated}/${rollout.wanted} updated`, tone: 'busy' }
}

function replicas(ready = 0, wanted = 1): State {
  if (wanted === 0) return { text: '0 replicas', tone: undefined }
  return { text: `${ready}/${wanted} ready`, tone: ready >= wanted ? 'good' : 'busy' }
}

function jobState(job: Job): State {
  if (conditionOf(job, 'Complete')?.status === 'True') return named('Complete')
  if (conditionOf(job, 'Failed')?.status === 'True') return named('Failed')
  if (job.spec.suspend === true) return named('Suspended')
  return { text: 'Running', tone: 'busy' }
}

function phaseOf(object: KubeObject): State | undefined {
  const { phase } = ((object as { status?: unknown }).status ?? {}) as { phase?: unknown }
  return typeof phase === 'string' && phase !== '' ? named(phase) : undefined
}

/** For custom resources: most have one of these conditions. */
function readyOf(object: KubeObject): State | undefined {
  const ready = conditionOf(object, 'Ready') ?? conditionOf(object, 'Available') ?? conditionOf(object, 'Established')
  if (ready === undefined) return undefined
  if (ready.status === 'True') return { text: ready.type, tone: 'good' }
  return { text: ready.reason === '' ? `Not ${ready.type}` : ready.reason, tone: ready.tone }
}

function nodeState(node: Node): string {
  const ready = conditionOf(node, 'Ready')?.status === 'True' ? 'Ready' : 'NotReady'
  return node.spec?.unschedulable === true ? `${ready},SchedulingDisabled` : ready
}

/** The text of the column Status of `kubectl get pods`. */
export function podState(pod: Pod): string {
  const { status, spec, metadata } = pod
  const plain = status.reason ?? status.phase ?? 'Unknown'
  const init = initState(pod)
  const text = init ?? containersState(status.containerStatuses ?? [], plain)
  if (metadata.deletionTimestamp !== undefined) return status.reason === 'NodeLost' ? 'Unknown' : 'Terminating'
  const isGated = (spec?.schedulingGates ?? []).length > 0 && conditionOf(pod, 'PodScheduled')?.status !== 'True'
  return isGated ? 'SchedulingGated' : text
}

function initState({ status, spec }: Pod): string | undefined {
  const statuses = status.initContainerStatuses ?? []
  const containers = spec.initContainers ?? []
  const isSidecar = (name: string): boolean =>
    containers.find((container) => container.name === name)?.restartPolicy === 'Always'
  const at = statuses.findIndex(
    ({ name, state, started }) => state?.terminated?.exitCode !== 0 && !(isSidecar(name) && started === true),
  )
  const { terminated, waiting } = statuses[at]?.state ?? {}
  if (at < 0) return undefined
  if (terminated !== undefined) return `Init:${endReason(terminated)}`
  const reason = waiting?.reason ?? 'PodInitializing'
  return reason === 'PodInitializing' ? `Init:${at}/${containers.length}` : `Init:${reason}`
}

function containersState(statuses: readonly ContainerStatus[], plain: string): string {
  let text = plain
  let isRunning = false
  for (const { state = {}, ready } of [...statuses].reverse()) {
    if ((state.waiting?.reason ?? '') !== '') text = state.waiting?.reason ?? ''
    else if (state.terminated !== undefined) text = endReason(state.terminated)
    else if (ready && state.running !== undefined) isRunning = true
  }
  if (text === 'Completed' && isRunning) return 'Running'
  return text
}

export function endReason({
  reason = '',
  signal = 0,
  exitCode,
}: {
  readonly reason?: string
  readonly signal?: number
  readonly exitCode: number
}): string {
  if (reason !== '') return reason
  return signal === 0 ? `ExitCode:${exitCode}` : `Signal:${signal}`
}
