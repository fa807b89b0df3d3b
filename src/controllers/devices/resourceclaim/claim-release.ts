/** Deallocates claims that no pod or PodGroup uses, and deletes generated ones. */
import { type Pod, Pods } from '#apis/core/v1.ts'
import type { Kind } from '#apis/kinds.ts'
import { type ResourceClaim, type ResourceClaimConsumerReference, ResourceClaims } from '#apis/resource/v1.ts'
import { PodGroups } from '#apis/scheduling/v1alpha2.ts'
import { hasFinalizer, isBeingDeleted, keyOf, splitKey } from '#meta/object.ts'
import { isNotFound } from '#meta/status.ts'

import type { ControllerContext } from '../../controller.ts'
import { forgetCreated } from './claim-creation.ts'
import { isDone, owningPod, WORKLOADS } from './consumer.ts'

const FINALIZER = 'resource.kubernetes.io/delete-protection'

export async function syncClaim(key: string, context: ControllerContext): Promise<void> {
  const { cache } = context
  const claim = cache.get(ResourceClaims, key)
  forgetCreated(key, context)
  if (claim === undefined) return
  const { reservedFor = [] } = claim.status
  const kept = await Promise.all(reservedFor.map((reference) => isUsed(reference, splitKey(key).namespace, context)))
  const remaining = reservedFor.filter((_reference, at) => kept[at])
  if (remaining.length < reservedFor.length || (remaining.length === 0 && isBeingDeleted(claim)))
    await release(claim, remaining, context)
  if (remaining.length === 0) await dropUnused(claim, context)
}

/** Asks the server about consumers that the cache lacks. Consumers of other kinds count as existing. */
async function isUsed(
  { apiGroup = '', resource, name, uid }: ResourceClaimConsumerReference,
  namespace: string,
  { cache, client, signal, isEnabled }: ControllerContext,
): Promise<boolean> {
  const isPod = apiGroup === '' && resource === 'pods'
  const isGroup = apiGroup === PodGroups.group && resource === 'podgroups' && isEnabled(WORKLOADS)
  if (!isPod && !isGroup) return true
  const kind: Kind = isPod ? Pods : PodGroups
  const known = cache.get(kind, keyOf(namespace, name))
  const found =
    known ??
    (await client.get(kind, { namespace, name }, { metadataOnly: true, signal }).catch((error: unknown) => {
      if (isNotFound(error)) return undefined
      throw error
    }))
  if (found?.metadata.uid !== uid) return false
  return known === undefined || !isPod || !isDone(known as Pod)
}

/** Removes finished consumers; the last one deallocates. */
async function release(
  claim: ResourceClaim,
  remaining: ResourceClaimConsumerReference[],
  { client, signal }: ControllerContext,
): Promise<void> {
  const isAllocatedHere = hasFinalizer(claim, FINALIZER)
  const { allocation, reservedFor, ...rest } = claim.status
  const isFree = remaining.length === 0 && isAllocatedHere
  let current = claim
  if ((reservedFor ?? []).length > 0 || (isFree && allocation !== undefined)) {
    const status = {
      ...(!isFree && allocation !== undefined && { allocation }),
      ...(remaining.length > 0 && { reservedFor: remaining }),
      ...rest,
    }
    current = await client.updateStatus(ResourceClaims, { ...claim, status }, { signal })
  }
  if (!isAllocatedHere || current.status.allocation !== undefined || remaining.length > 0) return
  const finalizers = (current.metadata.finalizers ?? []).filter((one) => one !== FINALIZER)
  await client.update(ResourceClaims, { ...current, metadata: { ...current.metadata, finalizers } }, { signal })
}

/** Deletes the claim of a finished or deleted pod. */
async function dropUnused(claim: ResourceClaim, { cache, client, signal }: ControllerContext): Promise<void> {
  const owner = owningPod(claim)
  const { namespace, name = '' } = claim.metadata
  const pod = owner === undefined ? undefined : cache.get(Pods, keyOf(namespace, owner.name))
  // A pod that the cache lacks may be new; the garbage collector handles the rest.
  if (pod === undefined || (pod.metadata.uid === owner?.uid && !isDone(pod)) || isBeingDeleted(claim)) return
  try {
    await client.delete(ResourceClaims, { namespace, name }, { signal })
  } catch (error) {
    if (!isNotFound(error)) throw error
  }
}
