/** Explains why a pod has no node: repeats the decision of the default scheduler for every node. */
import { type Pod, type PodCondition, Pods } from '#apis/core/v1.ts'
import { runInSlices } from '#lib/time-slicing.ts'
import { isBeingDeleted } from '#meta/object.ts'
import { isTerminal } from '#model/pods.ts'
import type { Reconsidered } from '#scheduler/reconsideration.ts'

import { someOf } from '../amount-text.ts'
import { versionOf } from '../citation.ts'
import { type Explainer, isOf } from '../explainer.ts'
import { type Finding, hiddenStep, nameOf, notKnown, type Step } from '../explanation.ts'
import type { Reader } from '../reader.ts'
import { groupNodes, groupsText, groupSteps, requestEvidence } from '../scheduling/node-groups.ts'
import { wouldHelp } from '../scheduling/relaxations.ts'
import { reconsiderationFor } from '../scheduling/state.ts'
import { whyClaims } from '../volumes/pod-claims.ts'

const DEFAULT_SCHEDULER = 'default-scheduler'

export const scheduling: Explainer = {
  name: 'scheduling',
  applies: (target) =>
    isOf(target, Pods) &&
    (target.object as Pod).spec.nodeName === undefined &&
    !isTerminal(target.object as Pod) &&
    !isBeingDeleted(target.object),
  explain: ({ object }, reader) => whyPending(object as Pod, reader),
}

async function whyPending(pod: Pod, reader: Reader): Promise<Finding> {
  const { schedulerName = DEFAULT_SCHEDULER, schedulingGates = [] } = pod.spec
  const condition = pod.status.conditions?.find(({ type }) => type === 'PodScheduled')
  const reports = reportStep(pod, condition, reader)
  if (schedulingGates.length > 0) return whyGated(pod, reports, reader)
  if (schedulerName !== DEFAULT_SCHEDULER) {
    const why = `only decisions of ${DEFAULT_SCHEDULER} can be repeated, and the pod's scheduler is ${schedulerName}`
    return notKnown(why, reports)
  }
  const reconsideration = await reconsiderationFor(reader, pod)
  if ('hidden' in reconsideration) {
    const names = reconsideration.hidden.join(', ')
    return notKnown(`you may not list ${names}, which decide about nodes for pods`, [...reports, hiddenStep()])
  }
  if (reconsideration.cluster.nodes.length === 0) return noNodes(pod, reports)
  const result = await runInSlices(reconsideration.consider(pod))
  if (result.gate !== undefined) return whyKept(pod, result, reports)
  const fitting = result.nodes.filter(({ refusals }) => refusals.length === 0).map(({ node }) => node.name)
  if (fitting.length > 0) return whyNotYet(fitting, condition, reports)
  if (!isAgreed(condition, result)) {
    const why = `the scheduler gave other reasons than a repetition of its decision now: ${result.message}`
    return notKnown(why, reports)
  }
  if (result.refused !== undefined) return whyRefused(pod, result, reports, reader)
  const groups = groupNodes(pod, result.nodes)
  return {
    verdict: `Pod ${nameOf(pod)} is Pending because no node fits: ${groupsText(groups)}`,
    steps: [...reports, ...groupSteps(pod, groups, reader), ...requests(pod, reader)],
    wouldHelp: await runInSlices(wouldHelp(reconsideration, pod, result.nodes)),
  }
}

/** The requests of the pod, as the last step: the amounts in the others compare with it. */
function requests(pod: Pod, reader: Reader): Step[] {
  const evidence = ['cpu', 'memory'].flatMap((resource) => requestEvidence(pod, resource, reader))
  if (evidence.length === 0) return []
  const object = `pods/${nameOf(pod)}`
  return [{ actor: '', did: 'has these requests', object, because: [], evidence, certainty: 'reported' }]
}

function reportStep(pod: Pod, condition: PodCondition | undefined, reader: Reader): Step[] {
  if (condition === undefined || condition.status !== 'False') return []
  const path = 'status.conditions[PodScheduled]'
  const isGated = condition.reason === 'SchedulingGated'
  return [
    {
      ...(condition.lastTransitionTime != null && { at: condition.lastTransitionTime }),
      revision: pod.metadata.resourceVersion ?? '',
      actor: isGated ? 'kube-apiserver' : (pod.spec.schedulerName ?? DEFAULT_SCHEDULER),
      did: `${isGated ? 'reported' : 'found no node:'} ${withoutPreemption(condition.message ?? '')}`,
      object: `pods/${nameOf(pod)}`,
      because: [versionOf({ kind: Pods, object: pod })],
      evidence: reader.cite(Pods, pod, `${path}.reason`, `${path}.message`),
      certainty: 'reported',
    },
  ]
}

function whyGated(pod: Pod, reports: readonly Step[], reader: Reader): Finding {
  const names = (pod.spec.schedulingGates ?? []).map(({ name }) => name)
  const step: Step = {
    actor: 'kube-scheduler',
    did: `leaves the pod alone until its scheduling gates are removed: ${names.join(', ')}`,
    object: `pods/${nameOf(pod)}`,
    because: [],
    evidence: reader.cite(Pods, pod, 'spec.schedulingGates'),
    certainty: 'recomputed',
  }
  return {
    verdict: `Pod ${nameOf(pod)} is Pending because it has the scheduling gate ${names.join(', ')}`,
    steps: [...reports, step],
    wouldHelp: [
      `remove the gate ${names.join(', ')} from spec.schedulingGates: this is the task of the program that added it`,
    ],
  }
}

/** Another plugin keeps the pod out of the queue. */
function whyKept(pod: Pod, { gate }: Reconsidered, reports: readonly Step[]): Finding {
  const reasons = gate?.reasons.join(', ') ?? ''
  return {
    verdict: `Pod ${nameOf(pod)} is Pending because the scheduler does not consider it yet: ${reasons}`,
    steps: reports,
    wouldHelp: [],
  }
}

const NO_CLAIMS = { steps: [], wouldHelp: [] }

async function whyRefused(
  pod: Pod,
  { refused }: Reconsidered,
  reports: readonly Step[],
  reader: Reader,
): Promise<Finding> {
  const reason = refused?.reasons.join(', ') ?? ''
  const step: Step = {
    actor: 'kube-scheduler',
    did: `rejects the pod before it looks at nodes: ${refused?.plugin}: ${reason}`,
    object: `pods/${nameOf(pod)}`,
    because: [],
    evidence: reader.cite(Pods, pod, 'spec.volumes'),
    certainty: 'recomputed',
  }
  const isAboutClaims = /persistentvolumeclaim/i.test(reason)
  const claims: Awaited<ReturnType<typeof whyClaims>> = isAboutClaims ? await whyClaims(pod, reader) : NO_CLAIMS
  return {
    verdict: claims.verdict ?? `Pod ${nameOf(pod)} is Pending because ${reason}`,
    steps: [...reports, step, ...claims.steps],
    wouldHelp: claims.wouldHelp,
  }
}

function noNodes(pod: Pod, reports: readonly Step[]): Finding {
  return {
    verdict: `Pod ${nameOf(pod)} is Pending because the cluster has no nodes`,
    steps: reports,
    wouldHelp: ['add a node to the cluster'],
  }
}

function whyNotYet(fitting: readonly string[], condition: PodCondition | undefined, reports: readonly Step[]): Finding {
  const fit = `${someOf(fitting)} ${fitting.length === 1 ? 'fits' : 'fit'} by the objects now`
  if (condition === undefined)
    return notKnown(`${fit}, and the scheduler has not reported anything about the pod`, reports)
  return notKnown(`${fit}, and the scheduler has not tried again since it found no node`, reports)
}

/** One reason in common: otherwise the scheduler may have another configuration. Counts of nodes change all the time. */
function isAgreed(condition: PodCondition | undefined, { message }: Reconsidered): boolean {
  const reported = condition?.status === 'False' ? condition.message : undefined
  if (reported === undefined || reported === '') return true
  const reasons = reasonsIn(reported)
  return reasonsIn(message).some((reason) => reasons.includes(reason))
}

/** The reasons of `0/3 nodes are available: 2 Insufficient cpu, 1 node(s) were unschedulable. preemption: …`. */
function reasonsIn(message: string): string[] {
  const list = withoutPreemption(message).replace(/^0\/\d+ nodes are available: /, '')
  return list.split(/, (?=\d+ )/).map((reason) => reason.replace(/^\d+ /, ''))
}

/** The plugins that run after the filters add sentences. */
function withoutPreemption(message: string): string {
  return message.replace(/\.(?: .*)?$/s, '')
}
