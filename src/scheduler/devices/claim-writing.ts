/** Writes the allocation and reservation of claims, and reverses both. */
import { type Pod, Pods } from '#apis/core/v1.ts'
import { type AllocationResult, type ResourceClaim, ResourceClaims } from '#apis/resource/v1.ts'
import { sleep } from '#lib/clock.ts'
import { isBeingDeleted, keyOf, objectKey } from '#meta/object.ts'
import { isConflict } from '#meta/status.ts'
import { timeOf } from '#meta/time.ts'

import type { Handle } from '../framework/framework.ts'
import { type ExtendedRequests, UNMADE } from './extended-resources.ts'

export const FINALIZER = 'resource.kubernetes.io/delete-protection'
const TRIES = 5
const FIRST_PAUSE_MS = 10

type Writer = Pick<Handle, 'client' | 'clock' | 'of'>

/** Writes the allocation, if the claim has none yet, and reserves the claim for the pod. */
export function bindClaim(
  claim: ResourceClaim,
  allocation: AllocationResult | undefined,
  pod: Pod,
  { writer, signal }: { readonly writer: Writer; readonly signal: AbortSignal },
): Promise<ResourceClaim> {
  const { client, clock, of } = writer
  const key = objectKey(claim)
  return retryOnConflict(claim, writer, async (current) => {
    if (isBeingDeleted(current)) throw new Error(`claim ${key} got deleted in the meantime`)
    if (allocation !== undefined && current.status.allocation !== undefined)
      throw new Error(`claim ${key} got allocated elsewhere in the meantime`)
    const given = allocation ?? current.status.allocation
    if (given === undefined) throw new Error(`claim ${key} got deallocated elsewhere in the meantime`)
    const { finalizers = [] } = current.metadata
    const isNew = allocation !== undefined && !finalizers.includes(FINALIZER)
    const metadata = { ...current.metadata, finalizers: [...finalizers, FINALIZER] }
    const stored = isNew
      ? await client
          .update(ResourceClaims, { ...current, metadata }, { signal })
          .catch(rethrown(`add finalizer to claim ${key}`))
      : current
    const { name = '', uid = '' } = pod.metadata
    const reservedFor = [...(stored.status.reservedFor ?? []), { resource: 'pods', name, uid }]
    const what = allocation === undefined ? 'reservation' : 'allocation and reservation'
    const status = { ...stored.status, allocation: { allocationTimestamp: timeOf(clock.now()), ...given }, reservedFor }
    const written = await client
      .updateStatus(ResourceClaims, { ...stored, status }, { signal })
      .catch(rethrown(`add ${what} to claim ${key}`))
    of(ResourceClaims).learn(written)
    return written
  })
}

/** Removes the pod's reservation. A failure is repaired by the next attempt. */
export async function unreserveClaim({ metadata }: ResourceClaim, pod: Pod, { client, of }: Writer): Promise<void> {
  const { namespace, name = '', uid } = metadata
  const reservedFor = [{ $patch: 'delete', uid: pod.metadata.uid }]
  const value = { metadata: { uid }, status: { reservedFor } }
  const where = { namespace, name, subresource: 'status' }
  of(ResourceClaims).learn(await client.patch(ResourceClaims, where, { type: 'strategic', value }))
}

export async function deallocateClaim(claim: ResourceClaim, { client, of }: Writer): Promise<void> {
  of(ResourceClaims).learn(await client.updateStatus(ResourceClaims, { ...claim, status: {} }))
}

export async function deleteClaim(claim: ResourceClaim, writer: Writer): Promise<void> {
  const { client } = writer
  const key = objectKey(claim)
  await retryOnConflict(claim, writer, (current) => {
    const finalizers = (current.metadata.finalizers ?? []).filter((one) => one !== FINALIZER)
    return client
      .update(ResourceClaims, { ...current, metadata: { ...current.metadata, finalizers } })
      .catch(rethrown(`update resourceclaim ${key}`))
  })
  const { namespace, name = '' } = claim.metadata
  await client.delete(ResourceClaims, { namespace, name })
}

/** Creates the claim for a pod's extended resources. */
export function createClaim(
  { metadata }: ResourceClaim,
  { requests }: ExtendedRequests,
  { client }: Writer,
  signal: AbortSignal,
): Promise<ResourceClaim> {
  const { namespace = '', generateName = '', ownerReferences = [], annotations = {} } = metadata
  const draft = { metadata: { namespace, generateName, ownerReferences, annotations }, spec: { devices: { requests } } }
  return client
    .create(ResourceClaims, draft, { signal })
    .catch(rethrown(`create claim for extended resources ${keyOf(namespace, UNMADE)}`))
}

export async function updatePodClaimStatus(
  { metadata }: Pod,
  { mappings }: ExtendedRequests,
  claim: ResourceClaim,
  { client }: Writer,
): Promise<void> {
  const { namespace, name = '', uid } = metadata
  const extendedResourceClaimStatus = {
    requestMappings: mappings,
    resourceClaimName: claim.metadata.name ?? '',
  }
  const value = { metadata: { uid }, status: { extendedResourceClaimStatus } }
  await client
    .patch(Pods, { namespace, name, subresource: 'status' }, { type: 'strategic', value })
    .catch(rethrown(`update pod ${keyOf(namespace, name)} ExtendedResourceClaimStatus`))
}

/** Retries conflicts with the newer stored object. */
async function retryOnConflict(
  claim: ResourceClaim,
  { client, clock }: Writer,
  write: (current: ResourceClaim) => Promise<ResourceClaim>,
): Promise<ResourceClaim> {
  let current = claim
  for (let tries = 1; ; tries++) {
    try {
      return await write(current)
    } catch (error) {
      if (tries === TRIES || !isConflict((error as Error).cause)) throw error
      await sleep(clock, FIRST_PAUSE_MS)
      const { namespace, name = '' } = claim.metadata
      current = await client.get(ResourceClaims, { namespace, name })
    }
  }
}

function rethrown(doing: string): (error: unknown) => never {
  return (error) => {
    throw new Error(`${doing}: ${(error as Error).message}`, { cause: error })
  }
}
