/** Compares JSON values, regardless of key order. */
import { shouldYield, type Steps } from '#lib/time-slicing.ts'

import { asMap } from './atom.ts'

export function equalValues(a: unknown, b: unknown): boolean {
  if (a === b) return true
  if (typeof a !== 'object' || typeof b !== 'object' || a === null || b === null) return looselyEqualNumbers(a, b)
  if (Array.isArray(a) || Array.isArray(b)) return Array.isArray(a) && Array.isArray(b) && equalLists(a, b)
  return equalMaps(a as Record<string, unknown>, b as Record<string, unknown>)
}

function equalMaps(a: Readonly<Record<string, unknown>>, b: Readonly<Record<string, unknown>>): boolean {
  const names = Object.keys(a)
  if (names.length !== Object.keys(b).length) return false
  for (const name of names) {
    // Only own members: every object inherits `__proto__`, which looks like an empty member.
    if (!Object.hasOwn(b, name) || !equalValues(a[name], b[name])) return false
  }
  return true
}

function equalLists(a: readonly unknown[], b: readonly unknown[]): boolean {
  if (a.length !== b.length) return false
  for (let at = 0; at < a.length; at++) if (!equalValues(a[at], b[at])) return false
  return true
}

/** The same, yielding to the event loop. */
export function* equalInSteps(a: unknown, b: unknown): Steps<boolean> {
  const [map, other] = [asMap(a), asMap(b)]
  if (map === undefined || other === undefined) return equalValues(a, b)
  const names = Object.keys(map)
  if (names.length !== Object.keys(other).length) return false
  for (const name of names) {
    if (shouldYield()) yield
    const value = map[name]
    const isEqual =
      typeof value === 'object' ? yield* equalInSteps(value, other[name]) : equalValues(value, other[name])
    if (!isEqual || !Object.hasOwn(other, name)) return false
  }
  return true
}

/** int64 values are bigints only if a number cannot represent them, so one value may have both forms. */
function looselyEqualNumbers(a: unknown, b: unknown): boolean {
  const numeric = (value: unknown): boolean => typeof value === 'number' || typeof value === 'bigint'
  // oxlint-disable-next-line eqeqeq
  return numeric(a) && numeric(b) && (a as number) == (b as number)
}
