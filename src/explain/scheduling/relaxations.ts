/** Single changes after which a node would fit a pod. Each is tried: the decision runs again with the changed pod. */
import type { Pod, PodAffinityTerm, Taint } from '#apis/core/v1.ts'
import type { Steps } from '#lib/time-slicing.ts'
import { deepCopy } from '#meta/object.ts'
import {
  parseQuantity,
  quantityMilliValue,
  quantityOf,
  quantityOfMilli,
  quantityText,
  quantityValue,
} from '#meta/quantity.ts'
import { amountOf } from '#scheduler/cluster/amounts.ts'
import { PodInfo } from '#scheduler/cluster/pod-info.ts'
import type { NodeVerdict, Reconsideration } from '#scheduler/reconsideration.ts'

import { amountText, someOf } from '../amount-text.ts'
import { taintText, untoleratedTaints } from './problems.ts'

interface Relaxation {
  /** `tolerate the taint gpu=true:NoSchedule`; the nodes that fit follow it. */
  readonly text: string
  /** Only these plugins may change their verdict. */
  readonly cures: ReadonlySet<string>
  readonly pod: Pod
}

const MAX_SENTENCES = 4

/** Sentences, the change that helps the most nodes first; among equal ones, less of a resource first. */
export function* wouldHelp(
  reconsideration: Reconsideration,
  pod: Pod,
  verdicts: readonly NodeVerdict[],
): Steps<string[]> {
  const found: { readonly text: string; readonly count: number }[] = []
  for (const { text, cures, pod: changed } of relaxationsOf(pod, verdicts)) {
    const names = verdicts.filter((one) => one.refusals.every(({ plugin }) => cures.has(plugin))).map(nameOf)
    if (names.length === 0) continue
    const { nodes } = yield* reconsideration.consider(changed, new Set(names))
    const fitting = nodes.filter(({ refusals }) => refusals.length === 0).map(nameOf)
    if (fitting.length === 0) continue
    const fit = fitting.length === 1 ? 'fits' : 'fit'
    found.push({ text: `${text}: ${someOf(fitting)} ${fit} then`, count: fitting.length })
  }
  return found.slice(0, MAX_SENTENCES).map(({ text }) => text)
}

const nameOf = ({ node }: NodeVerdict): string => node.name

function relaxationsOf(pod: Pod, verdicts: readonly NodeVerdict[]): Relaxation[] {
  return [
    ...lessOfResources(pod, verdicts),
    ...toleratedTaints(pod, verdicts),
    ...droppedSelectors(pod),
    ...droppedTerms(pod),
    ...droppedConstraints(pod),
    ...droppedPorts(pod),
  ]
}

/** For each resource, the least amount less for a node that lacks nothing else. */
function lessOfResources(pod: Pod, verdicts: readonly NodeVerdict[]): Relaxation[] {
  const { requests } = new PodInfo(pod)
  const least = new Map<string, number>()
  for (const { node, refusals } of verdicts) {
    const [refusal, another] = refusals
    if (refusal?.plugin !== 'NodeResourcesFit' || another !== undefined || refusal.reasons.length !== 1) continue
    const resource = /^Insufficient (.+)$/.exec(refusal.reasons[0] ?? '')?.[1]
    if (resource === undefined) continue
    const free = amountOf(node.allocatable, resource) - amountOf(node.requested, resource)
    const excess = amountOf(requests, resource) - free
    if (free > 0 && excess < (least.get(resource) ?? Infinity)) least.set(resource, excess)
  }
  return Array.from(least, ([resource, excess]) => {
    const left = amountOf(requests, resource) - excess
    const text = `request ${amountText(resource, excess, 'up')} ${resource} less (${amountText(resource, left, 'down')} in all)`
    return { text, cures: new Set(['NodeResourcesFit']), pod: withLess(pod, resource, excess) }
  })
}

/** Takes from the largest requests first. */
function withLess(pod: Pod, resource: string, excess: number): Pod {
  const changed = deepCopy(pod)
  const valueOf = (text = '0'): number =>
    resource === 'cpu' ? quantityMilliValue(parseQuantity(text)) : quantityValue(parseQuantity(text))
  const textOf = (value: number): string =>
    quantityText(resource === 'cpu' ? quantityOfMilli(value) : quantityOf(value, 'BinarySI'))
  const places = [changed.spec, ...changed.spec.containers, ...(changed.spec.initContainers ?? [])]
  const lists = places.flatMap(({ resources }) =>
    resources?.requests?.[resource] === undefined ? [] : [resources.requests],
  )
  let left = excess
  for (const list of lists.sort((a, b) => valueOf(b[resource]) - valueOf(a[resource]))) {
    const value = valueOf(list[resource])
    const taken = Math.min(value, left)
    list[resource] = textOf(value - taken)
    left -= taken
  }
  return changed
}

const OWN_TAINTS = 'node.kubernetes.io/'
const CORDONED = `${OWN_TAINTS}unschedulable`

function toleratedTaints(pod: Pod, verdicts: readonly NodeVerdict[]): Relaxation[] {
  const taints = new Map<string, Taint>()
  for (const { node } of verdicts) {
    if (node.node === undefined) continue
    for (const taint of untoleratedTaints(pod, node.node)) taints.set(taintText(taint), taint)
    if (node.node.spec.unschedulable === true) taints.set(CORDONED, { key: CORDONED, effect: 'NoSchedule' })
  }
  // One relaxation for each taint; a cordoned node has two reasons for it.
  const cures = new Set(['TaintToleration', 'NodeUnschedulable'])
  const byText = new Map(Array.from(taints.values(), (taint) => [taintHelp(taint), taint]))
  return Array.from(byText, ([text, { key, effect }]) => {
    const changed = deepCopy(pod)
    changed.spec.tolerations = [...(changed.spec.tolerations ?? []), { key, operator: 'Exists', effect }]
    return { text, cures, pod: changed }
  })
}

/** Taints of the node controller follow from the state of the node: tolerating them hides it. */
function taintHelp(taint: Taint): string {
  if (taint.key === CORDONED) return 'uncordon the node'
  if (taint.key.startsWith(OWN_TAINTS)) return `mend the node, so that it loses the taint ${taintText(taint)}`
  return `tolerate the taint ${taintText(taint)}`
}

const BY_AFFINITY: ReadonlySet<string> = new Set(['NodeAffinity'])

function droppedSelectors(pod: Pod): Relaxation[] {
  const { nodeSelector = {}, affinity } = pod.spec
  const dropped = Object.entries(nodeSelector).map(([key, value]) => {
    const changed = deepCopy(pod)
    delete changed.spec.nodeSelector?.[key]
    return { text: `drop ${key}=${value} from the nodeSelector`, cures: BY_AFFINITY, pod: changed }
  })
  if (affinity?.nodeAffinity?.requiredDuringSchedulingIgnoredDuringExecution === undefined) return dropped
  const changed = deepCopy(pod)
  delete changed.spec.affinity?.nodeAffinity
  return [...dropped, { text: 'drop the required node affinity', cures: BY_AFFINITY, pod: changed }]
}

function droppedTerms(pod: Pod): Relaxation[] {
  return (['podAffinity', 'podAntiAffinity'] as const).flatMap((part) => {
    const terms = pod.spec.affinity?.[part]?.requiredDuringSchedulingIgnoredDuringExecution ?? []
    return terms.map((term, at) => {
      const changed = deepCopy(pod)
      changed.spec.affinity?.[part]?.requiredDuringSchedulingIgnoredDuringExecution?.splice(at, 1)
      const name = part === 'podAffinity' ? 'affinity' : 'anti-affinity'
      return { text: `drop the ${name} ${termText(term)}`, cures: new Set(['InterPodAffinity']), pod: changed }
    })
  })
}

function termText({ topologyKey, labelSelector }: PodAffinityTerm): string {
  const labels = Object.entries(labelSelector?.matchLabels ?? {}).map(([key, value]) => `${key}=${value}`)
  return `${labels.length > 0 ? `to ${labels.join(',')} ` : ''}by ${topologyKey}`
}

function droppedConstraints(pod: Pod): Relaxation[] {
  const constraints = pod.spec.topologySpreadConstraints ?? []
  return constraints.flatMap(({ topologyKey, whenUnsatisfiable }, at) => {
    if (whenUnsatisfiable !== 'DoNotSchedule') return []
    const changed = deepCopy(pod)
    changed.spec.topologySpreadConstraints?.splice(at, 1)
    const text = `drop the topology spread constraint by ${topologyKey}`
    return [{ text, cures: new Set(['PodTopologySpread']), pod: changed }]
  })
}

function droppedPorts(pod: Pod): Relaxation[] {
  const hasHostPort = pod.spec.containers.some(({ ports = [] }) => ports.some(({ hostPort = 0 }) => hostPort > 0))
  if (!hasHostPort) return []
  const changed = deepCopy(pod)
  for (const { ports = [] } of changed.spec.containers) for (const port of ports) delete port.hostPort
  return [{ text: 'drop the host ports', cures: new Set(['NodePorts']), pod: changed }]
}
