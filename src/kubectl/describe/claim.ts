/** Describes persistent volume claims, including claim templates of pods. */
import type { PersistentVolumeClaim, PersistentVolumeClaimSpec } from '#apis/core/v1.ts'
import type { ObjectMeta } from '#meta/object.ts'

import { orEmpty, type Part } from './rows.ts'
import { listText, labelRow, annotationRow, phaseText } from './sections.ts'

const CLASS_ANNOTATION = 'volume.beta.kubernetes.io/storage-class'

interface ClassHolder {
  readonly metadata?: Partial<ObjectMeta>
  readonly spec?: { readonly storageClassName?: string }
}

/** The annotation overrides the field. */
export function storageClassOf({ metadata, spec }: ClassHolder): string {
  return metadata?.annotations?.[CLASS_ANNOTATION] ?? spec?.storageClassName ?? ''
}

const MODES: readonly (readonly [mode: string, short: string])[] = [
  ['ReadWriteOnce', 'RWO'],
  ['ReadOnlyMany', 'ROX'],
  ['ReadWriteMany', 'RWX'],
  ['ReadWriteOncePod', 'RWOP'],
]

/** `RWO,RWX`. */
export function accessModesText(modes: readonly string[] = []): string {
  return MODES.filter(([mode]) => modes.includes(mode))
    .map(([, short]) => short)
    .join(',')
}

interface DescribedClaim {
  readonly metadata?: Partial<ObjectMeta>
  readonly spec: PersistentVolumeClaimSpec
  readonly status?: PersistentVolumeClaim['status']
}

/** `nowMs` is present for a claim; a template lacks some rows. */
export function claimRows(claim: DescribedClaim, nowMs?: number): Part[] {
  const { metadata = {}, spec, status = {} } = claim
  const isWhole = nowMs !== undefined
  const isBound = (spec.volumeName ?? '') !== ''
  const { dataSource } = spec
  return [
    ['Name', isWhole ? metadata.name : undefined],
    ['Namespace', isWhole ? (metadata.namespace ?? '') : undefined],
    ['StorageClass', storageClassOf(claim)],
    ['Status', isWhole ? phaseText(metadata, status.phase, nowMs) : undefined],
    ['Volume', orEmpty(spec.volumeName)],
    labelRow('Labels', metadata.labels),
    annotationRow(metadata.annotations),
    ['Finalizers', isWhole ? listText(metadata.finalizers) : undefined],
    ['Capacity', isBound ? (status.capacity?.['storage'] ?? '0') : ''],
    ['Access Modes', isBound ? accessModesText(status.accessModes) : ''],
    ['VolumeMode', spec.volumeMode],
    [
      'DataSource',
      dataSource && [
        ['APIGroup', dataSource.apiGroup ?? undefined],
        ['Kind', dataSource.kind],
        ['Name', dataSource.name],
      ],
    ],
  ]
}
