/** Functions about PersistentVolumes and claims that several components share. */
import type { PersistentVolumeClaim, PersistentVolumeClaimSpec, Pod, Volume } from '#apis/core/v1.ts'
import { isControlledBy, keyOf, type ObjectMeta } from '#meta/object.ts'

/** The annotation that preceded the class field; it still takes precedence. */
export const STORAGE_CLASS_ANNOTATION = 'volume.beta.kubernetes.io/storage-class'
export const MOUNT_OPTIONS_ANNOTATION = 'volume.beta.kubernetes.io/mount-options'

/** The annotation with the file system size before an expansion. */
export const PRE_RESIZE_CAPACITY = 'volume.alpha.kubernetes.io/pre-resize-capacity'

/** Annotations that mark the default class. */
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

/** `RWO,RWX`: in a fixed order, each once. */
export function accessModesText(modes: readonly string[] | undefined): string {
  return shortModes
    .filter(([mode]) => modes?.includes(mode))
    .map(([, short]) => short)
    .join(',')
}

interface ClassOwner {
  readonly metadata: ObjectMeta
  readonly spec: { readonly storageClassName?: string }
}

/** The storage class of a volume or claim; empty without one. */
export function storageClassOf({ metadata, spec }: ClassOwner): string {
  return metadata.annotations?.[STORAGE_CLASS_ANNOTATION] ?? spec.storageClassName ?? ''
}

/** True if a class, or none, was set explicitly: then no default applies. */
export function hasStorageClass({ metadata, spec }: ClassOwner): boolean {
  return spec.storageClassName !== undefined || Object.hasOwn(metadata.annotations ?? {}, STORAGE_CLASS_ANNOTATION)
}

/** Completes dataSource and dataSourceRef from each other. */
export function alignDataSources(spec: PersistentVolumeClaimSpec): void {
  const { dataSource, dataSourceRef } = spec
  if (dataSource !== undefined) spec.dataSourceRef ??= { ...dataSource }
  else if (dataSourceRef !== undefined && (dataSourceRef.namespace ?? '') === '') {
    const { apiGroup, kind, name } = dataSourceRef
    spec.dataSource = { apiGroup, kind, name }
  }
}

/** The claim of a pod volume, if there is one: named, or generated. */
export function claimNameOf(
  pod: Pick<Pod, 'metadata'>,
  { name, persistentVolumeClaim, ephemeral }: Volume,
): string | undefined {
  return ephemeral === undefined ? persistentVolumeClaim?.claimName : `${pod.metadata.name}-${name}`
}

/** The keys of all claims of a pod, named or generated. */
export function claimKeysOf(pod: Pick<Pod, 'metadata' | 'spec'>): string[] {
  const names = (pod.spec.volumes ?? []).map((volume) => claimNameOf(pod, volume))
  return names.filter((name) => name !== undefined).map((name) => keyOf(pod.metadata.namespace, name))
}

/** Upstream's error for a claim with the right name that was not created for the pod. */
export function notMadeForPod(pod: Pick<Pod, 'metadata'>, claim: PersistentVolumeClaim): string | undefined {
  if (isControlledBy(claim, pod)) return undefined
  const { namespace, name } = pod.metadata
  return `PVC ${claim.metadata.namespace}/${claim.metadata.name} was not created for pod ${namespace}/${name} (pod is not owner)`
}
