/**
 * Decodes options from a query string by a table of fields. As upstream, the first of repeated parameters counts and
 * unknown parameters are ignored.
 */
import { compareText, parseGoInt } from '#lib/go/text.ts'

import { badRequestError } from './status-errors.ts'
import { canonicalTime } from './time.ts'

/** The type of a field. `?` marks a pointer in Go, so that zero, false and empty differ from absent. */
export type QueryField = 'string' | 'string?' | 'strings' | 'bool' | 'bool?' | 'int' | 'int?' | 'time?'

type QueryValue = string | number | boolean | string[] | undefined

/** A field for each option, with the name of its parameter. */
export type QueryShape<T> = { readonly [K in keyof Required<T>]: QueryField }

/** Parses options; absent parameters stay absent. Throws a bad request. */
export function decodeQuery<T extends object>(shape: QueryShape<T>, query: URLSearchParams): T {
  const options: [string, unknown][] = []
  for (const [name, field] of Object.entries<QueryField>(shape)) {
    const values = query.getAll(name)
    const value = values.length === 0 ? undefined : decodeField(field, values)
    if (value !== undefined) options.push([name, value])
  }
  return Object.fromEntries(options) as T
}

/** Writes options sorted by name; omits absent ones, and zeros if they mean the same. */
export function encodeQuery<T extends object>(shape: QueryShape<T>, options: T): URLSearchParams {
  const query = new URLSearchParams()
  const fields = Object.entries<QueryField>(shape).sort(([a], [b]) => compareText(a, b))
  for (const [name, field] of fields) {
    const value = Object.hasOwn(options, name) ? (options as Record<string, QueryValue>)[name] : undefined
    if (value === undefined) continue
    const pointer = field.endsWith('?')
    if (Array.isArray(value)) for (const item of value) query.append(name, item)
    else if (pointer || (value !== '' && value !== 0 && value !== false)) query.append(name, String(value))
  }
  return query
}

const decoders: Readonly<Record<QueryField, (first: string, all: string[]) => unknown>> = {
  string: (first) => first || undefined,
  'string?': (first) => first,
  strings: (_first, all) => all,
  bool: (first) => isTrue(first) || undefined,
  'bool?': isTrue,
  int: (first) => parseGoInt(first) || undefined,
  'int?': (first) => parseGoInt(first),
  'time?': (first) => (first === '' || first === 'null' ? undefined : canonicalTime(first)),
}

function decodeField(field: QueryField, values: string[]): unknown {
  try {
    return decoders[field](values[0] as string, values)
  } catch (cause) {
    throw badRequestError((cause as Error).message)
  }
}

function isTrue(text: string): boolean {
  return text !== '0' && text.toLowerCase() !== 'false'
}
