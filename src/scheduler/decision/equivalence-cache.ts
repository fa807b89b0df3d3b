/**
 * Caches filter results and scores for equivalent pods, for plugins that read only the pod's spec and the node. An
 * entry is valid until the node changes; placing a pod changes one node.
 */
import type { NodeInfo } from '../cluster/node-info.ts'
import type { PodInfo } from '../cluster/pod-info.ts'
import type { PluginRefusal, Refusal } from '../framework/framework.ts'
import type { EnabledPlugin, Profile, ScorePlugin } from '../framework/profile.ts'

/** The maximum number of equivalence classes. */
const MAX_CLASSES = 32

export class EquivalenceClass {
  readonly #filters: readonly EnabledPlugin[]
  /** The node generation of each cached result, by slot of the node. */
  readonly #filtered: number[] = []
  readonly #verdicts: (PluginRefusal | undefined)[] = []
  readonly #scored = new Map<ScorePlugin, { readonly at: number[]; readonly scores: number[] }>()

  constructor(filters: readonly EnabledPlugin[]) {
    this.#filters = filters
  }

  verdict(pod: PodInfo, node: NodeInfo): PluginRefusal | undefined {
    const { slot, generation } = node
    if (this.#filtered[slot] === generation) return this.#verdicts[slot]
    const verdict = firstRefusal(this.#filters, pod, node)
    this.#filtered[slot] = generation
    this.#verdicts[slot] = verdict
    return verdict
  }

  /** In the order of the nodes; a new array. */
  scores(scoring: ScorePlugin, pod: PodInfo, nodes: readonly NodeInfo[]): number[] {
    let cached = this.#scored.get(scoring)
    if (cached === undefined) this.#scored.set(scoring, (cached = { at: [], scores: [] }))
    const { at, scores } = cached
    const found: number[] = []
    for (const node of nodes) {
      const { slot, generation } = node
      if (at[slot] !== generation) {
        at[slot] = generation
        scores[slot] = scoring.plugin.score?.(pod, node) ?? 0
      }
      found.push(scores[slot] as number)
    }
    return found
  }
}

export function firstRefusal(
  filters: readonly EnabledPlugin[],
  pod: PodInfo,
  node: NodeInfo,
): PluginRefusal | undefined {
  for (const { name, plugin } of filters) {
    const verdict = plugin.filter?.(pod, node)
    if (verdict !== undefined) return refusalOf(name, verdict)
  }
  return undefined
}

const refusals = new WeakMap<Refusal, PluginRefusal>()

/** Shares one object among thousands of nodes: plugins return constant rejections, and each belongs to one plugin. */
export function refusalOf(plugin: string, verdict: Refusal): PluginRefusal {
  let cached = refusals.get(verdict)
  if (cached === undefined) refusals.set(verdict, (cached = { ...verdict, plugin }))
  return cached
}

export class EquivalenceCache {
  /** The leading filter plugins that need only the pod and the node. */
  readonly pure: readonly EnabledPlugin[]
  readonly #cached = new Map<string, EquivalenceClass>()

  constructor({ filter }: Profile) {
    const end = filter.findIndex(({ plugin }) => plugin.filter === undefined)
    this.pure = end === -1 ? filter : filter.slice(0, end)
  }

  of(pod: PodInfo): EquivalenceClass {
    const id = pod.equivalenceClass
    const cached = this.#cached.get(id)
    if (cached !== undefined) {
      this.#cached.delete(id)
      this.#cached.set(id, cached)
      return cached
    }
    const made = new EquivalenceClass(this.pure)
    this.#cached.set(id, made)
    if (this.#cached.size > MAX_CLASSES) {
      const [oldest] = this.#cached.keys()
      if (oldest !== undefined) this.#cached.delete(oldest)
    }
    return made
  }
}
