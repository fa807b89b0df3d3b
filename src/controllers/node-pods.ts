/** The pods of a node, found without a walk over all that there are. */
import { type Pod, Pods } from '#apis/core/v1.ts'

import type { Cache, CacheIndex } from './cache.ts'

const BY_NODE: CacheIndex<Pod> = { name: 'node', of: ({ spec }) => [spec.nodeName ?? ''] }

export function podsOn(node: string, cache: Cache): Pod[] {
  return cache.by(Pods, BY_NODE, node)
}
