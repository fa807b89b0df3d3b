/** Reads a list of Tables in pages and follows its changes, for as long as its signal lasts. It reconnects by itself. */
import { type RequestError, send } from '../api/request.ts'
import type { Column, ListSource, Row } from './messages.ts'
import { type FollowTools, keepReading } from './resume.ts'
import { columnsOf, rowsOf, type Table, TABLE_ACCEPT, type WatchEvent } from './table.ts'
import { brokenOff, watchEvents, withQuery } from './watch-events.ts'

export interface Listener {
  /** The columns of the rows that follow. */
  columns(columns: readonly Column[]): void
  /** A page of the list. `isFirst`: rows of an earlier list are no longer valid once the last page has come. */
  page(
    rows: readonly Row[],
    page: { readonly isFirst: boolean; readonly isLast: boolean; readonly remaining: number },
  ): void
  changed(row: Row): void
  deleted(uid: string): void
  /** The rows are what the server has. */
  live(): void
  /** The connection is gone; the next attempt begins after `retryMs`. */
  lost(error: RequestError, retryMs: number): void
}

const FIRST_PAGE = 250
const NEXT_PAGES = 1000

/** Resolves when the signal is aborted. Rejects with RequestError when the server refuses the list for good. */
export function follow(source: ListSource, listener: Listener, tools: FollowTools, signal: AbortSignal): Promise<void> {
  const watching = { isTable: true, tools, signal }
  const reading = {
    list: () => list(source, listener, tools, signal),
    watch: (from: string) => watchEvents(source.path, from, watching, (event) => apply(event, listener)),
    live: () => listener.live(),
    lost: (error: RequestError, retryMs: number) => listener.lost(error, retryMs),
  }
  return keepReading(reading, tools, signal)
}

/** Returns the resource version from which a watch goes on. */
async function list(
  { path }: ListSource,
  listener: Listener,
  { fetch }: FollowTools,
  signal: AbortSignal,
): Promise<string> {
  const read = async (limit: number, next: string): Promise<Table> => {
    const target = withQuery(path, { limit: String(limit), ...(next !== '' && { continue: next }) })
    const response = await send(target, { accept: TABLE_ACCEPT, signal }, fetch)
    return (await response.json().catch(brokenOff)) as Table
  }
  let reading = read(FIRST_PAGE, '')
  for (let page = 0; ; page++) {
    const table = await reading
    const columns = columnsOf(table)
    if (columns !== undefined && page === 0) listener.columns(columns)
    const { continue: more = '', remainingItemCount: remaining = 0, resourceVersion = '' } = table.metadata ?? {}
    // The server makes the next page while this one is put in order.
    if (more !== '') reading = read(NEXT_PAGES, more)
    listener.page(rowsOf(table), { isFirst: page === 0, isLast: more === '', remaining })
    if (more === '') return resourceVersion
  }
}

function apply({ type, object }: WatchEvent, listener: Listener): void {
  for (const row of rowsOf(object.rows === undefined ? { items: [object] } : object)) {
    if (type === 'DELETED') listener.deleted(row.uid)
    else listener.changed(row)
  }
}
