/**
 * Records events.k8s.io/v1 events, as kube-scheduler and kube-proxy write them. It writes the first event at once. A
 * repeat within six minutes starts a series, which it writes at its start, every half hour and at its end. `record`
 * never fails and never waits.
 */
import type { ObjectReference } from '#apis/core/v1.ts'
import { type Event, Events } from '#apis/events/v1.ts'
import { activeCauses, withCauses } from '#lib/causes.ts'
import { type Clock, every, type Timer } from '#lib/clock.ts'
import { Fifo } from '#lib/collections/fifo.ts'
import { isNotFound } from '#meta/status.ts'
import { microTimeOf } from '#meta/time.ts'

import type { ApiClient } from '../api-client.ts'
import { EventNames } from './event-names.ts'

export interface SeriesRecorderOptions {
  readonly client: ApiClient
  /** `default-scheduler`. */
  readonly controller: string
  readonly instance: string
  /**
   * Resolves when no more important request is running; undefined if none is. Events wait for it, up to
   * MAX_CALM_WAIT_MS.
   */
  readonly whenIdle?: () => Promise<void> | undefined
  readonly onError?: (error: unknown) => void
}

export interface SeriesNote {
  readonly type: 'Normal' | 'Warning'
  readonly reason: string
  readonly action: string
  readonly note: string
  readonly related?: ObjectReference
}

interface Series {
  readonly event: Event
  count: number
  lastMs: number
  writtenMs: number
  /** Resolves when the last write of this series is done or failed. */
  last: Promise<void>
}

interface PendingWrite {
  readonly series: Series
  readonly sinceMs: number
  readonly write: () => Promise<unknown>
}

const OVER_AFTER_MS = 6 * 60_000
const WRITE_EVERY_MS = 30 * 60_000
/** The API's limit. */
const MAX_NOTE_BYTES = 1024
/** Concurrent writes. */
const MAX_WRITERS = 4
/** Events in the queue; further ones are dropped. */
const MAX_WAITING = 10_000
/** The longest wait of an event for more important requests. */
const MAX_IDLE_WAIT_MS = 5000
/** The longest delay of a program's end: another instance may be waiting for its lease. */
const MAX_END_MS = 2000

export class SeriesRecorder {
  readonly #options: SeriesRecorderOptions
  readonly #clock: Clock
  readonly #series = new Map<string, Series>()
  readonly #timer: Timer
  readonly #waiting = new Fifo<PendingWrite>()
  readonly #writers = new Set<Promise<void>>()
  readonly #names: EventNames

  constructor(options: SeriesRecorderOptions) {
    this.#options = options
    this.#clock = options.client.clock
    this.#names = new EventNames(`${options.controller}|${options.instance}`)
    this.#timer = every(this.#clock, OVER_AFTER_MS, () => this.#tidy())
  }

  record(regarding: ObjectReference, eventNote: SeriesNote): void {
    const { type, reason, action, related } = eventNote
    const key = JSON.stringify([type, action, reason, regarding, related])
    const nowMs = this.#clock.now()
    const known = this.#series.get(key)
    if (known !== undefined && nowMs - known.lastMs < OVER_AFTER_MS) {
      known.count++
      known.lastMs = nowMs
      if (known.count === 2) this.#later(known, () => this.#write(known))
      return
    }
    const event = this.#eventOf(regarding, eventNote)
    const series = { event, count: 1, lastMs: nowMs, writtenMs: nowMs, last: Promise.resolve() }
    this.#series.set(key, series)
    this.#later(series, () => this.#options.client.create(Events, event))
  }

  /** Resolves when every event recorded so far is written or dropped. */
  async flush(): Promise<void> {
    while (this.#writers.size > 0) await Promise.all(this.#writers)
  }

  /** Writes waiting events for up to MAX_END_MS and drops the rest. */
  async end(): Promise<void> {
    this.#timer.cancel()
    const late = this.#clock.after(MAX_END_MS, () => this.#waiting.clear())
    await this.flush()
    late.cancel()
  }

  #later(series: Series, write: () => Promise<unknown>): void {
    if (this.#waiting.size >= MAX_WAITING) return
    const causes = activeCauses()
    this.#waiting.push({ series, sinceMs: this.#clock.elapsed(), write: () => withCauses(causes, write) })
    if (this.#writers.size >= MAX_WRITERS) return
    const writer = this.#writeWaiting().finally(() => this.#writers.delete(writer))
    this.#writers.add(writer)
  }

  async #writeWaiting(): Promise<void> {
    for (let next = this.#waiting.shift(); next !== undefined; next = this.#waiting.shift()) {
      const { series, sinceMs, write } = next
      await this.#timedOut(sinceMs)
      series.last = series.last.then(write).then(
        () => undefined,
        (error: unknown) => this.#options.onError?.(error),
      )
      await series.last
    }
  }

  #timedOut(sinceMs: number): Promise<void> | undefined {
    const whenIdle = this.#options.whenIdle?.()
    const leftMs = sinceMs + MAX_IDLE_WAIT_MS - this.#clock.elapsed()
    if (whenIdle === undefined || leftMs <= 0) return undefined
    const timedOut = Promise.withResolvers<void>()
    const timer = this.#clock.after(leftMs, timedOut.resolve)
    return Promise.race([whenIdle, timedOut.promise]).finally(() => timer.cancel())
  }

  async #write(series: Series): Promise<void> {
    const { event, count, lastMs } = series
    series.writtenMs = this.#clock.now()
    const value = { series: { count, lastObservedTime: microTimeOf(lastMs) } }
    const { namespace, name = '' } = event.metadata
    try {
      await this.#options.client.patch(Events, { namespace, name }, { type: 'strategic', value })
    } catch (error) {
      if (!isNotFound(error)) throw error
      await this.#options.client.create(Events, { ...event, ...value })
    }
  }

  #tidy(): void {
    const nowMs = this.#clock.now()
    for (const [key, series] of this.#series) {
      const isOver = nowMs - series.lastMs >= OVER_AFTER_MS
      if (isOver) this.#series.delete(key)
      const isDue = isOver ? series.count > 2 : series.count > 1 && nowMs - series.writtenMs >= WRITE_EVERY_MS
      if (isDue) this.#later(series, () => this.#write(series))
    }
  }

  #eventOf(regarding: ObjectReference, { type, reason, action, note, related }: SeriesNote): Event {
    const { controller, instance } = this.#options
    const nowMs = this.#clock.now()
    const namespace = regarding.namespace === undefined || regarding.namespace === '' ? 'default' : regarding.namespace
    return {
      metadata: { name: this.#names.nameOf(regarding.name ?? '', nowMs), namespace },
      eventTime: microTimeOf(nowMs),
      reportingController: controller,
      reportingInstance: instance,
      action,
      reason,
      regarding,
      ...(related !== undefined && { related }),
      note: cut(note),
      type,
      deprecatedSource: {},
      deprecatedFirstTimestamp: null,
      deprecatedLastTimestamp: null,
    }
  }
}

function cut(note: string): string {
  const bytes = Buffer.from(note)
  if (bytes.length <= MAX_NOTE_BYTES) return note
  const suffix = ' ...'
  return (
    bytes
      .subarray(0, MAX_NOTE_BYTES - suffix.length)
      .toString('utf8')
      .replace(/\uFFFD$/, '') + suffix
  )
}
