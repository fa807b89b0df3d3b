/** The CSIStorageCapacity resource: the available capacity of a storage class in a topology segment. */
import { CSIStorageCapacities, type CSIStorageCapacity } from '#apis/storage/v1.ts'
import { nameColumn } from '#apiserver/registry/columns.ts'
import { defineResource, type Resource } from '#apiserver/registry/resource.ts'
import { type LabelSelector, validateLabelSelector } from '#meta/label-selector.ts'
import { parseQuantity, quantitySign } from '#meta/quantity.ts'
import { collectErrors, type FieldError, fieldPath, type FieldPath } from '#meta/validation/field-path.ts'
import { dns1123Subdomain } from '#meta/validation/names.ts'
import { immutable } from '#meta/validation/rules.ts'
import { oldNodeLabelText } from '#model/pod-spec/warnings/warnings.ts'

import { createdAtColumn } from '../created-at.ts'

export const csiStorageCapacity: Resource<CSIStorageCapacity> = defineResource<CSIStorageCapacity>({
  kind: CSIStorageCapacities,
  metadataRules: { update: ['whole', 'change'] },
  validate: (object) => validateStorageCapacity(object, false),
  validateUpdate: (next, old) => [
    ...validateStorageCapacity(next, validateLabelSelector(fieldPath(''), old.nodeTopology).length > 0),
    ...immutable(fieldPath('nodeTopology'), next.nodeTopology, old.nodeTopology),
    ...immutable(fieldPath('storageClassName'), next.storageClassName, old.storageClassName),
  ],
  warnings: ({ nodeTopology }) => topologyWarnings(fieldPath('nodeTopology'), nodeTopology ?? {}),
  columns: [nameColumn, createdAtColumn],
  putNeedsVersion: true,
})

/** `invalidValues`: the selector may have some, because the old one has. */
function validateStorageCapacity(object: CSIStorageCapacity, invalidValues: boolean): FieldError[] {
  const { nodeTopology, storageClassName, capacity } = object
  const negative = capacity !== undefined && quantitySign(parseQuantity(capacity)) < 0
  return collectErrors(
    validateLabelSelector(fieldPath('nodeTopology'), nodeTopology, { invalidValues }),
    fieldPath('storageClassName').check(storageClassName, dns1123Subdomain),
    negative && fieldPath('capacity').invalid(capacity, 'must be greater than or equal to 0'),
  )
}

function topologyWarnings(path: FieldPath, { matchExpressions = [], matchLabels = {} }: LabelSelector): string[] {
  const warn = (path: FieldPath, label: string, subject = ''): string[] => {
    const complaint = oldNodeLabelText(label)
    return complaint === undefined ? [] : [`${path}: ${subject}${complaint}`]
  }
  return [
    ...matchExpressions.flatMap(({ key }, at) =>
      warn(path.child('matchExpressions').index(at).child('key'), key, `${key} is `),
    ),
    ...Object.keys(matchLabels).flatMap((label) => warn(path.child('matchLabels').child(label), label)),
  ]
}
