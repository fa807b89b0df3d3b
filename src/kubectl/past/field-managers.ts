/** Finds in managedFields who changed fields of an object, and when. Pure. */
import { epochMsOf } from '#meta/time.ts'

import type { AnyObject } from '../session/rest.ts'
import type { FieldPath } from './user-fields.ts'

/** A change of one manager; `timeMs` is exact to a second. */
export interface ManagedChange {
  readonly manager: string
  readonly timeMs: number
  /** The fields that the manager owns, in the form of `fieldsV1`. */
  readonly fields: OwnedFields
}

export interface OwnedFields {
  readonly [name: string]: OwnedFields
}

/** The last change of each manager but those of the status, the latest first. */
export function changesOf({ metadata: { managedFields = [] } }: AnyObject): ManagedChange[] {
  return managedFields
    .filter(({ subresource }) => subresource !== 'status')
    .map(({ manager = '', time, fieldsV1 }) => ({
      manager,
      timeMs: time === undefined ? 0 : epochMsOf(time),
      fields: (fieldsV1 ?? {}) as OwnedFields,
    }))
    .filter(({ fields }) => Object.keys(fields).some((name) => name !== 'f:status'))
    .toSorted((one, other) => other.timeMs - one.timeMs)
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
