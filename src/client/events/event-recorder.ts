/**
 * Records core/v1 events with client-go's correlation. A repeated event increments `count`; many similar events about
 * one object become one; a rate limit drops bursts about one object. `record` never fails and never waits. Events are
 * written one after the other, and repeats of a waiting event are merged.
 */
import { type Event, Events, type EventSource, type ObjectReference } from '#apis/core/v1.ts'
import { createTokenBucket, type TokenBucket } from '#lib/backoff.ts'
import { activeCauses, type Cause, withCauses } from '#lib/causes.ts'
import type { Clock } from '#lib/clock.ts'
import { apiVersionOf, kindOf } from '#meta/kind.ts'
import type { KubeObject } from '#meta/object.ts'
import { isNotFound } from '#meta/status.ts'
import { timeOf } from '#meta/time.ts'

import type { ApiClient } from '../api-client.ts'
import { EventNames } from './event-names.ts'

export interface EventRecorderOptions {
  readonly client: ApiClient
  readonly source: EventSource
  /** Aborting it drops waiting events. */
  readonly signal?: AbortSignal
  readonly onError?: (error: unknown) => void
}

/** The columns of `kubectl get events`. */
export interface EventNote {
  readonly type: 'Normal' | 'Warning'
  readonly reason: string
  readonly message: string
  readonly annotations?: Readonly<Record<string, string>>
}

/** Objects and events in each cache. */
const MEMORY = 4096
/** More similar events than this within the interval become one. */
const SIMILAR_LIMIT = 10
const SIMILAR_INTERVAL_MS = 600_000
/** Token bucket for one object: this burst, then one event in five minutes. */
const SPAM = { qps: 1 / 300, burst: 25 }
/** Different events in the queue; further ones are dropped. */
const MAX_WAITING = 1000

interface SimilarEvents {
  readonly messages: Set<string>
  lastMs: number
}

/** The last written state of an event. */
interface WrittenEvent {
  readonly name: string
  count: number
}

/** A pending write of one event, with the repeats since the last write. */
interface PendingEvent {
  readonly reference: ObjectReference
  note: EventNote
  times: number
  readonly firstMs: number
  lastMs: number
  /** Those of the first occurrence. */
  readonly causes: readonly Cause[]
}

const COMBINED = '(combined from similar events): '

export class EventRecorder {
  readonly #options: EventRecorderOptions
  readonly #clock: Clock
  readonly #similar = new Map<string, SimilarEvents>()
  readonly #spam = new Map<string, TokenBucket<string>>()
  readonly #written = new Map<string, WrittenEvent>()
  readonly #names: EventNames
  readonly #waiting = new Map<string, PendingEvent>()
  #writing: Promise<void> | undefined

  constructor(options: EventRecorderOptions) {
    this.#options = options
    this.#clock = options.client.clock
    this.#names = new EventNames(sourceKey(options.source))
  }

  record(about: KubeObject | ObjectReference, note: EventNote): void {
    const reference = referenceTo(about)
    const { message, key } = this.#aggregate(reference, note)
    if (this.#isSpam(reference) || this.#isOver) return
    const nowMs = this.#clock.now()
    const known = this.#waiting.get(key)
    if (known !== undefined) {
      known.times++
      known.note = { ...note, message }
      known.lastMs = nowMs
    } else if (this.#waiting.size < MAX_WAITING) {
      this.#waiting.set(key, {
        reference,
        note: { ...note, message },
        times: 1,
        firstMs: nowMs,
        lastMs: nowMs,
        causes: activeCauses(),
      })
      this.#writing ??= this.#writeWaiting()
    }
  }

  /** Resolves when every event recorded so far is written or dropped. */
  async flush(): Promise<void> {
    await this.#writing
  }

  async #writeWaiting(): Promise<void> {
    // Builds the request outside of the caller's stack.
    await Promise.resolve()
    for (const [key, waiting] of this.#waiting) {
      this.#waiting.delete(key)
      try {
        if (!this.#isOver) await withCauses(waiting.causes, () => this.#write(waiting, key))
      } catch (error) {
        this.#options.onError?.(error)
      }
    }
    this.#writing = undefined
  }

  get #isOver(): boolean {
    return this.#options.signal?.aborted ?? false
  }

  /** Replaces the message when too many events differ only in their message. */
  #aggregate(reference: ObjectReference, { type, reason, message }: EventNote): { message: string; key: string } {
    const about = `${sourceKey(this.#options.source)}|${referenceKey(reference)}|${type}|${reason}`
    const nowMs = this.#clock.elapsed()
    const known = this.#similar.get(about)
    const similar = known !== undefined && nowMs - known.lastMs <= SIMILAR_INTERVAL_MS ? known : startSimilar(nowMs)
    similar.messages.add(message)
    similar.lastMs = nowMs
    remember(this.#similar, about, similar)
    if (similar.messages.size < SIMILAR_LIMIT) return { message, key: `${about}|${message}` }
    similar.messages.delete(similar.messages.values().next().value ?? '')
    return { message: `${COMBINED}${message}`, key: about }
  }

  #isSpam(reference: ObjectReference): boolean {
    const about = `${sourceKey(this.#options.source)}|${referenceKey(reference)}`
    const bucket = this.#spam.get(about) ?? createTokenBucket<string>(this.#clock, SPAM)
    remember(this.#spam, about, bucket)
    return !bucket.tryTake()
  }

  async #write(waiting: PendingEvent, key: string): Promise<void> {
    const before = this.#written.get(key)
    if (before !== undefined && (await this.#countUp(waiting, before))) return
    const event = await this.#options.client.create(Events, this.#eventOf(waiting))
    const { name = '' } = event.metadata
    remember(this.#written, key, { name, count: waiting.times })
  }

  /** Returns false if the server no longer has the event; the caller then creates a new one. */
  async #countUp({ reference, note, times, lastMs }: PendingEvent, before: WrittenEvent): Promise<boolean> {
    const value = { message: note.message, count: before.count + times, lastTimestamp: timeOf(lastMs) }
    const where = { namespace: namespaceOf(reference), name: before.name }
    try {
      await this.#options.client.patch(Events, where, { type: 'strategic', value })
      before.count += times
      return true
    } catch (error) {
      if (isNotFound(error)) return false
      throw error
    }
  }

  #eventOf({ reference, note, times, firstMs, lastMs }: PendingEvent): Omit<Event, 'kind'> {
    const { source } = this.#options
    const { type, reason, message, annotations } = note
    return {
      metadata: {
        name: this.#names.nameOf(reference.name ?? '', firstMs),
        namespace: namespaceOf(reference),
        ...(annotations !== undefined && { annotations: { ...annotations } }),
      },
      involvedObject: reference,
      reason,
      message,
      source,
      firstTimestamp: timeOf(firstMs),
      lastTimestamp: timeOf(lastMs),
      count: times,
      type,
      eventTime: null,
      // Upstream leaves out the reporter of an aggregated event.
      ...(message.startsWith(COMBINED)
        ? { reportingComponent: '', reportingInstance: '' }
        : { reportingComponent: source.component ?? '', reportingInstance: source.host ?? '' }),
    }
  }
}

const startSimilar = (nowMs: number): SimilarEvents => ({ messages: new Set(), lastMs: nowMs })

/** Events about cluster-scoped objects go to `default`. */
const namespaceOf = ({ namespace }: ObjectReference): string =>
  namespace === undefined || namespace === '' ? 'default' : namespace

export function referenceTo(about: KubeObject | ObjectReference): ObjectReference {
  if (!('metadata' in about)) return about
  const { name, namespace, uid, resourceVersion } = about.metadata
  const { kind, ...version } = kindOf(about)
  return {
    kind,
    ...(namespace !== undefined && { namespace }),
    ...(name !== undefined && { name }),
    ...(uid !== undefined && { uid }),
    apiVersion: apiVersionOf(version),
    ...(resourceVersion !== undefined && { resourceVersion }),
  }
}

const sourceKey = ({ component = '', host = '' }: EventSource): string => `${component}|${host}`

const referenceKey = ({ kind = '', namespace = '', name = '', uid = '', apiVersion = '' }: ObjectReference): string =>
  `${kind}|${namespace}|${name}|${uid}|${apiVersion}`

/** Least-recently-used order: deletes the oldest entry above the limit. */
function remember<V>(memory: Map<string, V>, key: string, value: V): void {
  memory.delete(key)
  memory.set(key, value)
  if (memory.size > MEMORY) memory.delete(memory.keys().next().value ?? '')
}
