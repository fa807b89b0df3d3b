/**
 * Rules that upstream declares beside its types instead of writing them out, and so words alike for all kinds: limits,
 * unions, fields that never change. What an update leaves as it is has been judged before and is not judged again.
 */
import { createRepetition } from '#lib/repetition.ts'

import { semanticEqual } from '../object.ts'
import { duplicate, type FieldError, index, invalid, required, tooMany } from './field-error.ts'
import { dns1123Label, dns1123Subdomain } from './names.ts'
import { complaining } from './rules.ts'

/** That a field was changed which cannot change; who calls has seen that it was. The value is never shown. */
export function fixedField(field: string): FieldError[] {
  return [invalid(field, null, 'field is immutable', 'immutable')]
}

export function atLeast(field: string, value: number | undefined, least: number): FieldError[] {
  if (value === undefined || value >= least) return []
  return [invalid(field, value, `must be greater than or equal to ${least}`, 'minimum')]
}

export function atMost(field: string, value: number | undefined, most: number): FieldError[] {
  if (value === undefined || value <= most) return []
  return [invalid(field, value, `must be less than or equal to ${most}`, 'maximum')]
}

/** A name of an object or of a part of one. Declared rules count bytes where written ones say characters. */
export function shortName(field: string, value: string): FieldError[] {
  return complaining(field, value, inBytes(dns1123Label(value)), 'format=k8s-short-name')
}

export function longName(field: string, value: string): FieldError[] {
  return complaining(field, value, inBytes(dns1123Subdomain(value)), 'format=k8s-long-name')
}

/** The complaints with lengths in bytes. */
export function inBytes(complaints: readonly string[]): string[] {
  return complaints.map((complaint) => complaint.replace(/^(must be no more than \d+) characters$/, '$1 bytes'))
}

/** Refuses an empty text, and judges any other by `check`. */
export function requiredName(
  field: string,
  value: string | undefined,
  check: (field: string, value: string) => FieldError[],
): FieldError[] {
  return value === undefined || value === '' ? [required(field)] : check(field, value)
}

/** Exactly one of the members is there. An update that keeps the choice is not asked again. */
export function oneMember<T extends object>(
  field: string,
  names: readonly (keyof T & string)[],
  next: T,
  old?: T,
): FieldError[] {
  const chosen = (from: T): string[] => names.filter((name) => (from[name] ?? null) !== null)
  const now = chosen(next)
  if (now.length === 1 || (old !== undefined && semanticEqual(now, chosen(old)))) return []
  const all = names.map((name) => `\`${name}\``).join(', ')
  return now.length === 0
    ? [invalid(field, '', `must specify one of: ${all}`, 'union')]
    : [invalid(field, `{${now.join(', ')}}`, `must specify exactly one of: ${all}`, 'union')]
}

/** Refuses items that have the name of an earlier one, showing them whole. */
export function uniqueItems<T>(field: string, items: readonly T[], identity: (item: T) => string): FieldError[] {
  const isRepeated = createRepetition()
  return items.flatMap((item, at) => (isRepeated(identity(item)) ? [duplicate(index(field, at), item)] : []))
}

/** Too many is all there is to say about a list that is too long. */
export function itemLimit(field: string, items: readonly unknown[], limit: number): FieldError[] {
  return items.length > limit ? [{ ...tooMany(field, items.length, limit), origin: 'maxItems' }] : []
}
