/** How much of each node is used, the fullest first. */
import type { Node } from '#apis/core/v1.ts'

import { sumOf, type Use } from './amount.ts'
import { allocatableOf } from './demand.ts'
import type { Part } from './reading.ts'

export interface NodeShare {
  readonly name: string
  readonly used: Use
  readonly allocatable: Use
}

export function nodeShares(parts: readonly Part[], nodes: readonly Node[]): readonly NodeShare[] {
  const byName = new Map(nodes.map((node) => [node.metadata.name ?? '', allocatableOf(node)]))
  return parts
    .flatMap(({ name, use }) => {
      const allocatable = byName.get(name)
      return allocatable === undefined ? [] : [{ name, used: use, allocatable }]
    })
    .toSorted((one, other) => fullness(other) - fullness(one))
}

function fullness({ used, allocatable }: NodeShare): number {
  return Math.max(share(used.cpu, allocatable.cpu), share(used.memory, allocatable.memory))
}

function share(part: number, whole: number): number {
  return whole <= 0 ? 0 : part / whole
}

export function allocatableOfAll(nodes: readonly Node[]): Use {
  return sumOf(nodes.map(allocatableOf))
}
