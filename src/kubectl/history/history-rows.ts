/** Turns the changes of an object into rows for people. */
import type { KubeObject } from '#meta/object.ts'

import { changeText, changingManagers, type FieldChange, fieldChanges } from './field-changes.ts'

/** A change as the server lists it. */
export interface ListedChange {
  readonly type: 'ADDED' | 'MODIFIED' | 'DELETED'
  readonly resourceVersion: string
  readonly time?: string
  /** After the change; before it, if the object was deleted. */
  readonly object: KubeObject
  /** Before the change, if no earlier item has it. */
  readonly oldObject?: KubeObject
  /** Absent: the server does not know the writer. */
  readonly by?: { readonly user: string; readonly because: readonly string[] }
}

export interface HistoryRow {
  readonly time: string
  readonly version: string
  /** The user; if the server does not know the user, the field managers. */
  readonly who: string
  readonly change: string
  /** The objects whose changes led to it; empty: not known, or a person. */
  readonly because: string
}

const MAX_FIELDS = 3
const UNKNOWN = '<unknown>'

/** `fields`: only changes of these fields and what is below them; empty: all. */
export function historyRows(changes: readonly ListedChange[], fields: readonly string[]): HistoryRow[] {
  let known: KubeObject | undefined
  return changes.flatMap((change) => {
    const before = change.oldObject ?? known
    known = change.type === 'DELETED' ? undefined : change.object
    const text = textOf(change, before, fields)
    if (text === undefined) return []
    const { time = UNKNOWN, resourceVersion: version, by } = change
    const who = by?.user ?? (managersOf(change, before).join(',') || UNKNOWN)
    return [{ time, version, who, change: text, because: by?.because.join(', ') ?? '' }]
  })
}

function managersOf({ type, object }: ListedChange, before: KubeObject | undefined): readonly string[] {
  return type === 'DELETED' ? [] : changingManagers(before, object)
}

/** Undefined: nothing that is to be shown. */
function textOf(
  { type, object }: ListedChange,
  before: KubeObject | undefined,
  fields: readonly string[],
): string | undefined {
  if (type === 'ADDED') return 'created'
  if (type === 'DELETED') return 'deleted'
  if (before === undefined) return 'changed'
  const changed = fieldChanges(before, object).filter(({ path }) => isAmong(path, fields))
  if (changed.length === 0) return fields.length > 0 ? undefined : 'no field'
  return summaryOf(changed)
}

function isAmong(path: string, fields: readonly string[]): boolean {
  return (
    fields.length === 0 ||
    fields.some((field) => path === field || (/^[.[]/.test(path.slice(field.length)) && path.startsWith(field)))
  )
}

/** Fields of the spec come first: status follows from it. */
function summaryOf(changed: readonly FieldChange[]): string {
  const isStatus = ({ path }: FieldChange): boolean => path.startsWith('status')
  const sorted = [...changed.filter((change) => !isStatus(change)), ...changed.filter(isStatus)]
  const shown = sorted.slice(0, MAX_FIELDS).map(changeText).join('; ')
  return sorted.length > MAX_FIELDS ? `${shown}; and ${sorted.length - MAX_FIELDS} more` : shown
}
