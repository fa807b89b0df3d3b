/**
 * Manages the claims of a StatefulSet's pods: creates them before the pod, and sets their owners by the retention
 * policy.
 */
import { type StatefulSet, StatefulSets } from '#apis/apps/v1.ts'
import { type PersistentVolumeClaim, PersistentVolumeClaims, type Pod, Pods } from '#apis/core/v1.ts'
import type { Kind } from '#apis/kinds.ts'
import { parseApiVersion } from '#meta/kind.ts'
import { controllerRef, isBeingDeleted, type KubeObject, objectKey, type OwnerReference } from '#meta/object.ts'
import { semanticEqual } from '#meta/object.ts'
import { isAlreadyExists } from '#meta/status.ts'

import type { ControllerContext } from '../../controller.ts'
import { messageOf } from '../../pod-creation.ts'
import { claimsOf, isInRange, ordinalOf } from './identity.ts'

const RETAIN = { whenDeleted: 'Retain', whenScaled: 'Retain' }

function policyOf({ spec }: StatefulSet): { readonly whenDeleted?: string; readonly whenScaled?: string } {
  return { ...RETAIN, ...spec.persistentVolumeClaimRetentionPolicy }
}

/** Creates missing claims. Throws if a creation fails or a claim is terminating. */
export async function createClaims(set: StatefulSet, pod: Pod, context: ControllerContext): Promise<void> {
  const { cache, client, signal, event } = context
  for (const claim of claimsOf(set, ordinalOf(set, pod))) {
    const about = `Claim ${claim.metadata.name}`
    const known = cache.get(PersistentVolumeClaims, objectKey(claim))
    if (known !== undefined && isBeingDeleted(known)) throw new Error(`pvc ${claim.metadata.name} is being deleted`)
    if (known !== undefined) continue
    const where = `Pod ${pod.metadata.name} in StatefulSet ${set.metadata.name}`
    try {
      await client.create(PersistentVolumeClaims, claim, { signal })
      event(set, { type: 'Normal', reason: 'SuccessfulCreate', message: `Create ${about} ${where} success` })
    } catch (error) {
      if (!isAlreadyExists(error)) {
        const message = `Create ${about} for ${where} failed error: ${messageOf(error)}`
        event(set, { type: 'Warning', reason: 'FailedCreate', message })
      }
      throw new Error(`failed to create PVC ${claim.metadata.name}: ${messageOf(error)}`, { cause: error })
    }
  }
}

function knownClaims(set: StatefulSet, pod: Pod, { cache }: ControllerContext): PersistentVolumeClaim[] {
  return claimsOf(set, ordinalOf(set, pod))
    .map((claim) => cache.get(PersistentVolumeClaims, objectKey(claim)))
    .filter((claim) => claim !== undefined)
}

/** Whether owner references of the claims must change. */
export function claimsNeedOwners(set: StatefulSet, pod: Pod, context: ControllerContext): boolean {
  return knownClaims(set, pod, context).some(
    (claim) => !semanticEqual(claim.metadata.ownerReferences, ownersFor(claim, set, pod)),
  )
}

export async function updateClaimOwners(set: StatefulSet, pod: Pod, context: ControllerContext): Promise<void> {
  const { client, signal, event } = context
  for (const claim of knownClaims(set, pod, context)) {
    const { name } = claim.metadata
    if (isAnothers(claim, set, pod)) {
      const message = `PersistentVolumeClaim ${name} has a conflicting OwnerReference that acts as a manging controller, the retention policy is ignored for this claim`
      event(set, { type: 'Warning', reason: 'ConflictingController', message })
    }
    const ownerReferences = ownersFor(claim, set, pod)
    if (semanticEqual(claim.metadata.ownerReferences, ownerReferences)) continue
    const metadata = { ...claim.metadata, ownerReferences }
    try {
      await client.update(PersistentVolumeClaims, { ...claim, metadata }, { signal })
    } catch (error) {
      const text = `could not update claim ${name} for delete policy ownerRefs: ${messageOf(error)}`
      throw new Error(text, { cause: error })
    }
  }
}

/** Whether a claim still belongs to an earlier pod of this name and will be deleted with it. */
export function hasStaleClaim(set: StatefulSet, pod: Pod, context: ControllerContext): boolean {
  if (policyOf(set).whenScaled === 'Retain') return false
  return knownClaims(set, pod, context).some(({ metadata }) =>
    metadata.ownerReferences?.some((reference) => names(reference, pod, Pods) && reference.uid !== pod.metadata.uid),
  )
}

function names(reference: OwnerReference, { metadata }: KubeObject, kind: Kind): boolean {
  const { group } = parseApiVersion(reference.apiVersion)
  return group === kind.group && reference.kind === kind.kind && reference.name === metadata.name
}

/** The set owns the claim while the pod is wanted, the pod afterwards, as far as the policy says Delete. */
function ownersFor(claim: PersistentVolumeClaim, set: StatefulSet, pod: Pod): OwnerReference[] {
  const references = claim.metadata.ownerReferences ?? []
  const others = references.filter((one) => !names(one, set, StatefulSets) && !names(one, pod, Pods))
  if (isAnothers(claim, set, pod)) return others
  const { whenScaled, whenDeleted } = policyOf(set)
  if (whenScaled === 'Delete' && !isInRange(set, pod)) return [...others, controllerRef(pod, Pods)]
  return whenDeleted === 'Delete' ? [...others, controllerRef(set, StatefulSets)] : others
}

/** Whether another controller, or an earlier owner of the same name, owns it. */
function isAnothers(claim: PersistentVolumeClaim, set: StatefulSet, pod: Pod): boolean {
  const { whenScaled, whenDeleted } = policyOf(set)
  if (whenScaled === 'Retain' && whenDeleted === 'Retain') return false
  return (claim.metadata.ownerReferences ?? []).some((reference) => {
    if (names(reference, set, StatefulSets)) return reference.uid !== set.metadata.uid
    if (names(reference, pod, Pods)) return reference.uid !== pod.metadata.uid
    return reference.controller === true
  })
}
