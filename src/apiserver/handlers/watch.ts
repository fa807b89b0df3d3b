/**
 * Watch: streams the changes of a collection, one frame for each change. A slow watcher remembers its position in the
 * watch cache, so it misses no change that the cache still has.
 */
import type { Answer, AnswerStream, Call } from '#component/requests/call.ts'
import type { Clock, Timer } from '#lib/clock.ts'
import type { Random } from '#lib/random.ts'
import { yieldToEventLoop } from '#lib/time-slicing.ts'
import { contentTypeOf, negotiateAccept, negotiateWatch } from '#meta/codec/negotiate.ts'
import { escapeFieldValue } from '#meta/fields.ts'
import { apiVersionOf } from '#meta/kind.ts'
import type { ListOptions } from '#meta/options.ts'
import { internalError, resourceExpiredError, tooManyRequestsError } from '#meta/status-errors.ts'
import { StatusError } from '#meta/status.ts'
import type { Revision } from '#storage/backend.ts'
import { boundsOf } from '#storage/watch-cache/collection.ts'
import type { Reader, FilteredChange } from '#storage/watch-cache/readers.ts'
import type { Change, ChangeType } from '#storage/watch-cache/ring.ts'

import { scopeOf } from '../metrics/labels.ts'
import { type WatchMeter, watchMeterOf } from '../metrics/watches.ts'
import type { Entry } from '../registry/entry.ts'
import type { VersionConverter } from '../registry/version-converter.ts'
import { createConvertedSink } from './converted-changes.ts'
import { listOptionsOf, prefixOf } from './list.ts'
import { type Selection, selectionOf } from './selection.ts'
import { includedObject } from './table.ts'
import { freshen, parseVersion, reach } from './versions.ts'
import { accepted, offerOf, type View } from './view.ts'
import { asBuffer, bytesOf, WatchFrames } from './watch-frames.ts'
import { socketAnswer } from './watch-socket.ts'

/** The default duration of a watch, plus up to the same again at random, so that clients do not reconnect together. */
const MIN_WATCH_MS = 30 * 60 * 1000
/** The maximum size of one write of the initial state. */
const PORTION_BYTES = 64 << 10
const BOOKMARK_EVERY_MS = 60 * 1000
/** The time before its end at which a watch sends a last bookmark, so that the client resumes nearby. */
const LAST_BOOKMARK_MS = 2000

export async function watchObjects(call: Call, view: View): Promise<Answer> {
  const accept = call.header('accept')
  const offer = offerOf(view, 'list')
  accepted(negotiateAccept(accept, offer))
  const options = withName(listOptionsOf(call, view), call)
  const selection = selectionOf(view, call.info.namespace, options)
  // An unsupported form is reported last.
  const negotiated = accepted(negotiateWatch(accept, offer))
  const include = negotiated.as?.kind === 'Table' ? includedObject(call) : 'None'
  const frames = new WatchFrames(view, negotiated, include)
  const from = await startOf(call, view, options)
  await prepareAll(view)
  const { clock, random } = view.services
  const scope = scopeOf(call.info)
  const bounds = boundsOf({ prefix: prefixOf(call, view) })
  const { promise: begun, resolve: begin } = Promise.withResolvers<void>()
  const run = (out: AnswerStream): Promise<void> =>
    new Watch({ view, options, selection, bounds, frames, from, clock, random, scope, begin }, out).run()
  if (call.exchange.upgradeProtocol === 'websocket') {
    return socketAnswer(call.exchange, { clock, run, isText: negotiated.mediaType === 'application/json' })
  }
  return { status: 200, contentType: contentTypeOf(negotiated, { watch: true }), stream: run, begun }
}

/** Upstream has a cache per version, which starts with a list: if that cannot be converted, watches fail. */
async function prepareAll({ representation: { converter, kind }, store }: View): Promise<void> {
  if (converter?.isRemote !== true) return
  try {
    for (const entries of store.collection.state.slices(...wholeOf(store.collection.prefix)))
      await converter.prepare(entries)
  } catch (cause) {
    const what = `failed to list ${apiVersionOf(kind)}, Kind=${kind.kind}: ${(cause as Error).message}`
    throw tooManyRequestsError(`storage is (re)initializing: ${what}`, 1)
  }
}

function wholeOf(prefix: string): [start: string, end: string] {
  const { start, end } = boundsOf({ prefix })
  return [start, end]
}

/** `/api/v1/watch/…/name` selects that object only: a right to watch one must not show others. */
function withName(options: ListOptions, { info }: Call): ListOptions {
  if (info.name === '') return options
  const term = `metadata.name=${escapeFieldValue(info.name)}`
  const given = options.fieldSelector ?? ''
  return { ...options, fieldSelector: given === '' ? term : `${given},${term}` }
}

/** The revision to continue from; undefined to start with the current state. Waits for a future revision. */
async function startOf(call: Call, { services, store }: View, options: ListOptions): Promise<Revision | undefined> {
  const { cache, clock } = services
  const requested = parseVersion(options.resourceVersion)
  const version = requested ?? 0
  if (requested === undefined) await freshen(cache, call)
  else if (version > 0) await reach(cache, clock, version, call.signal)
  if (!store.collection.isLoaded) await store.collection.ready
  const fromState = options.sendInitialEvents ?? version === 0
  return fromState ? undefined : version > 0 ? version : cache.revision
}

interface WatchParts {
  readonly view: View
  readonly options: ListOptions
  readonly selection: Selection
  /** The common prefix of the keys. */
  readonly bounds: ReturnType<typeof boundsOf>
  readonly frames: WatchFrames
  readonly from: Revision | undefined
  readonly clock: Clock
  readonly random: Random
  /** For metrics. */
  readonly scope: string
  /** Called when it has begun. */
  readonly begin: () => void
}

/** One open watch. */
class Watch {
  readonly #parts: WatchParts
  readonly #out: AnswerStream
  readonly #timers: Timer[] = []
  readonly #ended = Promise.withResolvers<void>()
  #reader: Reader | undefined
  readonly #count: WatchMeter
  #bookmarked: Revision = 0

  constructor(parts: WatchParts, out: AnswerStream) {
    this.#parts = parts
    this.#out = out
    this.#count = watchMeterOf(parts.view)
  }

  async run(): Promise<void> {
    const { signal } = this.#out
    const stop = (): void => this.#ended.resolve()
    const { closed } = this.#parts.view.store
    for (const one of [signal, closed]) {
      one.addEventListener('abort', stop, { once: true })
      // The client left, or the watch was aborted, before it began.
      if (one.aborted) stop()
    }
    try {
      this.#setTimers()
      const from = this.#parts.from ?? (await this.#sendState())
      this.#parts.begin()
      if (!signal.aborted) this.#follow(from)
      await this.#ended.promise
    } finally {
      for (const one of [signal, closed]) one.removeEventListener('abort', stop)
      for (const timer of this.#timers) timer.cancel()
      this.#reader?.close()
      this.#out.end()
    }
  }

  /** Sends the state as ADDED events, then the bookmark that ends the initial events. Returns its revision. */
  async #sendState(): Promise<Revision> {
    const { view, options, frames, clock, scope } = this.#parts
    const startMs = clock.elapsed()
    const revision = view.services.cache.revision
    if (options.sendInitialEvents !== false) await this.#sendEntries()
    if (this.#out.signal.aborted) return revision
    if (options.allowWatchBookmarks === true) this.#out.write(frames.bookmark(revision, true))
    if (options.sendInitialEvents === true) this.#count.listed(scope, (clock.elapsed() - startMs) / 1000)
    this.#bookmarked = revision
    return revision
  }

  /** Writes many events at once, with backpressure. */
  async #sendEntries(): Promise<void> {
    const { view, selection, bounds, frames } = this.#parts
    const portionBytes = this.#out.isMessages === true ? 0 : PORTION_BYTES
    let portion: Buffer[] = []
    let size = 0
    let initial = 0
    const flush = (): boolean => {
      const [only] = portion
      // A large frame is sent without copying, shared with other watchers.
      const whole = portion.length === 1 && only !== undefined ? only : Buffer.concat(portion, size)
      const hasRoom = size === 0 || this.#out.write(whole)
      portion = []
      size = 0
      return hasRoom
    }
    let slices = 0
    for (const entries of view.store.collection.state.slices(bounds.start, bounds.end)) {
      if (slices++ > 0) await yieldToEventLoop()
      // Changes since the watch began.
      if (view.representation.converter?.isRemote === true) await view.representation.converter.prepare(entries)
      for (const entry of entries.filter((each) => selection.matches(each))) {
        const frame = asBuffer(frames.initial(entry))
        portion.push(frame)
        size += frame.length
        this.#count.sent(frame.length, 1)
        initial++
        if (size < portionBytes || flush()) continue
        // Waiting for a client is idle time: other requests may start.
        this.#parts.begin()
        await this.#out.drained()
        if (this.#out.signal.aborted) return
      }
    }
    flush()
    this.#count.initial(initial)
  }

  #follow(from: Revision): void {
    const { view, selection, frames } = this.#parts
    const { converter } = view.representation
    if (converter?.isRemote === true) return this.#followConverted(from, converter)
    const isMessages = this.#out.isMessages === true || this.#out.sharesFrames === true
    const write = (frame: Parameters<AnswerStream['write']>[0], events: number): boolean => {
      this.#count.sent(bytesOf(frame), events)
      const room = this.#out.write(frame)
      if (!room) void this.#resumeLater()
      return room
    }
    const sink = {
      change: (type: ChangeType, change: Change<Entry>) => write(frames.change(type, change), 1),
      ...(!isMessages && {
        changes: (seen: readonly FilteredChange<Entry>[]) => write(frames.changes(seen), seen.length),
      }),
      expired: () => this.#expire(tooOld(from, view)),
    }
    this.#reader = view.store.collection.watch(selection, from, sink)
    if (this.#reader === undefined) sink.expired()
  }

  #followConverted(from: Revision, converter: VersionConverter): void {
    const { view, selection, frames } = this.#parts
    const expired = (): void => this.#expire(tooOld(from, view))
    const everything = { id: 'everything', matches: () => true }
    const sink = createConvertedSink({
      converter,
      selection,
      send: async ({ type, change }) => {
        const frame = frames.change(type, change)
        this.#count.sent(bytesOf(frame), 1)
        if (!this.#out.write(frame)) await this.#out.drained()
      },
      failed: (error) => {
        const status = error instanceof StatusError ? error.status : internalError(error as Error).status
        this.#out.write(frames.error(status))
        this.#ended.resolve()
      },
      expired,
      reader: () => this.#reader,
      isOver: () => this.#out.signal.aborted,
    })
    this.#reader = view.store.collection.watch(everything, from, sink)
    if (this.#reader === undefined) expired()
  }

  async #resumeLater(): Promise<void> {
    try {
      await this.#out.drained()
      this.#reader?.resume()
    } catch {
      // The client has gone; the signal ends the watch.
    }
  }

  #expire(message: string): void {
    // Its position is lost because the resource was removed: there is nothing to list again.
    if (this.#parts.view.store.closed.aborted) return
    const { status } = resourceExpiredError(message)
    this.#out.write(this.#parts.frames.error(status))
    this.#ended.resolve()
  }

  #setTimers(): void {
    const { options, clock, random, view } = this.#parts
    const seconds = options.timeoutSeconds ?? 0
    const { minWatchMs = MIN_WATCH_MS } = view.services
    const lastsMs = seconds > 0 ? seconds * 1000 : minWatchMs * (1 + random.float())
    this.#timers.push(clock.after(lastsMs, () => this.#ended.resolve(), { background: true }))
    if (options.allowWatchBookmarks !== true) return
    const every = (): void => {
      this.#timers[1] = clock.after(
        BOOKMARK_EVERY_MS,
        () => {
          this.#sendBookmark()
          every()
        },
        { background: true },
      )
    }
    every()
    if (lastsMs > LAST_BOOKMARK_MS)
      this.#timers[2] = clock.after(lastsMs - LAST_BOOKMARK_MS, () => this.#sendBookmark(), { background: true })
  }

  #sendBookmark(): void {
    const revision = this.#reader?.position() ?? 0
    if (revision <= this.#bookmarked) return
    this.#bookmarked = revision
    this.#out.write(this.#parts.frames.bookmark(revision, false))
  }
}

function tooOld(from: Revision, { store }: View): string {
  return `too old resource version: ${from} (${store.collection.floor})`
}
