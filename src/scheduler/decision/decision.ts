/**
 * One scheduling decision: finds the feasible nodes of a pod and selects the best. Synchronous, and deterministic
 * except for the choice among equal scores.
 */
import type { Random } from '#lib/random.ts'
import { yieldToEventLoop } from '#lib/time-slicing.ts'

import type { Cluster } from '../cluster/cluster.ts'
import type { NodeInfo } from '../cluster/node-info.ts'
import type { Nominations } from '../cluster/nominations.ts'
import type { PodInfo } from '../cluster/pod-info.ts'
import {
  type CycleState,
  type FilterRunner,
  isRefusal,
  type PluginRefusal,
  type PluginState,
  type Refusal,
  type Scorer,
  type Search,
} from '../framework/framework.ts'
import type { EnabledPlugin, Profile, ScorePlugin } from '../framework/profile.ts'
import { HypotheticalNode } from '../preemption/hypothetical-node.ts'
import { EquivalenceCache, type EquivalenceClass, firstRefusal, refusalOf } from './equivalence-cache.ts'

/** Smaller clusters are searched completely; larger ones for at least this many feasible nodes. */
const FEW_NODES = 100

export class Decider implements FilterRunner {
  readonly #profile: Profile
  readonly #cluster: Cluster
  readonly #nominations: Nominations
  readonly #random: Random
  readonly #equivalenceCache: EquivalenceCache
  /** The filter plugins after those that the equivalence cache covers. */
  readonly #uncachedFilters: readonly EnabledPlugin[]
  /** The start of the next search, so that searches rotate over the nodes. */
  #start = 0

  constructor(profile: Profile, { cluster, nominations, random }: DeciderParts) {
    this.#profile = profile
    this.#cluster = cluster
    this.#nominations = nominations
    this.#random = random
    this.#equivalenceCache = new EquivalenceCache(profile)
    this.#uncachedFilters = profile.filter.slice(this.#equivalenceCache.pure.length)
  }

  /** `only` restricts the search to one node. */
  search(pod: PodInfo, only?: string): Search {
    const prepared = this.prepare(pod)
    if ('plugin' in prepared) return refusedAtOnce(pod, prepared)
    const { cycleState, narrowedBy } = prepared
    const names = only === undefined ? prepared.nodes : narrowed(prepared.nodes, new Set([only]))
    const nodes = names === undefined ? this.#cluster.nodes : this.#named(names)
    const feasibleLimit = names === undefined ? this.#feasibleLimit(nodes.length) : nodes.length
    const found = { feasible: [], refusals: new Map<string, PluginRefusal>(), visited: 0, isUnfinished: false }
    const search: Search = { pod, cycleState, narrowedBy, nodes, feasibleLimit, start: this.#start, ...found }
    this.#visitNodes(search)
    if (only === undefined && nodes.length > 0) this.#start = (this.#start + search.visited) % nodes.length
    return search
  }

  /** Continues an unfinished search after other work has run. */
  resume(search: Search): void {
    for (const one of search.cycleState.values()) one.resume?.()
    this.#visitNodes(search)
  }

  #visitNodes(search: Search): void {
    const { pod, cycleState, nodes, start, feasibleLimit, feasible, refusals } = search
    const equivalenceClass = this.#equivalenceCache.of(pod)
    const uncachedFilters = this.#uncachedFilters.filter(
      ({ name, plugin }) => plugin.filter !== undefined || cycleState.get(name)?.filter !== undefined,
    )
    search.isUnfinished = false
    // Nominations cannot change during a synchronous search.
    const hasNominations = !this.#nominations.isEmpty
    const hasUncachedFilters = uncachedFilters.length > 0
    for (; search.visited < nodes.length && feasible.length < feasibleLimit; search.visited++) {
      const node = nodes[(start + search.visited) % nodes.length] as NodeInfo
      // The node was deleted while other work ran.
      if (node.node === undefined) continue
      // Must fit with the nominated pods, and without them.
      const refusal =
        (hasNominations ? this.#filterBesideNominated(pod, node, cycleState) : undefined) ??
        equivalenceClass.verdict(pod, node) ??
        (hasUncachedFilters ? runFilters(uncachedFilters, pod, node, cycleState) : undefined)
      if (refusal === undefined) feasible.push(node)
      else if (refusal.code === 'busy') {
        search.isUnfinished = true
        return
      } else {
        refusals.set(node.name, refusal)
        if (refusal.code !== 'error') continue
        // After an error no node is selected.
        feasible.length = 0
        return
      }
    }
  }

  /** Lets slow plugins finish on nodes where preemption may help, so that none is busy during preemption. */
  async settle({ nodes, cycleState, refusals }: Search): Promise<void> {
    const slow = [...cycleState.values()].filter((one) => one.resume !== undefined)
    for (const node of slow.length === 0 ? [] : nodes) {
      if (refusals.get(node.name)?.code !== 'unschedulable') continue
      while (slow.some((one) => one.filter?.(node)?.code === 'busy')) {
        await yieldToEventLoop()
        for (const one of slow) one.resume?.()
      }
    }
  }

  /** Runs PreFilter plugins: their states, or the first rejection. */
  prepare(pod: PodInfo): PreFilterResult | PluginRefusal {
    const cycleState = new Map<string, PluginState>()
    const narrowedBy: string[] = []
    let nodes: ReadonlySet<string> | undefined
    for (const { name, plugin } of this.#profile.preFilter) {
      const found = plugin.preFilter?.(pod)
      if (found === undefined) continue
      if (isRefusal(found)) return { ...withExtensionPoint(found, `running PreFilter plugin "${name}"`), plugin: name }
      cycleState.set(name, found)
      if (found.nodes === undefined) continue
      nodes = narrowed(nodes, found.nodes)
      narrowedBy.push(name)
      if (nodes.size > 0) continue
      const reason =
        narrowedBy.length === 1
          ? `node(s) didn't satisfy plugin ${name}`
          : `node(s) didn't satisfy plugin(s) [${[...narrowedBy].sort().join(' ')}] simultaneously`
      return { plugin: name, code: 'unresolvable', reasons: [reason] }
    }
    return { cycleState, nodes, narrowedBy }
  }

  filterWithNominated(pod: PodInfo, node: NodeInfo, cycleState: CycleState): PluginRefusal | undefined {
    return this.#filterBesideNominated(pod, node, cycleState) ?? this.#filterUncached(pod, node, cycleState)
  }

  #filterBesideNominated(pod: PodInfo, node: NodeInfo, cycleState: CycleState): PluginRefusal | undefined {
    const expected = this.#nominations.before(pod, node.name)
    if (expected.length === 0) return undefined
    const simulated = new HypotheticalNode(node, cycleState)
    for (const other of expected) simulated.add(other)
    return this.#filterUncached(pod, simulated.node, simulated.cycleState)
  }

  #filterUncached(pod: PodInfo, node: NodeInfo, cycleState: CycleState): PluginRefusal | undefined {
    return (
      firstRefusal(this.#equivalenceCache.pure, pod, node) ?? runFilters(this.#uncachedFilters, pod, node, cycleState)
    )
  }

  #named(names: ReadonlySet<string>): NodeInfo[] {
    return [...names].flatMap((name) => this.#cluster.node(name) ?? [])
  }

  #feasibleLimit(count: number): number {
    if (count < FEW_NODES) return count
    const { percentageOfNodesToScore: fixed } = this.#profile
    const percentage = fixed > 0 ? fixed : Math.max(5, 50 - Math.floor(count / 125))
    return percentage >= 100 ? count : Math.max(FEW_NODES, Math.floor((count * percentage) / 100))
  }

  /** The node with the highest score; random among equals. `extra` contains the extenders' scores. */
  best({ pod, feasible }: Pick<Search, 'pod' | 'feasible'>, extra?: ReadonlyMap<string, number>): NodeInfo {
    const totals = feasible.length === 1 ? [0] : this.scores(pod, feasible)
    const best: number[] = []
    let most = -Infinity
    for (let at = 0; at < feasible.length; at++) {
      const total = (totals[at] as number) + (extra?.get((feasible[at] as NodeInfo).name) ?? 0)
      if (total < most) continue
      if (total > most) best.length = 0
      most = total
      best.push(at)
    }
    return feasible[best[best.length === 1 ? 0 : this.#random.int(best.length)] as number] as NodeInfo
  }

  /** The total score of each node. */
  scores(pod: PodInfo, nodes: readonly NodeInfo[]): number[] {
    const totals = nodes.map(() => 0)
    for (const scores of this.scoresByPlugin(pod, nodes).values()) {
      for (let at = 0; at < totals.length; at++) totals[at] = (totals[at] as number) + (scores[at] as number)
    }
    return totals
  }

  /** The weighted scores of each plugin, in the order of the nodes. */
  scoresByPlugin(pod: PodInfo, nodes: readonly NodeInfo[]): Map<string, number[]> {
    const equivalenceClass = this.#equivalenceCache.of(pod)
    const all = new Map<string, number[]>()
    for (const scoring of this.#profile.score) {
      const scores = scoresOf(scoring, pod, nodes, equivalenceClass)
      if (scores === undefined) continue
      for (let at = 0; at < scores.length; at++) scores[at] = (scores[at] as number) * scoring.weight
      all.set(scoring.name, scores)
    }
    return all
  }
}

export interface DeciderParts {
  readonly cluster: Cluster
  readonly nominations: Nominations
  readonly random: Random
}

interface PreFilterResult {
  readonly cycleState: CycleState
  readonly nodes: ReadonlySet<string> | undefined
  readonly narrowedBy: readonly string[]
}

function scoresOf(
  scoring: ScorePlugin,
  pod: PodInfo,
  nodes: readonly NodeInfo[],
  equivalenceClass: EquivalenceClass,
): number[] | undefined {
  const { plugin } = scoring
  if (plugin.score !== undefined) {
    const scores = equivalenceClass.scores(scoring, pod, nodes)
    plugin.normalize?.(scores, nodes)
    return scores
  }
  const scorer: Scorer | undefined = plugin.preScore?.(pod, nodes)
  if (scorer === undefined) return undefined
  const scores: number[] = []
  for (const node of nodes) scores.push(scorer.score(node))
  scorer.normalize?.(scores, nodes)
  return scores
}

function runFilters(
  plugins: readonly EnabledPlugin[],
  pod: PodInfo,
  node: NodeInfo,
  cycleState: CycleState,
): PluginRefusal | undefined {
  for (const { name, plugin } of plugins) {
    const verdict = plugin.filter === undefined ? cycleState.get(name)?.filter?.(node) : plugin.filter(pod, node)
    if (verdict !== undefined) return refusalOf(name, withExtensionPoint(verdict, `running "${name}" filter plugin`))
  }
  return undefined
}

function narrowed(a: ReadonlySet<string> | undefined, b: ReadonlySet<string>): ReadonlySet<string> {
  return a === undefined ? b : a.intersection(b)
}

/** Names the extension point in an error; a rejection keeps its reasons. */
function withExtensionPoint(refusal: Refusal, where: string): Refusal {
  if (refusal.code !== 'error') return refusal
  return { code: 'error', reasons: [`${where}: ${refusal.reasons.join(', ')}`] }
}

function refusedAtOnce(pod: PodInfo, refused: PluginRefusal): Search {
  const nothing = {
    feasible: [],
    refusals: new Map<string, PluginRefusal>(),
    narrowedBy: [],
    nodes: [],
    start: 0,
    feasibleLimit: 0,
  }
  return { pod, cycleState: new Map(), refused, visited: 0, isUnfinished: false, ...nothing }
}
