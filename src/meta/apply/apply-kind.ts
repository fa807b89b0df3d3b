/** The types of field ownership: a kind with all its versions, and the managers of an object's fields. */
import type { TypeRef } from './atom.ts'
import type { FieldFilter } from './field-filter.ts'
import type { FieldSet } from './field-set.ts'

/** The fields of one manager, in the version that it wrote. */
export interface Owned {
  readonly set: FieldSet
  readonly apiVersion: string
  readonly applied: boolean
}

/** By manager id: see managed-fields.ts. */
export type Managers = ReadonlyMap<string, Owned>

/** An object in one version, as the API returns it. */
export interface VersionedValue {
  readonly apiVersion: string
  readonly value: unknown
}

/** The required properties of the kind: types, conversion and settable fields. */
export interface ApplyKind {
  /** Undefined if the version no longer exists: its managers are dropped. */
  typeOf(apiVersion: string): TypeRef | undefined
  convert(object: VersionedValue, apiVersion: string): VersionedValue
  /** Fields that this request cannot set, and so cannot own. Undefined: it can set all. */
  filter?(apiVersion: string): FieldFilter | undefined
}

export interface Conflict {
  readonly manager: string
  readonly fields: FieldSet
}
