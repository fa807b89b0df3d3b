/** Decides which nodes are eligible for a DaemonSet's pods, and creates its pod templates. Pure. */
import type { DaemonSet } from '#apis/apps/v1.ts'
import type { Affinity, Node, Pod, PodSpec, PodTemplateSpec, Toleration } from '#apis/core/v1.ts'
import { fitsAffinity, isRepelled, tolerates } from '#model/nodes/fit.ts'

export const HASH = 'controller-revision-hash'
const GENERATION = 'pod-template-generation'
const GENERATION_ANNOTATION = 'deprecated.daemonset.template.generation'

/** Node conditions that daemon pods tolerate. */
const TOLERATED: readonly (readonly [key: string, effect: string])[] = [
  ['not-ready', 'NoExecute'],
  ['unreachable', 'NoExecute'],
  ['disk-pressure', 'NoSchedule'],
  ['memory-pressure', 'NoSchedule'],
  ['pid-pressure', 'NoSchedule'],
  ['unschedulable', 'NoSchedule'],
]

function tolerationsOf({ tolerations = [], hostNetwork }: PodSpec): Toleration[] {
  const wanted = hostNetwork === true ? [...TOLERATED, ['network-unavailable', 'NoSchedule'] as const] : TOLERATED
  const added = wanted.map(([key, effect]) => ({ key: `node.kubernetes.io/${key}`, operator: 'Exists', effect }))
  const isReplaced = (one: Toleration): boolean =>
    added.some(({ key, effect }) => one.key === key && one.effect === effect && one.operator === 'Exists')
  return [...tolerations.filter((one) => !isReplaced(one)), ...added]
}

export interface Fit {
  /** The node should have a pod. */
  readonly shouldRun: boolean
  /** An existing pod may stay. */
  readonly mayStay: boolean
}

export function fitOf({ spec }: DaemonSet, node: Node, isTolerated: typeof tolerates = tolerates): Fit {
  const pod = spec.template.spec
  const isElsewhere = (pod.nodeName ?? '') !== '' && pod.nodeName !== node.metadata.name
  if (isElsewhere || !fitsAffinity(pod, node)) return { shouldRun: false, mayStay: false }
  const tolerations = tolerationsOf(pod)
  const { taints } = node.spec
  const repels = (...effects: readonly string[]): boolean => isRepelled(taints, tolerations, effects, isTolerated)
  if (!repels('NoExecute', 'NoSchedule')) return { shouldRun: true, mayStay: true }
  return { shouldRun: false, mayStay: !repels('NoExecute') }
}

/** The node of the pod, bound or by affinity. */
export function nodeOf({ spec }: Pod): string | undefined {
  if ((spec.nodeName ?? '') !== '') return spec.nodeName
  const terms = spec.affinity?.nodeAffinity?.requiredDuringSchedulingIgnoredDuringExecution?.nodeSelectorTerms ?? []
  const field = terms
    .flatMap(({ matchFields = [] }) => matchFields)
    .find(({ key, operator }) => key === 'metadata.name' && operator === 'In')
  return field?.values?.length === 1 ? field.values[0] : undefined
}

export function isUpdated(set: DaemonSet, { metadata }: Pod, hash: string): boolean {
  const generation = generationOf(set)
  return metadata.labels?.[HASH] === hash || (generation !== undefined && metadata.labels?.[GENERATION] === generation)
}

function generationOf({ metadata }: DaemonSet): string | undefined {
  const text = metadata.annotations?.[GENERATION_ANNOTATION]
  return text !== undefined && /^-?\d+$/.test(text) ? String(Number(text)) : undefined
}

/** The pod template for the node. Replaces the node affinity, which has already been evaluated. */
export function templateFor(set: DaemonSet, hash: string, node: string): PodTemplateSpec {
  const { metadata, spec } = set.spec.template
  const generation = generationOf(set)
  const labels = { ...metadata?.labels, ...(generation !== undefined && { [GENERATION]: generation }), [HASH]: hash }
  const matchFields = [{ key: 'metadata.name', operator: 'In', values: [node] }]
  const affinity: Affinity = {
    ...spec.affinity,
    nodeAffinity: {
      ...spec.affinity?.nodeAffinity,
      requiredDuringSchedulingIgnoredDuringExecution: { nodeSelectorTerms: [{ matchFields }] },
    },
  }
  return { metadata: { ...metadata, labels }, spec: { ...spec, affinity, tolerations: tolerationsOf(spec) } }
}

/** Pods with a node first, then the oldest. */
export function byAge(pods: readonly Pod[]): Pod[] {
  return [...pods].sort((a, b) => {
    const [left, right] = [a, b].map(({ spec }) => ((spec.nodeName ?? '') === '' ? 1 : 0))
    if (left !== right) return (left ?? 0) - (right ?? 0)
    const [since = '', other = ''] = [a.metadata.creationTimestamp, b.metadata.creationTimestamp]
    if (since !== other) return since < other ? -1 : 1
    return (a.metadata.name ?? '') < (b.metadata.name ?? '') ? -1 : 1
  })
}
