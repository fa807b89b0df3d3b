/**
 * Events of the newer sort (events.k8s.io/v1), as the scheduler and kube-proxy write them. The first of a kind is
 * written; when the same is said again about the same within six minutes, it becomes a series, which is written when it
 * begins, every half hour and when it is over. Recording never fails and nobody waits for it.
 */
import type { ObjectReference } from '#apis/core/v1.ts'
import { type Event, Events } from '#apis/events/v1.ts'
import { type Clock, every, type Timer } from '#lib/clock.ts'
import { isNotFound } from '#meta/status.ts'
import { microTimeOf } from '#meta/time.ts'

import type { ApiClient } from './api-client.ts'

export interface SeriesRecorderOptions {
  readonly client: ApiClient
  /** `default-scheduler`. */
  readonly controller: string
  readonly instance: string
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
}

const OVER_AFTER_MS = 6 * 60_000
const WRITE_EVERY_MS = 30 * 60_000
/** More bytes are not allowed. */
const MAX_NOTE_BYTES = 1024

export class SeriesRecorder {
  readonly #options: SeriesRecorderOptions
  readonly #clock: Clock
  readonly #series = new Map<string, Series>()
  readonly #timer: Timer
  #last: Promise<void> = Promise.resolve()
  #sequence = 0

  constructor(options: SeriesRecorderOptions) {
    this.#options = options
    this.#clock = options.client.clock
    this.#timer = every(this.#clock, OVER_AFTER_MS, () => this.#tidy())
  }

  record(regarding: ObjectReference, said: SeriesNote): void {
    const { type, reason, action, related } = said
    const key = JSON.stringify([type, action, reason, regarding, related])
    const nowMs = this.#clock.now()
    const known = this.#series.get(key)
    if (known !== undefined && nowMs - known.lastMs < OVER_AFTER_MS) {
      known.count++
      known.lastMs = nowMs
      if (known.count === 2) this.#later(() => this.#write(known))
      return
    }
    const event = this.#eventOf(regarding, said)
    this.#series.set(key, { event, count: 1, lastMs: nowMs, writtenMs: nowMs })
    this.#later(() => this.#options.client.create(Events, event))
  }

  /** Resolves when everything recorded so far has been written, or given up. */
  flush(): Promise<void> {
    return this.#last
  }

  close(): void {
    this.#timer.cancel()
  }

  #later(write: () => Promise<unknown>): void {
    this.#last = this.#last.then(write).then(
      () => undefined,
      (error: unknown) => this.#options.onError?.(error),
    )
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
      if (isDue) this.#later(() => this.#write(series))
    }
  }

  #eventOf(regarding: ObjectReference, { type, reason, action, note, related }: SeriesNote): Event {
    const { controller, instance } = this.#options
    const nowMs = this.#clock.now()
    const stamp = (BigInt(Math.trunc(nowMs)) * 1_000_000n + BigInt(this.#sequence++ % 1_000_000)).toString(16)
    const namespace = regarding.namespace === undefined || regarding.namespace === '' ? 'default' : regarding.namespace
    return {
      metadata: { name: `${regarding.name ?? ''}.${stamp}`, namespace },
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
