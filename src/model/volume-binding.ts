/** A claim and its volume, and how whoever binds them tells the others: in annotations, and in references. Pure. */
import type { ObjectReference, PersistentVolume, PersistentVolumeClaim } from '#apis/core/v1.ts'
import type { ObjectMeta } from '#meta/object.ts'

/** On a claim: it was bound once, and must not be bound to anything else. */
export const BIND_COMPLETED = 'pv.kubernetes.io/bind-completed'
/** Of a binding: chosen by a controller, not by a user who would want it kept. */
export const BOUND_BY_CONTROLLER = 'pv.kubernetes.io/bound-by-controller'
/** On a claim: where the scheduler wants the first pod. */
export const SELECTED_NODE = 'volume.kubernetes.io/selected-node'

export type Annotations = Readonly<Record<string, string>>

export function hasAnnotation({ metadata }: { readonly metadata: ObjectMeta }, name: string): boolean {
  return Object.hasOwn(metadata.annotations ?? {}, name)
}

/** The object with other annotations; none at all rather than an empty list of them. */
export function withAnnotations<T extends { readonly metadata: ObjectMeta }>(object: T, annotations: Annotations): T {
  const { annotations: _, ...metadata } = object.metadata
  const isEmpty = Object.keys(annotations).length === 0
  return { ...object, metadata: isEmpty ? metadata : { ...metadata, annotations } }
}

/** Whether the volume is the claim's, or kept for it by name. */
export function isBoundTo(
  { spec: { claimRef } }: PersistentVolume,
  { metadata }: Pick<PersistentVolumeClaim, 'metadata'>,
): boolean {
  if (claimRef === undefined || claimRef.name !== metadata.name || claimRef.namespace !== metadata.namespace)
    return false
  return (claimRef.uid ?? '') === '' || claimRef.uid === metadata.uid
}

/** Whether nothing is left to do about the claim. */
export function isFullyBound(claim: PersistentVolumeClaim): boolean {
  return (claim.spec.volumeName ?? '') !== '' && hasAnnotation(claim, BIND_COMPLETED)
}

export function claimReference({ metadata }: PersistentVolumeClaim): ObjectReference {
  const { namespace = '', name = '', uid = '', resourceVersion = '' } = metadata
  return { kind: 'PersistentVolumeClaim', namespace, name, uid, apiVersion: 'v1', resourceVersion }
}

/** Undefined: it is so already. */
export function boundVolume(volume: PersistentVolume, claim: PersistentVolumeClaim): PersistentVolume | undefined {
  if (volume.spec.claimRef?.uid === claim.metadata.uid && isBoundTo(volume, claim)) return undefined
  const bound = { ...volume, spec: { ...volume.spec, claimRef: claimReference(claim) } }
  // What a user kept for the claim stays kept for it when they part.
  const isOurs = !isBoundTo(volume, claim) && !hasAnnotation(volume, BOUND_BY_CONTROLLER)
  return isOurs ? withAnnotations(bound, { ...volume.metadata.annotations, [BOUND_BY_CONTROLLER]: 'yes' }) : bound
}
