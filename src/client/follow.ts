/**
 * Follows a collection: everything that is there, then every change of it, over any number of lost connections, until the
 * signal is aborted. What changed while nobody listened shows as another `replace`.
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
  /** One of those that are there, as it comes: what it returns is kept until `replace`. Not all of them may come so far. */
  arrived?(object: T): T
  /** All that is there at this moment. */
  replace(objects: readonly T[], resourceVersion: string): void
  /** One change; never a bookmark. */
  change(event: ObjectEvent<T>): void
  /** What went wrong; it is tried again in a moment. */
  failed(error: unknown): void
}

export interface FollowOptions<T extends KubeObject> {
  readonly client: ApiClient
  readonly kind: Kind<T>
  readonly selection?: Selection
  readonly metadataOnly?: boolean | undefined
  /** Objects may be those of others in this process: they are not changed. */
  readonly isShared?: boolean | undefined
  readonly random: Random
  readonly signal: AbortSignal
  /** How long to wait after each failure; as upstream's reflector unless said. */
  readonly retry?: BackoffPolicy | undefined
}

const PAGE = 500
/** Servers end watches after a while, so that clients spread over the servers that are there: between once and twice this. */
const MIN_WATCH_SECONDS = 300
/** As upstream's reflector. */
const RETRY: BackoffPolicy = { baseMs: 800, factor: 2, capMs: 30_000, jitter: 1 }
/**
 * After this long without a failure the next one is the first again. Upstream's reflector counts all failures of two minutes: where
 * a server is started again three times in one, its clients are deaf for up to another, and nodes are taken for dead.
 */
const CALM_MS = 5000

/** A watch that ends sooner and has said nothing was not one: who asks again at once asks in vain, and without end. */
const SHORT_MS = 1000

export async function follow<T extends KubeObject>(options: FollowOptions<T>, follower: Follower<T>): Promise<void> {
  const { client, random, signal, retry = RETRY } = options
  const { clock } = client
  const backoff = createBackoff(random, retry)
  const place: Place = { resourceVersion: undefined, streamsLists: true }
  let calmSinceMs = clock.elapsed()
  while (!signal.aborted) {
    const startedMs = clock.elapsed()
    try {
      const hasGoneOn = await turn(options, follower, place)
      if (hasGoneOn || clock.elapsed() - startedMs >= SHORT_MS) continue
    } catch (error) {
      if (signal.aborted) return
      if (isGone(error) || isResourceExpired(error)) place.resourceVersion = undefined
      else follower.failed(error)
    }
    if (clock.elapsed() - calmSinceMs > CALM_MS) backoff.reset()
    await sleep(clock, backoff.next(), signal).catch(() => undefined)
    calmSinceMs = clock.elapsed()
  }
}

interface Place {
  /** What has been seen; undefined when everything has to be read. */
  resourceVersion: string | undefined
  /** Whether the server can send what is there as events. */
  streamsLists: boolean
}

/** One watch, and before it what is there, when that is not known. Returns whether it has led anywhere. */
async function turn<T extends KubeObject>(
  options: FollowOptions<T>,
  follower: Follower<T>,
  place: Place,
): Promise<boolean> {
  const { client, kind, selection = {}, metadataOnly, isShared, random, signal } = options
  const isStreamed = place.resourceVersion === undefined && place.streamsLists
  const before = place.resourceVersion
  if (place.resourceVersion === undefined && !isStreamed) place.resourceVersion = await readAll(options, follower)
  const initial: T[] | undefined = isStreamed ? [] : undefined
  const asked = {
    ...selection,
    allowWatchBookmarks: true,
    timeoutSeconds: Math.floor(MIN_WATCH_SECONDS * (1 + random.float())),
    ...(isStreamed
      ? { sendInitialEvents: true, resourceVersionMatch: 'NotOlderThan' }
      : { resourceVersion: place.resourceVersion ?? '' }),
    metadataOnly,
    isShared,
    signal,
  }
  const taker = new EventTaker(follower, place, initial)
  try {
    for await (const events of client.watchTogether(kind, asked)) taker.takeAll(events)
  } catch (error) {
    if (!isStreamed || place.resourceVersion !== undefined || !cannotStream(error)) throw error
    place.streamsLists = false
    return true
  }
  return place.resourceVersion !== before
}

/** A server that does not know how says that the parameter is invalid; one whose store does not, says so in the stream. */
function cannotStream(error: unknown): boolean {
  return isInvalid(error) || (error instanceof WatchEnded && !isGone(error) && !isResourceExpired(error))
}

/** What a server says as the last event of a watch. */
class WatchEnded extends StatusError {}

class EventTaker<T extends KubeObject> {
  readonly #follower: Follower<T>
  readonly #place: Place
  #initial: T[] | undefined

  constructor(follower: Follower<T>, place: Place, initial: T[] | undefined) {
    this.#follower = follower
    this.#place = place
    this.#initial = initial
  }

  /** Throws WatchEnded. */
  takeAll(events: readonly WatchEvent<T>[]): void {
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
    this.#place.resourceVersion = resourceVersion
  }
}

async function readAll<T extends KubeObject>(options: FollowOptions<T>, follower: Follower<T>): Promise<string> {
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
    // Items of a list do not say what they are, unlike objects of a watch. Upstream's lists of metadata say null for none.
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
