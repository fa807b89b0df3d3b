/** Equality of JSON values: by content, order of keys aside. */
import { isDue, type Steps } from '#lib/slices.ts'

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
    // Not what it inherits: every object has a `__proto__`, which is as empty as one that a client sent.
    if (!Object.hasOwn(b, name) || !equalValues(a[name], b[name])) return false
  }
  return true
}

function equalLists(a: readonly unknown[], b: readonly unknown[]): boolean {
  if (a.length !== b.length) return false
  for (let at = 0; at < a.length; at++) if (!equalValues(a[at], b[at])) return false
  return true
}

/** The same, with turns for others. */
export function* equalInSteps(a: unknown, b: unknown): Steps<boolean> {
  const [map, other] = [asMap(a), asMap(b)]
  if (map === undefined || other === undefined) return equalValues(a, b)
  const names = Object.keys(map)
  if (names.length !== Object.keys(other).length) return false
  for (const name of names) {
    if (isDue()) yield
    const value = map[name]
    const isEqual =
      typeof value === 'object' ? yield* equalInSteps(value, other[name]) : equalValues(value, other[name])
    if (!isEqual || !Object.hasOwn(other, name)) return false
  }
  return true
}

/** int64 values are bigints only where a number cannot hold them, so one value may come in both forms. */
function looselyEqualNumbers(a: unknown, b: unknown): boolean {
  const numeric = (value: unknown): boolean => typeof value === 'number' || typeof value === 'bigint'
  // oxlint-disable-next-line eqeqeq
  return numeric(a) && numeric(b) && (a as number) == (b as number)
}
