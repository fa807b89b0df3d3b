/** Reads and writes the binding of claims and volumes, in annotations and references. Pure. */
import type { ObjectReference, PersistentVolume, PersistentVolumeClaim } from '#apis/core/v1.ts'
import type { ObjectMeta } from '#meta/object.ts'

/** On a claim: the binding is complete and permanent. */
export const BIND_COMPLETED = 'pv.kubernetes.io/bind-completed'
/** On a binding: a controller chose it, not a user. */
export const BOUND_BY_CONTROLLER = 'pv.kubernetes.io/bound-by-controller'
/** On a claim: the scheduler's node for the first pod. */
export const SELECTED_NODE = 'volume.kubernetes.io/selected-node'

export type Annotations = Readonly<Record<string, string>>

export function hasAnnotation({ metadata }: { readonly metadata: ObjectMeta }, name: string): boolean {
  return Object.hasOwn(metadata.annotations ?? {}, name)
}

/** The object with other annotations; without any, the field is removed. */
export function withAnnotations<T extends { readonly metadata: ObjectMeta }>(object: T, annotations: Annotations): T {
  const { annotations: _, ...metadata } = object.metadata
  const isEmpty = Object.keys(annotations).length === 0
  return { ...object, metadata: isEmpty ? metadata : { ...metadata, annotations } }
}

/** True if the volume is bound to the claim, or reserved for it by name. */
export function isBoundTo(
  { spec: { claimRef } }: PersistentVolume,
  { metadata }: Pick<PersistentVolumeClaim, 'metadata'>,
): boolean {
  if (claimRef === undefined || claimRef.name !== metadata.name || claimRef.namespace !== metadata.namespace)
    return false
  return (claimRef.uid ?? '') === '' || claimRef.uid === metadata.uid
}

/** True if the claim is completely bound. */
export function isFullyBound(claim: PersistentVolumeClaim): boolean {
  return (claim.spec.volumeName ?? '') !== '' && hasAnnotation(claim, BIND_COMPLETED)
}

export function claimReference({ metadata }: PersistentVolumeClaim): ObjectReference {
  const { namespace = '', name = '', uid = '', resourceVersion = '' } = metadata
  return { kind: 'PersistentVolumeClaim', namespace, name, uid, apiVersion: 'v1', resourceVersion }
}

/** Undefined if it is already bound. */
export function boundVolume(volume: PersistentVolume, claim: PersistentVolumeClaim): PersistentVolume | undefined {
  if (volume.spec.claimRef?.uid === claim.metadata.uid && isBoundTo(volume, claim)) return undefined
  const bound = { ...volume, spec: { ...volume.spec, claimRef: claimReference(claim) } }
  // A reservation by a user stays after unbinding.
  const isOurs = !isBoundTo(volume, claim) && !hasAnnotation(volume, BOUND_BY_CONTROLLER)
  return isOurs ? withAnnotations(bound, { ...volume.metadata.annotations, [BOUND_BY_CONTROLLER]: 'yes' }) : bound
}
