/** Reads the events of a watch, whether the server sends objects or Tables. */
import { RequestError, send } from '../api/request.ts'
import type { FollowTools } from './resume.ts'
import { readLines, versionOf, type WatchEvent } from './table.ts'

/** Watches end after this time, so that a connection that died silently is noticed. */
const WATCH_SECONDS = 300

export interface Watching {
  readonly accept: string
  readonly tools: Pick<FollowTools, 'fetch'>
  readonly signal: AbortSignal
}

/** Calls back with every event but bookmarks. Returns the last version when the server ends the watch. */
export async function watchEvents(
  path: string,
  from: string,
  { accept, tools, signal }: Watching,
  onEvent: (event: WatchEvent) => void,
): Promise<string> {
  const query = {
    watch: '1',
    allowWatchBookmarks: 'true',
    timeoutSeconds: String(WATCH_SECONDS),
    resourceVersion: from,
  }
  const response = await send(withQuery(path, query), { accept, signal }, tools.fetch)
  let version = from
  if (response.body === null) return version
  try {
    for await (const line of readLines(response.body)) {
      const event = JSON.parse(line) as WatchEvent
      if (event.type === 'ERROR') throw new RequestError({ code: event.object.code ?? 0, ...event.object })
      version = versionOf(event) || version
      if (event.type !== 'BOOKMARK') onEvent(event)
    }
  } catch (error) {
    if (error instanceof RequestError || signal.aborted) throw error
    brokenOff(error)
  }
  return version
}

export function withQuery(path: string, query: Readonly<Record<string, string>>): string {
  return `${path}${path.includes('?') ? '&' : '?'}${new URLSearchParams(query).toString()}`
}

export function brokenOff(cause: unknown): never {
  throw new RequestError({ code: 0, message: 'The response of the server broke off' }, { cause })
}
