/**
 * The format of the generated tables, which `scripts/gen-apis` writes and `schemas.ts` reads. Arrays and one-letter
 * types keep the tables small enough to ship and fast to parse.
 */
/** One group version: its structs by Go name, its kinds, and the kinds whose struct is in another table. */
export interface SchemaTable {
  readonly kinds: readonly string[]
  /** Kind → name of the table that has its struct. */
  readonly elsewhere?: Readonly<Record<string, string>>
  readonly structs: Readonly<Record<string, StructRow>>
}

/** Flags of the struct, then its fields in Go's declaration order. */
export type StructRow = readonly [flags: number, ...fields: FieldRow[]]

/** `type` is in the language of `type-text.ts`; `number` is the protobuf field number, 0 where there is none. */
export type FieldRow = readonly [name: string, type: string, flags: number, number: number, extras?: FieldExtras]

export interface FieldExtras {
  /** Keys of a list of type map. */
  readonly keys?: readonly string[]
  readonly patchMergeKey?: string
  /** Strategic merge directives other than plain `merge`, which is a flag. */
  readonly patchStrategy?: string
  /** A default other than the zero value, which is a flag. */
  readonly default?: unknown
  readonly gate?: string
}

export const STRUCT_FLAG = {
  /** Opens with `kind` and `apiVersion`. */
  typeMeta: 1,
  /** Server-side apply owns it as a whole. */
  atomic: 2,
  /** Has no protobuf form. */
  jsonOnly: 4,
} as const

export const FIELD_FLAG = {
  pointer: 1,
  omitEmpty: 2,
  required: 4,
  /** OpenAPI gives the zero value of the type as default. */
  zeroDefault: 8,
  /** JSON has the members of this struct in place of the field; its name is empty. */
  inline: 16,
  listAtomic: 32,
  listSet: 64,
  listMap: 128,
  patchMerge: 256,
  /** Server-side apply owns the map or struct in this field as a whole. */
  mapAtomic: 512,
  /** It owns its members one by one, though the struct is owned as a whole elsewhere. */
  mapGranular: 1024,
  /** To rules an empty list is not the same as none. */
  emptyCounts: 2048,
} as const
