/** CSIStorageCapacity: how much a storage class can still provide in a part of the cluster. */
import { CSIStorageCapacities, type CSIStorageCapacity } from '#apis/storage/v1.ts'
import { nameColumn } from '#apiserver/registry/columns.ts'
import { defineResource, type Resource } from '#apiserver/registry/resource.ts'
import { type LabelSelector, validateLabelSelector } from '#meta/label-selector.ts'
import { parseQuantity, quantitySign } from '#meta/quantity.ts'
import { child, type FieldError, index, invalid } from '#meta/validation/field-error.ts'
import { dns1123Subdomain } from '#meta/validation/names.ts'
import { complaining, immutable } from '#meta/validation/rules.ts'
import { oldNodeLabelText } from '#model/pod-spec/warnings.ts'

import { createdAtColumn } from '../created-at.ts'

export const csiStorageCapacity: Resource<CSIStorageCapacity> = defineResource<CSIStorageCapacity>({
  kind: CSIStorageCapacities,
  metadataRules: { update: ['whole', 'change'] },
  validate: (object) => validateStorageCapacity(object, false),
  validateUpdate: (next, old) => [
    ...validateStorageCapacity(next, validateLabelSelector('', old.nodeTopology).length > 0),
    ...immutable('nodeTopology', next.nodeTopology, old.nodeTopology),
    ...immutable('storageClassName', next.storageClassName, old.storageClassName),
  ],
  warnings: ({ nodeTopology }) => topologyWarnings('nodeTopology', nodeTopology ?? {}),
  columns: [nameColumn, createdAtColumn],
  putNeedsVersion: true,
})

/** `invalidValues`: the selector may have some, because it had before. */
function validateStorageCapacity(object: CSIStorageCapacity, invalidValues: boolean): FieldError[] {
  const { nodeTopology, storageClassName, capacity } = object
  const negative = capacity !== undefined && quantitySign(parseQuantity(capacity)) < 0
  return [
    ...validateLabelSelector('nodeTopology', nodeTopology, { invalidValues }),
    ...complaining('storageClassName', storageClassName, dns1123Subdomain(storageClassName)),
    ...(negative ? [invalid('capacity', capacity, 'must be greater than or equal to 0')] : []),
  ]
}

function topologyWarnings(path: string, { matchExpressions = [], matchLabels = {} }: LabelSelector): string[] {
  const warn = (field: string, label: string, subject = ''): string[] => {
    const complaint = oldNodeLabelText(label)
    return complaint === undefined ? [] : [`${field}: ${subject}${complaint}`]
  }
  return [
    ...matchExpressions.flatMap(({ key }, at) =>
      warn(child(index(child(path, 'matchExpressions'), at), 'key'), key, `${key} is `),
    ),
    ...Object.keys(matchLabels).flatMap((label) => warn(child(path, 'matchLabels', label), label)),
  ]
}
