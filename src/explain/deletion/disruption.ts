/** Pods that were evicted, preempted, or lost their node: the condition DisruptionTarget says which. */
import { type Node, Nodes, type Pod, Pods } from '#apis/core/v1.ts'
import { tolerates } from '#model/nodes/fit.ts'

import { citeOf } from '../citation.ts'
import type { Step } from '../explanation.ts'
import { HIDDEN, type ReadChange, UNKEPT } from '../reader.ts'
import { actorOf, changeStep, subjectOf } from './actor.ts'
import type { DeletionCase, DeletionCause } from './case.ts'
import { lastChange } from './changes.ts'

const PATH = 'status.conditions[DisruptionTarget]'

/** Undefined: nothing disrupted it. */
export async function whyDisrupted(one: DeletionCase): Promise<DeletionCause | undefined> {
  const pod = one.object as Pod
  const condition = pod.status.conditions?.find(({ type, status }) => type === 'DisruptionTarget' && status === 'True')
  if (condition === undefined) return undefined
  const { reason = '', message = '' } = condition
  const evidence = citeOf({ kind: Pods, object: pod }, `${PATH}.reason`, `${PATH}.message`)
  const step = changeStep(Pods, one.decision, `deleted ${subjectOf(one)}: ${reason}: ${message}`, evidence)
  switch (reason) {
    case 'PreemptionByScheduler':
      return { because: `the scheduler preempted it: ${message}`, steps: [step] }
    case 'EvictionByEvictionAPI':
      return { because: `${actorOf(one.decision)} evicted it`, steps: [step] }
    case 'DeletionByTaintManager': {
      const { nodeName = '' } = pod.spec
      const above = await taintSteps(nodeName, one)
      return { because: `node ${nodeName} ${above.because}`, steps: [step, ...above.steps] }
    }
    case 'DeletionByPodGC':
      return { because: `its node ${pod.spec.nodeName ?? ''} does not exist any more`, steps: [step] }
    default:
      return { because: `${reason}: ${message}`, steps: [step] }
  }
}

interface Above {
  readonly because: string
  readonly steps: readonly Step[]
}

/** The taint with the effect NoExecute that the pod does not tolerate for ever, and the condition of the node that led to it. */
async function taintSteps(name: string, { object, decision, reader }: DeletionCase): Promise<Above> {
  const changes = await reader.changes(Nodes, { name })
  if (changes === HIDDEN || changes === UNKEPT) return { because: 'has a taint with the effect NoExecute', steps: [] }
  const { items } = changes
  const until = decision.resourceVersion
  const node = lastChange(items, until, () => true)?.object as Node | undefined
  const [key, another] = evictingTaints(node, object as Pod)
  const change = lastChange(items, until, ({ object: now, before }) => {
    const [taints, known] = [now, before].map((state) => evictingTaints(state as Node | undefined, object as Pod))
    return key !== undefined && taints?.includes(key) === true && known?.includes(key) !== true
  })
  if (key === undefined || another !== undefined || change?.before === undefined)
    return { because: 'has a taint with the effect NoExecute', steps: [] }
  const did = `put the taint ${key} on node ${name}`
  const step = changeStep(Nodes, change, did, citeOf({ kind: Nodes, object: change.object }, 'spec.taints'))
  const silent = key.startsWith(UNREACHABLE) ? silentStep(name, items, change.resourceVersion) : undefined
  if (silent === undefined) return { because: `got the taint ${key}`, steps: [step] }
  return { because: `was silent and got the taint ${key}`, steps: [step, silent] }
}

const UNREACHABLE = 'node.kubernetes.io/unreachable:'

/** `gpu:NoExecute`. */
function evictingTaints(node: Node | undefined, { spec: { tolerations = [] } }: Pod): string[] {
  const evicting = (node?.spec.taints ?? []).filter(
    (taint) =>
      taint.effect === 'NoExecute' &&
      !tolerations.some((one) => one.tolerationSeconds === undefined && tolerates(one, taint)),
  )
  return evicting.map(({ key, effect }) => `${key}:${effect}`)
}

function silentStep(name: string, items: readonly ReadChange[], until: string): Step | undefined {
  const statusOf = (node: Node | undefined): string | undefined =>
    node?.status.conditions?.find(({ type }) => type === 'Ready')?.status
  const change = lastChange(
    items,
    until,
    ({ object, before }) =>
      before !== undefined && statusOf(object as Node) === 'Unknown' && statusOf(before as Node) !== 'Unknown',
  )
  if (change === undefined) return undefined
  const path = 'status.conditions[Ready]'
  const evidence = citeOf({ kind: Nodes, object: change.object }, `${path}.status`, `${path}.lastHeartbeatTime`)
  return changeStep(Nodes, change, `found node ${name} silent and set its condition Ready to Unknown`, evidence)
}
