/** The ControllerRevision resource: an earlier state of a workload's template, kept for rollbacks. */
import { type ControllerRevision, ControllerRevisions } from '#apis/apps/v1.ts'
import { ageColumn, nameColumn } from '#apiserver/registry/columns.ts'
import { defineResource, type Resource } from '#apiserver/registry/resource.ts'
import { equalValues } from '#meta/apply/equal.ts'
import { kindOf } from '#meta/kind.ts'
import { controllerOf } from '#meta/object.ts'
import { collectErrors, type FieldError, fieldPath } from '#meta/validation/field-path.ts'
import { nonNegative } from '#meta/validation/rules.ts'

export const controllerRevision: Resource<ControllerRevision> = defineResource<ControllerRevision>({
  kind: ControllerRevisions,
  metadataRules: { update: ['change', 'whole'] },
  validate: ({ revision, data }) => [...nonNegative(fieldPath('revision'), revision), ...validateData(data)],
  validateUpdate: ({ revision, data }, old) =>
    collectErrors(
      nonNegative(fieldPath('revision'), revision),
      !equalValues(data, old.data) && fieldPath('data').invalid(data, 'field is immutable'),
    ),
  columns: [
    nameColumn,
    { name: 'Controller', value: controllerText },
    { name: 'Revision', value: ({ revision }) => revision },
    ageColumn,
  ],
})

function validateData(data: unknown): FieldError[] {
  if (data === null || data === undefined) return [fieldPath('data').required('data is mandatory')]
  if (typeof data === 'object' && !Array.isArray(data)) return []
  return [fieldPath('data').required('data must be a valid JSON object')]
}

function controllerText(object: ControllerRevision): string {
  const owner = controllerOf(object)
  if (owner === undefined) return '<none>'
  const { group } = kindOf(owner)
  const kind = group === '' ? owner.kind : `${owner.kind}.${group}`
  return kind === '' ? owner.name : `${kind.toLowerCase()}/${owner.name}`
}
