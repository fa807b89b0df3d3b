/** Why a pod fits nowhere, in upstream's words, for its event and its condition. */
import { compareText } from '#lib/go-text.ts'

import type { Search } from './framework.ts'

/** `nodes`: how many there are. */
export function explain(search: Search, nodes: number, postFilter: readonly string[]): string {
  const { refused } = search
  const why = refused === undefined ? countedReasons(search, nodes) : refused.reasons.join(', ')
  const parts = [`0/${nodes} nodes are available:`]
  if (why !== '') parts.push(`${why}.`)
  if (postFilter.length > 0) parts.push(postFilter.join(', '))
  return parts.join(' ')
}

/** Each reason with the number of nodes that have it, in order of the text. */
function countedReasons({ refusals, narrowedBy }: Search, nodes: number): string {
  const counts = new Map<string, number>()
  const count = (reason: string, by: number): void => void counts.set(reason, (counts.get(reason) ?? 0) + by)
  for (const { reasons } of refusals.values()) for (const reason of reasons) count(reason, 1)
  const unseen = nodes - refusals.size
  if (unseen > 0 && narrowedBy.length > 0) count(`node(s) didn't satisfy plugin(s) [${narrowedBy.join(' ')}]`, unseen)
  return Array.from(counts, ([reason, times]) => `${times} ${reason}`)
    .sort(compareText)
    .join(', ')
}
