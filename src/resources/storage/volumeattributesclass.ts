/** The VolumeAttributesClass resource: attributes of volumes that can change while they are in use. */
import { type VolumeAttributesClass, VolumeAttributesClasses } from '#apis/storage/v1.ts'
import { VolumeAttributesClasses as BetaVolumeAttributesClasses } from '#apis/storage/v1beta1.ts'
import { ageColumn, nameColumn } from '#apiserver/registry/columns.ts'
import { defineResource, type Resource } from '#apiserver/registry/resource.ts'
import { semanticEqual } from '#meta/object.ts'
import { type FieldError, fieldPath } from '#meta/validation/field-path.ts'

import { validateDriver, validateParameters } from './parameters.ts'

export const volumeAttributesClass: Resource<VolumeAttributesClass> = defineResource<VolumeAttributesClass>({
  kind: VolumeAttributesClasses,
  metadataRules: { update: ['change', 'whole'] },
  otherVersions: [{ kind: BetaVolumeAttributesClasses }],
  validate: validateClass,
  validateUpdate: (next, old) => [
    ...(['driverName', 'parameters'] as const)
      .filter((field) => !semanticEqual(next[field], old[field]))
      .map((field) => fieldPath(field).forbidden(`updates to ${field} are forbidden.`)),
    ...validateClass(next),
  ],
  columns: [nameColumn, { name: 'DriverName', value: ({ driverName }) => driverName }, ageColumn],
  deleteAnswersObject: true,
})

function validateClass({ driverName, parameters }: VolumeAttributesClass): FieldError[] {
  return [
    ...validateDriver(fieldPath('driverName'), driverName),
    ...validateParameters(fieldPath('parameters'), parameters, false),
  ]
}
