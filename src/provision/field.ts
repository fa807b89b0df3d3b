/**
 * The table that describes a file: what each key holds, its default and its rule. One table drives the reader, the
 * defaults, the complaints, the schema for editors and `build config`, so none of them can forget a key.
 */
import type { JsonObject } from '#lib/json-value.ts'

import type { Amount } from './cluster.ts'

export type FieldKind = 'text' | 'whole' | 'number' | 'flag' | 'amount' | 'object' | 'list' | 'map' | 'document'

/** One key. `T` is what its value is after reading. */
export interface Field<T = unknown> {
  readonly kind: FieldKind
  /** For people: a phrase, in the schema and as a comment in a new file. */
  readonly about: string
  /** Taken when the key is missing, null or empty text. */
  readonly default?: T
  /** Its absence is a fault of the object it belongs to. */
  readonly required?: boolean
  /** Other spellings that files in the wild have. */
  readonly aliases?: readonly string[]
  readonly secret?: boolean
  /** From another time: read, but not offered in new files. */
  readonly past?: boolean
  /** 0 is what tools write for a number that was not given. */
  readonly zeroIsUnset?: boolean
  readonly min?: number
  readonly max?: number
  /** Of text: nothing else is taken. */
  readonly oneOf?: readonly string[]
  /** Of an object; an object that is not given is read as an empty one, so that its members get their defaults. */
  readonly members?: Readonly<Record<string, Field>>
  /** An object that stays away unless it is given. */
  readonly optional?: boolean
  /** Keys are compared without regard to case, as the libraries do that wrote such objects. */
  readonly anyCase?: boolean
  /** Of a list's items or a map's values. */
  readonly of?: Field
  /** What is wrong with the value and what to do; nothing when it is fine. Not asked about values of the wrong kind. */
  check?(value: T): string | undefined
  /** Read and remembered, and done nothing with: who gives it is told so, with what to do instead or why nothing is needed. */
  readonly pending?: true | string
  /** What the person should know of a value that is taken but does not do what it once did. */
  notice?(value: T): string | undefined
  /** The value that stands for this one. */
  normalize?(value: T): T
}

/** A row for every member, whether it may be absent or not. */
export type Members<T> = { readonly [K in keyof T]-?: Field<Exclude<T[K], undefined>> }

/** What a row says beside its kind. */
export type Details<T> = Omit<Partial<Field<T>>, 'kind' | 'about' | 'members' | 'of'>

export function text(about: string, details: Details<string> = {}): Field<string> {
  return { kind: 'text', about, ...details }
}

/** Text that is empty when it is not given. */
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

/** A mapping that is somebody else's: taken as it is. */
export function document(about: string, details: Details<JsonObject> = {}): Field<JsonObject> {
  return { kind: 'document', about, ...details }
}

/** Every key of the table and where it may stand, for the hint about a key that stands in the wrong place. */
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
