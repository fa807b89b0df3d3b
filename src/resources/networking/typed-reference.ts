/** A reference to an object of any kind by group, kind and name. */
import { child, type FieldError, required } from '#meta/validation/field-error.ts'
import { dns1123Subdomain, pathSegmentName } from '#meta/validation/names.ts'
import { complaining } from '#meta/validation/rules.ts'

export interface TypedReference {
  /** Absent or null for the core group. */
  readonly apiGroup?: string | null
  readonly kind: string
  readonly name: string
}

export function validateTypedReference(path: string, { apiGroup, kind, name }: TypedReference): FieldError[] {
  return [
    ...(apiGroup === undefined || apiGroup === null
      ? []
      : complaining(child(path, 'apiGroup'), apiGroup, dns1123Subdomain(apiGroup))),
    ...validateSegment(child(path, 'kind'), kind),
    ...validateSegment(child(path, 'name'), name),
  ]
}

/** Must be there and fit between two slashes of a path. */
export function validateSegment(field: string, value = ''): FieldError[] {
  return value === '' ? [required(field)] : complaining(field, value, pathSegmentName(value))
}
