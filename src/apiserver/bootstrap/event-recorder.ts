/** Records Events of the server about objects. A repetition within minutes becomes a series: one Event with a count. */
import { type Event, Events } from '#apis/core/v1.ts'
import type { Kind } from '#apis/kinds.ts'
import { apiVersionOf } from '#meta/kind.ts'
import type { KubeObject } from '#meta/object.ts'
import { isNotFound } from '#meta/status.ts'
import { microTimeOf } from '#meta/time.ts'

import type { Registry } from '../registry/registry.ts'

export interface ServerEvent {
  readonly kind: Kind
  /** The object, of that kind. */
  readonly regarding: KubeObject
  readonly type: 'Normal' | 'Warning'
  readonly reason: string
  readonly action: string
  readonly message: string
}

export interface EventRecorderOptions {
  /** The reporting controller: `ipallocator-repair-controller`. */
  readonly controller: string
  readonly hostname: string
  readonly onError: (error: unknown) => void
}

/** Upstream's `finishTime`: a series without repetition for this long ends. */
const SERIES_MS = 360_000

interface Series {
  readonly namespace: string
  readonly name: string
  count: number
  lastMs: number
}

/** Never throws and never waits: errors go to `onError`. */
export function createEventRecorder(registry: Registry, options: EventRecorderOptions): (event: ServerEvent) => void {
  const { clock, random } = registry.services
  const running = new Map<string, Series>()
  const begin = async (key: string, event: ServerEvent, nowMs: number): Promise<void> => {
    // Several servers may record the same event at the same moment.
    const nanos = BigInt(nowMs) * 1_000_000n + BigInt(random.int(1_000_000))
    const { namespace = 'default' } = event.regarding.metadata
    const name = `${event.regarding.metadata.name}.${nanos.toString(16)}`
    const object = newEvent(event, options, nowMs)
    object.metadata = { name, namespace }
    running.set(key, { namespace, name, count: 1, lastMs: nowMs })
    await registry.writer.create(Events, object)
  }
  const tell = async (event: ServerEvent): Promise<void> => {
    const nowMs = clock.now()
    for (const [key, { lastMs }] of running) if (nowMs - lastMs > SERIES_MS) running.delete(key)
    const key = JSON.stringify([event.regarding.metadata.uid, event.reason, event.action, event.message])
    const series = running.get(key)
    if (series === undefined) return begin(key, event, nowMs)
    series.count += 1
    series.lastMs = nowMs
    try {
      await countAgain(registry, series)
    } catch (error) {
      if (!isNotFound(error)) throw error
      // A user deleted it, or it expired.
      await begin(key, event, nowMs)
    }
  }
  return (event) => void tell(event).catch(options.onError)
}

async function countAgain(registry: Registry, { namespace, name, count, lastMs }: Series): Promise<void> {
  const series = { count, lastObservedTime: microTimeOf(lastMs) }
  await registry.writer.update(Events, { namespace, name }, (event) => ({ ...event, series }))
}

function newEvent(
  { kind, regarding, ...content }: ServerEvent,
  { controller, hostname }: EventRecorderOptions,
  nowMs: number,
): Event {
  const { name = '', namespace, uid, resourceVersion } = regarding.metadata
  return {
    kind: 'Event',
    apiVersion: 'v1',
    metadata: {},
    involvedObject: {
      kind: kind.kind,
      apiVersion: apiVersionOf(kind),
      name,
      ...(namespace !== undefined && { namespace }),
      ...(uid !== undefined && { uid }),
      ...(resourceVersion !== undefined && { resourceVersion }),
    },
    ...content,
    source: {},
    firstTimestamp: null,
    lastTimestamp: null,
    eventTime: microTimeOf(nowMs),
    reportingComponent: controller,
    reportingInstance: `${controller}-${hostname}`,
  }
}
