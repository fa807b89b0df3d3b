/** The problems of a pod with a node in plain words, from the rejections of the scheduler's plugins. */
import type { Node, Pod, Taint } from '#apis/core/v1.ts'
import { createGates } from '#component/flags/gates.ts'
import { selectorFromLabels } from '#meta/labels.ts'
import { meets } from '#meta/labels.ts'
import { tolerationRule } from '#model/nodes/fit.ts'
import type { NodeVerdict } from '#scheduler/reconsideration.ts'

export interface Problem {
  readonly plugin: string
  /** The same for all nodes with this problem: `not enough cpu`. */
  readonly text: string
  /** The missing resource. */
  readonly resource?: string
  /** Fields of the node that show the problem. */
  readonly fieldPaths: readonly string[]
}

const isTolerated = tolerationRule(createGates(new Map()))

/** In the order of the filters. */
export function problemsOf(pod: Pod, { node, refusals, reservedFor }: NodeVerdict): Problem[] {
  if (reservedFor.length > 0) {
    const names = reservedFor.map(({ key }) => key).join(', ')
    return [{ plugin: '', text: `room is reserved for ${names}`, fieldPaths: [] }]
  }
  const found = refusals.flatMap(({ plugin, reasons }): Problem[] => {
    if (node.node === undefined) return []
    const explained = PLAIN[plugin]?.(pod, node.node, reasons) ?? []
    return explained.length > 0 ? explained : reasons.map((text) => ({ plugin, text, fieldPaths: [] }))
  })
  // A cordoned node has a taint that says the same.
  const isCordoned = found.some(({ plugin }) => plugin === 'NodeUnschedulable')
  return isCordoned ? found.filter(({ text }) => !text.includes(UNSCHEDULABLE)) : found
}

const UNSCHEDULABLE = 'node.kubernetes.io/unschedulable'

type Explain = (pod: Pod, node: Node, reasons: readonly string[]) => Problem[]

const PLAIN: Readonly<Record<string, Explain>> = {
  NodeUnschedulable: () => [{ plugin: 'NodeUnschedulable', text: 'cordoned', fieldPaths: ['spec.unschedulable'] }],
  NodeName: ({ spec }) => [{ plugin: 'NodeName', text: `its name is not ${spec.nodeName ?? ''}`, fieldPaths: [] }],
  NodePorts: ({ spec }) => {
    const ports = spec.containers.flatMap(({ ports = [] }) => ports.flatMap(({ hostPort }) => hostPort ?? []))
    return [{ plugin: 'NodePorts', text: `host port ${ports.join(' or ')} is in use`, fieldPaths: [] }]
  },
  NodeResourcesFit: (_, __, reasons) => reasons.map(resourceProblem),
  TaintToleration: (pod, node) =>
    untoleratedTaints(pod, node).map((taint) => ({
      plugin: 'TaintToleration',
      text: `taint ${taintText(taint)} is not tolerated`,
      fieldPaths: ['spec.taints'],
    })),
  NodeAffinity: (pod, node) => labelProblems(pod, node),
  PodTopologySpread: (_, __, reasons) => [
    {
      plugin: 'PodTopologySpread',
      text: reasons.some((reason) => reason.includes('missing required label'))
        ? 'a label of the topology spread constraints is missing'
        : 'topology spread constraints forbid another pod there',
      fieldPaths: [],
    },
  ],
  InterPodAffinity: (_, __, reasons) => [
    { plugin: 'InterPodAffinity', text: affinityText(reasons.join(' ')), fieldPaths: [] },
  ],
}

function resourceProblem(reason: string): Problem {
  const resource = /^Insufficient (.+)$/.exec(reason)?.[1]
  const plugin = 'NodeResourcesFit'
  if (resource === undefined)
    return { plugin, text: 'its maximum of pods is reached', fieldPaths: ['status.allocatable.pods'] }
  return { plugin, text: `not enough ${resource}`, resource, fieldPaths: [`status.allocatable[${resource}]`] }
}

function affinityText(reasons: string): string {
  if (reasons.includes('existing pods anti-affinity')) return 'the anti-affinity of a pod there forbids it'
  if (reasons.includes('anti-affinity')) return "a pod that the pod's anti-affinity names is there"
  return "no pod that the pod's affinity names is there"
}

/** Taints that keep the pod away. */
export function untoleratedTaints({ spec }: Pod, node: Node): Taint[] {
  return (node.spec.taints ?? []).filter(
    (taint) => taint.effect !== 'PreferNoSchedule' && !(spec.tolerations ?? []).some((one) => isTolerated(one, taint)),
  )
}

/** `gpu=true:NoSchedule`. */
export function taintText({ key, value = '', effect }: Taint): string {
  return `${key}${value === '' ? '' : `=${value}`}:${effect}`
}

function labelProblems({ spec }: Pod, { metadata: { labels } }: Node): Problem[] {
  const plugin = 'NodeAffinity'
  const missing = selectorFromLabels(spec.nodeSelector).requirements.filter((one) => !meets(one, labels))
  if (missing.length === 0) return [{ plugin, text: 'its labels do not match the node affinity', fieldPaths: [] }]
  return missing.map(({ key, values }) => ({
    plugin,
    text: `label ${key}=${values[0] ?? ''} is missing`,
    fieldPaths: [`metadata.labels[${key}]`],
  }))
}
