/**
 * Validates lists and maps with a size limit: first the size, which ends validation if exceeded, then each element,
 * then duplicates.
 */
import { compareText } from '#lib/go/text.ts'
import { createRepetition } from '#lib/repetition.ts'
import type { FieldError, FieldPath } from '#meta/validation/field-path.ts'

type Check<T> = (path: FieldPath, item: T) => FieldError[]

export function validateList<T>(
  path: FieldPath,
  items: readonly T[] = [],
  limit: number,
  check: Check<T>,
): FieldError[] {
  if (items.length > limit) return [path.tooMany(items.length, limit)]
  return path.each(items, check)
}

/** `identity` must be unique, and is printed for duplicates. */
export function validateSet<T>(
  path: FieldPath,
  items: readonly T[] = [],
  limit: number,
  rules: { readonly check: Check<T>; readonly identity: (item: T) => string },
): FieldError[] {
  const errors = validateList(path, items, limit, rules.check)
  if (items.length > limit) return errors
  const isRepeated = createRepetition()
  const repeated = path.each(items, (path, item) => {
    const identity = rules.identity(item)
    return isRepeated(identity) ? [path.duplicate(identity)] : []
  })
  return [...errors, ...repeated]
}

/** Sorted by key; Go's order is random. Upstream reports key errors at the map. */
export function validateEntries<T>(
  path: FieldPath,
  entries: Readonly<Record<string, T>> = {},
  checkKey: Check<string>,
  check: (path: FieldPath, item: T, name: string) => FieldError[] = () => [],
): FieldError[] {
  return Object.entries(entries)
    .sort(([a], [b]) => compareText(a, b))
    .flatMap(([name, item]) => {
      const shown = shortened(name)
      return [...checkKey(path, name), ...check(path.key(shown), item, shown)]
    })
}

/** The maximum length of an attribute name: a domain, a slash, an identifier. */
const MAX_SHOWN = 63 + 1 + 32

function shortened(text: string): string {
  if (text.length <= MAX_SHOWN) return text
  const rest = MAX_SHOWN - 3
  return `${text.slice(0, Math.trunc((rest + 1) / 2))}...${text.slice(-Math.trunc(rest / 2))}`
}
