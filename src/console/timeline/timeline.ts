/** Orders events as a time line: the newest first, by days. */
import type { Event } from '#apis/core/v1.ts'

import { eventTime } from '../why/cause.ts'

export interface Moment {
  readonly event: Event
  readonly timeMs: number
  readonly count: number
  /** Begins another day than the moment above it. */
  readonly isNewDay: boolean
}

export function timelineOf(events: readonly Event[]): readonly Moment[] {
  const sorted = events
    .map((event) => ({ event, timeMs: eventTime(event), count: event.series?.count ?? event.count ?? 1 }))
    .sort((a, b) => b.timeMs - a.timeMs || versionOf(b.event) - versionOf(a.event))
  return sorted.map((moment, at) => ({ ...moment, isNewDay: dayOf(moment.timeMs) !== dayOf(sorted[at - 1]?.timeMs) }))
}

/** Times have seconds; versions order what happened within one. */
function versionOf({ metadata }: Event): number {
  return Number(metadata.resourceVersion ?? 0)
}

function dayOf(timeMs: number | undefined): string {
  return timeMs === undefined ? '' : new Date(timeMs).toDateString()
}

/** The component that wrote an event. */
export function reporterOf({ source, reportingComponent }: Event): string {
  return source?.component ?? reportingComponent ?? ''
}
