/** Validates a reference to an object by group, kind and name. */
import { collectErrors, type FieldError, type FieldPath } from '#meta/validation/field-path.ts'
import { dns1123Subdomain, pathSegmentName } from '#meta/validation/names.ts'

export interface TypedReference {
  /** Absent or null for the core group. */
  readonly apiGroup?: string | null
  readonly kind: string
  readonly name: string
}

export function validateTypedReference(path: FieldPath, { apiGroup, kind, name }: TypedReference): FieldError[] {
  return collectErrors(
    apiGroup !== undefined && apiGroup !== null && path.child('apiGroup').check(apiGroup, dns1123Subdomain),
    validateSegment(path.child('kind'), kind),
    validateSegment(path.child('name'), name),
  )
}

/** Required, and valid as a path segment. */
export function validateSegment(path: FieldPath, value = ''): FieldError[] {
  return value === '' ? [path.required()] : path.check(value, pathSegmentName)
}
