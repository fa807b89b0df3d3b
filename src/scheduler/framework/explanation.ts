/** Formats upstream's message about why a pod fits no node, for its event and condition. */
import { compareText } from '#lib/go/text.ts'

import type { Refusal, Search } from './framework.ts'

/** `nodes` is the number of nodes in the cluster. */
export function explain(search: Search, nodes: number, postFilter: readonly string[]): string {
  const { refused } = search
  const unseen = `node(s) didn't satisfy plugin(s) [${search.narrowedBy.join(' ')}]`
  const why =
    refused === undefined
      ? countedReasons(search.refusals, nodes, search.narrowedBy.length > 0 ? unseen : undefined)
      : refused.reasons.join(', ')
  const parts = [`0/${nodes} nodes are available:`]
  if (why !== '') parts.push(`${why}.`)
  if (postFilter.length > 0) parts.push(postFilter.join(', '))
  return parts.join(' ')
}

/** Each reason with its number of nodes, sorted by text. `unseen` counts the nodes without a reason. */
export function countedReasons(refusals: ReadonlyMap<string, Refusal>, nodes: number, unseen?: string): string {
  const counts = new Map<string, number>()
  const count = (reason: string, by: number): void => void counts.set(reason, (counts.get(reason) ?? 0) + by)
  for (const { reasons } of refusals.values()) for (const reason of reasons) count(reason, 1)
  if (unseen !== undefined && nodes > refusals.size) count(unseen, nodes - refusals.size)
  return Array.from(counts, ([reason, times]) => `${times} ${reason}`)
    .sort(compareText)
    .join(', ')
}
