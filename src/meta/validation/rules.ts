/** Checks that many kinds share, each giving field errors for one field. */
import { byteLength } from '#lib/go-text.ts'

import { semanticEqual } from '../object.ts'
import { type FieldError, invalid, required, tooLong } from './field-error.ts'
import { dns1123Label, dns1123Subdomain, labelValue, qualifiedName, regexText } from './names.ts'

/** Keys and values of all annotations together, in bytes. */
const ANNOTATIONS_LIMIT_BYTES = 256 * 1024

/** Refuses a change. Nothing, an empty map and an empty list count as the same. */
export function immutable(field: string, next: unknown, old: unknown): FieldError[] {
  return semanticEqual(next, old) ? [] : [invalid(field, next, 'field is immutable')]
}

/** Refuses a number below zero; absent is fine. */
export function nonNegative(field: string, value: number | undefined): FieldError[] {
  if (value === undefined || value >= 0) return []
  return [invalid(field, value, 'must be greater than or equal to 0', 'minimum')]
}

/** One error for each complaint of a check about `value`. */
export function complaining(
  field: string,
  value: unknown,
  complaints: readonly string[],
  origin?: string,
): FieldError[] {
  return complaints.map((complaint) => invalid(field, value, complaint, origin))
}

export function validateLabelName(field: string, name: string): FieldError[] {
  return complaining(field, name, qualifiedName(name), 'format=k8s-label-key')
}

export function validateLabels(field: string, labels: Readonly<Record<string, string>> | undefined): FieldError[] {
  return Object.entries(labels ?? {}).flatMap(([name, value]) => [
    ...validateLabelName(field, name),
    ...complaining(field, value, labelValue(value), 'format=k8s-label-value'),
  ])
}

/** Keys are judged without regard to case; values may be anything, but not too much of it. */
export function validateAnnotations(
  field: string,
  annotations: Readonly<Record<string, string>> | undefined,
): FieldError[] {
  const entries = Object.entries(annotations ?? {})
  const errors = entries.flatMap(([name]) =>
    complaining(field, name, qualifiedName(name.toLowerCase()), 'format=k8s-label-key'),
  )
  const sizeBytes = entries.reduce((sum, [name, value]) => sum + byteLength(name) + byteLength(value), 0)
  if (sizeBytes > ANNOTATIONS_LIMIT_BYTES) errors.push(tooLong(field, ANNOTATIONS_LIMIT_BYTES))
  return errors
}

/** A domain of three segments or more: the name of a signer or a driver. */
export function validateFullyQualifiedName(field: string, name: string): FieldError[] {
  if (name === '') return [required(field)]
  const complaints = dns1123Subdomain(name)
  if (complaints.length > 0) return [invalid(field, name, complaints.join(','))]
  if (name.split('.').length >= 3) return []
  return [invalid(field, name, 'should be a domain with at least three segments separated by dots')]
}

/** A domain of two segments or more, each a label; a final dot is let pass. */
export function validateFullyQualifiedDomainName(field: string, text: string): FieldError[] {
  if (text === '') return [required(field)]
  const name = text.endsWith('.') ? text.slice(0, -1) : text
  const complaints = dns1123Subdomain(name)
  if (complaints.length > 0) return [invalid(field, name, complaints.join(','))]
  const labels = name.split('.')
  if (labels.length < 2) {
    return [invalid(field, name, 'should be a domain with at least two segments separated by dots')]
  }
  const bad = labels.find((label) => dns1123Label(label).length > 0)
  return bad === undefined ? [] : [invalid(field, bad, dns1123Label(bad).join(','))]
}

const httpPath = "[A-Za-z0-9/\\-._~%!$&'()*+,;=:]+"
const httpPathRegex = new RegExp(`^${httpPath}$`)

/** `acme.io/some/path`: the name of a controller or signer. */
export function validateDomainPrefixedPath(field: string, text: string): FieldError[] {
  if (text === '') return [required(field)]
  const slash = text.indexOf('/')
  if (slash <= 0 || slash === text.length - 1) {
    return [invalid(field, text, 'must be a domain-prefixed path (such as "acme.io/foo")')]
  }
  const host = text.slice(0, slash)
  const path = text.slice(slash + 1)
  const errors = complaining(field, host, dns1123Subdomain(host))
  if (!httpPathRegex.test(path)) errors.push(invalid(field, path, regexText('Invalid path', httpPath)))
  return errors
}

/** `acme.io/key`: a label key that must have its prefix. */
export function validateDomainPrefixedKey(field: string, text: string): FieldError[] {
  if (text === '') return [required(field)]
  const errors = complaining(field, text, qualifiedName(text))
  if (errors.length > 0 || text.includes('/')) return errors
  return [invalid(field, text, 'must be a domain-prefixed key (such as "acme.io/foo")')]
}
