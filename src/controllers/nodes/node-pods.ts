/** Index of pods by node. */
import { type Pod, Pods } from '#apis/core/v1.ts'
import type { Cache, CacheIndex } from '#reconcile/cache.ts'

const BY_NODE: CacheIndex<Pod> = { name: 'node', of: ({ spec }) => [spec.nodeName ?? ''] }

export function podsOn(node: string, cache: Cache): Pod[] {
  return cache.by(Pods, BY_NODE, node)
}
