/** The messages between the page and the worker that holds its lists. */

export interface Column {
  readonly name: string
  readonly type: string
  readonly format: string
  readonly description: string
  /** 0: shown by default. */
  readonly priority: number
}

export interface Row {
  readonly uid: string
  readonly namespace: string
  readonly name: string
  readonly version: string
  /** Milliseconds since 1970; 0 if unknown. */
  readonly createdAt: number
  readonly labels: Readonly<Record<string, string>>
  readonly cells: readonly Cell[]
}

export type Cell = string | number | boolean | null

/** The objects of a list. */
export interface ListSource {
  /** Path of the list, with selectors in its query. */
  readonly path: string
}

/** The part of a list that the page shows. */
export interface ListView {
  readonly filter: string
  /** A column, `@age`, `@name` or `@namespace`. Empty: the order of the server. */
  readonly sort: string
  readonly isDescending: boolean
  /** A column, or `@namespace`: the rows are counted by its values. Empty: they are not. */
  readonly group: string
  readonly from: number
  readonly count: number
}

export type ToWorker =
  | { readonly type: 'open'; readonly id: number; readonly source: ListSource; readonly view: ListView }
  | { readonly type: 'view'; readonly id: number; readonly view: ListView }
  /** Asks for the first rows that fit the filter. */
  | { readonly type: 'pick'; readonly id: number; readonly limit: number }
  | { readonly type: 'close'; readonly id: number }
  /** The page is hidden or visible again. Hidden pages end their watches. */
  | { readonly type: 'visible'; readonly isVisible: boolean }
  /** Lists that wait to reconnect do so now: the network is back, or the user has logged in again. */
  | { readonly type: 'reconnect' }

export type ListState =
  | { readonly type: 'loading' }
  | { readonly type: 'live' }
  /** Rows are what the server sent until `sinceMs`. */
  | { readonly type: 'stale'; readonly sinceMs: number; readonly message: string; readonly code: number }
  | { readonly type: 'failed'; readonly code: number; readonly reason: string; readonly message: string }

/** The answer to `pick`. */
export interface PickedRows {
  readonly id: number
  readonly picked: readonly Row[]
}

export interface RowGroup {
  readonly value: string
  readonly count: number
}

export interface FromWorker {
  readonly id: number
  readonly state: ListState
  readonly columns: readonly Column[]
  /** Objects in memory, and about how many the server has in all. */
  readonly loaded: number
  readonly expected: number
  /** Rows that fit the filter. */
  readonly shown: number
  /** Index of `rows[0]` among those shown. */
  readonly from: number
  readonly rows: readonly Row[]
  /** The most frequent values of the column of the view, among the rows that fit the filter. */
  readonly groups: readonly RowGroup[]
}
