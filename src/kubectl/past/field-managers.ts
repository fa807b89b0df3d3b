/** Finds in managedFields who changed fields of an object, and when. Pure. */
import { epochMsOf } from '#meta/time.ts'

import type { AnyObject } from '../session/rest.ts'
import type { FieldPath } from './user-fields.ts'

/** A change of one manager. */
export interface ManagedChange {
  readonly manager: string
  /** Exact to a second. Undefined: not known, as for changes of the scale. */
  readonly timeMs: number | undefined
  /** The fields that the manager owns, in the form of `fieldsV1`. */
  readonly fields: OwnedFields
}

export interface OwnedFields {
  readonly [name: string]: OwnedFields
}

/** The last change of each manager but those of the status, the latest first; those without a time come last. */
export function changesOf({ metadata: { managedFields = [] } }: AnyObject): ManagedChange[] {
  return managedFields
    .filter(({ subresource }) => subresource !== 'status')
    .map(({ manager = '', time, fieldsV1 }) => ({
      manager,
      timeMs: time === undefined ? undefined : epochMsOf(time),
      fields: (fieldsV1 ?? {}) as OwnedFields,
    }))
    .filter(({ fields }) => Object.keys(fields).some((name) => name !== 'f:status'))
    .toSorted((one, other) => (other.timeMs ?? 0) - (one.timeMs ?? 0))
}

/** True unless the change is certainly older. */
export function isSince({ timeMs }: ManagedChange, sinceMs: number): boolean {
  return timeMs === undefined || timeMs >= sinceMs
}

/** True if the manager owns more than metadata and status. */
export function ownsSpec({ fields }: ManagedChange): boolean {
  return Object.keys(fields).some((name) => name !== 'f:metadata' && name !== 'f:status')
}

/** True if the manager owns the field or a part of it. */
export function owns({ fields }: ManagedChange, path: FieldPath): boolean {
  let at: OwnedFields | undefined = fields
  for (const name of path) {
    at = at[`f:${name}`]
    if (at === undefined) return false
    // An owned value without parts, such as an atomic map.
    if (Object.keys(at).length === 0) return true
  }
  return true
}
