/**
 * Pods that want a node. Those whose turn it is (`active`), those that were refused a moment ago (`backing off`), those
 * that were refused by somebody who knows what would change their mind (`parked`), and those that may not be thought
 * of yet (`gated`, parked as well). Nothing is forgotten: every pod that is added is popped again and again, at the latest after
 * five minutes, until it is deleted or done.
 */
import { type Clock, every, type Timer } from '#lib/clock.ts'
import { KeyedHeap } from '#lib/heap.ts'

import type { Meter, PluginRefusal, Queued, Wake } from './framework.ts'
import { isHeard, labelOf, type News, newsOfPod } from './news.ts'
import type { PodInfo } from './pod-info.ts'

const FLUSH_EVERY_MS = 30_000
/** Every so many hints are timed. */
const SAMPLE_EVERY = 10
/** Within a second, importance counts for more than who has waited longer. */
const WINDOW_MS = 1000

export interface QueuedPod extends Queued {
  pod: PodInfo
  queuedMs: number
  /** When it was first thought of; for how long it took in all. */
  firstMs: number
  attempts: number
  /** When the attempt began, by the clock that only runs forward. */
  begunMs: number
  /** How often in a row it was refused, and how often something broke: each makes it wait longer. */
  refusals: number
  errors: number
  /** Who refused it last. */
  rejectors: ReadonlySet<string>
  /** Of those, who waits for something that is under way. */
  pendings: ReadonlySet<string>
  gatedBy: string | undefined
  readyMs: number
  /** Nobody knew what would help it; it is just tried again. */
  isFlushed: boolean
}

export interface QueueOptions {
  readonly clock: Clock
  readonly initialBackoffMs: number
  readonly maxBackoffMs: number
  /** How long a pod waits at most for news that help. */
  readonly parkedAtMostMs: number
  readonly compare: (a: Queued, b: Queued) => number
  /** Who does not let it be thought of. */
  readonly preEnqueue: (pod: PodInfo) => PluginRefusal | undefined
  /** What a plugin of the pod's profile waits for. Undefined: for anything. */
  readonly wakesOf: (pod: PodInfo, plugin: string) => readonly Wake[] | undefined
  /** Of a group that is decided about as a whole: nobody knows what would help it, so it is tried again and again. */
  readonly isGrouped?: (pod: PodInfo) => boolean
  /** Who backs off from a refusal is popped early when nobody else is there (gate SchedulerPopFromBackoffQ). Default true. */
  readonly popsEarly?: boolean
  /** There is somebody to pop. */
  readonly ready: () => void
  readonly meter: Pick<Meter, 'queued' | 'hinted'>
}

/** Why a pod was not placed. */
export interface Setback {
  readonly rejectors: ReadonlySet<string>
  readonly pendings: ReadonlySet<string>
  /** Nobody refused it: something broke. */
  readonly isError: boolean
}

/** Why it comes back. */
const FAILED = 'ScheduleAttemptFailure'

type Move = 'no' | 'soon' | 'now'

export class SchedulingQueue {
  readonly #options: QueueOptions
  readonly #active: KeyedHeap<QueuedPod>
  readonly #backingOff: KeyedHeap<QueuedPod>
  readonly #parked = new Map<string, QueuedPod>()
  /** Popped and not done, with how many news there had been by then. */
  readonly #inFlight = new Map<string, number>()
  /** News since the oldest of those was popped. */
  #news: News[] = []
  #newsBefore = 0
  #untilSample = 1
  #timer: Timer | undefined
  readonly #flush: Timer

  constructor(options: QueueOptions) {
    this.#options = options
    const key = ({ pod }: QueuedPod): string => pod.uid
    const { compare } = options
    this.#active = new KeyedHeap({ key, compare: (a, b) => compare(a, b) })
    this.#backingOff = new KeyedHeap({ key, compare: (a, b) => windowOf(a) - windowOf(b) || compare(a, b) })
    this.#flush = every(options.clock, FLUSH_EVERY_MS, () => this.#flushParked())
  }

  close(): void {
    this.#flush.cancel()
    this.#timer?.cancel()
  }

  /** How many there are of each sort. */
  get sizes(): Readonly<Record<'active' | 'backoff' | 'unschedulable' | 'gated', number>> {
    let gated = 0
    for (const { gatedBy } of this.#parked.values()) if (gatedBy !== undefined) gated++
    return {
      active: this.#active.size,
      backoff: this.#backingOff.size,
      unschedulable: this.#parked.size - gated,
      gated,
    }
  }

  /** How many news are kept for those in flight, by what they are, and how many those are. */
  inFlight(): ReadonlyMap<string, number> {
    const counts = new Map([['PodPopped', this.#inFlight.size]])
    for (const news of this.#news) counts.set(labelOf(news), (counts.get(labelOf(news)) ?? 0) + 1)
    return counts
  }

  /** How many wait for which plugin to change its mind. */
  rejections(): { readonly plugin: string; readonly profile: string; readonly count: number }[] {
    const counts = new Map<string, { readonly plugin: string; readonly profile: string; count: number }>()
    for (const { pod, rejectors } of this.#parked.values()) {
      const profile = pod.pod.spec.schedulerName ?? ''
      for (const plugin of rejectors) {
        const known = counts.get(`${profile}\n${plugin}`) ?? { plugin, profile, count: 0 }
        known.count++
        counts.set(`${profile}\n${plugin}`, known)
      }
    }
    return [...counts.values()]
  }

  add(pod: PodInfo): void {
    const nowMs = this.#options.clock.now()
    const fresh: QueuedPod = {
      pod,
      queuedMs: nowMs,
      firstMs: 0,
      attempts: 0,
      begunMs: 0,
      refusals: 0,
      errors: 0,
      rejectors: new Set(),
      pendings: new Set(),
      gatedBy: undefined,
      readyMs: 0,
      isFlushed: false,
    }
    this.#enter(fresh, 'UnschedulablePodAdd')
  }

  /** The pod itself was changed. */
  update(pod: PodInfo): void {
    const waiting = this.#active.get(pod.uid) ?? this.#backingOff.get(pod.uid)
    if (waiting !== undefined) {
      waiting.pod = pod
      ;(this.#active.has(pod.uid) ? this.#active : this.#backingOff).put(waiting)
      return
    }
    const parked = this.#parked.get(pod.uid)
    if (parked === undefined) {
      if (!this.#inFlight.has(pod.uid)) this.add(pod)
      return
    }
    const news = newsOfPod('TargetPod', pod.pod, parked.pod.pod)
    parked.pod = pod
    if (news !== undefined) this.#wake(parked, this.#moveFor(parked, news), news)
  }

  delete(uid: string): void {
    this.#active.remove(uid)
    this.#backingOff.remove(uid)
    this.#parked.delete(uid)
    this.#inFlight.delete(uid)
    this.#trimNews()
  }

  /** Whether it is here; not while it is in flight. */
  has(uid: string): boolean {
    return this.#active.has(uid) || this.#backingOff.has(uid) || this.#parked.has(uid)
  }

  /** The next one, which is in flight until it is put back or done. When nobody is ready, the first that backs off from a refusal. */
  pop(): QueuedPod | undefined {
    const next = this.#active.pop() ?? this.#popEarly()
    return next === undefined ? undefined : this.#takeOff(next)
  }

  /** This one, if it is here and nobody keeps it, whether its turn has come or not; as if it had been popped. */
  popThis(uid: string): QueuedPod | undefined {
    this.activate([uid])
    const found = this.#active.get(uid)
    if (found === undefined) return undefined
    this.#active.remove(uid)
    return this.#takeOff(found)
  }

  #takeOff(next: QueuedPod): QueuedPod {
    if (next.attempts === 0) next.firstMs = this.#options.clock.now()
    next.attempts++
    next.begunMs = this.#options.clock.elapsed()
    this.#inFlight.set(next.pod.uid, this.#newsBefore + this.#news.length)
    return next
  }

  /** It is placed, or gone. */
  done(uid: string): void {
    this.#inFlight.delete(uid)
    this.#trimNews()
  }

  /** It was not placed. What has happened since it was popped may already help, to itself as well: `now` is how it looks by now. */
  putBack(queued: QueuedPod, { rejectors, pendings, isError }: Setback, now: PodInfo = queued.pod): void {
    const { pod: old } = queued
    const { uid } = old
    queued.pod = now
    const since = this.#inFlight.get(uid)
    const missed = since === undefined ? [] : this.#news.slice(since - this.#newsBefore)
    const own = now === old ? undefined : newsOfPod('TargetPod', now.pod, old.pod)
    if (own !== undefined) missed.push(own)
    this.done(uid)
    if (this.has(uid)) return
    queued.isFlushed = false
    queued.rejectors = rejectors
    queued.pendings = pendings
    queued.queuedMs = this.#options.clock.now()
    queued.errors = isError ? queued.errors + 1 : 0
    if (!isError) queued.refusals++
    this.#delay(queued)
    let move: Move = isError || this.#options.isGrouped?.(now) === true ? 'soon' : 'no'
    for (const news of missed) if (move !== 'now') move = later(move, this.#moveFor(queued, news))
    if (move === 'no') this.#park(queued, FAILED)
    else this.#wake(queued, move, FAILED)
  }

  /** Lets those try again whom it may help. */
  tell(news: News): void {
    if (this.#inFlight.size > 0) this.#news.push(news)
    // Who is gated again is parked again: not twice in one round.
    const parked = [...this.#parked.values()]
    for (const queued of parked) this.#wake(queued, this.#moveFor(queued, news), news)
  }

  /** Lets these try at once, whatever refused them. */
  activate(uids: Iterable<string>): void {
    for (const uid of uids) {
      const queued = this.#parked.get(uid) ?? this.#backingOff.get(uid)
      if (queued !== undefined) this.#wake(queued, 'now', 'ForceActivate')
    }
  }

  #popEarly(): QueuedPod | undefined {
    if (this.#options.popsEarly === false) return undefined
    const first = this.#backingOff.peek()
    // Of a group nothing but time helps.
    if (first === undefined || first.errors > 0 || this.#options.isGrouped?.(first.pod) === true) return undefined
    this.#options.meter.queued('active', 'PopFromBackoffQ')
    return this.#backingOff.pop()
  }

  #moveFor(queued: QueuedPod, news: News): Move {
    const { rejectors, pendings, gatedBy, pod } = queued
    if (gatedBy === undefined && rejectors.size === 0) return 'soon'
    // Only what the gate listens to is worth a look; then those that refused it before have their say too.
    if (gatedBy !== undefined && !this.#hears(pod, gatedBy, news, false)) return 'no'
    let move: Move = 'no'
    for (const plugin of gatedBy === undefined ? rejectors : [gatedBy, ...rejectors]) {
      if (!this.#hears(pod, plugin, news, true)) continue
      if (pendings.has(plugin)) return 'now'
      move = 'soon'
    }
    return move
  }

  /** `mustHelp`: hearing of it is not enough. */
  #hears(pod: PodInfo, plugin: string, news: News, mustHelp: boolean): boolean {
    const wakes = this.#options.wakesOf(pod, plugin)
    if (wakes === undefined) return true
    return wakes.some((wake) => isHeard(wake, news) && (!mustHelp || this.#helps(wake, pod, plugin, news)))
  }

  #helps(wake: Wake, { pod }: PodInfo, plugin: string, news: News): boolean {
    if (--this.#untilSample > 0) return wake.helps?.(pod, news.now, news.old) ?? true
    this.#untilSample = SAMPLE_EVERY
    const { clock, meter } = this.#options
    const begunMs = clock.elapsed()
    const does = wake.helps?.(pod, news.now, news.old) ?? true
    meter.hinted(plugin, labelOf(news), does ? 'Queue' : 'QueueSkip', clock.elapsed() - begunMs)
    return does
  }

  #wake(queued: QueuedPod, move: Move, why: News | string): void {
    if (move === 'no') return
    const { uid } = queued.pod
    this.#parked.delete(uid)
    this.#backingOff.remove(uid)
    if (move === 'now') queued.readyMs = 0
    this.#enter(queued, typeof why === 'string' ? why : labelOf(why))
  }

  #park(queued: QueuedPod, event: string): void {
    this.#parked.set(queued.pod.uid, queued)
    this.#options.meter.queued('unschedulable', event)
  }

  #enter(queued: QueuedPod, event: string): void {
    const { preEnqueue, meter } = this.#options
    const gate = preEnqueue(queued.pod)
    queued.gatedBy = gate?.plugin
    if (gate !== undefined) {
      this.#park(queued, event)
      return
    }
    if (windowOf(queued) > this.#options.clock.now()) {
      this.#backingOff.put(queued)
      meter.queued('backoff', event)
      this.#await()
      // It may be popped early.
      if (queued.errors === 0) this.#options.ready()
      return
    }
    this.#active.put(queued)
    meter.queued('active', event)
    this.#options.ready()
  }

  #delay(queued: QueuedPod): void {
    const { initialBackoffMs, maxBackoffMs, clock } = this.#options
    const times = queued.errors > 0 ? queued.errors : queued.refusals
    queued.readyMs = clock.now() + Math.min(initialBackoffMs * 2 ** (times - 1), maxBackoffMs)
  }

  /** Until the first that backs off is ready. */
  #await(): void {
    this.#timer?.cancel()
    const first = this.#backingOff.peek()
    if (first === undefined) return
    const { clock } = this.#options
    this.#timer = clock.after(Math.max(0, windowOf(first) - clock.now()), () => this.#release(), { background: true })
  }

  #release(): void {
    const nowMs = this.#options.clock.now()
    for (let first = this.#backingOff.peek(); first !== undefined && windowOf(first) <= nowMs;) {
      this.#backingOff.pop()
      this.#enter(first, 'BackoffComplete')
      first = this.#backingOff.peek()
    }
    this.#await()
  }

  #flushParked(): void {
    const { clock, parkedAtMostMs } = this.#options
    const nowMs = clock.now()
    const parked = [...this.#parked.values()]
    for (const queued of parked) {
      if (queued.gatedBy !== undefined || nowMs - queued.queuedMs <= parkedAtMostMs) continue
      queued.isFlushed = true
      this.#wake(queued, 'soon', 'UnschedulableTimeout')
    }
  }

  /** Who was popped first is first in the map. */
  #trimNews(): void {
    const [oldest = this.#newsBefore + this.#news.length] = this.#inFlight.values()
    if (oldest === this.#newsBefore) return
    this.#news = this.#news.slice(oldest - this.#newsBefore)
    this.#newsBefore = oldest
  }
}

function later(a: Move, b: Move): Move {
  if (a === 'now' || b === 'now') return 'now'
  return a === 'soon' || b === 'soon' ? 'soon' : 'no'
}

function windowOf({ readyMs }: QueuedPod): number {
  return Math.floor(readyMs / WINDOW_MS) * WINDOW_MS
}
