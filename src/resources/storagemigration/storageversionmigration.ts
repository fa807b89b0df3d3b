/** The StorageVersionMigration resource: rewrites all stored objects of a resource in the current storage version. */
import {
  type StorageVersionMigration,
  StorageVersionMigrations,
  type StorageVersionMigrationSpec,
  type StorageVersionMigrationStatus,
} from '#apis/storagemigration/v1beta1.ts'
import { defineResource, type Resource } from '#apiserver/registry/resource.ts'
import { isConditionTrue, validateConditions } from '#meta/conditions.ts'
import { collectErrors, type FieldError, fieldPath } from '#meta/validation/field-path.ts'
import { dns1035Label, dns1123Subdomain } from '#meta/validation/names.ts'
import { immutable } from '#meta/validation/rules.ts'

const SUCCEEDED = 'Succeeded'
const FAILED = 'Failed'
const outcomes = ['Running', SUCCEEDED, FAILED]

export const storageVersionMigration: Resource<StorageVersionMigration> = defineResource<StorageVersionMigration>({
  kind: StorageVersionMigrations,
  metadataRules: { update: ['whole', 'change'] },
  validate: ({ spec }) => validateSpec(spec),
  validateUpdate: (next, old) => [...validateSpec(next.spec), ...immutable(fieldPath('spec'), next.spec, old.spec)],
  status: { validateUpdate: (next, old) => validateStatus(next.status, old.status) },
  columns: [
    // Unlike other names, this one has no format.
    { name: 'Name', value: ({ metadata }) => metadata.name ?? '' },
    { name: 'Resource', value: ({ spec }) => resourceText(spec) },
    { name: 'Status', value: ({ status }) => outcomeOf(status) },
  ],
  putNeedsVersion: true,
})

function resourceText({ resource: { group, resource } }: StorageVersionMigrationSpec): string {
  return group === '' ? resource : `${resource}.${group}`
}

function outcomeOf(status: StorageVersionMigrationStatus | undefined): string {
  const reached = status?.conditions?.filter(({ type, status: is }) => is === 'True' && outcomes.includes(type))
  return reached?.at(-1)?.type ?? 'Unknown'
}

function validateSpec({ resource: { group, resource } }: StorageVersionMigrationSpec): FieldError[] {
  const field = fieldPath('spec.resource.resource')
  const [badName, badGroup] = [dns1035Label(resource), dns1123Subdomain(group)]
  return collectErrors(
    resource === '' && field.required('resource is required to be set'),
    resource !== '' && badName.length > 0 && field.invalid(resource, badName.join(',')),
    group !== '' && badGroup.length > 0 && fieldPath('spec.resource.group').invalid(group, badGroup.join(',')),
  )
}

/** Terminal conditions are permanent, and the migrated version is immutable. */
function validateStatus(
  next: StorageVersionMigrationStatus = {},
  old: StorageVersionMigrationStatus = {},
): FieldError[] {
  const { resourceVersion: now = '', conditions } = next
  const { resourceVersion: before = '' } = old
  const [field, at] = [fieldPath('status.resourceVersion'), fieldPath('status.conditions')]
  const isBoth = isConditionTrue(conditions, SUCCEEDED) && isConditionTrue(conditions, FAILED)
  const undone = (type: string): boolean => isConditionTrue(old.conditions, type) && !isConditionTrue(conditions, type)
  const refuse = (is: boolean, detail: string): FieldError[] =>
    is ? [at.invalid(conditions === undefined || conditions.length === 0 ? null : conditions, detail)] : []
  return collectErrors(
    now !== '' && !/^[1-9]\d*$/.test(now) && field.invalid(now, `resource version is not well formed: ${now}`),
    validateConditions(at, conditions as Parameters<typeof validateConditions>[1]),
    before !== '' && before !== now && field.invalid(now, 'field is immutable'),
    refuse(isBoth, 'Both success and failed conditions cannot be true at the same time'),
    refuse(undone(SUCCEEDED), 'Success condition cannot be set to false once it is true'),
    refuse(undone(FAILED), 'Failed condition cannot be set to false once it is true'),
  )
}
