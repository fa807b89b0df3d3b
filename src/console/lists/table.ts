/** Decodes the Tables that an API server makes of its objects. */
import type { Cell, Column, Row } from './messages.ts'

/** Servers of hyperkube leave the managed fields out, which are most of the bytes; others ignore the parameter. */
export const TABLE_ACCEPT = 'application/json;as=Table;v=v1;g=meta.k8s.io;omit=managedFields,application/json'

export interface Table {
  readonly kind?: string
  readonly metadata?: {
    readonly resourceVersion?: string
    readonly continue?: string
    readonly remainingItemCount?: number
  }
  readonly columnDefinitions?: readonly Partial<Column>[]
  readonly rows?: readonly TableRow[]
  /** Of servers that make no Tables of this kind. */
  readonly items?: readonly PartialObject[]
}

interface TableRow {
  readonly cells?: readonly Cell[]
  readonly object?: PartialObject
}

interface PartialObject {
  readonly metadata?: {
    readonly uid?: string
    readonly name?: string
    readonly namespace?: string
    readonly resourceVersion?: string
    readonly creationTimestamp?: string
    readonly labels?: Readonly<Record<string, string>>
  }
}

export function columnsOf({ columnDefinitions, items }: Table): readonly Column[] | undefined {
  const definitions = columnDefinitions ?? (items === undefined ? undefined : PLAIN)
  return definitions?.map(({ name = '', type = 'string', format = '', description = '', priority = 0 }) => ({
    name,
    type,
    format,
    description,
    priority,
  }))
}

const PLAIN: readonly Partial<Column>[] = [{ name: 'Name' }, { name: 'Age' }]

const NO_LABELS: Readonly<Record<string, string>> = {}

export function rowsOf({ rows, items = [] }: Table): Row[] {
  if (rows !== undefined) return rows.map(({ cells = [], object = {} }) => rowOf(object, cells))
  return items.map((object) => rowOf(object, [object.metadata?.name ?? '', '']))
}

function rowOf({ metadata = {} }: PartialObject, cells: readonly Cell[]): Row {
  const { uid = '', name = '', namespace = '', resourceVersion: version = '', creationTimestamp } = metadata
  return {
    uid: uid === '' ? `${namespace}/${name}` : uid,
    namespace,
    name,
    version,
    createdAt: creationTimestamp === undefined ? 0 : Date.parse(creationTimestamp),
    labels: metadata.labels ?? NO_LABELS,
    cells: cells.some(isLong) ? cells.map((cell) => (isLong(cell) ? `${cell.slice(0, MAX_CELL)} …` : cell)) : cells,
  }
}

/** A column of a custom kind can show a field of a megabyte, of which a list shows the beginning. */
const MAX_CELL = 2000

function isLong(cell: Cell): cell is string {
  return typeof cell === 'string' && cell.length > MAX_CELL
}

export interface WatchEvent {
  readonly type: 'ADDED' | 'MODIFIED' | 'DELETED' | 'BOOKMARK' | 'ERROR'
  readonly object: Table &
    PartialObject & { readonly code?: number; readonly message?: string; readonly reason?: string }
}

/** The resource version of an event, from which a watch goes on. */
export function versionOf({ object }: WatchEvent): string {
  return object.rows?.at(-1)?.object?.metadata?.resourceVersion ?? object.metadata?.resourceVersion ?? ''
}
