/** Index of pods by PersistentVolumeClaim. */
import type { Pod } from '#apis/core/v1.ts'
import { claimKeysOf } from '#model/volumes/volumes.ts'
import type { CacheIndex } from '#reconcile/cache.ts'

/** By claim key: pods that name the claim, and pods with an ephemeral volume for it. */
export const PODS_BY_CLAIM: CacheIndex<Pod> = { name: 'claim', of: claimKeysOf }
