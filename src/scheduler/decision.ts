/**
 * One decision: which nodes a pod fits on, and which of them is best. Pure but for chance among equals; made in one go on
 * the cluster as it is.
 */
import type { Random } from '#lib/random.ts'
import { turn } from '#lib/slices.ts'

import type { Cluster } from './cluster.ts'
import {
  type Case,
  type Cases,
  isRefusal,
  type Judge,
  type PluginRefusal,
  type Refusal,
  type Scorer,
  type Search,
} from './framework.ts'
import { Imagined } from './imagined.ts'
import { firstRefusal, type Likeness, Likenesses, refusalOf } from './likeness.ts'
import type { NodeInfo } from './node-info.ts'
import type { Nominations } from './nominations.ts'
import type { PodInfo } from './pod-info.ts'
import type { Enabled, Profile, Scoring } from './profile.ts'

/** Up to here all nodes are looked at, and so many at least beyond. */
const FEW_NODES = 100

export class Decider implements Judge {
  readonly #profile: Profile
  readonly #cluster: Cluster
  readonly #nominations: Nominations
  readonly #random: Random
  readonly #likenesses: Likenesses
  /** What follows the plugins that are remembered. */
  readonly #rest: readonly Enabled[]
  /** Where the next search begins, so that all nodes have their turn. */
  #start = 0

  constructor(profile: Profile, { cluster, nominations, random }: DeciderParts) {
    this.#profile = profile
    this.#cluster = cluster
    this.#nominations = nominations
    this.#random = random
    this.#likenesses = new Likenesses(profile)
    this.#rest = profile.filter.slice(this.#likenesses.pure.length)
  }

  /** `only`: no other node comes into question. */
  search(pod: PodInfo, only?: string): Search {
    const prepared = this.prepare(pod)
    if ('plugin' in prepared) return refusedAtOnce(pod, prepared)
    const { cases, narrowedBy } = prepared
    const names = only === undefined ? prepared.nodes : narrowed(prepared.nodes, new Set([only]))
    const nodes = names === undefined ? this.#cluster.nodes : this.#named(names)
    const enough = names === undefined ? this.#enough(nodes.length) : nodes.length
    const found = { feasible: [], refusals: new Map<string, PluginRefusal>(), looked: 0, isUnfinished: false }
    const search: Search = { pod, cases, narrowedBy, nodes, enough, start: this.#start, ...found }
    this.#look(search)
    if (only === undefined && nodes.length > 0) this.#start = (this.#start + search.looked) % nodes.length
    return search
  }

  /** Goes on with a search that is unfinished, after others have had their turn. */
  resume(search: Search): void {
    for (const one of search.cases.values()) one.resume?.()
    this.#look(search)
  }

  #look(search: Search): void {
    const { pod, cases, nodes, start, enough, feasible, refusals } = search
    const likeness = this.#likenesses.of(pod)
    const rest = this.#rest.filter(
      ({ name, plugin }) => plugin.filter !== undefined || cases.get(name)?.filter !== undefined,
    )
    search.isUnfinished = false
    // Nobody nominates anybody before this is over.
    const isCrowded = !this.#nominations.isEmpty
    const hasRest = rest.length > 0
    for (; search.looked < nodes.length && feasible.length < enough; search.looked++) {
      const node = nodes[(start + search.looked) % nodes.length] as NodeInfo
      // It went while others had their turn.
      if (node.node === undefined) continue
      // As it is, and with those that were promised a place there.
      const refusal =
        (isCrowded ? this.#judgeCrowded(pod, node, cases) : undefined) ??
        likeness.verdict(pod, node) ??
        (hasRest ? judgeBy(rest, pod, node, cases) : undefined)
      if (refusal === undefined) feasible.push(node)
      else if (refusal.code === 'busy') {
        search.isUnfinished = true
        return
      } else {
        refusals.set(node.name, refusal)
        if (refusal.code !== 'error') continue
        // What is broken is not chosen from.
        feasible.length = 0
        return
      }
    }
  }

  /** Lets those who take their time find out about nodes where others could go, so that nobody is busy with one afterwards. */
  async settle({ nodes, cases, refusals }: Search): Promise<void> {
    const slow = [...cases.values()].filter((one) => one.resume !== undefined)
    for (const node of slow.length === 0 ? [] : nodes) {
      if (refusals.get(node.name)?.code !== 'unschedulable') continue
      while (slow.some((one) => one.filter?.(node)?.code === 'busy')) {
        await turn()
        for (const one of slow) one.resume?.()
      }
    }
  }

  /** What each plugin has found out about the pod, or who refused it outright. */
  prepare(pod: PodInfo): Prepared | PluginRefusal {
    const cases = new Map<string, Case>()
    const narrowedBy: string[] = []
    let nodes: ReadonlySet<string> | undefined
    for (const { name, plugin } of this.#profile.preFilter) {
      const found = plugin.preFilter?.(pod)
      if (found === undefined) continue
      if (isRefusal(found)) return { ...told(found, `running PreFilter plugin "${name}"`), plugin: name }
      cases.set(name, found)
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
    return { cases, nodes, narrowedBy }
  }

  judgeFreely(pod: PodInfo, node: NodeInfo, cases: Cases): PluginRefusal | undefined {
    return this.#judgeCrowded(pod, node, cases) ?? this.#judgeAfresh(pod, node, cases)
  }

  #judgeCrowded(pod: PodInfo, node: NodeInfo, cases: Cases): PluginRefusal | undefined {
    const expected = this.#nominations.before(pod, node.name)
    if (expected.length === 0) return undefined
    const crowded = new Imagined(node, cases)
    for (const other of expected) crowded.add(other)
    return this.#judgeAfresh(pod, crowded.node, crowded.cases)
  }

  #judgeAfresh(pod: PodInfo, node: NodeInfo, cases: Cases): PluginRefusal | undefined {
    return firstRefusal(this.#likenesses.pure, pod, node) ?? judgeBy(this.#rest, pod, node, cases)
  }

  #named(names: ReadonlySet<string>): NodeInfo[] {
    return [...names].flatMap((name) => this.#cluster.node(name) ?? [])
  }

  #enough(count: number): number {
    if (count < FEW_NODES) return count
    const { percentageOfNodesToScore: fixed } = this.#profile
    const percentage = fixed > 0 ? fixed : Math.max(5, 50 - Math.floor(count / 125))
    return percentage >= 100 ? count : Math.max(FEW_NODES, Math.floor((count * percentage) / 100))
  }

  /** The best of some nodes; chance decides among equals. `extra`: points that others gave. */
  best({ pod, feasible }: Pick<Search, 'pod' | 'feasible'>, extra?: ReadonlyMap<string, number>): NodeInfo {
    const totals = feasible.length === 1 ? [0] : this.points(pod, feasible)
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

  /** For each node, of all plugins together. */
  points(pod: PodInfo, nodes: readonly NodeInfo[]): number[] {
    const totals = nodes.map(() => 0)
    for (const points of this.pointsByPlugin(pod, nodes).values()) {
      for (let at = 0; at < totals.length; at++) totals[at] = (totals[at] as number) + (points[at] as number)
    }
    return totals
  }

  /** For each node, of each plugin that has an opinion, as they count. */
  pointsByPlugin(pod: PodInfo, nodes: readonly NodeInfo[]): Map<string, number[]> {
    const likeness = this.#likenesses.of(pod)
    const all = new Map<string, number[]>()
    for (const scoring of this.#profile.score) {
      const points = pointsOf(scoring, pod, nodes, likeness)
      if (points === undefined) continue
      for (let at = 0; at < points.length; at++) points[at] = (points[at] as number) * scoring.weight
      all.set(scoring.name, points)
    }
    return all
  }
}

export interface DeciderParts {
  readonly cluster: Cluster
  readonly nominations: Nominations
  readonly random: Random
}

interface Prepared {
  readonly cases: Cases
  readonly nodes: ReadonlySet<string> | undefined
  readonly narrowedBy: readonly string[]
}

function pointsOf(
  scoring: Scoring,
  pod: PodInfo,
  nodes: readonly NodeInfo[],
  likeness: Likeness,
): number[] | undefined {
  const { plugin } = scoring
  if (plugin.score !== undefined) {
    const points = likeness.points(scoring, pod, nodes)
    plugin.normalize?.(points, nodes)
    return points
  }
  const scorer: Scorer | undefined = plugin.preScore?.(pod, nodes)
  if (scorer === undefined) return undefined
  const points: number[] = []
  for (const node of nodes) points.push(scorer.score(node))
  scorer.normalize?.(points, nodes)
  return points
}

function judgeBy(plugins: readonly Enabled[], pod: PodInfo, node: NodeInfo, cases: Cases): PluginRefusal | undefined {
  for (const { name, plugin } of plugins) {
    const verdict = plugin.filter === undefined ? cases.get(name)?.filter?.(node) : plugin.filter(pod, node)
    if (verdict !== undefined) return refusalOf(name, told(verdict, `running "${name}" filter plugin`))
  }
  return undefined
}

function narrowed(a: ReadonlySet<string> | undefined, b: ReadonlySet<string>): ReadonlySet<string> {
  return a === undefined ? b : a.intersection(b)
}

/** What broke is told with the place where it broke; a refusal speaks for itself. */
function told(refusal: Refusal, where: string): Refusal {
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
    enough: 0,
  }
  return { pod, cases: new Map(), refused, looked: 0, isUnfinished: false, ...nothing }
}
