/**
 * The types of the table that describes cluster.yml: type, default and rule of each key. The parser, the defaults, the
 * errors, the editor schema and `build config` all use the table.
 */
import type { JsonObject } from '#lib/json/value.ts'

import type { Amount } from '../cluster.ts'

export type FieldKind = 'text' | 'whole' | 'number' | 'flag' | 'amount' | 'object' | 'list' | 'map' | 'document'

/** One key. `T` is the type of its parsed value. */
export interface Field<T = unknown> {
  readonly kind: FieldKind
  /** A phrase for people, in the schema and as a comment in a new file. */
  readonly about: string
  /** Used if the key is missing, null or empty text. */
  readonly default?: T
  /** Its absence is a fault of the enclosing object. */
  readonly required?: boolean
  /** Alternative spellings in existing files. */
  readonly aliases?: readonly string[]
  readonly secret?: boolean
  /** Obsolete: accepted, but not written to new files. */
  readonly past?: boolean
  /** 0 means unset, because tools write it so. */
  readonly zeroIsUnset?: boolean
  readonly min?: number
  readonly max?: number
  /** The allowed texts. */
  readonly oneOf?: readonly string[]
  /** The members of an object; a missing object is read as an empty one, so that members get defaults. */
  readonly members?: Readonly<Record<string, Field>>
  /** An object without defaults. */
  readonly optional?: boolean
  /** Keys are case-insensitive, like in the libraries that wrote such objects. */
  readonly anyCase?: boolean
  /** The type of list items or map values. */
  readonly of?: Field
  /** Validates the value: returns a fault with advice, or undefined. Not called for values of the wrong type. */
  check?(value: T): string | undefined
  /** Accepted without effect: the notice explains why or what to do instead. */
  readonly pending?: true | string
  /** A notice for a value that no longer has its former effect. */
  notice?(value: T): string | undefined
  /** The replacement of the value. */
  normalize?(value: T): T
}

/** A row for every member, optional or not. */
export type Members<T> = { readonly [K in keyof T]-?: Field<Exclude<T[K], undefined>> }

/** The properties of a row besides its type. */
export type Details<T> = Omit<Partial<Field<T>>, 'kind' | 'about' | 'members' | 'of'>

export function text(about: string, details: Details<string> = {}): Field<string> {
  return { kind: 'text', about, ...details }
}

/** Text that defaults to empty. */
export function words(about: string, details: Details<string> = {}): Field<string> {
  return text(about, { default: '', ...details })
}

export function choice<T extends string>(about: string, oneOf: readonly T[], details: Details<T> = {}): Field<T> {
  return { kind: 'text', about, oneOf, ...details }
}

export function whole(about: string, details: Details<number> = {}): Field<number> {
  return { kind: 'whole', about, ...details }
}

export function decimal(about: string, details: Details<number> = {}): Field<number> {
  return { kind: 'number', about, ...details }
}

export function flag(about: string, byDefault: boolean, details: Details<boolean> = {}): Field<boolean> {
  return { kind: 'flag', about, default: byDefault, ...details }
}

export function amount(about: string, details: Details<Amount> = {}): Field<Amount> {
  return { kind: 'amount', about, ...details }
}

export function list<T>(
  about: string,
  of: Field<T>,
  details: Details<readonly NoInfer<T>[]> = {},
): Field<readonly T[]> {
  return { kind: 'list', about, of, default: [], ...details }
}

export function map<T>(
  about: string,
  of: Field<T>,
  details: Details<Readonly<Record<string, NoInfer<T>>>> = {},
): Field<Readonly<Record<string, T>>> {
  return { kind: 'map', about, of, default: {}, ...details }
}

export function object<T extends object>(about: string, members: Members<T>, details: Details<T> = {}): Field<T> {
  return { kind: 'object', about, members, ...details }
}

/** A mapping of another format: taken unchanged. */
export function document(about: string, details: Details<JsonObject> = {}): Field<JsonObject> {
  return { kind: 'document', about, ...details }
}

/** All keys of the table and their paths, for hints about misplaced keys. */
export function keysByName(members: Readonly<Record<string, Field>>, path = ''): Map<string, string[]> {
  const found = new Map<string, string[]>()
  for (const [name, field] of Object.entries(members)) {
    add(found, name, path)
    const inner = field.members ?? field.of?.members
    if (!inner) continue
    const below = `${path}${path === '' ? '' : '.'}${name}${field.kind === 'list' ? '[]' : ''}`
    for (const [key, places] of keysByName(inner, below)) for (const place of places) add(found, key, place)
  }
  return found
}

function add(found: Map<string, string[]>, name: string, place: string): void {
  const places = found.get(name)
  if (places) places.push(place)
  else found.set(name, [place])
}
