/** Validation rules that many kinds share. Each rule returns the errors of one field. */
import { byteLength } from '#lib/go/text.ts'

import { semanticEqual } from '../object.ts'
import { asJson, collectErrors, type FieldError, type FieldPath } from './field-path.ts'
import { dns1123Label, dns1123Subdomain, labelValue, qualifiedName, regexText } from './names.ts'

/** The total size of annotation keys and values, in bytes. */
const ANNOTATIONS_LIMIT_BYTES = 256 * 1024

/** Rejects a change. Absent, an empty map and an empty list are equal. */
export function immutable(path: FieldPath, next: unknown, old: unknown): FieldError[] {
  return semanticEqual(next, old) ? [] : [path.invalid(next, 'field is immutable')]
}

/** Rejects a negative number; absent is valid. */
export function nonNegative(path: FieldPath, value: number | undefined): FieldError[] {
  if (value === undefined || value >= 0) return []
  return [path.invalid(value, 'must be greater than or equal to 0', 'minimum')]
}

/** Rejects an empty or absent text. */
export function requiredText(path: FieldPath, value: string | undefined, detail = ''): FieldError[] {
  return (value ?? '') === '' ? [path.required(detail)] : []
}

/** Rejects values outside of `supported`; absent is valid. */
export function oneOf(path: FieldPath, value: string | undefined, supported: readonly string[]): FieldError[] {
  if (value === undefined || supported.includes(value)) return []
  return [path.notSupported(asJson(value), supported)]
}

/** Like `oneOf`, for a required field. */
export function requiredOneOf(path: FieldPath, value: string | undefined, supported: readonly string[]): FieldError[] {
  return (value ?? '') === '' ? [path.required()] : oneOf(path, value, supported)
}

/** For fields whose values upstream lists sorted; the field may be absent. */
export function oneOfSet(path: FieldPath, value: string | undefined, supported: readonly string[]): FieldError[] {
  return value === undefined || supported.includes(value) ? [] : [path.notInSet(asJson(value), supported)]
}

/** A required value from a list that upstream prints sorted. */
export function requiredOneOfSet(
  path: FieldPath,
  value: string | undefined,
  supported: readonly string[],
): FieldError[] {
  return value === undefined ? [path.required()] : oneOfSet(path, value, supported)
}

export function validateDnsLabel(path: FieldPath, value: string): FieldError[] {
  return path.check(value, dns1123Label, 'format=k8s-short-name')
}

export function validateDnsSubdomain(path: FieldPath, value: string): FieldError[] {
  return path.check(value, dns1123Subdomain, 'format=k8s-long-name')
}

export function validateQualifiedName(path: FieldPath, value: string): FieldError[] {
  return path.check(value, qualifiedName, 'format=qualified-name')
}

/** The name of another object; an empty one counts as absent. */
export function validateObjectName(path: FieldPath, value: string | undefined): FieldError[] {
  return (value ?? '') === '' ? [] : path.check(value, () => dns1123Subdomain(value ?? ''))
}

export function validatePositive(path: FieldPath, value: number): FieldError[] {
  return value > 0 ? [] : [path.invalid(value, 'must be greater than zero', 'minimum')]
}

export function validateLabelName(path: FieldPath, name: string): FieldError[] {
  return path.check(name, qualifiedName, 'format=k8s-label-key')
}

export function validateLabels(path: FieldPath, labels: Readonly<Record<string, string>> | undefined): FieldError[] {
  const errors: FieldError[] = []
  for (const [name, value] of Object.entries(labels ?? {})) {
    for (const complaint of qualifiedName(name)) errors.push(path.invalid(name, complaint, 'format=k8s-label-key'))
    for (const complaint of labelValue(value)) errors.push(path.invalid(value, complaint, 'format=k8s-label-value'))
  }
  return errors
}

/** Keys are validated in lower case; values are limited only in size. */
export function validateAnnotations(
  path: FieldPath,
  annotations: Readonly<Record<string, string>> | undefined,
): FieldError[] {
  const entries = Object.entries(annotations ?? {})
  const errors: FieldError[] = []
  for (const [name] of entries) {
    const complaints = qualifiedName(name.toLowerCase())
    for (const complaint of complaints) errors.push(path.invalid(name, complaint, 'format=k8s-label-key'))
  }
  const sizeBytes = entries.reduce((sum, [name, value]) => sum + byteLength(name) + byteLength(value), 0)
  if (sizeBytes > ANNOTATIONS_LIMIT_BYTES) errors.push(path.tooLong(ANNOTATIONS_LIMIT_BYTES))
  return errors
}

/** A domain of three or more segments: the name of a signer or driver. */
export function validateFullyQualifiedName(path: FieldPath, name: string): FieldError[] {
  if (name === '') return [path.required()]
  const complaints = dns1123Subdomain(name)
  if (complaints.length > 0) return [path.invalid(name, complaints.join(','))]
  if (name.split('.').length >= 3) return []
  return [path.invalid(name, 'should be a domain with at least three segments separated by dots')]
}

/** A domain of two or more segments, each a label; a trailing dot is accepted. */
export function validateFullyQualifiedDomainName(path: FieldPath, text: string): FieldError[] {
  if (text === '') return [path.required()]
  const name = text.endsWith('.') ? text.slice(0, -1) : text
  const complaints = dns1123Subdomain(name)
  if (complaints.length > 0) return [path.invalid(name, complaints.join(','))]
  const labels = name.split('.')
  if (labels.length < 2) {
    return [path.invalid(name, 'should be a domain with at least two segments separated by dots')]
  }
  const bad = labels.find((label) => dns1123Label(label).length > 0)
  return bad === undefined ? [] : [path.invalid(bad, dns1123Label(bad).join(','))]
}

const httpPath = "[A-Za-z0-9/\\-._~%!$&'()*+,;=:]+"
const httpPathRegex = new RegExp(`^${httpPath}$`)

/** `acme.io/some/path`: the name of a controller or signer. */
export function validateDomainPrefixedPath(field: FieldPath, text: string): FieldError[] {
  if (text === '') return [field.required()]
  const slash = text.indexOf('/')
  if (slash <= 0 || slash === text.length - 1) {
    return [field.invalid(text, 'must be a domain-prefixed path (such as "acme.io/foo")')]
  }
  const host = text.slice(0, slash)
  const path = text.slice(slash + 1)
  return collectErrors(
    field.check(host, dns1123Subdomain),
    !httpPathRegex.test(path) && field.invalid(path, regexText('Invalid path', httpPath)),
  )
}

/** `acme.io/key`: a label key with a required prefix. */
export function validateDomainPrefixedKey(path: FieldPath, text: string): FieldError[] {
  if (text === '') return [path.required()]
  const errors = path.check(text, qualifiedName)
  if (errors.length > 0 || text.includes('/')) return errors
  return [path.invalid(text, 'must be a domain-prefixed key (such as "acme.io/foo")')]
}
