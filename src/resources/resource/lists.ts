/** Lists and maps with a limit: too many elements end the judgement, then each is looked at, then whether any repeats. */
import { compareText } from '#lib/go-text.ts'
import { createRepetition } from '#lib/repetition.ts'
import { duplicate, type FieldError, index, key, tooMany } from '#meta/validation/field-error.ts'

type Check<T> = (path: string, item: T) => FieldError[]

export function validateList<T>(field: string, items: readonly T[] = [], limit: number, check: Check<T>): FieldError[] {
  if (items.length > limit) return [tooMany(field, items.length, limit)]
  return items.flatMap((item, at) => check(index(field, at), item))
}

/** `identity` is what must not repeat, and what is shown when it does. */
export function validateSet<T>(
  field: string,
  items: readonly T[] = [],
  limit: number,
  rules: { readonly check: Check<T>; readonly identity: (item: T) => string },
): FieldError[] {
  const errors = validateList(field, items, limit, rules.check)
  if (items.length > limit) return errors
  const isRepeated = createRepetition()
  const repeated = items.flatMap((item, at) => {
    const identity = rules.identity(item)
    return isRepeated(identity) ? [duplicate(index(field, at), identity)] : []
  })
  return [...errors, ...repeated]
}

/** In the order of the keys; Go's is random. Upstream complains about a key at the map. */
export function validateEntries<T>(
  field: string,
  entries: Readonly<Record<string, T>> = {},
  checkKey: Check<string>,
  check: Check<T> = () => [],
): FieldError[] {
  return Object.entries(entries)
    .sort(([a], [b]) => compareText(a, b))
    .flatMap(([name, item]) => [...checkKey(field, name), ...check(key(field, shortened(name)), item)])
}

/** The longest a name of an attribute can be: a domain, a slash, an identifier. */
const MAX_SHOWN = 63 + 1 + 32

function shortened(text: string): string {
  if (text.length <= MAX_SHOWN) return text
  const rest = MAX_SHOWN - 3
  return `${text.slice(0, Math.trunc((rest + 1) / 2))}...${text.slice(-Math.trunc(rest / 2))}`
}
