/** How controllers of volumes find the pods that a claim is for. */
import type { Pod } from '#apis/core/v1.ts'
import { claimKeysOf } from '#model/volumes.ts'

import type { CacheIndex } from './cache.ts'

/** By the key of a claim: the pods that name it, and those it is to be made for. */
export const PODS_BY_CLAIM: CacheIndex<Pod> = { name: 'claim', of: claimKeysOf }
