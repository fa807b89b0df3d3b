/**
 * The scheduling queue: active pods, pods in backoff, and unschedulable pods. An unschedulable pod waits for an event
 * that the plugin that rejected it registered for. Every added pod is popped again, at the latest after five minutes,
 * until it is deleted or done.
 */
import { type Clock, every, type Timer } from '#lib/clock.ts'
import { KeyedHeap } from '#lib/collections/heap.ts'

import type { PodInfo } from '../cluster/pod-info.ts'
import type { ClusterEventWithHint, Meter, PluginRefusal, QueueEntry } from '../framework/framework.ts'
import { type ClusterEvent, labelOf, matchesEvent, podEvent } from './cluster-events.ts'

const FLUSH_EVERY_MS = 30_000
/** Times one in this many queueing hints. */
const SAMPLE_EVERY = 10
/** Within one second, priority counts before waiting time. */
const WINDOW_MS = 1000

export interface QueuedPod extends QueueEntry {
  pod: PodInfo
  queuedMs: number
  /** The time of the first attempt. */
  firstMs: number
  attempts: number
  /** The monotonic time at which the attempt began. */
  begunMs: number
  /** Consecutive rejections and errors; each lengthens the backoff. */
  refusals: number
  errors: number
  /** The plugins that rejected the pod last. */
  rejectors: ReadonlySet<string>
  /** Those of them that wait for an expected event. */
  pendings: ReadonlySet<string>
  gatedBy: string | undefined
  readyMs: number
  /** The event that ended its last wait. */
  wokenBy?: ClusterEvent | undefined
  /** Flushed by timeout, not by an event. */
  isFlushed: boolean
}

export interface QueueOptions {
  readonly clock: Clock
  readonly initialBackoffMs: number
  readonly maxBackoffMs: number
  /** The longest time of an unschedulable pod without an event. */
  readonly maxUnschedulableMs: number
  readonly compare: (a: QueueEntry, b: QueueEntry) => number
  /** The PreEnqueue rejection. */
  readonly preEnqueue: (pod: PodInfo) => PluginRefusal | undefined
  /** The events that a plugin of the pod's profile registered for. Undefined: any event. */
  readonly registeredEvents: (pod: PodInfo, plugin: string) => readonly ClusterEventWithHint[] | undefined
  /**
   * The pod belongs to a group that is scheduled as a whole: no event is known to help, so it is retried with backoff.
   */
  readonly isGrouped?: (pod: PodInfo) => boolean
  /** Pops a pod in backoff if no other is active (gate SchedulerPopFromBackoffQ). Default true. */
  readonly popsEarly?: boolean
  /** Called when a pod can be popped. */
  readonly ready: () => void
  readonly meter: Pick<Meter, 'queued' | 'hinted'>
}

/** Why a pod was not scheduled. */
export interface AttemptFailure {
  readonly rejectors: ReadonlySet<string>
  readonly pendings: ReadonlySet<string>
  /** An internal error, not a rejection. */
  readonly isError: boolean
}

/** Upstream's event label of a requeue. */
const FAILED = 'ScheduleAttemptFailure'

type Move = 'no' | 'soon' | 'now'

export class SchedulingQueue {
  readonly #options: QueueOptions
  readonly #active: KeyedHeap<QueuedPod>
  readonly #backingOff: KeyedHeap<QueuedPod>
  readonly #unschedulable = new Map<string, QueuedPod>()
  /** Popped pods that are not done, with the number of events up to then. */
  readonly #inFlight = new Map<string, number>()
  /** Events since the oldest pod in flight was popped. */
  #events: ClusterEvent[] = []
  #eventsBefore = 0
  #untilSample = 1
  #timer: Timer | undefined
  readonly #flush: Timer

  constructor(options: QueueOptions) {
    this.#options = options
    const key = ({ pod }: QueuedPod): string => pod.uid
    const { compare } = options
    this.#active = new KeyedHeap({ key, compare: (a, b) => compare(a, b) })
    this.#backingOff = new KeyedHeap({ key, compare: (a, b) => windowOf(a) - windowOf(b) || compare(a, b) })
    this.#flush = every(options.clock, FLUSH_EVERY_MS, () => this.#flushUnschedulable())
  }

  close(): void {
    this.#flush.cancel()
    this.#timer?.cancel()
  }

  /** The number of pods in each queue. */
  get sizes(): Readonly<Record<'active' | 'backoff' | 'unschedulable' | 'gated', number>> {
    let gated = 0
    for (const { gatedBy } of this.#unschedulable.values()) if (gatedBy !== undefined) gated++
    return {
      active: this.#active.size,
      backoff: this.#backingOff.size,
      unschedulable: this.#unschedulable.size - gated,
      gated,
    }
  }

  /** The number of recorded events by label, and of pods in flight. */
  inFlight(): ReadonlyMap<string, number> {
    const counts = new Map([['PodPopped', this.#inFlight.size]])
    for (const event of this.#events) counts.set(labelOf(event), (counts.get(labelOf(event)) ?? 0) + 1)
    return counts
  }

  /** The number of unschedulable pods by rejecting plugin. */
  rejections(): { readonly plugin: string; readonly profile: string; readonly count: number }[] {
    const counts = new Map<string, { readonly plugin: string; readonly profile: string; count: number }>()
    for (const { pod, rejectors } of this.#unschedulable.values()) {
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

  /** The pod object changed. */
  update(pod: PodInfo): void {
    const waiting = this.#active.get(pod.uid) ?? this.#backingOff.get(pod.uid)
    if (waiting !== undefined) {
      waiting.pod = pod
      ;(this.#active.has(pod.uid) ? this.#active : this.#backingOff).put(waiting)
      return
    }
    const parked = this.#unschedulable.get(pod.uid)
    if (parked === undefined) {
      if (!this.#inFlight.has(pod.uid)) this.add(pod)
      return
    }
    const event = podEvent('TargetPod', pod.pod, parked.pod.pod)
    parked.pod = pod
    if (event !== undefined) this.#wake(parked, this.#moveFor(parked, event), event)
  }

  delete(uid: string): void {
    this.#active.remove(uid)
    this.#backingOff.remove(uid)
    this.#unschedulable.delete(uid)
    this.#inFlight.delete(uid)
    this.#trimEvents()
  }

  /** Whether the pod is queued; false in flight. */
  has(uid: string): boolean {
    return this.#active.has(uid) || this.#backingOff.has(uid) || this.#unschedulable.has(uid)
  }

  /**
   * Returns the next pod, which is in flight until `requeue` or `done`. If none is active, pops one in backoff after a
   * rejection.
   */
  pop(): QueuedPod | undefined {
    const next = this.#active.pop() ?? this.#popEarly()
    return next === undefined ? undefined : this.#markInFlight(next)
  }

  /** Pops this pod if it is queued and not gated, even in backoff. */
  popByUid(uid: string): QueuedPod | undefined {
    this.activate([uid])
    const found = this.#active.get(uid)
    if (found === undefined) return undefined
    this.#active.remove(uid)
    return this.#markInFlight(found)
  }

  #markInFlight(next: QueuedPod): QueuedPod {
    if (next.attempts === 0) next.firstMs = this.#options.clock.now()
    next.attempts++
    next.begunMs = this.#options.clock.elapsed()
    this.#inFlight.set(next.pod.uid, this.#eventsBefore + this.#events.length)
    return next
  }

  /** The pod is bound or gone. */
  done(uid: string): void {
    this.#inFlight.delete(uid)
    this.#trimEvents()
  }

  /** Requeues a pod that was not scheduled. Events since its pop may already help; `now` is its current version. */
  requeue(queued: QueuedPod, { rejectors, pendings, isError }: AttemptFailure, now: PodInfo = queued.pod): void {
    const { pod: old } = queued
    const { uid } = old
    queued.pod = now
    const since = this.#inFlight.get(uid)
    const missed = since === undefined ? [] : this.#events.slice(since - this.#eventsBefore)
    const own = now === old ? undefined : podEvent('TargetPod', now.pod, old.pod)
    if (own !== undefined) missed.push(own)
    this.done(uid)
    if (this.has(uid)) return
    queued.isFlushed = false
    queued.wokenBy = undefined
    queued.rejectors = rejectors
    queued.pendings = pendings
    queued.queuedMs = this.#options.clock.now()
    queued.errors = isError ? queued.errors + 1 : 0
    if (!isError) queued.refusals++
    this.#delay(queued)
    const move = this.#moveAfter(queued, missed, isError || this.#options.isGrouped?.(now) === true ? 'soon' : 'no')
    if (move === 'no') this.#addUnschedulable(queued, FAILED)
    else this.#wake(queued, move, FAILED)
  }

  /** The move that the events allow; `least` without them. */
  #moveAfter(queued: QueuedPod, events: readonly ClusterEvent[], least: Move): Move {
    let move = least
    for (const event of events) {
      if (move === 'now') break
      const next = later(move, this.#moveFor(queued, event))
      if (next !== move) queued.wokenBy = event
      move = next
    }
    return move
  }

  /** Moves unschedulable pods that the event may help. */
  handleEvent(event: ClusterEvent): void {
    if (this.#inFlight.size > 0) this.#events.push(event)
    // A pod that is gated again re-enters the map: visit each once.
    const parked = [...this.#unschedulable.values()]
    for (const queued of parked) this.#wake(queued, this.#moveFor(queued, event), event)
  }

  /** Moves these pods to the active queue, whatever rejected them. */
  activate(uids: Iterable<string>): void {
    for (const uid of uids) {
      const queued = this.#unschedulable.get(uid) ?? this.#backingOff.get(uid)
      if (queued !== undefined) this.#wake(queued, 'now', 'ForceActivate')
    }
  }

  #popEarly(): QueuedPod | undefined {
    if (this.#options.popsEarly === false) return undefined
    const first = this.#backingOff.peek()
    // Only time helps a group.
    if (first === undefined || first.errors > 0 || this.#options.isGrouped?.(first.pod) === true) return undefined
    this.#options.meter.queued('active', 'PopFromBackoffQ')
    return this.#backingOff.pop()
  }

  #moveFor(queued: QueuedPod, event: ClusterEvent): Move {
    const { rejectors, pendings, gatedBy, pod } = queued
    if (gatedBy === undefined && rejectors.size === 0) return 'soon'
    // A gated pod moves only on an event of its gate; then the earlier rejectors decide too.
    if (gatedBy !== undefined && !this.#reactsTo(pod, gatedBy, event, false)) return 'no'
    let move: Move = 'no'
    for (const plugin of gatedBy === undefined ? rejectors : [gatedBy, ...rejectors]) {
      if (!this.#reactsTo(pod, plugin, event, true)) continue
      if (pendings.has(plugin)) return 'now'
      move = 'soon'
    }
    return move
  }

  /** With `mustHelp` the queueing hint must agree. */
  #reactsTo(pod: PodInfo, plugin: string, event: ClusterEvent, mustHelp: boolean): boolean {
    const eventsToRegister = this.#options.registeredEvents(pod, plugin)
    if (eventsToRegister === undefined) return true
    return eventsToRegister.some(
      (registered) => matchesEvent(registered, event) && (!mustHelp || this.#runHint(registered, pod, plugin, event)),
    )
  }

  #runHint(registered: ClusterEventWithHint, { pod }: PodInfo, plugin: string, event: ClusterEvent): boolean {
    if (--this.#untilSample > 0) return registered.queueingHint?.(pod, event.now, event.old) ?? true
    this.#untilSample = SAMPLE_EVERY
    const { clock, meter } = this.#options
    const begunMs = clock.elapsed()
    const does = registered.queueingHint?.(pod, event.now, event.old) ?? true
    meter.hinted(plugin, labelOf(event), does ? 'Queue' : 'QueueSkip', clock.elapsed() - begunMs)
    return does
  }

  #wake(queued: QueuedPod, move: Move, why: ClusterEvent | string): void {
    if (move === 'no') return
    const { uid } = queued.pod
    this.#unschedulable.delete(uid)
    this.#backingOff.remove(uid)
    if (move === 'now') queued.readyMs = 0
    if (typeof why !== 'string') queued.wokenBy = why
    this.#enter(queued, typeof why === 'string' ? why : labelOf(why))
  }

  #addUnschedulable(queued: QueuedPod, event: string): void {
    this.#unschedulable.set(queued.pod.uid, queued)
    this.#options.meter.queued('unschedulable', event)
  }

  #enter(queued: QueuedPod, event: string): void {
    const { preEnqueue, meter } = this.#options
    const gate = preEnqueue(queued.pod)
    queued.gatedBy = gate?.plugin
    if (gate !== undefined) {
      this.#addUnschedulable(queued, event)
      return
    }
    if (windowOf(queued) > this.#options.clock.now()) {
      this.#backingOff.put(queued)
      meter.queued('backoff', event)
      this.#scheduleRelease()
      // It can be popped early.
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

  /** Starts the timer for the first pod in backoff. */
  #scheduleRelease(): void {
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
    this.#scheduleRelease()
  }

  #flushUnschedulable(): void {
    const { clock, maxUnschedulableMs } = this.#options
    const nowMs = clock.now()
    const parked = [...this.#unschedulable.values()]
    for (const queued of parked) {
      if (queued.gatedBy !== undefined || nowMs - queued.queuedMs <= maxUnschedulableMs) continue
      queued.isFlushed = true
      this.#wake(queued, 'soon', 'UnschedulableTimeout')
    }
  }

  /** The map is in pop order. */
  #trimEvents(): void {
    const [oldest = this.#eventsBefore + this.#events.length] = this.#inFlight.values()
    if (oldest === this.#eventsBefore) return
    this.#events = this.#events.slice(oldest - this.#eventsBefore)
    this.#eventsBefore = oldest
  }
}

function later(a: Move, b: Move): Move {
  if (a === 'now' || b === 'now') return 'now'
  return a === 'soon' || b === 'soon' ? 'soon' : 'no'
}

function windowOf({ readyMs }: QueuedPod): number {
  return Math.floor(readyMs / WINDOW_MS) * WINDOW_MS
}
