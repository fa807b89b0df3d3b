/** Claims and volumes as they are to be written: bound, let go, in another phase. Pure; undefined when nothing changes. */
import type { PersistentVolume, PersistentVolumeClaim, PersistentVolumeClaimStatus } from '#apis/core/v1.ts'
import { isBeingDeleted, semanticEqual } from '#meta/object.ts'
import { compareQuantities, parseQuantity } from '#meta/quantity.ts'
import { BIND_COMPLETED, BOUND_BY_CONTROLLER, hasAnnotation, withAnnotations } from '#model/volume-binding.ts'
import { PRE_RESIZE_CAPACITY } from '#model/volumes.ts'

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
  const told = { ...annotations, ...(!isBound && { [BOUND_BY_CONTROLLER]: 'yes' }), [BIND_COMPLETED]: 'yes' }
  return withAnnotations({ ...claim, spec: { ...claim.spec, volumeName: metadata.name ?? '' } }, told)
}

/** The claim with the phase, and what it has of `volume`. Throws when the volume has no capacity. */
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
  const told = { accessModes, ...(kept !== undefined && { currentVolumeAttributesClassName: kept }) }
  // After that it may differ on purpose: what is on the volume can be smaller than the volume.
  if (before.phase === phase) return { ...told, ...(before.capacity !== undefined && { capacity: before.capacity }) }
  const size = spec.capacity?.['storage']
  if (size === undefined) throw new Error(`PersistentVolume "${metadata.name}" is without a storage capacity`)
  const smaller = metadata.annotations?.[PRE_RESIZE_CAPACITY]
  if (smaller !== undefined) return { ...told, capacity: { ...before.capacity, storage: parsed(smaller) ?? size } }
  const known = before.capacity?.['storage']
  const isSame = known !== undefined && compareQuantities(parseQuantity(known), parseQuantity(size)) === 0
  return { ...told, capacity: { ...(isSame ? before.capacity : spec.capacity) } }
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

/** What plugins of old left is now the driver's that took their place; what is to be deleted is protected until it was. */
export function migratedVolume(volume: PersistentVolume): PersistentVolume | undefined {
  const { annotations = {}, finalizers = [] } = volume.metadata
  const provisioner = annotations[PROVISIONED_BY]
  const told = migrated(annotations, provisioner)
  const policy = volume.spec.persistentVolumeReclaimPolicy ?? ''
  // Nothing can hold any more what is being deleted.
  const held = isBeingDeleted(volume) ? finalizers : deletionFinalizers(finalizers, provisioner, policy)
  if (told === annotations && held === finalizers) return undefined
  const changed = withAnnotations(volume, told)
  return { ...changed, metadata: { ...changed.metadata, finalizers: [...held] } }
}

export function migratedClaim(claim: PersistentVolumeClaim): PersistentVolumeClaim | undefined {
  const { annotations = {} } = claim.metadata
  const told = migrated(annotations, provisionerOfClaim(claim.metadata))
  return told === annotations ? undefined : withAnnotations(claim, told)
}
