/** The words of ownership: a kind of objects in its versions, and who manages which fields of one. */
import type { Typed } from './atom.ts'
import type { FieldFilter } from './field-filter.ts'
import type { FieldSet } from './field-set.ts'

/** The fields of one manager, in terms of the version it wrote. */
export interface Owned {
  readonly set: FieldSet
  readonly apiVersion: string
  readonly applied: boolean
}

/** By the manager's identity: see managed-fields.ts. */
export type Managers = ReadonlyMap<string, Owned>

/** An object in one version, as the API shows it. */
export interface Versioned {
  readonly apiVersion: string
  readonly value: unknown
}

/** What the rules need to know of the kind: its types, how versions convert, which fields a request may set. */
export interface ApplyKind {
  /** Undefined when the version is not known any more: managers that wrote it are forgotten. */
  typeOf(apiVersion: string): Typed | undefined
  convert(object: Versioned, apiVersion: string): Versioned
  /** Fields this request cannot set, so it cannot own them. Undefined: it can set all. */
  filter?(apiVersion: string): FieldFilter | undefined
}

export interface Conflict {
  readonly manager: string
  readonly fields: FieldSet
}
