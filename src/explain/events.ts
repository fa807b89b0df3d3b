/** Events of an object: the words of the components that failed. */
import { type Event, Events } from '#apis/core/v1.ts'
import type { KubeObject } from '#meta/object.ts'
import { epochMsOf } from '#meta/time.ts'

import { versionOf } from './citation.ts'
import type { Step } from './explanation.ts'
import { HIDDEN, type Reader } from './reader.ts'

/** Of this incarnation of the object, oldest first. Empty if the asker may not list them. */
export async function eventsOf({ metadata }: KubeObject, reader: Reader): Promise<readonly Event[]> {
  const { namespace, uid = '' } = metadata
  // Events about objects without a namespace are in `default`.
  const selection = { namespace: namespace ?? 'default', fieldSelector: `involvedObject.uid=${uid}` }
  const events = await reader.list(Events, selection)
  return events === HIDDEN ? [] : events.toSorted((a, b) => lastMs(a) - lastMs(b))
}

/** The newest event with one of these reasons. */
export function newestEvent(events: readonly Event[], ...reasons: readonly string[]): Event | undefined {
  return events.findLast(({ reason = '' }) => reasons.includes(reason))
}

export function eventStep(event: Event, reader: Reader): Step {
  const { involvedObject, source, reportingComponent, reason = '', message = '' } = event
  const at = lastTime(event)
  const { namespace, name = '' } = involvedObject
  return {
    ...(at !== undefined && { at }),
    revision: event.metadata.resourceVersion ?? '',
    actor: reportingComponent === '' ? (source?.component ?? '') : reportingComponent,
    did: `reported ${reason}: ${message.trim()}`,
    object: `${(involvedObject.kind ?? '').toLowerCase()}s/${namespace === undefined ? '' : `${namespace}/`}${name}`,
    because: [versionOf({ kind: Events, object: event })],
    evidence: reader.cite(Events, event, 'reason', 'message'),
    certainty: 'reported',
  }
}

function lastTime({ series, lastTimestamp, eventTime, firstTimestamp, metadata }: Event): string | undefined {
  return (
    series?.lastObservedTime ?? lastTimestamp ?? eventTime ?? firstTimestamp ?? metadata.creationTimestamp ?? undefined
  )
}

/** The time of its last occurrence. */
export function lastMs(event: Event): number {
  const time = lastTime(event)
  return time === undefined ? 0 : epochMsOf(time)
}
