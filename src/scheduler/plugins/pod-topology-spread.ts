/** PodTopologySpread: spreads matching pods over topology domains. */
import { ReplicaSets, StatefulSets } from '#apis/apps/v1.ts'
import { Nodes, type Pod, ReplicationControllers, Services, type TopologySpreadConstraint } from '#apis/core/v1.ts'
import { asSelector } from '#meta/label-selector.ts'
import {
  createSelector,
  everything,
  type LabelRequirement,
  type Labels,
  matchesLabels,
  type Selector,
  selectorFromLabels,
  selectorText,
} from '#meta/labels.ts'
import { controllerOf, keyOf } from '#meta/object.ts'
import { fitsAffinity, isRepelled, type tolerates, tolerationRule } from '#model/nodes/fit.ts'

import type { Cluster } from '../cluster/cluster.ts'
import type { NodeInfo } from '../cluster/node-info.ts'
import type { PodCount } from '../cluster/pod-counts.ts'
import type { PodInfo } from '../cluster/pod-info.ts'
import {
  definePlugin,
  type Handle,
  MAX_SCORE,
  type PluginFactory,
  type PluginState,
  type Scorer,
  unresolvable,
  unschedulable,
  type Verdict,
} from '../framework/framework.ts'

const HOSTNAME = 'kubernetes.io/hostname'
const SKEWED = unschedulable("node(s) didn't match pod topology spread constraints")
const UNLABELLED = unresolvable("node(s) didn't match pod topology spread constraints (missing required label)")

interface PodTopologySpreadArgs {
  readonly defaultConstraints?: readonly TopologySpreadConstraint[]
  readonly defaultingType?: string
}

/** For pods without constraints that belong to a service or controller. */
const SYSTEM_DEFAULTS: readonly TopologySpreadConstraint[] = [
  { topologyKey: HOSTNAME, whenUnsatisfiable: 'ScheduleAnyway', maxSkew: 3 },
  { topologyKey: 'topology.kubernetes.io/zone', whenUnsatisfiable: 'ScheduleAnyway', maxSkew: 5 },
]

/** One constraint, prepared for a pod. */
interface Constraint {
  readonly key: string
  readonly maxSkew: number
  readonly minDomains: number
  readonly honorsAffinity: boolean
  readonly honorsTaints: boolean
  readonly isTolerated: typeof tolerates
  readonly count: PodCount
  readonly selector: Selector
}

export const podTopologySpread: PluginFactory = definePlugin({
  name: 'PodTopologySpread',
  create(handle: Handle, { defaultingType = 'System', defaultConstraints = [] }: PodTopologySpreadArgs) {
    const isSystem = defaultingType === 'System'
    const defaults = isSystem ? SYSTEM_DEFAULTS : defaultConstraints
    const { cluster, isEnabled } = handle
    const isTolerated = tolerationRule(isEnabled)
    const minds = isEnabled('MatchLabelKeysInPodTopologySpread')
    const selectorFor = (one: TopologySpreadConstraint, { labels }: PodInfo): Selector =>
      minds ? selectorOf(one, labels) : asSelector(one.labelSelector)
    const constraintsOf = (pod: PodInfo, action: string): Constraint[] => {
      const own = pod.pod.spec.topologySpreadConstraints ?? []
      const chosen = (own.length > 0 ? own : defaults).filter(({ whenUnsatisfiable }) => whenUnsatisfiable === action)
      const ofOwner = own.length > 0 || chosen.length === 0 ? undefined : selectorOfOwners(pod.pod, handle)
      if (own.length === 0 && ofOwner === undefined) return []
      return chosen.map((one) => constraintOf({ cluster, isTolerated }, pod, one, ofOwner ?? selectorFor(one, pod)))
    }
    return {
      eventsToRegister: [
        { resource: 'AssignedPod', actions: ['add', 'labels', 'delete'], queueingHint: inNamespaceOf },
        { resource: Nodes, actions: ['add', 'delete', 'labels', 'taints'] },
        { resource: 'TargetPod', actions: ['labels'] },
      ],
      preFilter(pod) {
        const constraints = constraintsOf(pod, 'DoNotSchedule')
        return constraints.length === 0 ? undefined : SpreadState.of(pod, cluster, constraints)
      },
      preScore(pod, nodes) {
        const constraints = constraintsOf(pod, 'ScheduleAnyway')
        if (constraints.length === 0) return undefined
        const needsAll = !isSystem || (pod.pod.spec.topologySpreadConstraints ?? []).length > 0
        return scorerOf({ pod, cluster, constraints, needsAll }, nodes)
      },
    }
  },
})

function inNamespaceOf({ metadata }: Pod, ...others: readonly (Pick<Pod, 'metadata'> | undefined)[]): boolean {
  return others.some((other) => other !== undefined && other.metadata.namespace === metadata.namespace)
}

/** Adds the pod's values of `matchLabelKeys`. */
function selectorOf({ labelSelector, matchLabelKeys = [] }: TopologySpreadConstraint, labels: Labels): Selector {
  const selector = asSelector(labelSelector)
  if (selector.nothing === true) return selector
  const same: LabelRequirement[] = matchLabelKeys.flatMap((key) =>
    labels?.[key] === undefined ? [] : [{ key, operator: '=', values: [labels[key]] }],
  )
  return same.length === 0 ? selector : createSelector([...same, ...selector.requirements])
}

/** The combined selector of the pod's services and controllers. Undefined: it has none. */
function selectorOfOwners(pod: Pod, { of }: Handle): Selector | undefined {
  const requirements: LabelRequirement[] = []
  const { namespace = '', labels } = pod.metadata
  for (const { spec } of of(Services).by('namespace', namespace)) {
    const selector = selectorFromLabels(spec.selector)
    if (selector.requirements.length > 0 && matchesLabels(selector, labels)) requirements.push(...selector.requirements)
  }
  requirements.push(...selectorOfController(pod, of).requirements)
  return requirements.length === 0 ? undefined : createSelector(requirements)
}

function selectorOfController(pod: Pod, of: Handle['of']): Selector {
  const owner = controllerOf(pod)
  const key = keyOf(pod.metadata.namespace, owner?.name ?? '')
  switch (owner?.kind) {
    case 'ReplicationController':
      return selectorFromLabels(of(ReplicationControllers).get(key)?.spec.selector)
    case 'ReplicaSet':
      return asSelector(of(ReplicaSets).get(key)?.spec.selector)
    case 'StatefulSet':
      return asSelector(of(StatefulSets).get(key)?.spec.selector)
    default:
      return everything
  }
}

function constraintOf(
  { cluster, isTolerated }: Pick<Constraint, 'isTolerated'> & { readonly cluster: Cluster },
  { namespace }: PodInfo,
  one: TopologySpreadConstraint,
  selector: Selector,
): Constraint {
  const { topologyKey, maxSkew, minDomains = 1, nodeAffinityPolicy = 'Honor', nodeTaintsPolicy = 'Ignore' } = one
  // Terminating pods do not count; an empty selector matches no pod.
  const isEmpty = selector.requirements.length === 0
  const count = cluster.counts.of({
    id: `spread\n${namespace}\n${selector.nothing === true || isEmpty ? '!' : selectorText(selector)}`,
    namespaces: new Set([namespace]),
    matches: (pod) =>
      !isEmpty && !pod.isTerminating && pod.namespace === namespace && matchesLabels(selector, pod.labels),
  })
  return {
    key: topologyKey,
    maxSkew,
    minDomains,
    honorsAffinity: nodeAffinityPolicy === 'Honor',
    honorsTaints: nodeTaintsPolicy === 'Honor',
    isTolerated,
    count,
    selector,
  }
}

const HARD = ['NoSchedule', 'NoExecute']

function counts(
  { honorsAffinity, honorsTaints, isTolerated }: Constraint,
  { pod: { spec } }: PodInfo,
  { node }: NodeInfo,
): boolean {
  if (node === undefined) return false
  if (honorsAffinity && !fitsAffinity(spec, node)) return false
  return !honorsTaints || !isRepelled(node.spec.taints, spec.tolerations, HARD, isTolerated)
}

/** Whether every node counts: then the incremental counts of the cluster cache apply unchanged. */
function countsAll({ honorsAffinity, honorsTaints }: Constraint, { pod: { spec } }: PodInfo): boolean {
  const isPicky = spec.nodeSelector !== undefined || spec.affinity?.nodeAffinity !== undefined
  return !honorsTaints && !(honorsAffinity && isPicky)
}

function hasAll(constraints: readonly Constraint[], { labels }: NodeInfo): boolean {
  return constraints.every(({ key }) => labels?.[key] !== undefined)
}

function countsByDomain(cluster: Cluster, { key, count }: Constraint): Map<string, number> {
  const there = count.by(key)
  return new Map(Array.from(cluster.labelCounts.of(key).nodes.keys(), (place) => [place, there.get(place) ?? 0]))
}

/** The number of matching pods in each domain, for each required constraint. */
class SpreadState implements PluginState {
  readonly #pod: PodInfo
  readonly #constraints: readonly Constraint[]
  readonly #domains: readonly Map<string, number>[]
  readonly #least: (number | undefined)[] = []

  static of(pod: PodInfo, cluster: Cluster, constraints: readonly Constraint[]): SpreadState {
    // The usual case: every node has the labels and counts, so no node is visited.
    if (constraints.every((one) => countsAll(one, pod) && cluster.isEverywhere(one.key))) {
      return new SpreadState(
        pod,
        constraints,
        constraints.map((one) => countsByDomain(cluster, one)),
      )
    }
    const domains = constraints.map(() => new Map<string, number>())
    for (const node of cluster.nodes) {
      if (!hasAll(constraints, node)) continue
      for (const [at, one] of constraints.entries()) {
        if (!counts(one, pod, node)) continue
        const place = node.labels?.[one.key] as string
        const map = domains[at] as Map<string, number>
        map.set(place, (map.get(place) ?? 0) + (one.count.onNode.get(node.name) ?? 0))
      }
    }
    return new SpreadState(pod, constraints, domains)
  }

  private constructor(pod: PodInfo, constraints: readonly Constraint[], domains: readonly Map<string, number>[]) {
    this.#pod = pod
    this.#constraints = constraints
    this.#domains = domains
  }

  fork(): SpreadState {
    return new SpreadState(
      this.#pod,
      this.#constraints,
      this.#domains.map((domains) => new Map(domains)),
    )
  }

  add(other: PodInfo, node: NodeInfo): void {
    this.#change(other, node, 1)
  }

  remove(other: PodInfo, node: NodeInfo): void {
    this.#change(other, node, -1)
  }

  filter({ labels }: NodeInfo): Verdict {
    for (const [at, { key, maxSkew, selector }] of this.#constraints.entries()) {
      const place = labels?.[key]
      if (place === undefined) return UNLABELLED
      const itself = matchesLabels(selector, this.#pod.labels) ? 1 : 0
      const there = this.#domains[at]?.get(place) ?? 0
      if (there + itself - this.#leastOf(at) > maxSkew) return SKEWED
    }
    return undefined
  }

  /** The minimum over all domains; 0 if there are fewer than `minDomains`. */
  #leastOf(at: number): number {
    const known = this.#least[at]
    if (known !== undefined) return known
    const domains = this.#domains[at] as Map<string, number>
    const { minDomains } = this.#constraints[at] as Constraint
    let least = domains.size < minDomains ? 0 : 2 ** 31 - 1
    if (domains.size >= minDomains) for (const count of domains.values()) least = Math.min(least, count)
    this.#least[at] = least
    return least
  }

  #change(other: PodInfo, node: NodeInfo, by: number): void {
    if (other.namespace !== this.#pod.namespace || !hasAll(this.#constraints, node)) return
    for (const [at, one] of this.#constraints.entries()) {
      if (!matchesLabels(one.selector, other.labels) || !counts(one, this.#pod, node)) continue
      const domains = this.#domains[at] as Map<string, number>
      const place = node.labels?.[one.key] as string
      domains.set(place, (domains.get(place) ?? 0) + by)
      this.#least[at] = undefined
    }
  }
}

interface SpreadInput {
  readonly pod: PodInfo
  readonly cluster: Cluster
  readonly constraints: readonly Constraint[]
  /** Skips nodes that lack one of the labels. */
  readonly needsAll: boolean
}

/** Fewer matching pods score higher; constraints with more domains weigh more. */
function scorerOf(spreading: SpreadInput, nodes: readonly NodeInfo[]): Scorer {
  const { constraints, cluster } = spreading
  const needsAll = spreading.needsAll && !constraints.every(({ key }) => cluster.isEverywhere(key))
  const isIgnored = (node: NodeInfo): boolean => needsAll && !hasAll(constraints, node)
  const looked = needsAll ? nodes.filter((node) => !isIgnored(node)) : nodes
  const parts = constraints.map((one) => {
    if (one.key === HOSTNAME) return { one, weight: Math.log(looked.length + 2), there: one.count.onNode }
    const domains = new Set(looked.map(({ labels }) => labels?.[one.key] ?? ''))
    return {
      one,
      weight: Math.log(domains.size + 2),
      there: countsOf({ ...spreading, needsAll }, one, domains),
    }
  })
  return {
    score(node) {
      if (isIgnored(node)) return 0
      let sum = 0
      for (const { one, weight, there } of parts) {
        const place = node.labels?.[one.key]
        if (place === undefined) continue
        sum += (there.get(one.key === HOSTNAME ? node.name : place) ?? 0) * weight + (one.maxSkew - 1)
      }
      return Math.round(sum)
    },
    normalize: (scores, scored) => favourLow(scores, (at) => isIgnored(scored[at] as NodeInfo)),
  }
}

/** The number of matching pods in each domain, on nodes that count. */
function countsOf(
  { pod, cluster, constraints, needsAll }: SpreadInput,
  one: Constraint,
  domains: ReadonlySet<string>,
): ReadonlyMap<string, number> {
  const { onNode } = one.count
  if (!needsAll && countsAll(one, pod)) return one.count.by(one.key)
  const sums = new Map<string, number>()
  for (const [name, count] of onNode) {
    const node = cluster.node(name)
    const place = node?.labels?.[one.key] ?? ''
    if (
      node === undefined ||
      !domains.has(place) ||
      (needsAll && !hasAll(constraints, node)) ||
      !counts(one, pod, node)
    )
      continue
    sums.set(place, (sums.get(place) ?? 0) + count)
  }
  return sums
}

function favourLow(scores: number[], isIgnored: (at: number) => boolean): void {
  let least = Infinity
  let most = 0
  for (let at = 0; at < scores.length; at++) {
    if (isIgnored(at)) continue
    least = Math.min(least, scores[at] as number)
    most = Math.max(most, scores[at] as number)
  }
  for (let at = 0; at < scores.length; at++) {
    if (isIgnored(at)) scores[at] = 0
    else scores[at] = most === 0 ? MAX_SCORE : Math.trunc((MAX_SCORE * (most + least - (scores[at] as number))) / most)
  }
}
