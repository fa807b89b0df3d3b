/** Reads a list in pages and follows its changes, for as long as its signal lasts. It reconnects by itself. */
import { type Fetch, RequestError, send } from '../api/request.ts'
import type { Column, ListSource, Row } from './messages.ts'
import { columnsOf, readLines, rowsOf, type Table, TABLE_ACCEPT, versionOf, type WatchEvent } from './table.ts'

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

export interface FollowTools {
  readonly fetch: Fetch
  /** Resolves after so many milliseconds, and rejects when the signal is aborted. */
  readonly sleep: (ms: number, signal: AbortSignal) => Promise<void>
  /** Between 0 and 1. */
  readonly random: () => number
}

const FIRST_PAGE = 250
const NEXT_PAGES = 2000
const MIN_RETRY_MS = 1000
const MAX_RETRY_MS = 30_000
/** Watches end after this time, so that a connection that died silently is noticed. */
const WATCH_SECONDS = 300

/** Resolves when the signal is aborted. Rejects with RequestError when the server refuses the list for good. */
export async function follow(
  source: ListSource,
  listener: Listener,
  tools: FollowTools,
  signal: AbortSignal,
): Promise<void> {
  let version = ''
  for (let failures = 0; !signal.aborted;) {
    try {
      if (version === '') version = await list(source, listener, tools, signal)
      failures = 0
      listener.live()
      const last = await watch(source, version, { listener, tools, signal })
      // A server or a proxy that ends every watch at once gets no request without a pause.
      if (last === version) await tools.sleep(MIN_RETRY_MS, signal).catch(() => undefined)
      version = last
    } catch (error) {
      if (signal.aborted) return
      if (!(error instanceof RequestError)) throw error
      if (error.code === 410) version = ''
      else if (isFinal(error)) throw error
      const retryMs = delayMs(error, failures++, tools.random())
      if (error.code !== 410 || failures > 1) {
        listener.lost(error, retryMs)
        await tools.sleep(retryMs, signal).catch(() => undefined)
      }
    }
  }
}

function delayMs({ status }: RequestError, failures: number, random: number): number {
  const limit = Math.min(MAX_RETRY_MS, MIN_RETRY_MS * 2 ** Math.min(failures, 10))
  const wanted = (status.details?.retryAfterSeconds ?? 0) * 1000
  return Math.max(wanted, MIN_RETRY_MS + random * (limit - MIN_RETRY_MS))
}

/** Other errors pass: the server starts again, the agent of the cluster comes back, a session is renewed. */
function isFinal({ code }: RequestError): boolean {
  return code === 400 || code === 403 || code === 404 || code === 405 || code === 406
}

function withQuery(path: string, query: Readonly<Record<string, string>>): string {
  return `${path}${path.includes('?') ? '&' : '?'}${new URLSearchParams(query).toString()}`
}

/** Returns the resource version from which a watch goes on. */
async function list(
  { path }: ListSource,
  listener: Listener,
  { fetch }: FollowTools,
  signal: AbortSignal,
): Promise<string> {
  let next = ''
  for (let page = 0; ; page++) {
    const limit = String(page === 0 ? FIRST_PAGE : NEXT_PAGES)
    const target = withQuery(path, { limit, ...(next !== '' && { continue: next }) })
    const response = await send(target, { accept: TABLE_ACCEPT, signal }, fetch)
    const table = (await response.json().catch(broken)) as Table
    const columns = columnsOf(table)
    if (columns !== undefined && page === 0) listener.columns(columns)
    const { continue: more = '', remainingItemCount: remaining = 0, resourceVersion = '' } = table.metadata ?? {}
    listener.page(rowsOf(table), { isFirst: page === 0, isLast: more === '', remaining })
    if (more === '') return resourceVersion
    next = more
  }
}

function broken(cause: unknown): never {
  throw new RequestError({ code: 0, message: 'The response of the server broke off' }, { cause })
}

interface Watching {
  readonly listener: Listener
  readonly tools: FollowTools
  readonly signal: AbortSignal
}

/** Returns the resource version of the last event when the server ends the watch. */
async function watch({ path }: ListSource, from: string, { listener, tools, signal }: Watching): Promise<string> {
  const query = {
    watch: '1',
    allowWatchBookmarks: 'true',
    timeoutSeconds: String(WATCH_SECONDS),
    resourceVersion: from,
  }
  const response = await send(withQuery(path, query), { accept: TABLE_ACCEPT, signal }, tools.fetch)
  let version = from
  if (response.body === null) return version
  try {
    for await (const line of readLines(response.body)) {
      const event = JSON.parse(line) as WatchEvent
      if (event.type === 'ERROR') throw new RequestError({ code: event.object.code ?? 0, ...event.object })
      version = versionOf(event) || version
      if (event.type !== 'BOOKMARK') apply(event, listener)
    }
  } catch (error) {
    if (error instanceof RequestError || signal.aborted) throw error
    broken(error)
  }
  return version
}

function apply({ type, object }: WatchEvent, listener: Listener): void {
  for (const row of rowsOf(object.rows === undefined ? { items: [object] } : object)) {
    if (type === 'DELETED') listener.deleted(row.uid)
    else listener.changed(row)
  }
}
