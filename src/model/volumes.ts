/** What PersistentVolumes and the claims on them have in common. */
import type { PersistentVolumeClaimSpec } from '#apis/core/v1.ts'
import type { ObjectMeta } from '#meta/object.ts'

/** Where the class was written before there was a field for it; still read first. */
export const STORAGE_CLASS_ANNOTATION = 'volume.beta.kubernetes.io/storage-class'
export const MOUNT_OPTIONS_ANNOTATION = 'volume.beta.kubernetes.io/mount-options'

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

/** What a claim is filled from has an old field and a new one: each from the other, where one is missing. */
export function alignDataSources(spec: PersistentVolumeClaimSpec): void {
  const { dataSource, dataSourceRef } = spec
  if (dataSource !== undefined) spec.dataSourceRef ??= { ...dataSource }
  else if (dataSourceRef !== undefined && (dataSourceRef.namespace ?? '') === '') {
    const { apiGroup, kind, name } = dataSourceRef
    spec.dataSource = { apiGroup, kind, name }
  }
}
