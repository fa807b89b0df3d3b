/**
 * Lists and watches a collection, as client-go's Reflector, until the signal is aborted. It survives lost connections;
 * changes missed meanwhile arrive as another `replace`.
 */
import type { Kind } from '#apis/kinds.ts'
import { type BackoffPolicy, createBackoff } from '#lib/backoff.ts'
import { sleep } from '#lib/clock.ts'
import type { Random } from '#lib/random.ts'
import { apiVersionOf } from '#meta/kind.ts'
import type { KubeObject } from '#meta/object.ts'
import { isGone, isInvalid, isResourceExpired, StatusError } from '#meta/status.ts'
import { isInitialEventsEnd, type ObjectEvent, type WatchEvent } from '#meta/watch.ts'

import type { ApiClient, Selection } from './api-client.ts'

export interface Follower<T extends KubeObject> {
  /**
   * Called for each object of the initial list as it arrives; the returned object goes to `replace`. A failed list may
   * stop halfway.
   */
  arrived?(object: T): T
  /** The complete collection. */
  replace(objects: readonly T[], resourceVersion: string): void
  /** One change; never a bookmark. */
  change(event: ObjectEvent<T>): void
  /** An error; the reflector retries with backoff. */
  failed(error: unknown): void
}

export interface FollowOptions<T extends KubeObject> {
  readonly client: ApiClient
  readonly kind: Kind<T>
  readonly selection?: Selection
  readonly metadataOnly?: boolean | undefined
  /** Objects may be shared with other clients in this process; callers must not change them. */
  readonly isShared?: boolean | undefined
  readonly random: Random
  readonly signal: AbortSignal
  /** Backoff between failures. Default: as client-go. */
  readonly retry?: BackoffPolicy | undefined
}

const PAGE = 500
/** Watches end after one to two times this, so that clients spread over the API servers. */
const MIN_WATCH_SECONDS = 300
/** As client-go's reflector. */
const RETRY: BackoffPolicy = { baseMs: 800, factor: 2, capMs: 30_000, jitter: 1 }
/**
 * A failure after this long without one resets the backoff. Client-go resets after two minutes: if a server restarts
 * three times in a minute, its clients miss events for up to another minute, and nodes become NotReady.
 */
const CALM_MS = 5000

/**
 * A watch that ends sooner without events counts as failed, so that the reflector does not reconnect in a tight loop.
 */
const SHORT_MS = 1000

export async function follow<T extends KubeObject>(options: FollowOptions<T>, follower: Follower<T>): Promise<void> {
  const { client, random, signal, retry = RETRY } = options
  const { clock } = client
  const backoff = createBackoff(random, retry)
  const position: WatchPosition = { resourceVersion: undefined, streamsLists: true }
  let calmSinceMs = clock.elapsed()
  while (!signal.aborted) {
    const startedMs = clock.elapsed()
    try {
      const hasProgressed = await listAndWatch(options, follower, position)
      if (hasProgressed || clock.elapsed() - startedMs >= SHORT_MS) continue
    } catch (error) {
      if (signal.aborted) return
      if (isGone(error) || isResourceExpired(error)) position.resourceVersion = undefined
      else follower.failed(error)
    }
    if (clock.elapsed() - calmSinceMs > CALM_MS) backoff.reset()
    await sleep(clock, backoff.next(), signal).catch(() => undefined)
    calmSinceMs = clock.elapsed()
  }
}

interface WatchPosition {
  /** The last seen version; undefined: list everything. */
  resourceVersion: string | undefined
  /** Whether the server supports `sendInitialEvents`. */
  streamsLists: boolean
}

/** Lists if there is no resource version, then watches once. Returns whether it made progress. */
async function listAndWatch<T extends KubeObject>(
  options: FollowOptions<T>,
  follower: Follower<T>,
  position: WatchPosition,
): Promise<boolean> {
  const { client, kind, selection = {}, metadataOnly, isShared, random, signal } = options
  const isStreamed = position.resourceVersion === undefined && position.streamsLists
  const before = position.resourceVersion
  if (position.resourceVersion === undefined && !isStreamed) position.resourceVersion = await listAll(options, follower)
  const initial: T[] | undefined = isStreamed ? [] : undefined
  const watchOptions = {
    ...selection,
    allowWatchBookmarks: true,
    timeoutSeconds: Math.floor(MIN_WATCH_SECONDS * (1 + random.float())),
    ...(isStreamed
      ? { sendInitialEvents: true, resourceVersionMatch: 'NotOlderThan' }
      : { resourceVersion: position.resourceVersion ?? '' }),
    metadataOnly,
    isShared,
    signal,
  }
  const receiver = new EventReceiver(follower, position, initial)
  try {
    for await (const events of client.watchBatches(kind, watchOptions)) receiver.receiveAll(events)
  } catch (error) {
    if (!isStreamed || position.resourceVersion !== undefined || !cannotStream(error)) throw error
    position.streamsLists = false
    return true
  }
  return position.resourceVersion !== before
}

/**
 * An old server rejects the parameter as invalid; a server without support in its storage reports it as an ERROR event.
 */
function cannotStream(error: unknown): boolean {
  return isInvalid(error) || (error instanceof WatchEnded && !isGone(error) && !isResourceExpired(error))
}

/** The ERROR event at the end of a watch. */
class WatchEnded extends StatusError {}

class EventReceiver<T extends KubeObject> {
  readonly #follower: Follower<T>
  readonly #position: WatchPosition
  #initial: T[] | undefined

  constructor(follower: Follower<T>, position: WatchPosition, initial: T[] | undefined) {
    this.#follower = follower
    this.#position = position
    this.#initial = initial
  }

  /** Throws WatchEnded. */
  receiveAll(events: readonly WatchEvent<T>[]): void {
    for (const event of events) {
      if (event.type === 'ERROR') throw new WatchEnded(event.object)
      this.#take(event)
    }
  }

  #take(event: ObjectEvent<T>): void {
    const { resourceVersion = '' } = event.object.metadata
    if (this.#initial !== undefined) {
      if (event.type === 'ADDED') this.#initial.push(this.#follower.arrived?.(event.object) ?? event.object)
      if (!isInitialEventsEnd(event)) return
      this.#follower.replace(this.#initial, resourceVersion)
      this.#initial = undefined
    } else if (event.type !== 'BOOKMARK') this.#follower.change(event)
    this.#position.resourceVersion = resourceVersion
  }
}

async function listAll<T extends KubeObject>(options: FollowOptions<T>, follower: Follower<T>): Promise<string> {
  const { client, kind, selection = {}, metadataOnly, signal } = options
  const objects: T[] = []
  let from: string | undefined
  for (;;) {
    const page = await client.list(kind, {
      ...selection,
      limit: PAGE,
      ...(from !== undefined && { continue: from }),
      metadataOnly,
      signal,
    })
    // List items lack kind and apiVersion, unlike objects of a watch. Upstream's empty metadata lists have null
    // items.
    for (const item of (page.items as readonly T[] | null) ?? []) {
      const object = { kind: kind.kind, apiVersion: apiVersionOf(kind), ...item }
      objects.push(follower.arrived?.(object) ?? object)
    }
    from = page.metadata.continue
    if (from === undefined || from === '') {
      const { resourceVersion = '' } = page.metadata
      follower.replace(objects, resourceVersion)
      return resourceVersion
    }
  }
}
