/** Explains why a pod with a node does not start, is not ready, or had restarts. */
import { Nodes, type Pod, Pods } from '#apis/core/v1.ts'
import { isBeingDeleted } from '#meta/object.ts'
import { isReady, isTerminal } from '#model/pods.ts'

import { eventsOf, eventStep, newestEvent } from '../events.ts'
import { type Explainer, isOf } from '../explainer.ts'
import { type Finding, nameOf, notKnown, type Step } from '../explanation.ts'
import {
  containerCases,
  type PodCase,
  type Reason,
  whyNotRunning,
  whyRestarted,
  whyUnready,
} from '../pods/containers.ts'
import { HIDDEN } from '../reader.ts'

const SETUP_FAILURES = [
  'FailedMount',
  'FailedAttachVolume',
  'FailedCreatePodSandBox',
  'FailedMapVolume',
  'NetworkNotReady',
]

export const containers: Explainer = {
  name: 'containers',
  applies(target) {
    if (!isOf(target, Pods) || isBeingDeleted(target.object)) return false
    const pod = target.object as Pod
    const { containerStatuses = [], phase } = pod.status
    if (phase === 'Succeeded') return false
    const hasRestarts = containerStatuses.some(({ restartCount }) => restartCount > 0)
    return hasRestarts || phase === 'Failed' || (!isReady(pod) && pod.spec.nodeName !== undefined)
  },
  async explain({ object }, reader) {
    const pod = object as Pod
    return explain({ pod, reader, events: await eventsOf(pod, reader) })
  },
}

async function explain(one: PodCase): Promise<Finding> {
  const { pod } = one
  const cases = containerCases(one)
  const failed = cases.map(whyNotRunning).find((reason) => reason !== undefined)
  const named = `Pod ${nameOf(pod)}`
  if (isTerminal(pod))
    return findingOf(`${named} failed`, failed) ?? notKnown(`${named} failed, and no container has an exit code`)
  if (isReady(pod)) {
    const restarted = cases.map(whyRestarted).find((reason) => reason !== undefined)
    return (
      findingOf(`${named} is ready; it had restarts`, restarted) ??
      notKnown(`why the containers of ${named} were restarted`)
    )
  }
  const silent = await whySilentNode(one)
  const unready = silent ?? failed ?? cases.map(whyUnready).find((reason) => reason !== undefined) ?? whyGate(one)
  const head = pod.status.phase === 'Running' ? `${named} is not ready` : `${named} does not start`
  return findingOf(head, unready ?? whySetup(one)) ?? notKnown(`${head}, and no component has reported why`)
}

function findingOf(head: string, reason: Reason | undefined): Finding | undefined {
  if (reason === undefined) return undefined
  return { verdict: `${head} because ${reason.because}`, steps: reason.steps, wouldHelp: reason.wouldHelp ?? [] }
}

/** The kubelet does not report any more, so the status of the pod is old. */
async function whySilentNode({ pod, reader }: PodCase): Promise<Reason | undefined> {
  const { nodeName = '' } = pod.spec
  const node = await reader.get(Nodes, { name: nodeName })
  if (node === HIDDEN) return undefined
  if (node === undefined) return { because: `its node ${nodeName} does not exist`, steps: [] }
  const condition = node.status.conditions?.find(({ type }) => type === 'Ready')
  if (condition === undefined || condition.status === 'True') return undefined
  const { status, message = '', lastTransitionTime } = condition
  const step: Step = {
    ...(lastTransitionTime != null && { at: lastTransitionTime }),
    revision: node.metadata.resourceVersion ?? '',
    actor: status === 'Unknown' ? 'node-controller' : 'kubelet',
    did: `set the condition Ready of node ${nodeName} to ${status}: ${message}`,
    object: `nodes/${nodeName}`,
    because: [],
    evidence: reader.cite(Nodes, node, 'status.conditions[Ready].status', 'status.conditions[Ready].message'),
    certainty: 'reported',
  }
  const state = status === 'Unknown' ? 'does not report' : 'is not ready'
  return { because: `its node ${nodeName} ${state}: ${message}`, steps: [step] }
}

function whyGate({ pod, reader }: PodCase): Reason | undefined {
  const conditions = pod.status.conditions ?? []
  const isMet = (type: string): boolean => conditions.some((one) => one.type === type && one.status === 'True')
  const areContainersReady = isMet('ContainersReady')
  const missing = (pod.spec.readinessGates ?? []).filter(({ conditionType }) => !isMet(conditionType))
  const [first] = missing
  if (!areContainersReady || first === undefined) return undefined
  const step: Step = {
    revision: pod.metadata.resourceVersion ?? '',
    actor: 'kubelet',
    did: `waits for the condition ${first.conditionType} of the readiness gates`,
    object: `pods/${nameOf(pod)}`,
    because: [],
    evidence: reader.cite(Pods, pod, 'spec.readinessGates', `status.conditions[${first.conditionType}].status`),
    certainty: 'inferred',
  }
  return { because: `its readiness gate ${first.conditionType} is not met`, steps: [step] }
}

/** Volumes, network and sandbox, before any container. */
function whySetup({ events, reader }: PodCase): Reason | undefined {
  // A later event of a container means that the failure has passed.
  const event = newestEvent(events, ...SETUP_FAILURES, 'Pulling', 'Pulled', 'Created', 'Started')
  if (event === undefined || !SETUP_FAILURES.includes(event.reason ?? '')) return undefined
  return { because: `${event.reason}: ${event.message?.trim() ?? ''}`, steps: [eventStep(event, reader)] }
}
