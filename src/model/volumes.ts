/** What PersistentVolumes and the claims on them have in common. */
import type { PersistentVolumeClaim, PersistentVolumeClaimSpec, Pod, Volume } from '#apis/core/v1.ts'
import { isControlledBy, keyOf, type ObjectMeta } from '#meta/object.ts'

/** Where the class was written before there was a field for it; still read first. */
export const STORAGE_CLASS_ANNOTATION = 'volume.beta.kubernetes.io/storage-class'
export const MOUNT_OPTIONS_ANNOTATION = 'volume.beta.kubernetes.io/mount-options'

/** How large the file system on a volume is, while the volume is larger. */
export const PRE_RESIZE_CAPACITY = 'volume.alpha.kubernetes.io/pre-resize-capacity'

/** Annotations that make a class the one of claims that name none. */
export const DEFAULT_STORAGE_CLASS_MARKS: readonly string[] = [
  'storageclass.kubernetes.io/is-default-class',
  'storageclass.beta.kubernetes.io/is-default-class',
]

const shortModes: readonly (readonly [mode: string, short: string])[] = [
  ['ReadWriteOnce', 'RWO'],
  ['ReadOnlyMany', 'ROX'],
  ['ReadWriteMany', 'RWX'],
  ['ReadWriteOncePod', 'RWOP'],
]

/** `RWO,RWX`: always in the same order, each once. */
export function accessModesText(modes: readonly string[] | undefined): string {
  return shortModes
    .filter(([mode]) => modes?.includes(mode))
    .map(([, short]) => short)
    .join(',')
}

interface Classed {
  readonly metadata: ObjectMeta
  readonly spec: { readonly storageClassName?: string }
}

/** The storage class of a volume or claim; empty when it has none. */
export function storageClassOf({ metadata, spec }: Classed): string {
  return metadata.annotations?.[STORAGE_CLASS_ANNOTATION] ?? spec.storageClassName ?? ''
}

/** Whether a class, or none, was asked for: then there is no default to give. */
export function hasStorageClass({ metadata, spec }: Classed): boolean {
  return spec.storageClassName !== undefined || Object.hasOwn(metadata.annotations ?? {}, STORAGE_CLASS_ANNOTATION)
}

/** What a claim is filled from has an old field and a new one: each from the other, where one is missing. */
export function alignDataSources(spec: PersistentVolumeClaimSpec): void {
  const { dataSource, dataSourceRef } = spec
  if (dataSource !== undefined) spec.dataSourceRef ??= { ...dataSource }
  else if (dataSourceRef !== undefined && (dataSourceRef.namespace ?? '') === '') {
    const { apiGroup, kind, name } = dataSourceRef
    spec.dataSource = { apiGroup, kind, name }
  }
}

/** The claim behind a volume of a pod, if there is one: named in it, or made for it. */
export function claimNameOf(
  pod: Pick<Pod, 'metadata'>,
  { name, persistentVolumeClaim, ephemeral }: Volume,
): string | undefined {
  return ephemeral === undefined ? persistentVolumeClaim?.claimName : `${pod.metadata.name}-${name}`
}

/** The keys of all claims that a pod names, or that are to be made for it. */
export function claimKeysOf(pod: Pick<Pod, 'metadata' | 'spec'>): string[] {
  const names = (pod.spec.volumes ?? []).map((volume) => claimNameOf(pod, volume))
  return names.filter((name) => name !== undefined).map((name) => keyOf(pod.metadata.namespace, name))
}

/** Upstream's complaint when a claim that has the right name was not made for the pod. */
export function notMadeForPod(pod: Pick<Pod, 'metadata'>, claim: PersistentVolumeClaim): string | undefined {
  if (isControlledBy(claim, pod)) return undefined
  const { namespace, name } = pod.metadata
  return `PVC ${claim.metadata.namespace}/${claim.metadata.name} was not created for pod ${namespace}/${name} (pod is not owner)`
}
