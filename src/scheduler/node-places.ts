/** How many nodes have each value of a label. Counted when somebody first asks, and kept as nodes come, go and are relabelled. */
import type { Labels } from '#meta/labels.ts'

import { bump } from './node-info.ts'

interface Places {
  readonly nodes: Map<string, number>
  /** How many nodes have the label at all. */
  total: number
}

export class NodePlaces {
  readonly #all: () => Iterable<{ readonly labels: Labels }>
  readonly #byLabel = new Map<string, Places>()

  constructor(all: () => Iterable<{ readonly labels: Labels }>) {
    this.#all = all
  }

  of(key: string): { readonly nodes: ReadonlyMap<string, number>; readonly total: number } {
    const known = this.#byLabel.get(key)
    if (known !== undefined) return known
    const made: Places = { nodes: new Map(), total: 0 }
    for (const { labels } of this.#all()) count(made, labels?.[key], 1)
    this.#byLabel.set(key, made)
    return made
  }

  moved(from: Labels, to: Labels): void {
    for (const [key, places] of this.#byLabel) {
      count(places, from?.[key], -1)
      count(places, to?.[key], 1)
    }
  }
}

function count(places: Places, value: string | undefined, by: number): void {
  if (value === undefined) return
  bump(places.nodes, value, by)
  places.total += by
}
