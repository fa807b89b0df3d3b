/** Reads whole objects and follows their changes, for as long as its signal lasts. It reconnects by itself. */
import type { KubeList, KubeObject } from '#meta/object.ts'

import { type RequestError, send } from '../api/request.ts'
import { type FollowTools, keepReading } from './resume.ts'
import { brokenOff, watchEvents, withQuery } from './watch-events.ts'

export interface ObjectListener {
  /** All objects that the server has. `isWhole` is false when there are more of them than a page holds. */
  replaced(objects: readonly KubeObject[], isWhole: boolean): void
  changed(object: KubeObject): void
  deleted(object: KubeObject): void
  live(): void
  lost(error: RequestError, retryMs: number): void
}

export interface ObjectSource {
  readonly path: string
  /** Of the objects that the server sends, those to keep. Default: all, up to one page. */
  readonly keep?: ((object: KubeObject) => boolean) | undefined
}

const PAGE = 500
/** A page that filters objects itself reads at most so many pages. */
const MAX_PAGES = 20
const ACCEPT = 'application/json'

/** Resolves when the signal is aborted. Rejects with RequestError when the server refuses the list for good. */
export function followObjects(
  source: ObjectSource,
  listener: ObjectListener,
  tools: FollowTools,
  signal: AbortSignal,
): Promise<void> {
  const { path, keep = () => true } = source
  const reading = {
    list: () => list(source, listener, tools, signal),
    watch: (from: string) =>
      watchEvents(path, from, { isTable: false, tools, signal }, ({ type, object }) => {
        const changed = object as KubeObject
        if (type === 'DELETED') listener.deleted(changed)
        else if (keep(changed)) listener.changed(changed)
      }),
    live: () => listener.live(),
    lost: (error: RequestError, retryMs: number) => listener.lost(error, retryMs),
  }
  return keepReading(reading, tools, signal)
}

/** Returns the resource version from which a watch goes on. */
async function list(
  { path, keep }: ObjectSource,
  listener: ObjectListener,
  { fetch }: FollowTools,
  signal: AbortSignal,
): Promise<string> {
  const kept: KubeObject[] = []
  let next = ''
  for (let page = 1; ; page++) {
    const target = withQuery(path, { limit: String(PAGE), ...(next !== '' && { continue: next }) })
    const response = await send(target, { accept: ACCEPT, signal }, fetch)
    const part = (await response.json().catch(brokenOff)) as KubeList<KubeObject>
    const items = itemsOf(part)
    kept.push(...(keep === undefined ? items : items.filter(keep)))
    next = part.metadata.continue ?? ''
    if (next !== '' && keep !== undefined && page < MAX_PAGES) continue
    listener.replaced(kept, next === '')
    return part.metadata.resourceVersion ?? ''
  }
}

/** Objects in a list do not name their kind: the list does. */
export function itemsOf({ kind = '', apiVersion = '', items }: KubeList<KubeObject>): readonly KubeObject[] {
  const named = kind.endsWith('List') ? kind.slice(0, -'List'.length) : kind
  return items.map((item) => ({ kind: named, apiVersion, ...item }))
}
