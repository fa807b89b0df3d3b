/** Selects the preemption victims on a node, and the node whose victims matter least. Pure. */
import type { PodDisruptionBudget } from '#apis/policy/v1.ts'
import { asSelector } from '#meta/label-selector.ts'
import { isEverything, matchesLabels, type Selector } from '#meta/labels.ts'

import type { NodeInfo } from '../cluster/node-info.ts'
import type { PodInfo } from '../cluster/pod-info.ts'
import { type Candidate, type FilterRunner, type Refusal, type Search, unresolvable } from '../framework/framework.ts'
import { HypotheticalNode } from './hypothetical-node.ts'

const NO_VICTIMS = unresolvable('No preemption victims found for incoming pod')
/** Makes priorities non-negative in sums: fewer victims are better, whatever their priority. */
const LOWEST_PRIORITY = -(2 ** 31)

/** A PodDisruptionBudget, prepared. */
export interface Budget {
  readonly namespace: string
  readonly selector: Selector
  readonly allowed: number
  /** Pods that were already disrupted, by name. */
  readonly spentOn: Readonly<Record<string, string>>
}

/** Undefined: it selects no pods. */
export function budgetOf({ metadata, spec, status }: PodDisruptionBudget): Budget | undefined {
  const selector = asSelector(spec.selector)
  if (selector.nothing === true || isEverything(selector)) return undefined
  const { disruptionsAllowed: allowed, disruptedPods: spentOn = {} } = status
  return { namespace: metadata.namespace ?? '', selector, allowed, spentOn }
}

/** Removes all pods of lower priority, then adds back as many as possible, protected ones first. */
export function victimsOn(
  { pod, cycleState }: Pick<Search, 'pod' | 'cycleState'>,
  node: NodeInfo,
  budgets: readonly Budget[],
  filterRunner: FilterRunner,
): Candidate | Refusal {
  const lesser = [...node.pods.values()].filter(({ priority }) => priority < pod.priority)
  if (lesser.length === 0) return NO_VICTIMS
  const simulated = new HypotheticalNode(node, cycleState)
  const runFilters = (): Refusal | undefined =>
    filterRunner.filterWithNominated(pod, simulated.node, simulated.cycleState)
  for (const one of lesser) simulated.remove(one)
  const refusal = runFilters()
  if (refusal !== undefined) return refusal
  const mustGo = (one: PodInfo): boolean => {
    simulated.add(one)
    if (runFilters() === undefined) return false
    simulated.remove(one)
    return true
  }
  const { kept, free } = protectedBy(budgets, lesser.sort(byImportance))
  const violating = kept.filter(mustGo)
  const victims = [...violating, ...free.filter(mustGo)].sort(byImportance)
  if (victims.length === 0)
    return { code: 'error', reasons: [`expected at least one victim pod on node ${JSON.stringify(node.name)}`] }
  return { node: node.name, victims, violations: violating.length }
}

export interface PreemptionSearchResult {
  /** Candidates without budget violations first. */
  readonly candidates: readonly Candidate[]
  /** Rejections of the other nodes, by name. */
  readonly refusals: ReadonlyMap<string, Refusal>
}

/** Visits nodes in order until there are enough candidates, at least one without budget violations. */
export function tryNodes(
  nodes: readonly NodeInfo[],
  enough: number,
  find: (node: NodeInfo) => Candidate | Refusal,
): PreemptionSearchResult {
  const harmless: Candidate[] = []
  const harmful: Candidate[] = []
  const refusals = new Map<string, Refusal>()
  for (const node of nodes) {
    if (harmless.length > 0 && harmless.length + harmful.length >= enough) break
    const found = find(node)
    if ('code' in found) refusals.set(node.name, found)
    else if (found.violations === 0) harmless.push(found)
    else if (harmful.length < enough) harmful.push(found)
  }
  return { candidates: [...harmless, ...harmful], refusals }
}

/** The maximum number of cached pod specs. */
const MAX_CACHED = 8

/** Victims for equivalent pods, valid until the node changes, for searches that read nothing else. */
export class VictimMemory {
  readonly #known = new Map<string, { readonly generation: number; readonly found: Candidate | Refusal }[]>()

  recall(
    { equivalenceClass, priority }: PodInfo,
    node: NodeInfo,
    find: () => Candidate | Refusal,
  ): Candidate | Refusal {
    const id = `${priority} ${equivalenceClass}`
    const bySlot = this.#known.get(id) ?? []
    const known = bySlot[node.slot]
    if (known?.generation === node.generation) return known.found
    const found = find()
    bySlot[node.slot] = { generation: node.generation, found }
    if (this.#known.size >= MAX_CACHED && !this.#known.has(id)) this.#known.clear()
    this.#known.set(id, bySlot)
    return found
  }
}

/** By priority, then by the earlier start. */
export function byImportance(a: PodInfo, b: PodInfo): number {
  return b.priority - a.priority || a.startMs - b.startMs || 0
}

/** Splits pods, in order, into those beyond the budget's allowed disruptions and the others. */
function protectedBy(budgets: readonly Budget[], pods: readonly PodInfo[]): { kept: PodInfo[]; free: PodInfo[] } {
  const left = budgets.map(({ allowed }) => allowed)
  const kept: PodInfo[] = []
  const free: PodInfo[] = []
  for (const pod of pods) {
    let isKept = false
    for (const [at, budget] of budgets.entries()) {
      if (!isUnder(budget, pod)) continue
      left[at] = (left[at] ?? 0) - 1
      if (left[at] < 0) isKept = true
    }
    ;(isKept ? kept : free).push(pod)
  }
  return { kept, free }
}

function isUnder({ namespace, selector, spentOn }: Budget, { pod, namespace: own, labels }: PodInfo): boolean {
  if (namespace !== own || labels === undefined || Object.keys(labels).length === 0) return false
  return matchesLabels(selector, labels) && spentOn[pod.metadata.name ?? ''] === undefined
}

/** The criteria in order; the smallest value wins. */
const RULES: readonly ((candidate: Candidate) => number)[] = [
  ({ violations }) => violations,
  ({ victims: [first] }) => first?.priority ?? 0,
  ({ victims }) => victims.reduce((sum, { priority }) => sum + priority - LOWEST_PRIORITY, 0),
  ({ victims }) => victims.length,
  // The start time of the highest-priority victim: a later one is better.
  ({ victims: [first] }) => -(first?.startMs ?? 0),
]

/** The first candidate with the least harm. */
export function leastHarm([first, ...others]: readonly Candidate[]): Candidate | undefined {
  let best = first
  for (const other of others) if (best !== undefined && isBetter(other, best)) best = other
  return best
}

/** Causes less harm. */
export function isBetter(one: Candidate, other: Candidate): boolean {
  const rule = RULES.find((value) => value(one) !== value(other))
  return rule !== undefined && rule(one) < rule(other)
}
