/**
 * Validation rules that upstream declares on API types, such as limits, unions and immutable fields. An update does not
 * validate unchanged fields again.
 */
import { createRepetition } from '#lib/repetition.ts'

import { semanticEqual } from '../object.ts'
import type { FieldError, FieldPath } from './field-path.ts'
import { dns1123Label, dns1123Subdomain } from './names.ts'

/** The error for a changed immutable field; the caller has detected the change. Never prints the value. */
export function fixedField(path: FieldPath): FieldError[] {
  return [path.invalid(null, 'field is immutable', 'immutable')]
}

export function atLeast(path: FieldPath, value: number | undefined, least: number): FieldError[] {
  if (value === undefined || value >= least) return []
  return [path.invalid(value, `must be greater than or equal to ${least}`, 'minimum')]
}

export function atMost(path: FieldPath, value: number | undefined, most: number): FieldError[] {
  if (value === undefined || value <= most) return []
  return [path.invalid(value, `must be less than or equal to ${most}`, 'maximum')]
}

/** The name of an object or a part of it. Declared rules count bytes, where handwritten ones report characters. */
export function shortName(path: FieldPath, value: string): FieldError[] {
  return path.check(value, () => inBytes(dns1123Label(value)), 'format=k8s-short-name')
}

export function longName(path: FieldPath, value: string): FieldError[] {
  return path.check(value, () => inBytes(dns1123Subdomain(value)), 'format=k8s-long-name')
}

/** Errors with lengths in bytes. */
export function inBytes(complaints: readonly string[]): string[] {
  return complaints.map((complaint) => complaint.replace(/^(must be no more than \d+) characters$/, '$1 bytes'))
}

/** Rejects an empty text, and validates others with `check`. */
export function requiredName(
  path: FieldPath,
  value: string | undefined,
  check: (path: FieldPath, value: string) => FieldError[],
): FieldError[] {
  return value === undefined || value === '' ? [path.required()] : check(path, value)
}

/** Requires exactly one member. An update with the same choice is not validated. */
export function oneMember<T extends object>(
  path: FieldPath,
  names: readonly (keyof T & string)[],
  next: T,
  old?: T,
): FieldError[] {
  const chosen = (from: T): string[] => names.filter((name) => (from[name] ?? null) !== null)
  const now = chosen(next)
  if (now.length === 1 || (old !== undefined && semanticEqual(now, chosen(old)))) return []
  const all = names.map((name) => `\`${name}\``).join(', ')
  return now.length === 0
    ? [path.invalid('', `must specify one of: ${all}`, 'union')]
    : [path.invalid(`{${now.join(', ')}}`, `must specify exactly one of: ${all}`, 'union')]
}

/** Rejects items with the name of an earlier one, and prints them whole. */
export function uniqueItems<T>(path: FieldPath, items: readonly T[], identity: (item: T) => string): FieldError[] {
  const isRepeated = createRepetition()
  return path.each(items, (path, item) => isRepeated(identity(item)) && path.duplicate(item))
}

/** A too long list yields only that error. */
export function itemLimit(path: FieldPath, items: readonly unknown[], limit: number): FieldError[] {
  return items.length > limit ? [{ ...path.tooMany(items.length, limit), origin: 'maxItems' }] : []
}
