/** The form of a summary: sections of fields and tables. Pure functions make them; one component draws them. */
import type { Ref } from '../objects/ref.ts'
import type { Tone } from '../parts/tone.ts'

export interface Value {
  readonly text: string
  readonly tone?: Tone | undefined
  readonly to?: Ref
  /** A moment: drawn as the age. */
  readonly since?: string
  readonly title?: string
}

export type Cell = string | number | boolean | Value | undefined | readonly (string | Value)[]

export interface FieldsSection {
  readonly type: 'fields'
  readonly title: string
  readonly tone?: Tone | undefined
  readonly fields: readonly (readonly [label: string, value: Cell])[]
}

export interface TableSection {
  readonly type: 'table'
  readonly title: string
  readonly columns: readonly string[]
  readonly rows: readonly (readonly Cell[])[]
}

export type Section = FieldsSection | TableSection

/** Fields without those that have no value. */
export function fields(title: string, entries: readonly (readonly [string, Cell])[], tone?: Tone): FieldsSection {
  return { type: 'fields', title, tone, fields: entries.filter(([, value]) => !isEmpty(value)) }
}

export function table(
  title: string,
  columns: readonly string[],
  rows: readonly (readonly Cell[])[],
): readonly TableSection[] {
  return rows.length === 0 ? [] : [{ type: 'table', title, columns, rows }]
}

function isEmpty(value: Cell): boolean {
  return value === undefined || value === '' || (Array.isArray(value) && value.length === 0)
}

export function since(time: string | undefined): Value | undefined {
  return time === undefined ? undefined : { text: time, since: time }
}

export function link(apiVersion: string, kind: string, name: string, namespace?: string): Value {
  return { text: name, to: { apiVersion, kind, namespace, name } }
}

/** `key=value` lines of a map. */
export function pairs(map: Readonly<Record<string, unknown>> | undefined): readonly string[] {
  return Object.entries(map ?? {}).map(([key, value]) => `${key}=${String(value)}`)
}
