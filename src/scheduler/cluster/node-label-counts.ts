/** Counts the nodes with each value of a label. Counts are created on first use, then updated incrementally. */
import type { Labels } from '#meta/labels.ts'

import { bump } from './node-info.ts'

interface LabelCounts {
  readonly nodes: Map<string, number>
  /** The number of nodes with the label. */
  total: number
}

export class NodeLabelCounts {
  readonly #all: () => Iterable<{ readonly labels: Labels }>
  readonly #byLabel = new Map<string, LabelCounts>()

  constructor(all: () => Iterable<{ readonly labels: Labels }>) {
    this.#all = all
  }

  of(key: string): { readonly nodes: ReadonlyMap<string, number>; readonly total: number } {
    const known = this.#byLabel.get(key)
    if (known !== undefined) return known
    const made: LabelCounts = { nodes: new Map(), total: 0 }
    for (const { labels } of this.#all()) count(made, labels?.[key], 1)
    this.#byLabel.set(key, made)
    return made
  }

  moved(from: Labels, to: Labels): void {
    for (const [key, counts] of this.#byLabel) {
      count(counts, from?.[key], -1)
      count(counts, to?.[key], 1)
    }
  }
}

function count(counts: LabelCounts, value: string | undefined, by: number): void {
  if (value === undefined) return
  bump(counts.nodes, value, by)
  counts.total += by
}
