/** Who would have to go for a pod to fit, and where that would hurt least. Pure. */
import type { PodDisruptionBudget } from '#apis/policy/v1.ts'
import { asSelector } from '#meta/label-selector.ts'
import { isEverything, matchesLabels, type Selector } from '#meta/labels.ts'

import { type Candidate, type Judge, type Refusal, type Search, unresolvable } from './framework.ts'
import { Imagined } from './imagined.ts'
import type { NodeInfo } from './node-info.ts'
import type { PodInfo } from './pod-info.ts'

const NO_VICTIMS = unresolvable('No preemption victims found for incoming pod')
/** So that no priority is negative: few are better than many, whatever theirs is. */
const LOWEST_PRIORITY = -(2 ** 31)

/** A PodDisruptionBudget, made ready. */
export interface Budget {
  readonly namespace: string
  readonly selector: Selector
  readonly allowed: number
  /** By name: those on whom the budget was spent already. */
  readonly spentOn: Readonly<Record<string, string>>
}

/** Undefined: it is about nobody. */
export function budgetOf({ metadata, spec, status }: PodDisruptionBudget): Budget | undefined {
  const selector = asSelector(spec.selector)
  if (selector.nothing === true || isEverything(selector)) return undefined
  const { disruptionsAllowed: allowed, disruptedPods: spentOn = {} } = status
  return { namespace: metadata.namespace ?? '', selector, allowed, spentOn }
}

/** Everybody who is less important goes; then as many as possible come back, first those whom budgets protect. */
export function victimsOn(
  { pod, cases }: Pick<Search, 'pod' | 'cases'>,
  node: NodeInfo,
  budgets: readonly Budget[],
  judge: Judge,
): Candidate | Refusal {
  const lesser = [...node.pods.values()].filter(({ priority }) => priority < pod.priority)
  if (lesser.length === 0) return NO_VICTIMS
  const imagined = new Imagined(node, cases)
  const judged = (): Refusal | undefined => judge.judgeFreely(pod, imagined.node, imagined.cases)
  for (const one of lesser) imagined.remove(one)
  const refusal = judged()
  if (refusal !== undefined) return refusal
  const mustGo = (one: PodInfo): boolean => {
    imagined.add(one)
    if (judged() === undefined) return false
    imagined.remove(one)
    return true
  }
  const { kept, free } = protectedBy(budgets, lesser.sort(byImportance))
  const violating = kept.filter(mustGo)
  const victims = [...violating, ...free.filter(mustGo)].sort(byImportance)
  if (victims.length === 0)
    return { code: 'error', reasons: [`expected at least one victim pod on node ${JSON.stringify(node.name)}`] }
  return { node: node.name, victims, violations: violating.length }
}

export interface Trial {
  /** Those that violate no budget first. */
  readonly candidates: readonly Candidate[]
  /** Why the other nodes are none, by name. */
  readonly refusals: ReadonlyMap<string, Refusal>
}

/** Looks at nodes in their order, until there are enough candidates, one at least of which violates no budget. */
export function tryNodes(
  nodes: readonly NodeInfo[],
  enough: number,
  find: (node: NodeInfo) => Candidate | Refusal,
): Trial {
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

/** More than this many sorts of pods are not remembered. */
const KEPT = 8

/** Victims that were found for pods alike. They hold until the node changes, where nothing else was looked at. */
export class VictimMemory {
  readonly #known = new Map<string, { readonly generation: number; readonly found: Candidate | Refusal }[]>()

  recall({ likeness, priority }: PodInfo, node: NodeInfo, find: () => Candidate | Refusal): Candidate | Refusal {
    const id = `${priority} ${likeness}`
    const bySlot = this.#known.get(id) ?? []
    const known = bySlot[node.slot]
    if (known?.generation === node.generation) return known.found
    const found = find()
    bySlot[node.slot] = { generation: node.generation, found }
    if (this.#known.size >= KEPT && !this.#known.has(id)) this.#known.clear()
    this.#known.set(id, bySlot)
    return found
  }
}

/** Priority first, then who has been running longer. */
export function byImportance(a: PodInfo, b: PodInfo): number {
  return b.priority - a.priority || a.startMs - b.startMs || 0
}

/** In their order: those who go beyond what some budget of theirs allows, and the others. */
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

/** What is compared, one after the other; the least is best. */
const RULES: readonly ((candidate: Candidate) => number)[] = [
  ({ violations }) => violations,
  ({ victims: [first] }) => first?.priority ?? 0,
  ({ victims }) => victims.reduce((sum, { priority }) => sum + priority - LOWEST_PRIORITY, 0),
  ({ victims }) => victims.length,
  // Of the most important, the one that has been running longest: the later it began the better.
  ({ victims: [first] }) => -(first?.startMs ?? 0),
]

/** The first of those that hurt least. */
export function leastHarm([first, ...others]: readonly Candidate[]): Candidate | undefined {
  let best = first
  for (const other of others) if (best !== undefined && isBetter(other, best)) best = other
  return best
}

/** Hurts less. */
export function isBetter(one: Candidate, other: Candidate): boolean {
  const rule = RULES.find((value) => value(one) !== value(other))
  return rule !== undefined && rule(one) < rule(other)
}
