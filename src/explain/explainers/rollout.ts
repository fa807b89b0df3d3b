/** Explains why a workload does not have its pods: it is paused, its pods are refused, or they are not ready. */
import {
  type DaemonSet,
  DaemonSets,
  type Deployment,
  Deployments,
  ReplicaSets,
  type StatefulSet,
  StatefulSets,
} from '#apis/apps/v1.ts'
import { Jobs } from '#apis/batch/v1.ts'
import { type Pod, Pods, ReplicationControllers } from '#apis/core/v1.ts'
import type { Kind } from '#apis/kinds.ts'
import { byRevision } from '#controllers/workloads/deployment/annotations.ts'
import { tolerances } from '#controllers/workloads/deployment/sizes.ts'
import { isControlledBy, type KubeObject } from '#meta/object.ts'
import { isReady, isTerminal } from '#model/pods.ts'

import { countText } from '../amount-text.ts'
import { referenceTo } from '../citation.ts'
import { eventsOf, eventStep, newestEvent } from '../events.ts'
import { type Explainer, isOf, type Target } from '../explainer.ts'
import { type Finding, hiddenStep, isNotKnown, nameOf, notKnown, type Step } from '../explanation.ts'
import { HIDDEN, type Reader } from '../reader.ts'
import { whyPod } from './why-pod.ts'

const WORKLOADS: readonly Kind[] = [Deployments, ReplicaSets, StatefulSets, DaemonSets, ReplicationControllers, Jobs]

export const rollout: Explainer = {
  name: 'rollout',
  applies: (target) => WORKLOADS.some((kind) => isOf(target, kind)),
  explain: (target, reader) => whyWorkload(target, reader),
}

interface Condition {
  readonly type: string
  readonly status: string
  readonly reason?: string
  readonly message?: string
  readonly lastTransitionTime?: string | null
}

interface Workload extends KubeObject {
  readonly spec: { readonly replicas?: number; readonly paused?: boolean; readonly suspend?: boolean }
  readonly status?: { readonly observedGeneration?: number; readonly conditions?: readonly Condition[] }
}

async function whyWorkload(target: Target, reader: Reader): Promise<Finding> {
  const workload = target.object as Workload
  const unseen = whyUnseen(target, reader)
  if (unseen !== undefined) return unseen
  const failure = conditionOf(workload, 'ReplicaFailure') ?? conditionOf(workload, 'Failed')
  if (failure !== undefined) return whyFailed(target, reader, failure)
  if (workload.spec.paused === true || workload.spec.suspend === true) return whyPaused(target, reader)
  const pods = await podsOf(target, reader)
  if (pods === HIDDEN) return notKnown(`you may not list the pods of ${namedAs(target)}`, [hiddenStep()])
  const waiting = pods.filter((pod) => !isReady(pod) && !isTerminal(pod))
  const failed = target.kind.plural === Jobs.plural ? pods.filter(({ status }) => status.phase === 'Failed') : []
  const progress = progressSteps(target, reader)
  const [first] = [...waiting, ...failed]
  if (first === undefined) return whyTooFew(target, reader, pods.length, progress)
  const inner = await whyPod(first, reader)
  const unready = `${waiting.length} of ${countText(pods.length, 'pod')} not ready`
  const count = waiting.length === 0 ? countText(failed.length, 'failed pod') : unready
  const verdict = isNotKnown(inner) ? inner.verdict : `${namedAs(target)} has ${count}: ${inner.verdict}`
  return { verdict, steps: [...progress, ...inner.steps], wouldHelp: inner.wouldHelp }
}

/** `Deployment default/web`. */
function namedAs({ kind, object }: Target): string {
  return `${kind.kind} ${nameOf(object)}`
}

function whyUnseen(target: Target, reader: Reader): Finding | undefined {
  const { metadata, status } = target.object as Workload
  const { generation = 0 } = metadata
  const { observedGeneration = generation } = status ?? {}
  if (observedGeneration >= generation) return undefined
  const did = 'has a spec that its controller has not seen'
  const step = stepOf(target, reader, did, 'metadata.generation', 'status.observedGeneration')
  return notKnown(`the controller has not seen the newest spec of ${namedAs(target)}`, [step])
}

/** A paused Deployment without changes has nothing to do. */
function isComplete({ kind, object }: Target): boolean {
  if (kind.plural !== Deployments.plural) return false
  const { spec, status } = object as Deployment
  const { replicas = 1 } = spec
  return (status.updatedReplicas ?? 0) >= replicas && (status.availableReplicas ?? 0) >= replicas
}

function whyPaused(target: Target, reader: Reader): Finding {
  if (isComplete(target)) return notKnown(`no explainer finds anything wrong with ${namedAs(target)}, which is paused`)
  const isPaused = (target.object as Workload).spec.paused === true
  const field = isPaused ? 'spec.paused' : 'spec.suspend'
  const resume = `kubectl rollout resume ${target.kind.singular}/${target.object.metadata.name}`
  return {
    verdict: `${namedAs(target)} does not go on because ${field} is true`,
    steps: [stepOf(target, reader, `has ${field}`, field)],
    wouldHelp: [isPaused ? resume : 'set spec.suspend to false'],
  }
}

/** Fewer pods than wanted, and none that waits: their creation may have failed. */
async function whyTooFew(target: Target, reader: Reader, count: number, progress: readonly Step[]): Promise<Finding> {
  const workload = target.object as Workload
  const named = namedAs(target)
  const wanted = wantedBy(target)
  if (wanted === undefined || count >= wanted) return notKnown(`no explainer finds anything wrong with ${named}`)
  const event = newestEvent(await eventsOf(workload, reader), 'FailedCreate', 'SuccessfulCreate')
  if (event?.reason !== 'FailedCreate')
    return notKnown(`${named} has ${count} of ${countText(wanted, 'pod')}, and no component has reported why`, progress)
  return {
    verdict: `${named} has ${count} of ${countText(wanted, 'pod')} because the API server refuses more: ${event.message ?? ''}`,
    steps: [...progress, eventStep(event, reader)],
    wouldHelp: [],
  }
}

function wantedBy({ kind, object }: Target): number | undefined {
  if (kind.plural === DaemonSets.plural) return (object as DaemonSet).status?.desiredNumberScheduled
  if (kind.plural === Jobs.plural) return undefined
  return (object as Workload).spec.replicas ?? 1
}

function whyFailed(target: Target, reader: Reader, condition: Condition): Finding {
  const { type, reason = '', message = '', lastTransitionTime } = condition
  const path = `status.conditions[${type}]`
  const step = {
    ...stepOf(target, reader, `reported ${type}: ${reason}: ${message}`, `${path}.reason`, `${path}.message`),
    ...(lastTransitionTime != null && { at: lastTransitionTime }),
  }
  const named = namedAs(target)
  const isRefusal = type === 'ReplicaFailure' && reason === 'FailedCreate'
  const verdict = isRefusal
    ? `${named} lacks pods because the API server refuses them: ${message}`
    : `${named} failed because ${message === '' ? reason : message}`
  return { verdict, steps: [step], wouldHelp: helpFor(message) }
}

function helpFor(message: string): string[] {
  const quota = /exceeded quota: ([^,]+),/.exec(message)?.[1]
  return quota === undefined ? [] : [`raise the ResourceQuota ${quota}, or request less`]
}

function conditionOf({ status }: Workload, type: string): Condition | undefined {
  return status?.conditions?.find((one) => one.type === type && one.status === 'True')
}

/** Pods of the newest template; of a Deployment those of its newest ReplicaSet. */
async function podsOf(target: Target, reader: Reader): Promise<readonly Pod[] | typeof HIDDEN> {
  const { namespace = '' } = target.object.metadata
  const [pods, sets] = await Promise.all([
    reader.list(Pods, { namespace }),
    target.kind.plural === Deployments.plural ? reader.list(ReplicaSets, { namespace }) : [],
  ])
  if (pods === HIDDEN || sets === HIDDEN) return HIDDEN
  const newest = sets
    .filter((set) => isControlledBy(set, target.object))
    .toSorted(byRevision)
    .at(-1)
  const owner = newest ?? target.object
  return pods.filter((pod) => isControlledBy(pod, owner))
}

/** The arithmetic of a rollout, and its deadline. */
function progressSteps(target: Target, reader: Reader): Step[] {
  if (target.kind.plural === StatefulSets.plural) return updateSteps(target, reader)
  if (target.kind.plural !== Deployments.plural) return []
  const deployment = target.object as Deployment
  const { replicas = 1 } = deployment.spec
  const { availableReplicas = 0, updatedReplicas = 0, conditions = [] } = deployment.status
  const { surge, unavailable } = tolerances(deployment)
  const late = conditions.find(({ type, reason }) => type === 'Progressing' && reason === 'ProgressDeadlineExceeded')
  const text = `keeps at least ${replicas - unavailable} of ${replicas} pods available and at most ${replicas + surge} in all; ${availableReplicas} are available, ${updatedReplicas} have the newest template`
  const fields = ['spec.replicas', 'spec.strategy', 'status.availableReplicas', 'status.updatedReplicas']
  const sizes: Step = { ...stepOf(target, reader, text, ...fields), certainty: 'recomputed' }
  if (late === undefined) return [sizes]
  const path = 'status.conditions[Progressing]'
  const deadline = stepOf(
    target,
    reader,
    `reported that the progress deadline passed: ${late.message ?? ''}`,
    `${path}.reason`,
  )
  return [sizes, { ...deadline, ...(late.lastTransitionTime != null && { at: late.lastTransitionTime }) }]
}

function updateSteps(target: Target, reader: Reader): Step[] {
  const { podManagementPolicy = 'OrderedReady' } = (target.object as StatefulSet).spec
  if (podManagementPolicy !== 'OrderedReady') return []
  return [stepOf(target, reader, 'starts a pod only when the pods before it are ready', 'spec.podManagementPolicy')]
}

function stepOf(target: Target, reader: Reader, did: string, ...fieldPaths: readonly string[]): Step {
  const { kind, object } = target
  return {
    revision: object.metadata.resourceVersion ?? '',
    actor: `${kind.singular}-controller`,
    did,
    object: referenceTo(target),
    because: [],
    evidence: reader.cite(kind, object, ...fieldPaths),
    certainty: 'reported',
  }
}
