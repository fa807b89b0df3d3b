/** StorageVersionMigration: that all stored objects of a resource shall be written anew, in today's storage version. */
import {
  type StorageVersionMigration,
  StorageVersionMigrations,
  type StorageVersionMigrationSpec,
  type StorageVersionMigrationStatus,
} from '#apis/storagemigration/v1beta1.ts'
import { defineResource, type Resource } from '#apiserver/registry/resource.ts'
import { isConditionTrue, validateConditions } from '#meta/conditions.ts'
import { type FieldError, invalid, required } from '#meta/validation/field-error.ts'
import { dns1035Label, dns1123Subdomain } from '#meta/validation/names.ts'
import { immutable } from '#meta/validation/rules.ts'

const SUCCEEDED = 'Succeeded'
const FAILED = 'Failed'
const outcomes = ['Running', SUCCEEDED, FAILED]

export const storageVersionMigration: Resource<StorageVersionMigration> = defineResource<StorageVersionMigration>({
  kind: StorageVersionMigrations,
  metadataRules: { update: ['whole', 'change'] },
  validate: ({ spec }) => validateSpec(spec),
  validateUpdate: (next, old) => [...validateSpec(next.spec), ...immutable('spec', next.spec, old.spec)],
  status: { validateUpdate: (next, old) => validateStatus(next.status, old.status) },
  columns: [
    // Unlike everywhere else the name has no format.
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
  const field = 'spec.resource.resource'
  const [badName, badGroup] = [dns1035Label(resource), dns1123Subdomain(group)]
  return [
    ...(resource === '' ? [required(field, 'resource is required to be set')] : []),
    ...(resource !== '' && badName.length > 0 ? [invalid(field, resource, badName.join(','))] : []),
    ...(group !== '' && badGroup.length > 0 ? [invalid('spec.resource.group', group, badGroup.join(','))] : []),
  ]
}

/** What was reached stays so, and the version migrated to does not move any more. */
function validateStatus(
  next: StorageVersionMigrationStatus = {},
  old: StorageVersionMigrationStatus = {},
): FieldError[] {
  const { resourceVersion: now = '', conditions } = next
  const { resourceVersion: before = '' } = old
  const [field, at] = ['status.resourceVersion', 'status.conditions']
  const isBoth = isConditionTrue(conditions, SUCCEEDED) && isConditionTrue(conditions, FAILED)
  const undone = (type: string): boolean => isConditionTrue(old.conditions, type) && !isConditionTrue(conditions, type)
  const refuse = (is: boolean, detail: string): FieldError[] =>
    is ? [invalid(at, conditions === undefined || conditions.length === 0 ? null : conditions, detail)] : []
  return [
    ...(now === '' || /^[1-9]\d*$/.test(now)
      ? []
      : [invalid(field, now, `resource version is not well formed: ${now}`)]),
    ...validateConditions(at, conditions as Parameters<typeof validateConditions>[1]),
    ...(before !== '' && before !== now ? [invalid(field, now, 'field is immutable')] : []),
    ...refuse(isBoth, 'Both success and failed conditions cannot be true at the same time'),
    ...refuse(undone(SUCCEEDED), 'Success condition cannot be set to false once it is true'),
    ...refuse(undone(FAILED), 'Failed condition cannot be set to false once it is true'),
  ]
}
