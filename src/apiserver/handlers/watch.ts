/**
 * Watch: changes of a collection as they happen, one frame each. A frame is made once for each form and change and
 * shared by all watchers; a watcher that does not keep up waits by position in the cache and loses nothing until it
 * falls out of the window.
 */
import type { Clock, Timer } from '#lib/clock.ts'
import type { Random } from '#lib/random.ts'
import { turn } from '#lib/slices.ts'
import { contentTypeOf, negotiateAccept, negotiateWatch } from '#meta/codec/negotiate.ts'
import { escapeFieldValue } from '#meta/fields.ts'
import { apiVersionOf } from '#meta/kind.ts'
import type { ListOptions } from '#meta/options.ts'
import { internalError, resourceExpiredError, tooManyRequestsError } from '#meta/status-errors.ts'
import { StatusError } from '#meta/status.ts'
import type { Revision } from '#storage/backend.ts'
import { boundsOf } from '#storage/watch-cache/collection.ts'
import type { Reader, Seen } from '#storage/watch-cache/readers.ts'
import type { Change, ChangeType } from '#storage/watch-cache/ring.ts'

import type { Answer, AnswerStream, Call } from '../call.ts'
import { scopeOf } from '../metrics/labels.ts'
import { type WatchMeter, watchMeterOf } from '../metrics/watches.ts'
import type { Entry } from '../registry/entry.ts'
import type { Lens } from '../registry/lens.ts'
import { createConvertedSink } from './converted-changes.ts'
import { listOptionsOf, prefixOf } from './list.ts'
import { type Selection, selectionOf } from './selection.ts'
import { includedObject } from './table.ts'
import { freshen, parseVersion, reach } from './versions.ts'
import { accepted, offerOf, type View } from './view.ts'
import { asBuffer, bytesOf, WatchFrames } from './watch-frames.ts'
import { socketAnswer } from './watch-socket.ts'

/** Without a wish of the client's a watch lasts this long, and up to twice as long by chance: no herd comes back at once. */
const MIN_WATCH_MS = 30 * 60 * 1000
/** How much of the state goes into one write. */
const PORTION_BYTES = 64 << 10
const BOOKMARK_EVERY_MS = 60 * 1000
/** How long before its end a watch sends a last bookmark, so that the client resumes from close by. */
const LAST_BOOKMARK_MS = 2000

export async function watchObjects(call: Call, view: View): Promise<Answer> {
  const accept = call.header('accept')
  const offer = offerOf(view, 'list')
  accepted(negotiateAccept(accept, offer))
  const options = withName(listOptionsOf(call, view), call)
  const selection = selectionOf(view, call.info.namespace, options)
  // That there are no frames of a form is found out last.
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

/** Upstream has a cache for each version, which begins with a list: where that cannot be converted, nobody watches. */
async function prepareAll({ representation: { lens, kind }, store }: View): Promise<void> {
  if (lens?.asks !== true) return
  try {
    for (const entries of store.collection.state.slices(...wholeOf(store.collection.prefix)))
      await lens.prepare(entries)
  } catch (cause) {
    const what = `failed to list ${apiVersionOf(kind)}, Kind=${kind.kind}: ${(cause as Error).message}`
    throw tooManyRequestsError(`storage is (re)initializing: ${what}`, 1)
  }
}

function wholeOf(prefix: string): [start: string, end: string] {
  const { start, end } = boundsOf({ prefix })
  return [start, end]
}

/** `/api/v1/watch/…/name` is about that object alone: whoever may watch one must not see the others. */
function withName(options: ListOptions, { info }: Call): ListOptions {
  if (info.name === '') return options
  const term = `metadata.name=${escapeFieldValue(info.name)}`
  const given = options.fieldSelector ?? ''
  return { ...options, fieldSelector: given === '' ? term : `${given},${term}` }
}

/** The revision to go on from; undefined to begin with what is there. Waits for a revision from the future. */
async function startOf(call: Call, { services, store }: View, options: ListOptions): Promise<Revision | undefined> {
  const { cache, clock } = services
  const asked = parseVersion(options.resourceVersion)
  const version = asked ?? 0
  if (asked === undefined) await freshen(cache, call)
  else if (version > 0) await reach(cache, clock, version, call.signal)
  if (!store.collection.isLoaded) await store.collection.ready
  const fromState = options.sendInitialEvents ?? version === 0
  return fromState ? undefined : version > 0 ? version : cache.revision
}

interface WatchParts {
  readonly view: View
  readonly options: ListOptions
  readonly selection: Selection
  /** Of the keys that can match. */
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

/** One watch while it lasts. */
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
      // Gone, or told to end, before it began.
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

  /** Everything there is, as ADDED, then the bookmark that says that was all. Returns the revision it was at. */
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

  /** Many to a write, and no more than the client takes. */
  async #sendEntries(): Promise<void> {
    const { view, selection, bounds, frames } = this.#parts
    const portionBytes = this.#out.isMessages === true ? 0 : PORTION_BYTES
    let portion: Buffer[] = []
    let size = 0
    let initial = 0
    const flush = (): boolean => {
      const [only] = portion
      // A large frame leaves as it is, shared with whoever else is sent it.
      const whole = portion.length === 1 && only !== undefined ? only : Buffer.concat(portion, size)
      const hasRoom = size === 0 || this.#out.write(whole)
      portion = []
      size = 0
      return hasRoom
    }
    let slices = 0
    for (const entries of view.store.collection.state.slices(bounds.start, bounds.end)) {
      if (slices++ > 0) await turn()
      // What came since the watch began.
      if (view.representation.lens?.asks === true) await view.representation.lens.prepare(entries)
      for (const entry of entries.filter((each) => selection.matches(each))) {
        const frame = asBuffer(frames.initial(entry))
        portion.push(frame)
        size += frame.length
        this.#count.sent(frame.length, 1)
        initial++
        if (size < portionBytes || flush()) continue
        // Waiting for a client is no work: others may begin.
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
    const { lens } = view.representation
    if (lens?.asks === true) return this.#followConverted(from, lens)
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
        changes: (seen: readonly Seen<Entry>[]) => write(frames.changes(seen), seen.length),
      }),
      expired: () => this.#expire(tooOld(from, view)),
    }
    this.#reader = view.store.collection.watch(selection, from, sink)
    if (this.#reader === undefined) sink.expired()
  }

  #followConverted(from: Revision, lens: Lens): void {
    const { view, selection, frames } = this.#parts
    const expired = (): void => this.#expire(tooOld(from, view))
    const everything = { id: 'everything', matches: () => true }
    const sink = createConvertedSink({
      lens,
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
    // Its place is lost because the resource is gone: there is nothing to list anew.
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
