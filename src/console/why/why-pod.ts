/** Says why a pod is not ready: a chain from its state to the words of scheduler, kubelet or image registry. */
import type { ContainerStatus, Event, Pod } from '#apis/core/v1.ts'

import { conditionOf, conditionsOf } from '../objects/conditions.ts'
import type { Ref } from '../objects/ref.ts'
import { podState } from '../objects/state-of.ts'
import { type Cause, type Evidence, newest } from './cause.ts'
import { whyContainer } from './why-container.ts'

type Rule = (pod: Pod, evidence: Evidence) => readonly Cause[]

/** In the order in which a pod meets them. The first rule that finds something explains the pod. */
const RULES: readonly Rule[] = [
  whyTerminating,
  whyEvicted,
  whyNodeLost,
  whyGated,
  whyUnscheduled,
  whyVolumes,
  whyInitContainers,
  whyContainers,
  whyReadinessGates,
  whyFailed,
]

/** Empty for a pod that is ready or has completed. */
export function whyPod(pod: Pod, evidence: Evidence): readonly Cause[] {
  const { status, metadata } = pod
  const isFine = conditionOf(pod, 'Ready')?.status === 'True' || status.phase === 'Succeeded'
  if (isFine && metadata.deletionTimestamp === undefined && whyNodeLost(pod, evidence).length === 0) return []
  for (const rule of RULES) {
    const found = rule(pod, evidence)
    if (found.length > 0) return [headOf(pod), ...found]
  }
  return [headOf(pod)]
}

function headOf(pod: Pod): Cause {
  const state = podState(pod)
  const isBad = /Error|BackOff|Failed|Evicted|OOMKilled/.test(state)
  const text = state === 'Running' ? 'The pod runs but is not ready' : `The pod is ${state}`
  return { text, tone: isBad ? 'bad' : 'busy' }
}

function whyTerminating({ metadata }: Pod, { events }: Evidence): readonly Cause[] {
  if (metadata.deletionTimestamp === undefined) return []
  const killing = newest(events, 'FailedKillPod', 'FailedPreStopHook')
  const graceSeconds = metadata.deletionGracePeriodSeconds ?? 30
  return [
    { text: `Its deletion began; containers have ${graceSeconds} s to end`, detail: killing?.message, tone: 'busy' },
    ...whyFinalizers(metadata.finalizers),
  ]
}

export function whyFinalizers(finalizers: readonly string[] = []): readonly Cause[] {
  if (finalizers.length === 0) return []
  const text = 'It stays until the owners of its finalizers have removed them'
  return [{ text, detail: finalizers.join(', '), tone: 'busy' }]
}

function whyEvicted({ status }: Pod): readonly Cause[] {
  if (status.reason !== 'Evicted') return []
  return [{ text: 'The kubelet evicted the pod', detail: status.message, tone: 'bad' }]
}

function whyNodeLost({ spec, status }: Pod, { node }: Evidence): readonly Cause[] {
  if (node === undefined || spec.nodeName === undefined) return []
  const ready = conditionOf(node, 'Ready')
  if (ready?.status === 'True' && status.reason !== 'NodeLost') return []
  const to: Ref = { apiVersion: 'v1', kind: 'Node', name: spec.nodeName }
  return [{ text: `Its node ${spec.nodeName} is not ready`, detail: ready?.message, tone: 'bad', to }]
}

function whyGated({ spec, status }: Pod): readonly Cause[] {
  const gates = (spec.schedulingGates ?? []).map(({ name }) => name)
  if (gates.length === 0 || status.phase !== 'Pending') return []
  return [
    { text: 'The scheduler waits until its scheduling gates are removed', detail: gates.join(', '), tone: 'busy' },
  ]
}

function whyUnscheduled(pod: Pod, { events }: Evidence): readonly Cause[] {
  if ((pod.spec.nodeName ?? '') !== '') return []
  const scheduled = conditionOf(pod, 'PodScheduled')
  if (scheduled?.status !== 'False' && pod.status.phase !== 'Pending') return []
  const message = scheduled?.message ?? newest(events, 'FailedScheduling')?.message
  if (message === undefined || message === '') {
    return [{ text: 'No scheduler has looked at the pod yet', detail: pod.spec.schedulerName, tone: 'busy' }]
  }
  return [
    { text: 'No node fits', detail: message, tone: 'bad' },
    ...schedulerReasons(message),
    ...unboundClaims(pod, message),
  ]
}

/** `0/3 nodes are available: 1 Insufficient cpu, 2 node(s) had untolerated taint(s). preemption: ...`, in parts. */
export function schedulerReasons(message: string): readonly Cause[] {
  const [, list = ''] = /^\d+\/\d+ nodes are available: (.*?)\.(?: |$)/s.exec(message) ?? []
  return list
    .split(/, (?=\d+ )/)
    .filter((part) => part !== '')
    .map((part) => {
      const [, nodes, reason = part] = /^(\d+) (?:node\(s\) )?(.*)$/s.exec(part) ?? []
      if (nodes === undefined) return { text: reason, tone: 'bad' }
      return { text: `${nodes} ${nodes === '1' ? 'node' : 'nodes'}: ${reason}`, tone: 'bad' }
    })
}

function unboundClaims({ spec, metadata }: Pod, message: string): readonly Cause[] {
  if (!/PersistentVolumeClaim|persistentvolumeclaim/.test(message)) return []
  return (spec.volumes ?? []).flatMap(({ persistentVolumeClaim: claim }) => {
    if (claim === undefined) return []
    const to = { apiVersion: 'v1', kind: 'PersistentVolumeClaim', name: claim.claimName, namespace: metadata.namespace }
    return [{ text: `Look at PersistentVolumeClaim ${claim.claimName}`, tone: 'busy' as const, to }]
  })
}

/** The status of containers that wait for volumes has no message: the kubelet writes Events. */
function whyVolumes({ status, metadata }: Pod, { events }: Evidence): readonly Cause[] {
  const statuses = [...(status.initContainerStatuses ?? []), ...(status.containerStatuses ?? [])]
  const isWaiting = statuses.every(({ state }) =>
    /^(?:ContainerCreating|PodInitializing)?$/.test(state?.waiting?.reason ?? '-'),
  )
  if (!isWaiting || status.phase !== 'Pending') return []
  const event = newest(events, 'FailedMount', 'FailedAttachVolume', 'FailedCreatePodSandBox', 'FailedMapVolume')
  if (event === undefined) return []
  const isVolume = event.reason !== 'FailedCreatePodSandBox'
  const text = isVolume ? 'A volume cannot be mounted' : 'The kubelet cannot set up the network of the pod'
  return [{ text, detail: event.message, tone: 'bad', to: missingRef(event.message, metadata.namespace) }]
}

/** The ConfigMap or Secret that a message says is missing. */
export function missingRef(message = '', namespace?: string): Ref | undefined {
  const [, kind, quoted = ''] = /(configmap|secret) "([^"]+)" not found/i.exec(message) ?? []
  if (kind === undefined) return undefined
  const name = quoted.slice(quoted.lastIndexOf('/') + 1)
  return { apiVersion: 'v1', kind: kind.toLowerCase() === 'secret' ? 'Secret' : 'ConfigMap', name, namespace }
}

function whyInitContainers(pod: Pod, evidence: Evidence): readonly Cause[] {
  const broken = (pod.status.initContainerStatuses ?? []).find(
    ({ state, ready, started }) => !ready && started !== true && state?.terminated?.exitCode !== 0,
  )
  if (broken === undefined) return []
  const intro: Cause = { text: `Init container ${broken.name} must complete first`, tone: 'busy' }
  return [intro, ...explain(pod, broken, evidence.events)]
}

function whyContainers(pod: Pod, { events }: Evidence): readonly Cause[] {
  const unready = (pod.status.containerStatuses ?? []).filter(({ ready }) => !ready)
  return unready.flatMap((status) => explain(pod, status, events))
}

function explain(pod: Pod, status: ContainerStatus, events: readonly Event[]): readonly Cause[] {
  return whyContainer(status, events, (message) => missingRef(message, pod.metadata.namespace))
}

function whyReadinessGates(pod: Pod): readonly Cause[] {
  return (pod.spec.readinessGates ?? []).flatMap(({ conditionType }) => {
    const condition = conditionOf(pod, conditionType)
    if (condition?.status === 'True') return []
    return [{ text: `Readiness gate ${conditionType} is not true`, detail: condition?.message, tone: 'busy' as const }]
  })
}

function whyFailed(pod: Pod): readonly Cause[] {
  const { reason = '', message = '' } = pod.status
  if (reason !== '' || message !== '')
    return [{ text: reason === '' ? 'Failed' : reason, detail: message, tone: 'bad' }]
  return conditionsOf(pod)
    .filter(({ tone, message: words }) => tone === 'bad' && words !== '')
    .map(({ type, message: detail }) => ({ text: `Condition ${type} is false`, detail, tone: 'bad' as const }))
}
