/** Claims to persistent volumes, also those that a pod or a set has a template of. */
import type { PersistentVolumeClaim, PersistentVolumeClaimSpec } from '#apis/core/v1.ts'
import type { ObjectMeta } from '#meta/object.ts'

import type { Page } from './page.ts'
import { listText, putAnnotations, putLabels } from './sections.ts'
import { sinceText } from './times.ts'

const CLASS_ANNOTATION = 'volume.beta.kubernetes.io/storage-class'

interface ClassHolder {
  readonly metadata?: Partial<ObjectMeta>
  readonly spec?: { readonly storageClassName?: string }
}

/** What the annotation says goes before the field. */
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

interface Claimed {
  readonly metadata?: Partial<ObjectMeta>
  readonly spec: PersistentVolumeClaimSpec
  readonly status?: PersistentVolumeClaim['status']
}

/** `nowMs` for a claim itself; a template lacks some of it. */
export function putClaim(page: Page, claim: Claimed, nowMs: number | undefined): void {
  const { metadata = {}, spec, status = {} } = claim
  const isWhole = nowMs !== undefined
  if (isWhole) {
    page.row(0, 'Name', metadata.name)
    page.row(0, 'Namespace', metadata.namespace ?? '')
  }
  page.row(0, 'StorageClass', storageClassOf(claim))
  if (isWhole) page.row(0, 'Status', phaseText(metadata, status.phase, nowMs))
  page.row(0, 'Volume', spec.volumeName ?? '')
  putLabels(page, 'Labels', metadata.labels)
  putAnnotations(page, 'Annotations', metadata.annotations)
  if (isWhole) page.row(0, 'Finalizers', listText(metadata.finalizers))
  const isBound = (spec.volumeName ?? '') !== ''
  page.rows(0, [
    ['Capacity', isBound ? (status.capacity?.['storage'] ?? '0') : ''],
    ['Access Modes', isBound ? accessModesText(status.accessModes) : ''],
    ['VolumeMode', spec.volumeMode],
  ])
  if (spec.dataSource === undefined) return
  page.put(0, 'DataSource:\n')
  page.rows(1, [
    ['APIGroup', spec.dataSource.apiGroup ?? undefined],
    ['Kind', spec.dataSource.kind],
    ['Name', spec.dataSource.name],
  ])
}

/** The phase, unless it is being deleted. */
export function phaseText(metadata: Partial<ObjectMeta>, phase: string | undefined, nowMs: number): string {
  const { deletionTimestamp } = metadata
  return deletionTimestamp === undefined ? (phase ?? '') : `Terminating (lasts ${sinceText(deletionTimestamp, nowMs)})`
}
