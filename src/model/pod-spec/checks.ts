/** Small checks that many fields of a pod share. Enumerations are given in the order in which upstream lists them. */
import { asJson, type FieldError, invalid, notSupported, required } from '#meta/validation/field-error.ts'
import { dns1123Label, dns1123Subdomain, qualifiedName } from '#meta/validation/names.ts'
import { complaining } from '#meta/validation/rules.ts'

/** Refuses an empty or absent text. */
export function requiredText(field: string, value: string | undefined, detail = ''): FieldError[] {
  return (value ?? '') === '' ? [required(field, detail)] : []
}

/** Refuses what is none of `supported`; absent is fine. */
export function oneOf(field: string, value: string | undefined, supported: readonly string[]): FieldError[] {
  if (value === undefined || supported.includes(value)) return []
  return [notSupported(field, asJson(value), supported)]
}

/** Like `oneOf`, for a field that must be there. */
export function requiredOneOf(field: string, value: string | undefined, supported: readonly string[]): FieldError[] {
  return (value ?? '') === '' ? [required(field)] : oneOf(field, value, supported)
}

export function validateDnsLabel(field: string, value: string): FieldError[] {
  return complaining(field, value, dns1123Label(value), 'format=k8s-short-name')
}

export function validateDnsSubdomain(field: string, value: string): FieldError[] {
  return complaining(field, value, dns1123Subdomain(value), 'format=k8s-long-name')
}

export function validateQualifiedName(field: string, value: string): FieldError[] {
  return complaining(field, value, qualifiedName(value), 'format=qualified-name')
}

/** The name of another object, where a wrong one is refused and an empty one is not there. */
export function validateObjectName(field: string, value: string | undefined): FieldError[] {
  return (value ?? '') === '' ? [] : complaining(field, value, dns1123Subdomain(value ?? ''))
}

export function validatePositive(field: string, value: number): FieldError[] {
  return value > 0 ? [] : [invalid(field, value, 'must be greater than zero', 'minimum')]
}

/** Permission bits of a file. */
export function validateFileMode(field: string, mode: number | undefined): FieldError[] {
  if (mode === undefined || (mode >= 0 && mode <= 0o777)) return []
  return [invalid(field, mode, 'must be a number between 0 and 0777 (octal), both inclusive')]
}

/** A path that does not leave where it starts. */
export function validateNoBacksteps(field: string, path: string): FieldError[] {
  return path.split('/').includes('..') ? [invalid(field, path, "must not contain '..'")] : []
}

/** A relative path that stays below where it starts. */
export function validateDescendingPath(field: string, path: string): FieldError[] {
  const relative = path.startsWith('/') ? [invalid(field, path, 'must be a relative path')] : []
  return [...relative, ...validateNoBacksteps(field, path)]
}

/** The same, without names that the kubelet keeps for itself (`..data`). */
export function validateUnreservedPath(field: string, path: string): FieldError[] {
  const errors = validateDescendingPath(field, path)
  const reserved = path.startsWith('..') && !path.startsWith('../')
  return reserved ? [...errors, invalid(field, path, "must not start with '..'")] : errors
}
