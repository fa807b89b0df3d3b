/** Groups the events of a cluster by minute and by object, the newest first. */
import type { Event } from '#apis/core/v1.ts'

import type { Ref } from '../objects/ref.ts'
import { type Moment, timelineOf } from './timeline.ts'

export interface EventFilter {
  /** Of the object. Empty: all. */
  readonly kind: string
  /** Empty: all. */
  readonly reason: string
  readonly isWarning: boolean
}

export interface ObjectMoments {
  readonly ref: Ref
  readonly moments: readonly Moment[]
  readonly hasWarning: boolean
}

export interface Minute {
  readonly startMs: number
  /** Begins another day than the minute above it. */
  readonly isNewDay: boolean
  readonly objects: readonly ObjectMoments[]
}

export const MINUTE_MS = 60_000

export function minutesOf(events: readonly Event[], filter: EventFilter): readonly Minute[] {
  const byMinute = new Map<number, Map<string, Moment[]>>()
  for (const moment of timelineOf(events.filter((event) => fits(event, filter)))) {
    const startMs = minuteOf(moment.timeMs)
    const objects = byMinute.get(startMs) ?? new Map<string, Moment[]>()
    byMinute.set(startMs, objects)
    const key = keyOf(moment.event)
    const moments = objects.get(key)
    if (moments === undefined) objects.set(key, [moment])
    else moments.push(moment)
  }
  let day = ''
  return [...byMinute].map(([startMs, objects]) => {
    const isNewDay = day !== (day = new Date(startMs).toDateString())
    return { startMs, isNewDay, objects: [...objects.values()].map(objectMoments) }
  })
}

function fits({ involvedObject, reason = '', type }: Event, filter: EventFilter): boolean {
  return (
    (filter.kind === '' || involvedObject?.kind === filter.kind) &&
    (filter.reason === '' || reason === filter.reason) &&
    (!filter.isWarning || type === 'Warning')
  )
}

/** An event without a valid time is the oldest. */
function minuteOf(timeMs: number): number {
  return Number.isFinite(timeMs) ? Math.floor(timeMs / MINUTE_MS) * MINUTE_MS : 0
}

function keyOf({ involvedObject }: Event): string {
  const { kind = '', namespace = '', name = '' } = involvedObject ?? {}
  return JSON.stringify([kind, namespace, name])
}

function objectMoments(moments: readonly Moment[]): ObjectMoments {
  const { apiVersion = '', kind = '', namespace, name = '' } = moments[0]?.event.involvedObject ?? {}
  return {
    ref: { apiVersion, kind, namespace, name },
    moments,
    hasWarning: moments.some(({ event }) => event.type === 'Warning'),
  }
}

export interface Activity {
  readonly startMs: number
  readonly normal: number
  readonly warnings: number
}

/** How many events each of the last minutes has, the oldest first. */
export function activityOf(minutes: readonly Minute[], nowMs: number, count: number): readonly Activity[] {
  const known = new Map(minutes.map((minute) => [minute.startMs, minute.objects.flatMap(({ moments }) => moments)]))
  const last = minuteOf(nowMs)
  return Array.from({ length: count }, (_, at) => {
    const startMs = last - (count - 1 - at) * MINUTE_MS
    const moments = known.get(startMs) ?? []
    const warnings = moments.filter(({ event }) => event.type === 'Warning').length
    return { startMs, warnings, normal: moments.length - warnings }
  })
}

export interface Choices {
  readonly kinds: readonly string[]
  readonly reasons: readonly string[]
}

/** The kinds and reasons of the events, for the filter. */
export function choicesOf(events: readonly Event[]): Choices {
  const sorted = (texts: readonly (string | undefined)[]): readonly string[] => {
    const known = texts.flatMap((text) => (text === undefined || text === '' ? [] : [text]))
    return [...new Set(known)].toSorted((a, b) => (a < b ? -1 : Number(a > b)))
  }
  return {
    kinds: sorted(events.map(({ involvedObject }) => involvedObject?.kind)),
    reasons: sorted(events.map(({ reason }) => reason)),
  }
}
