/** The PersistentVolumeClaim resource: a request for storage; a bound claim can only be expanded. */
import { type PersistentVolumeClaim, PersistentVolumeClaims, type PersistentVolumeClaimSpec } from '#apis/core/v1.ts'
import { ageColumn, nameColumn } from '#apiserver/registry/columns.ts'
import { defineResource, type Resource, type RuleContext } from '#apiserver/registry/resource.ts'
import { goQuote } from '#lib/go/text.ts'
import { parseQuantity, quantityMilliValue } from '#meta/quantity.ts'
import { fieldPath } from '#meta/validation/field-path.ts'
import { roundAmounts } from '#model/pod-spec/defaults.ts'
import { amountOf } from '#model/resource-lists.ts'
import { accessModesText, alignDataSources, STORAGE_CLASS_ANNOTATION, storageClassOf } from '#model/volumes/volumes.ts'

import { validateClaim, validateClaimStatus, validateClaimUpdate } from './validation.ts'

export const persistentVolumeClaim: Resource<PersistentVolumeClaim> = defineResource<PersistentVolumeClaim>({
  kind: PersistentVolumeClaims,
  metadataRules: { update: ['change', 'whole'] },
  applyDefaults({ spec, status }) {
    if (status !== undefined) status.phase ||= 'Pending'
    if (spec !== undefined) spec.volumeMode ??= 'Filesystem'
    const lists = [spec?.resources?.limits, spec?.resources?.requests, status?.capacity, status?.allocatedResources]
    for (const list of lists) roundAmounts(list)
  },
  prepareCreate(object, context) {
    object.status = { phase: 'Pending' }
    settleDataSources(object.spec, undefined, context)
  },
  prepareUpdate: (next, old, context) => settleDataSources(next.spec, old.spec, context),
  validate: (object) => validateClaim(object),
  validateUpdate: validateClaimUpdate,
  warnings: claimWarnings,
  status: {
    keeps: ['spec'],
    validateUpdate: validateClaimStatus,
  },
  columns: [
    nameColumn,
    {
      name: 'Status',
      value: ({ metadata, status }) =>
        metadata.deletionTimestamp === undefined ? (status?.phase ?? '') : 'Terminating',
    },
    { name: 'Volume', value: ({ spec }) => spec.volumeName ?? '' },
    {
      name: 'Capacity',
      value: (claim) => (isBound(claim) ? (amountOf(claim.status?.capacity, 'storage') ?? '0') : ''),
    },
    { name: 'Access Modes', value: (claim) => (isBound(claim) ? accessModesText(claim.status?.accessModes) : '') },
    { name: 'StorageClass', value: storageClassOf },
    { name: 'VolumeAttributesClass', value: ({ spec }) => spec.volumeAttributesClassName ?? '<unset>' },
    ageColumn,
    { name: 'VolumeMode', wide: true, value: ({ spec }) => spec.volumeMode ?? '<unset>' },
  ],
  deleteAnswersObject: true,
})

function isBound({ spec }: PersistentVolumeClaim): boolean {
  return (spec.volumeName ?? '') !== ''
}

/**
 * dataSource and dataSourceRef must agree, unless dataSourceRef names another namespace. A dataSource alone is dropped
 * unless it names a claim or a snapshot.
 */
function settleDataSources(
  spec: PersistentVolumeClaimSpec,
  old: PersistentVolumeClaimSpec | undefined,
  { isEnabled }: RuleContext,
): void {
  const elsewhere = (spec.dataSourceRef?.namespace ?? '') !== ''
  if (elsewhere && !isEnabled('CrossNamespaceVolumeDataSource') && old?.dataSourceRef === undefined) {
    delete spec.dataSourceRef
  }
  const had = old?.dataSource !== undefined || old?.dataSourceRef !== undefined
  if (!had && spec.dataSourceRef === undefined && !isClaimOrSnapshot(spec.dataSource)) delete spec.dataSource
  alignDataSources(spec)
}

function isClaimOrSnapshot(source: PersistentVolumeClaimSpec['dataSource']): boolean {
  const group = source?.apiGroup ?? ''
  if (source?.kind === 'PersistentVolumeClaim') return group === ''
  return source?.kind === 'VolumeSnapshot' && group === 'snapshot.storage.k8s.io'
}

function claimWarnings({ metadata, spec }: PersistentVolumeClaim): string[] {
  const warnings: string[] = []
  if (Object.hasOwn(metadata.annotations ?? {}, STORAGE_CLASS_ANNOTATION)) {
    const advice = 'deprecated since v1.8; use "storageClassName" attribute instead'
    warnings.push(`${fieldPath('metadata.annotations').key(STORAGE_CLASS_ANNOTATION)}: ${advice}`)
  }
  for (const list of ['requests', 'limits'] as const) {
    const amount = amountOf(spec.resources?.[list], 'storage')
    if (amount === undefined || quantityMilliValue(parseQuantity(amount)) % 1000 === 0) continue
    const rule = `fractional byte value ${goQuote(amount)} is invalid, must be an integer`
    warnings.push(`${fieldPath(`spec.resources.${list}`).key('storage')}: ${rule}`)
  }
  return warnings
}
