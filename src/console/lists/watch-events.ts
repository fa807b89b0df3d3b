/** Reads the events of a watch, whether the server sends objects or Tables. */
import { RequestError } from '../api/request.ts'
import type { FollowTools } from './resume.ts'
import { versionOf, type WatchEvent } from './table.ts'

/** Watches end after this time, so that a connection that died silently is noticed. */
const WATCH_SECONDS = 300

export interface Watching {
  /** Tables instead of objects. */
  readonly isTable: boolean
  readonly tools: Pick<FollowTools, 'messages'>
  readonly signal: AbortSignal
}

/** Calls back with every event but bookmarks. Returns the last version when the server ends the watch. */
export async function watchEvents(
  path: string,
  from: string,
  { isTable, tools, signal }: Watching,
  onEvent: (event: WatchEvent) => void,
): Promise<string> {
  const query = {
    ...(isTable && { 'hk-as': 'Table' }),
    watch: '1',
    allowWatchBookmarks: 'true',
    timeoutSeconds: String(WATCH_SECONDS),
    resourceVersion: from,
  }
  let version = from
  for await (const message of tools.messages(withQuery(path, query), signal)) {
    const event = JSON.parse(message) as WatchEvent
    if (event.type === 'ERROR') throw new RequestError({ code: event.object.code ?? 0, ...event.object })
    version = versionOf(event) || version
    if (event.type !== 'BOOKMARK') onEvent(event)
  }
  return version
}

export function withQuery(path: string, query: Readonly<Record<string, string>>): string {
  return `${path}${path.includes('?') ? '&' : '?'}${new URLSearchParams(query).toString()}`
}

export function brokenOff(cause: unknown): never {
  throw new RequestError({ code: 0, message: 'The response of the server broke off' }, { cause })
}
