/** Says why an object of any kind is not ready. */
import type { Event, Namespace, PersistentVolumeClaim, Pod } from '#apis/core/v1.ts'
import type { KubeObject } from '#meta/object.ts'

import { conditionOf, conditionsOf } from '../objects/conditions.ts'
import { kubernetesKind } from '../objects/kubernetes-kind.ts'
import { type Cause, type Evidence, newest } from './cause.ts'
import { whyFinalizers, whyPod } from './why-pod.ts'

export interface ObjectEvidence extends Evidence {
  /** The pods of a workload. */
  readonly pods?: readonly Pod[]
}

export function whyObject(object: KubeObject, evidence: ObjectEvidence): readonly Cause[] {
  if (kubernetesKind(object) === 'Pod') return whyPod(object as Pod, evidence)
  const { deletionTimestamp, finalizers } = object.metadata
  if (deletionTimestamp !== undefined) {
    return [{ text: 'Its deletion began', tone: 'busy' }, ...whyFinalizers(finalizers), ...whyNamespaceStays(object)]
  }
  const pods = evidence.pods ?? []
  return [
    ...whyPaused(object),
    ...whyNoPods(object, evidence.events),
    ...whyClaim(object, evidence.events),
    ...whyConditions(object),
    ...whyFirstPod(pods, evidence),
  ]
}

function whyPaused({ spec, kind }: KubeObject & { spec?: { paused?: boolean; suspend?: boolean } }): readonly Cause[] {
  if (spec?.paused === true) return [{ text: 'Its rollout is paused: changes of the template wait', tone: 'busy' }]
  if (spec?.suspend === true) return [{ text: `The ${kind ?? 'object'} is suspended`, tone: 'busy' }]
  return []
}

/** Quota and admission refuse pods to their controller: it writes a condition or an Event. */
function whyNoPods(object: KubeObject, events: readonly Event[]): readonly Cause[] {
  const failure = conditionOf(object, 'ReplicaFailure')
  const event = newest(events, 'FailedCreate')
  const detail = failure?.status === 'True' ? failure.message : isMissingPods(object) ? event?.message : undefined
  if (detail === undefined || detail === '') return []
  const isQuota = /exceeded quota|must specify/.test(detail)
  const text = isQuota ? 'A quota of the namespace forbids more pods' : 'The API server refuses its pods'
  return [{ text, detail, tone: 'bad' }]
}

function isMissingPods({ spec, status }: KubeObject & { spec?: { replicas?: number }; status?: Counted }): boolean {
  const wanted = spec?.replicas ?? status?.desiredNumberScheduled ?? 1
  const there = status?.replicas ?? status?.currentNumberScheduled ?? status?.active ?? 0
  return there < wanted && status?.succeeded === undefined
}

interface Counted {
  readonly replicas?: number
  readonly desiredNumberScheduled?: number
  readonly currentNumberScheduled?: number
  readonly active?: number
  readonly succeeded?: number
}

function whyClaim(object: KubeObject, events: readonly Event[]): readonly Cause[] {
  if (kubernetesKind(object) !== 'PersistentVolumeClaim') return []
  const { status, spec } = object as PersistentVolumeClaim
  if (status.phase === 'Bound') return []
  const event = newest(events, 'ProvisioningFailed', 'FailedBinding', 'WaitForFirstConsumer', 'ExternalProvisioning')
  const isWaiting = event?.reason === 'WaitForFirstConsumer'
  const text = isWaiting
    ? 'It gets a volume as soon as a pod uses it'
    : `No volume is bound${(spec.storageClassName ?? '') === '' ? ', and it has no storage class' : ''}`
  return [{ text, detail: event?.message, tone: isWaiting ? 'busy' : 'bad' }]
}

function whyConditions(object: KubeObject): readonly Cause[] {
  return conditionsOf(object)
    .filter(({ tone, type, status }) => tone === 'bad' && !(type === 'ReplicaFailure' && status === 'True'))
    .map(({ type, status, reason, message }) => ({
      text: `Condition ${type} is ${status}${reason === '' ? '' : ` (${reason})`}`,
      detail: message,
      tone: 'bad',
    }))
}

/** The chain of the first pod that is not ready; others mostly have the same trouble. */
function whyFirstPod(pods: readonly Pod[], evidence: Evidence): readonly Cause[] {
  const chains = pods.flatMap((pod) => {
    const own = evidence.events.filter(({ involvedObject }) => involvedObject.uid === pod.metadata.uid)
    const chain = whyPod(pod, { events: own })
    return chain.length === 0 ? [] : [{ pod, chain }]
  })
  const [worst] = [...chains].sort((a, b) => badness(b.chain) - badness(a.chain))
  if (worst === undefined) return []
  const { name = '', namespace } = worst.pod.metadata
  const to = { apiVersion: 'v1', kind: 'Pod', name, namespace }
  const text =
    chains.length === 1
      ? `Pod ${name} is not ready`
      : `${chains.length} of ${pods.length} pods are not ready; pod ${name}:`
  return [{ text, tone: worst.chain.some(({ tone }) => tone === 'bad') ? 'bad' : 'busy', to }, ...worst.chain]
}

function badness(chain: readonly Cause[]): number {
  return chain.filter(({ tone }) => tone === 'bad').length
}

/** Objects that are left in a namespace that goes. */
function whyNamespaceStays(object: KubeObject): readonly Cause[] {
  if (kubernetesKind(object) !== 'Namespace') return []
  return ((object as Namespace).status?.conditions ?? [])
    .filter(({ status }) => status === 'True')
    .map(({ reason, type, message }) => ({ text: reason ?? type, detail: message, tone: 'busy' }))
}
