/** Explains why the kubelet evicted a pod, or another component ended it before its containers did. */
import { type Node, Nodes, type Pod, Pods } from '#apis/core/v1.ts'

import { type Explainer, isOf } from '../explainer.ts'
import { nameOf, type Step } from '../explanation.ts'
import { HIDDEN, type Reader } from '../reader.ts'

const PRESSURES = ['MemoryPressure', 'DiskPressure', 'PIDPressure']

/** Reasons that kubelets give. */
const OF_KUBELET =
  /^(Evicted|Preempting|Terminated|NodeShutdown|DeadlineExceeded|NodeAffinity|UnexpectedAdmissionError|OutOf\w+)$/

export const eviction: Explainer = {
  name: 'eviction',
  applies: (target) => {
    if (!isOf(target, Pods)) return false
    const { phase, reason = '' } = (target.object as Pod).status
    return phase === 'Failed' && reason !== ''
  },
  async explain({ object }, reader) {
    const pod = object as Pod
    const { reason = '', message = '' } = pod.status
    const path = 'status.conditions[DisruptionTarget]'
    const step: Step = {
      revision: pod.metadata.resourceVersion ?? '',
      actor: OF_KUBELET.test(reason) ? 'kubelet' : 'a component',
      did: `ended it: ${reason}: ${message}`,
      object: `pods/${nameOf(pod)}`,
      because: [],
      evidence: reader.cite(Pods, pod, 'status.reason', 'status.message', `${path}.reason`),
      certainty: 'reported',
    }
    const verb = reason === 'Evicted' ? 'was evicted' : 'failed'
    const why = message === '' ? reason : message
    return {
      verdict: `Pod ${nameOf(pod)} ${verb} because ${why}`,
      steps: [step, ...(await pressureSteps(pod, reader))],
      wouldHelp: [],
    }
  },
}

/** The pressure of the node now: it may have passed. */
async function pressureSteps(pod: Pod, reader: Reader): Promise<Step[]> {
  const { nodeName = '' } = pod.spec
  const node: Node | typeof HIDDEN | undefined =
    nodeName === '' ? undefined : await reader.get(Nodes, { name: nodeName })
  if (node === undefined || node === HIDDEN) return []
  const pressing = (node.status.conditions ?? []).filter(
    ({ type, status }) => PRESSURES.includes(type) && status === 'True',
  )
  return pressing.map(({ type, message = '', lastTransitionTime }) => ({
    ...(lastTransitionTime != null && { at: lastTransitionTime }),
    revision: node.metadata.resourceVersion ?? '',
    actor: 'kubelet',
    did: `reports ${type} of node ${nodeName}: ${message}`,
    object: `nodes/${nodeName}`,
    because: [],
    evidence: reader.cite(Nodes, node, `status.conditions[${type}].status`),
    certainty: 'reported' as const,
  }))
}
