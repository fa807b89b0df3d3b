/** metav1.Table: a list as rows of cells, which kubectl requests for printing. */
import { type KubeObject, type ListMeta, type TypeMeta } from './object.ts'

export interface Table extends TypeMeta {
  metadata: ListMeta
  /** Null in all watch events but the first. */
  columnDefinitions: TableColumn[] | null
  rows: TableRow[]
}

export interface TableColumn {
  name: string
  /** `integer` cells are JSON numbers, `boolean` cells JSON booleans, all others text. */
  type: 'string' | 'integer' | 'number' | 'boolean' | 'date'
  format: string
  description: string
  /** Columns above 0 are for wide output. */
  priority: number
}

export interface TableRow {
  /** One for each column, in order. */
  cells: TableCell[]
  conditions?: TableRowCondition[]
  /** The object, its metadata, or null, as requested. */
  object: KubeObject | null
}

export type TableCell = string | number | boolean | null

export interface TableRowCondition {
  /** `Completed`: the object has finished. */
  type: string
  status: string
  reason?: string
  message?: string
}
