/**
 * Events for people: what a component did about an object, and why. The same event again counts up the one that is there;
 * many alike about one object become one; who talks too much about one object is not heard for a while. The rules and
 * numbers are client-go's. Recording never fails and nobody waits for it. They are written one after the other, and what is
 * said again while it waits to be written is written once.
 */
import { type Event, Events, type EventSource, type ObjectReference } from '#apis/core/v1.ts'
import { createTokenBucket, type TokenBucket } from '#lib/backoff.ts'
import type { Clock } from '#lib/clock.ts'
import { apiVersionOf, kindOf } from '#meta/kind.ts'
import type { KubeObject } from '#meta/object.ts'
import { isNotFound } from '#meta/status.ts'
import { timeOf } from '#meta/time.ts'

import type { ApiClient } from './api-client.ts'
import { EventNames } from './event-names.ts'

export interface EventRecorderOptions {
  readonly client: ApiClient
  readonly source: EventSource
  /** What waits when it is aborted is lost: there may be nobody left to write to. */
  readonly signal?: AbortSignal
  readonly onError?: (error: unknown) => void
}

/** What is said, in the words of `kubectl get events`. */
export interface EventNote {
  readonly type: 'Normal' | 'Warning'
  readonly reason: string
  readonly message: string
  readonly annotations?: Readonly<Record<string, string>>
}

/** How many objects and events are remembered. */
const MEMORY = 4096
/** More than this many alike within the interval are told as one. */
const SIMILAR_LIMIT = 10
const SIMILAR_INTERVAL_MS = 600_000
/** About one object: so many at once, then one in five minutes. */
const SPAM = { qps: 1 / 300, burst: 25 }
/** Different ones that wait to be written; what comes on top is lost. */
const MAX_WAITING = 1000

interface Similar {
  readonly messages: Set<string>
  lastMs: number
}

/** The event as it was last written. */
interface Written {
  readonly name: string
  count: number
}

/** What is to be written of one event, since it was last. */
interface Waiting {
  readonly reference: ObjectReference
  note: EventNote
  times: number
  readonly firstMs: number
  lastMs: number
}

const COMBINED = '(combined from similar events): '

export class EventRecorder {
  readonly #options: EventRecorderOptions
  readonly #clock: Clock
  readonly #similar = new Map<string, Similar>()
  readonly #spam = new Map<string, TokenBucket<string>>()
  readonly #written = new Map<string, Written>()
  readonly #names: EventNames
  readonly #waiting = new Map<string, Waiting>()
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
      this.#waiting.set(key, { reference, note: { ...note, message }, times: 1, firstMs: nowMs, lastMs: nowMs })
      this.#writing ??= this.#writeWaiting()
    }
  }

  /** Resolves when everything recorded so far has been written, or given up. */
  async flush(): Promise<void> {
    await this.#writing
  }

  async #writeWaiting(): Promise<void> {
    // Whoever records does not wait for as much as the making of a request.
    await Promise.resolve()
    for (const [key, waiting] of this.#waiting) {
      this.#waiting.delete(key)
      try {
        if (!this.#isOver) await this.#write(waiting, key)
      } catch (error) {
        this.#options.onError?.(error)
      }
    }
    this.#writing = undefined
  }

  get #isOver(): boolean {
    return this.#options.signal?.aborted ?? false
  }

  /** When there were too many that differ in their message only, they are one with a message that says so. */
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

  async #write(waiting: Waiting, key: string): Promise<void> {
    const before = this.#written.get(key)
    if (before !== undefined && (await this.#countUp(waiting, before))) return
    const event = await this.#options.client.create(Events, this.#eventOf(waiting))
    const { name = '' } = event.metadata
    remember(this.#written, key, { name, count: waiting.times })
  }

  /** False when the event has gone meanwhile: then there is a new one. */
  async #countUp({ reference, note, times, lastMs }: Waiting, before: Written): Promise<boolean> {
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

  #eventOf({ reference, note, times, firstMs, lastMs }: Waiting): Omit<Event, 'kind'> {
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
      // Upstream makes those that stand for several anew, and leaves that out.
      ...(message.startsWith(COMBINED)
        ? { reportingComponent: '', reportingInstance: '' }
        : { reportingComponent: source.component ?? '', reportingInstance: source.host ?? '' }),
    }
  }
}

const startSimilar = (nowMs: number): Similar => ({ messages: new Set(), lastMs: nowMs })

/** Events about what is in no namespace are in `default`. */
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

/** The one used last is the last; the first goes when there are too many. */
function remember<V>(memory: Map<string, V>, key: string, value: V): void {
  memory.delete(key)
  memory.set(key, value)
  if (memory.size > MEMORY) memory.delete(memory.keys().next().value ?? '')
}
