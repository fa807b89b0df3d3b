/** Describes events: the section that ends most descriptions. */
import type { Event } from '#apis/core/v1.ts'
import type { KubeObject } from '#meta/object.ts'
import { epochMsOf } from '#meta/time.ts'

import type { RelatedObjects } from './related.ts'
import { cells, type Part } from './rows.ts'
import { sinceText } from './times.ts'

export interface EventSubject {
  readonly name: string
  readonly namespace?: string | undefined
  /** Empty matches any kind. */
  readonly kind?: string | undefined
  readonly uid?: string | undefined
}

/** The events of an object; a failure to list them yields none. */
export async function eventsAbout(around: RelatedObjects, subject: EventSubject): Promise<Event[]> {
  const { name, namespace = '', kind = '', uid = '' } = subject
  const fields = [
    ...(kind === '' ? [] : [`involvedObject.kind=${kind}`]),
    `involvedObject.name=${name}`,
    `involvedObject.namespace=${namespace}`,
    ...(uid === '' ? [] : [`involvedObject.uid=${uid}`]),
  ]
  return around.list<Event>('v1/events', namespace, { fields: fields.join(',') }).catch(() => [])
}

export async function eventsOf({ kind, metadata }: KubeObject, around: RelatedObjects): Promise<Part[]> {
  const { name = '', namespace, uid } = metadata
  return eventRows(await eventsAbout(around, { name, namespace, uid, kind }), around.nowMs)
}

/** In the order of their last occurrences. */
export function eventRows(events: readonly Event[], nowMs: number): Part[] {
  if (events.length === 0) return [['Events', '<none>']]
  const lastMs = ({ lastTimestamp }: Event): number =>
    lastTimestamp ? epochMsOf(lastTimestamp) : Number.MIN_SAFE_INTEGER
  const rows = events
    .toSorted((one, other) => lastMs(one) - lastMs(other))
    .map((event) => {
      const source = event.source?.component || event.reportingComponent
      return cells(event.type, event.reason, ageOf(event, nowMs), source, messageOf(event))
    })
  const columns = cells('Type', 'Reason', 'Age', 'From', 'Message')
  return [['Events', [columns, cells('----', '------', '----', '----', '-------'), ...rows]]]
}

function ageOf({ eventTime, firstTimestamp, lastTimestamp, series, count = 0 }: Event, nowMs: number): string {
  const first = sinceText(eventTime ?? firstTimestamp, nowMs)
  if (series !== undefined) return `${sinceText(series.lastObservedTime, nowMs)} (x${series.count ?? 0} over ${first})`
  return count > 1 ? `${sinceText(lastTimestamp, nowMs)} (x${count} over ${first})` : first
}

function messageOf({ message = '', involvedObject }: Event): string {
  const path = involvedObject.fieldPath ?? ''
  return path === '' ? message.trim() : `${path}: ${message.trim()}`
}
