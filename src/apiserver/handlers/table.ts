/** Builds Tables for kubectl. Cells come from the kind's columns; cells with an age are computed for each request. */
import type { Call, WholeAnswer } from '#component/requests/call.ts'
import type { Form } from '#component/requests/response-form.ts'
import type { JsonObject } from '#lib/json/value.ts'
import { latin1 } from '#lib/latin1.ts'
import { mapInSlices } from '#lib/time-slicing.ts'
import { encodeJson } from '#meta/codec/encode-json.ts'
import { contentTypeOf } from '#meta/codec/negotiate.ts'
import { type PartialForm, partialObject } from '#meta/codec/partial.ts'
import type { KubeObject, ListMeta } from '#meta/object.ts'
import { tableOptionsQuery, validateTableOptions } from '#meta/options.ts'
import { decodeQuery } from '#meta/query.ts'
import { badRequestError } from '#meta/status-errors.ts'
import type { Table, TableCell, TableColumn, TableRow } from '#meta/table.ts'
import { aggregateText } from '#meta/validation/field-error.ts'

import { ageColumn, nameColumn } from '../registry/columns.ts'
import type { Entry } from '../registry/entry.ts'
import type { Column, Resource } from '../registry/resource.ts'
import { answerOfTexts } from './list-body.ts'
import type { View } from './view.ts'

/** Tables are also made of objects that are not stored. */
export type TableView = Omit<View, 'store'>

export interface TableParts {
  readonly entries: readonly Entry[]
  readonly metadata: ListMeta
  readonly form: Form
}

export async function tableOf(
  call: Call,
  view: TableView,
  { entries: unordered, metadata, form }: TableParts,
): Promise<WholeAnswer> {
  const entries = inRowOrder(view.resource, unordered)
  const partial = form.negotiated.as ?? DEFAULT_PARTIAL
  const { version } = partial
  const terms = { include: includedObject(call), partial, nowMs: view.services.clock.now() }
  const columns = columnsOf(view.resource)
  if (form.negotiated.mediaType === 'application/json' && !form.pretty) {
    const last = entries.length - 1
    const rows = await mapInSlices(entries, (entry, at) => `${rowText(view, entry, terms)}${at < last ? ',' : ''}`)
    const start = latin1(encodeJson(tableObject(columns, [], metadata, version)))
    // The end of an empty table follows the rows.
    const texts = [start.slice(0, -NO_ROWS_END.length), ...rows, `${NO_ROWS_END}\n`]
    return answerOfTexts(call, contentTypeOf(form.negotiated), texts)
  }
  const rows = await mapInSlices(entries, (entry) => rowOf(view, entry, terms))
  return view.representation.value(tableObject(columns, rows, metadata, version), form, 200)
}

function inRowOrder({ rowOrder }: Resource, entries: readonly Entry[]): readonly Entry[] {
  return rowOrder === undefined ? entries : entries.toSorted((one, other) => rowOrder(one.object, other.object))
}

const NO_ROWS_END = ']}'
const DEFAULT_PARTIAL: PartialForm = { version: 'v1' }

/** A row in JSON, as a latin1 string. Its object, the largest part, is cached text. */
function rowText(view: TableView, entry: Entry, terms: RowTerms): string {
  const { representation } = view
  const row = latin1(encodeJson(rowOf(view, entry, { ...terms, include: 'None' })))
  if (terms.include === 'None') return row
  const object =
    terms.include === 'Object'
      ? `${representation.prefix}${representation.bodyOf(entry)}`
      : representation.partialText(entry, terms.partial)
  return `${row.slice(0, -NO_OBJECT.length)}${object}}`
}

/** The end of a row without an object. */
const NO_OBJECT = 'null}'

export function tableObject(
  columns: TableColumn[] | null,
  rows: TableRow[],
  metadata: ListMeta,
  version: string,
): KubeObject {
  const table: Table = {
    kind: 'Table',
    apiVersion: `meta.k8s.io/${version}`,
    metadata,
    columnDefinitions: columns,
    rows,
  }
  return table
}

export type IncludedObject = 'None' | 'Metadata' | 'Object'

/** Throws 400 for other values. */
export function includedObject(call: Call): IncludedObject {
  const options = decodeQuery(tableOptionsQuery, call.query)
  const errors = validateTableOptions(options)
  if (errors.length > 0) throw badRequestError(`Unable to convert to Table as requested: ${aggregateText(errors)}`)
  return (options.includeObject ?? '') === '' ? 'Metadata' : (options.includeObject as IncludedObject)
}

const COMMON_COLUMNS: readonly Column<KubeObject>[] = [nameColumn, ageColumn]

export function columnsOf({ columns = COMMON_COLUMNS }: Pick<Resource, 'columns'>): TableColumn[] {
  return columns.map(({ name, type = 'string', format = '', description = '', wide = false, priority }) => ({
    name,
    type,
    format,
    description,
    priority: priority ?? (wide ? 1 : 0),
  }))
}

export interface RowTerms {
  readonly include: IncludedObject
  /** Of the metadata in the rows. */
  readonly partial: PartialForm
  readonly nowMs: number
}

/** `object` is the row's object, complete or only metadata; the entry's own by default. */
export function rowOf(view: TableView, entry: Entry, terms: RowTerms, object?: KubeObject): TableRow {
  const { resource, representation } = view
  const { object: shown } = representation.look(entry)
  const cells = (resource.columns ?? COMMON_COLUMNS).map((column) => harmless(column.value(shown, terms.nowMs)))
  const conditions = resource.rowConditions?.(shown)
  return {
    cells,
    ...(conditions === undefined || conditions.length === 0 ? {} : { conditions }),
    object: rowObject(terms, () => object ?? representation.objectOf(entry)),
  }
}

/** Control characters and direction overrides, which a terminal would interpret. */
const OBEYED = /[\p{Cc}\u202A-\u202E\u2066-\u2069]/u
const ALL_OBEYED = new RegExp(OBEYED, 'gu')

/** Escapes cells: older clients print them unchanged, and they contain user input (CVE-2021-25743). */
function harmless(cell: TableCell): TableCell {
  if (typeof cell !== 'string' || !OBEYED.test(cell)) return cell
  return cell.replaceAll(ALL_OBEYED, (character) => {
    if (character === '\n' || character === '\t') return character
    return character === '\u001B' ? '^[' : `\\u${character.charCodeAt(0).toString(16).padStart(4, '0')}`
  })
}

/** The part of an object that a row contains. */
export function rowObject({ include, partial }: Omit<RowTerms, 'nowMs'>, object: () => KubeObject): KubeObject | null {
  if (include === 'None') return null
  if (include === 'Object') return object()
  return partialObject(object() as unknown as JsonObject, partial) as unknown as KubeObject
}
