/**
 * Computes a claim or volume that is bound, released or moved to another phase. Returns undefined if nothing changes.
 * Pure.
 */
import type { PersistentVolume, PersistentVolumeClaim, PersistentVolumeClaimStatus } from '#apis/core/v1.ts'
import { isBeingDeleted, semanticEqual } from '#meta/object.ts'
import { compareQuantities, parseQuantity } from '#meta/quantity.ts'
import { BIND_COMPLETED, BOUND_BY_CONTROLLER, hasAnnotation, withAnnotations } from '#model/volumes/binding.ts'
import { PRE_RESIZE_CAPACITY } from '#model/volumes/volumes.ts'

import { deletionFinalizers, migrated, PROVISIONED_BY, provisionerOfClaim } from './annotations.ts'

export function unboundVolume(volume: PersistentVolume): PersistentVolume {
  const { claimRef, ...spec } = volume.spec
  if (!hasAnnotation(volume, BOUND_BY_CONTROLLER)) {
    const { uid: _, ...kept } = claimRef ?? {}
    return { ...volume, spec: { ...spec, claimRef: kept } }
  }
  const { [BOUND_BY_CONTROLLER]: _, ...annotations } = volume.metadata.annotations ?? {}
  return withAnnotations({ ...volume, spec }, annotations)
}

export function boundClaim(
  claim: PersistentVolumeClaim,
  { metadata }: PersistentVolume,
): PersistentVolumeClaim | undefined {
  const { annotations = {} } = claim.metadata
  const isBound = claim.spec.volumeName === metadata.name
  if (isBound && hasAnnotation(claim, BIND_COMPLETED)) return undefined
  const updated = { ...annotations, ...(!isBound && { [BOUND_BY_CONTROLLER]: 'yes' }), [BIND_COMPLETED]: 'yes' }
  return withAnnotations({ ...claim, spec: { ...claim.spec, volumeName: metadata.name ?? '' } }, updated)
}

/** The claim in the phase, with the status fields of `volume`. Throws if the volume has no capacity. */
export function claimInPhase(
  claim: PersistentVolumeClaim,
  phase: 'Pending' | 'Bound' | 'Lost',
  volume?: PersistentVolume,
): PersistentVolumeClaim | undefined {
  const { accessModes: _, capacity: __, currentVolumeAttributesClassName: ___, ...rest } = claim.status
  const status = { ...rest, phase, ...(volume !== undefined && takenFrom(volume, claim.status, phase)) }
  return semanticEqual(status, claim.status) ? undefined : { ...claim, status }
}

function takenFrom(
  { metadata, spec }: PersistentVolume,
  before: PersistentVolumeClaimStatus,
  phase: string,
): Partial<PersistentVolumeClaimStatus> {
  const { accessModes = [], volumeAttributesClassName: attributes } = spec
  const kept = before.phase === 'Pending' ? attributes : before.currentVolumeAttributesClassName
  const updated = { accessModes, ...(kept !== undefined && { currentVolumeAttributesClassName: kept }) }
  // After binding, the capacity may differ: a file system can be smaller than its volume.
  if (before.phase === phase) return { ...updated, ...(before.capacity !== undefined && { capacity: before.capacity }) }
  const size = spec.capacity?.['storage']
  if (size === undefined) throw new Error(`PersistentVolume "${metadata.name}" is without a storage capacity`)
  const smaller = metadata.annotations?.[PRE_RESIZE_CAPACITY]
  if (smaller !== undefined) return { ...updated, capacity: { ...before.capacity, storage: parsed(smaller) ?? size } }
  const known = before.capacity?.['storage']
  const isSame = known !== undefined && compareQuantities(parseQuantity(known), parseQuantity(size)) === 0
  return { ...updated, capacity: { ...(isSame ? before.capacity : spec.capacity) } }
}

function parsed(text: string): string | undefined {
  try {
    parseQuantity(text)
    return text
  } catch {
    return undefined
  }
}

export function volumeInPhase(volume: PersistentVolume, phase: string, message = ''): PersistentVolume | undefined {
  if (volume.status.phase === phase) return undefined
  const { message: _, ...status } = volume.status
  return { ...volume, status: { ...status, phase, ...(message !== '' && { message }) } }
}

/** Adds migration annotations for in-tree plugins, and finalizers for volumes with policy Delete. */
export function migratedVolume(volume: PersistentVolume): PersistentVolume | undefined {
  const { annotations = {}, finalizers = [] } = volume.metadata
  const provisioner = annotations[PROVISIONED_BY]
  const updated = migrated(annotations, provisioner)
  const policy = volume.spec.persistentVolumeReclaimPolicy ?? ''
  // Finalizers cannot be added to a terminating object.
  const nextFinalizers = isBeingDeleted(volume) ? finalizers : deletionFinalizers(finalizers, provisioner, policy)
  if (updated === annotations && nextFinalizers === finalizers) return undefined
  const changed = withAnnotations(volume, updated)
  return { ...changed, metadata: { ...changed.metadata, finalizers: [...nextFinalizers] } }
}

export function migratedClaim(claim: PersistentVolumeClaim): PersistentVolumeClaim | undefined {
  const { annotations = {} } = claim.metadata
  const updated = migrated(annotations, provisionerOfClaim(claim.metadata))
  return updated === annotations ? undefined : withAnnotations(claim, updated)
}
