/**
 * Prints tables: rows from the server, with added columns for namespace, labels and events. A printer remembers columns
 * and widths, so that rows of a watch align with earlier ones.
 */
import { isJsonObject, type JsonObject, type JsonValue } from '#lib/json/value.ts'
import { ageText } from '#meta/duration.ts'
import type { Table, TableCell, TableColumn, TableRow } from '#meta/table.ts'

import { goShow } from '../templates/go-value.ts'
import { isList, itemsOf, metadataOf, type Printable, type Printer, textOf, WatchEvent } from './printer.ts'
import { withTabs } from './tabs.ts'
import { escapeTerminal } from './terminal-text.ts'

export interface TableOptions {
  readonly noHeaders?: boolean
  readonly wide?: boolean
  readonly withNamespace?: boolean
  /** `deployment.apps`: the prefix of every name. */
  readonly kind?: string
  readonly showLabels?: boolean
  /** Labels that get a column. */
  readonly labelColumns?: readonly string[]
  /** The current time, for ages of objects without a server table. */
  readonly nowMs: () => number
}

interface Column {
  readonly name: string
  readonly priority: number
  readonly isName: boolean
}

interface Row {
  readonly cells: readonly (TableCell | undefined)[]
  readonly object: JsonObject | null
}

interface Sheet {
  readonly columns: readonly Column[]
  readonly rows: readonly Row[]
}

export function isTable(object: JsonObject): boolean {
  return object.kind === 'Table' && /^meta\.k8s\.io\/v1(?:beta1)?$/.test(textOf(object.apiVersion))
}

export function tablePrinter(options: TableOptions): Printer {
  const state: State = { columns: '', lastColumns: [], printedHeaders: false, lastKind: '' }
  return {
    print: (printable, out) => withTabs(out, (tabs) => tabs.write(tableText(state, printable, options))),
  }
}

interface State {
  /** The last columns as JSON, to detect changes. */
  columns: string
  lastColumns: readonly Column[]
  printedHeaders: boolean
  /** The columns of objects without a server table. */
  lastKind: string
}

function tableText(state: State, printable: Printable, options: TableOptions): string {
  const isEvent = printable instanceof WatchEvent
  const object = isEvent ? printable.object : printable
  const eventType = isEvent ? printable.type : ''
  if (!isTable(object)) return plainText(state, object, eventType, options)
  const table = object as unknown as Table
  const given = table.columnDefinitions ?? []
  const written = JSON.stringify(given)
  const isKnown = given.length === 0 || written === state.columns
  const noHeaders = options.noHeaders === true || (state.printedHeaders && isKnown)
  if (!isKnown) {
    state.columns = written
    state.lastColumns = given.map(columnOf)
    state.printedHeaders = false
  }
  const rows = table.rows ?? []
  if (rows.length > 0) state.printedHeaders = true
  const sheet = decorated({ columns: state.lastColumns, rows: rows.map(rowOf) }, options)
  return sheetText(eventType === '' ? sheet : withEvent(sheet, eventType), { ...options, noHeaders })
}

function columnOf({ name, priority, type, format }: TableColumn): Column {
  return { name, priority: priority ?? 0, isName: format === 'name' && type === 'string' }
}

function rowOf({ cells, object }: TableRow): Row {
  return { cells, object: (object ?? null) as JsonObject | null }
}

function added(name: string): Column {
  return { name, priority: 0, isName: false }
}

/** Namespace first, labels last, the kind in front of the name. */
function decorated({ columns, rows }: Sheet, options: TableOptions): Sheet {
  const { labelColumns = [], kind = '' } = options
  const withNamespace = options.withNamespace === true
  const showLabels = options.showLabels === true
  const nameAt = kind === '' ? -1 : columns.findIndex(({ isName }) => isName)
  const decorateRow = ({ cells, object }: Row): Row => {
    const metadata = object === null ? undefined : metadataOf(object)
    const own = cells.map((cell, at) => (at === nameAt ? `${kind.toLowerCase()}/${goShow(cell)}` : cell))
    const namespace = withNamespace ? [metadata === undefined ? null : textOf(metadata.namespace)] : []
    return { cells: [...namespace, ...own, ...labelCells(metadata, options)], object }
  }
  return {
    columns: [
      ...(withNamespace ? [added('Namespace')] : []),
      ...columns,
      ...labelColumns.map((label) => added(labelHeader(label))),
      ...(showLabels ? [added('Labels')] : []),
    ],
    rows: rows.map(decorateRow),
  }
}

function labelHeader(label: string): string {
  return label.slice(label.lastIndexOf('/') + 1).toUpperCase()
}

function labelCells(metadata: JsonObject | undefined, options: TableOptions): string[] {
  const { labelColumns = [], showLabels = false } = options
  if (metadata === undefined) return []
  const labels = isJsonObject(metadata.labels) ? metadata.labels : {}
  const own = labelColumns.map((label) => (Object.hasOwn(labels, label) ? goShow(labels[label]) : ''))
  return showLabels ? [...own, labelsText(labels)] : own
}

/** `a=1,b=2`, or `<none>`. */
export function labelsText(labels: Readonly<Record<string, JsonValue>>): string {
  const pairs = Object.keys(labels)
    .sort()
    .map((key) => `${key}=${goShow(labels[key])}`)
  return pairs.length === 0 ? '<none>' : pairs.join(',')
}

const EVENT_WIDTH = 8
const EVENT_TYPES = new Set(['ADDED', 'MODIFIED', 'DELETED', 'ERROR'])

function eventText(type: string): string {
  return EVENT_TYPES.has(type) ? type.padEnd(EVENT_WIDTH) : type
}

function withEvent({ columns, rows }: Sheet, type: string): Sheet {
  return {
    columns: [added('Event'), ...columns],
    rows: rows.map(({ cells, object }) => ({ cells: [eventText(type), ...cells], object })),
  }
}

function sheetText({ columns, rows }: Sheet, options: TableOptions): string {
  const shown = columns.map(({ priority }) => options.wide === true || priority === 0)
  let out = ''
  if (options.noHeaders !== true) {
    if (rows.length === 0) return ''
    out = lineOf(columns.filter((_, at) => shown[at]).map(({ name }) => name.toUpperCase()))
  }
  for (const { cells } of rows) {
    out += lineOf(cells.filter((_, at) => shown[at]).map(cellText))
  }
  return out
}

function lineOf(cells: readonly string[]): string {
  return `${cells.join('\t')}\n`
}

/** The first line of a text. */
function cellText(cell: TableCell | undefined): string {
  if (cell === null || cell === undefined) return ''
  if (typeof cell !== 'string') return escapeTerminal(goShow(cell))
  const end = cell.search(/[\f\n\r]/)
  return end < 0 ? escapeTerminal(cell) : `${escapeTerminal(cell.slice(0, end))}...`
}

/** Objects without a server table, and Status objects. */
function plainText(state: State, object: JsonObject, eventType: string, options: TableOptions): string {
  const isStatus = object.kind === 'Status' && object.apiVersion === 'v1'
  const handler = isStatus ? 'status' : 'object'
  const isNew = state.lastKind !== handler && options.noHeaders !== true
  const separator = state.lastKind !== '' && isNew ? '\n' : ''
  state.lastKind = handler
  const rows = isStatus ? [statusRow(object)] : metaRows(object, options)
  const columns = isStatus ? ['STATUS', 'REASON', 'MESSAGE'] : ['NAME', 'AGE']
  const { labelColumns = [], showLabels = false, withNamespace = false } = options
  const headers = [
    ...(eventType === '' ? [] : ['EVENT']),
    ...(withNamespace ? ['NAMESPACE'] : []),
    ...columns,
    ...labelColumns.map(labelHeader),
    ...(showLabels ? ['LABELS'] : []),
  ]
  return separator + (isNew ? lineOf(headers) : '') + rows.map((row) => plainLine(row, eventType, options)).join('')
}

function plainLine({ cells, object }: Row, eventType: string, options: TableOptions): string {
  const { kind = '' } = options
  const metadata = metadataOf(object ?? {})
  const own = cells.map((cell, at) => (at === 0 && kind !== '' ? `${kind.toLowerCase()}/` : '') + goShow(cell))
  return lineOf([
    ...(eventType === '' ? [] : [eventText(eventType)]),
    ...(options.withNamespace === true ? [textOf(metadata.namespace)] : []),
    ...own,
    ...labelCells(metadata, options),
  ])
}

function statusRow(object: JsonObject): Row {
  return { object, cells: [textOf(object.status), textOf(object.reason), textOf(object.message)] }
}

function metaRows(object: JsonObject, options: TableOptions): Row[] {
  if (isList(object)) return itemsOf(object).flatMap((item) => metaRows(item, options))
  const { name, creationTimestamp } = metadataOf(object)
  const created = textOf(creationTimestamp)
  return [{ object, cells: [textOf(name), ageText(created === '' ? undefined : created, options.nowMs())] }]
}
