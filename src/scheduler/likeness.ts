/**
 * What is known about nodes for pods that are alike: verdicts and points of plugins that look at nothing but the pod's
 * spec and the node. It holds for a node until that changes; after a pod is placed that is one node.
 */
import type { PluginRefusal, Refusal } from './framework.ts'
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

  /** In the order of the nodes; a fresh list. */
  points(scoring: Scoring, pod: PodInfo, nodes: readonly NodeInfo[]): number[] {
    let known = this.#scored.get(scoring)
    if (known === undefined) this.#scored.set(scoring, (known = { at: [], points: [] }))
    const { at, points } = known
    const found: number[] = []
    for (const node of nodes) {
      const { slot, generation } = node
      if (at[slot] !== generation) {
        at[slot] = generation
        points[slot] = scoring.plugin.score?.(pod, node) ?? 0
      }
      found.push(points[slot] as number)
    }
    return found
  }
}

export function firstRefusal(filters: readonly Enabled[], pod: PodInfo, node: NodeInfo): PluginRefusal | undefined {
  for (const { name, plugin } of filters) {
    const verdict = plugin.filter?.(pod, node)
    if (verdict !== undefined) return refusalOf(name, verdict)
  }
  return undefined
}

const refusals = new WeakMap<Refusal, PluginRefusal>()

/** Most verdicts are always the same: thousands of nodes share one. A verdict is only ever given by one plugin. */
export function refusalOf(plugin: string, verdict: Refusal): PluginRefusal {
  let known = refusals.get(verdict)
  if (known === undefined) refusals.set(verdict, (known = { ...verdict, plugin }))
  return known
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
