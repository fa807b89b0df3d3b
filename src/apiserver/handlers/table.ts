/** Tables: what kubectl prints. Cells come from the kind's columns; the ones that tell an age are computed each time. */
import type { JsonObject } from '#lib/json-value.ts'
import { encodeJson } from '#meta/codec/encode-json.ts'
import { contentTypeOf } from '#meta/codec/negotiate.ts'
import { partialObject } from '#meta/codec/partial.ts'
import type { KubeObject, ListMeta } from '#meta/object.ts'
import { invalidOptionsError, tableOptionsQuery, validateTableOptions } from '#meta/options.ts'
import { decodeQuery } from '#meta/query.ts'
import type { Table, TableColumn, TableRow } from '#meta/table.ts'

import type { Answer, Call } from '../call.ts'
import { ageColumn, nameColumn } from '../registry/columns.ts'
import type { Entry } from '../registry/entry.ts'
import { latin1 } from '../registry/latin1.ts'
import type { Column, Resource } from '../registry/resource.ts'
import type { Form } from '../representation.ts'
import type { View } from './view.ts'

export interface TableParts {
  readonly entries: readonly Entry[]
  readonly metadata: ListMeta
  readonly form: Form
}

export function tableOf(call: Call, view: View, { entries, metadata, form }: TableParts): Answer {
  const include = includedObject(call)
  const nowMs = view.services.clock.now()
  const version = form.negotiated.as?.version ?? 'v1'
  const columns = columnsOf(view.resource)
  if (form.negotiated.mediaType === 'application/json' && !form.pretty) {
    const rows = entries.map((entry) => rowText(view, entry, include, nowMs))
    const start = latin1(encodeJson(tableObject(columns, [], metadata, version)))
    // What ends an empty table goes behind the rows.
    const body = `${start.slice(0, -NO_ROWS_END.length)}${rows.join(',')}${NO_ROWS_END}\n`
    return { status: 200, contentType: contentTypeOf(form.negotiated), body }
  }
  const rows = entries.map((entry) => rowOf(view, entry, include, nowMs))
  return view.representation.value(tableObject(columns, rows, metadata, version), form, 200)
}

const NO_ROWS_END = ']}'

/** A row in JSON, as a latin1 string. Its object, which is most of it, is text that was made before. */
function rowText(view: View, entry: Entry, include: IncludedObject, nowMs: number): string {
  const { representation } = view
  const cells = latin1(encodeJson(rowOf(view, entry, 'None', nowMs)))
  if (include === 'None') return cells
  const object =
    include === 'Object'
      ? `${representation.prefix}${representation.bodyOf(entry)}`
      : representation.partialText(entry, 'v1')
  return `${cells.slice(0, -1)},"object":${object}}`
}

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
  if (errors.length > 0) throw invalidOptionsError('TableOptions', errors)
  return (options.includeObject ?? '') === '' ? 'Metadata' : (options.includeObject as IncludedObject)
}

const COMMON_COLUMNS: readonly Column<KubeObject>[] = [nameColumn, ageColumn]

export function columnsOf({ columns = COMMON_COLUMNS }: Resource): TableColumn[] {
  return columns.map(({ name, type = 'string', format = '', wide = false }) => ({
    name,
    type,
    format,
    description: '',
    priority: wide ? 1 : 0,
  }))
}

export function rowOf(view: View, entry: Entry, include: IncludedObject, nowMs: number): TableRow {
  const { resource, representation } = view
  const cells = (resource.columns ?? COMMON_COLUMNS).map((column) => column.value(entry.object, nowMs))
  const conditions = resource.rowConditions?.(entry.object)
  const row: TableRow = { cells, ...(conditions === undefined || conditions.length === 0 ? {} : { conditions }) }
  if (include === 'None') return row
  const object = representation.objectOf(entry)
  return {
    ...row,
    object: include === 'Object' ? object : (partialObject(object as unknown as JsonObject) as unknown as KubeObject),
  }
}
