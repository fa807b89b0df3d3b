/**
 * What is known about nodes for pods that are alike: verdicts and points of plugins that look at nothing but the pod's
 * spec and the node. It holds for a node until that changes; after a pod is placed that is one node.
 */
import type { PluginRefusal } from './framework.ts'
import type { NodeInfo } from './node-info.ts'
import type { PodInfo } from './pod-info.ts'
import type { Enabled, Profile, Scoring } from './profile.ts'

/** More than this many sorts of pods are not remembered. */
const KEPT = 32

export class Likeness {
  readonly #filters: readonly Enabled[]
  /** By slot of the node. */
  readonly #filtered: number[] = []
  readonly #verdicts: (PluginRefusal | undefined)[] = []
  readonly #scored = new Map<Scoring, { readonly at: number[]; readonly points: number[] }>()

  constructor(filters: readonly Enabled[]) {
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

  points(scoring: Scoring, pod: PodInfo, node: NodeInfo): number {
    let known = this.#scored.get(scoring)
    if (known === undefined) this.#scored.set(scoring, (known = { at: [], points: [] }))
    const { slot, generation } = node
    if (known.at[slot] === generation) return known.points[slot] as number
    const points = scoring.plugin.score?.(pod, node) ?? 0
    known.at[slot] = generation
    known.points[slot] = points
    return points
  }
}

export function firstRefusal(filters: readonly Enabled[], pod: PodInfo, node: NodeInfo): PluginRefusal | undefined {
  for (const { name, plugin } of filters) {
    const verdict = plugin.filter?.(pod, node)
    if (verdict !== undefined) return { ...verdict, plugin: name }
  }
  return undefined
}

export class Likenesses {
  /** The plugins at the beginning of the profile's filters that need no more than the pod and the node. */
  readonly pure: readonly Enabled[]
  readonly #known = new Map<string, Likeness>()

  constructor({ filter }: Profile) {
    const end = filter.findIndex(({ plugin }) => plugin.filter === undefined)
    this.pure = end === -1 ? filter : filter.slice(0, end)
  }

  of(pod: PodInfo): Likeness {
    const id = pod.likeness
    const known = this.#known.get(id)
    if (known !== undefined) {
      this.#known.delete(id)
      this.#known.set(id, known)
      return known
    }
    const made = new Likeness(this.pure)
    this.#known.set(id, made)
    if (this.#known.size > KEPT) {
      const [oldest] = this.#known.keys()
      if (oldest !== undefined) this.#known.delete(oldest)
    }
    return made
  }
}
