/** One link of the chain that says why an object is not ready. */
import type { Event, Node } from '#apis/core/v1.ts'

import type { Ref } from '../objects/ref.ts'

export interface Cause {
  /** The problem in short. */
  readonly text: string
  /** The words of the component that reported it. */
  readonly detail?: string | undefined
  /** `busy`: it may pass by itself. */
  readonly tone: 'bad' | 'busy'
  readonly to?: Ref | undefined
}

/** Other objects that explain the first one. */
export interface Evidence {
  /** Events of the object and of those that belong to it. */
  readonly events: readonly Event[]
  /** The node of a pod, once it is read. */
  readonly node?: Node | undefined
}

/** The time of the last occurrence. */
export function eventTime({ series, lastTimestamp, eventTime, metadata, firstTimestamp }: Event): number {
  const text = series?.lastObservedTime ?? lastTimestamp ?? eventTime ?? firstTimestamp ?? metadata.creationTimestamp
  return text == null ? 0 : Date.parse(text)
}

/** The newest event with one of these reasons. */
export function newest(events: readonly Event[], ...reasons: readonly string[]): Event | undefined {
  return events
    .filter(({ reason = '' }) => reasons.includes(reason))
    .sort((a, b) => eventTime(b) - eventTime(a))
    .at(0)
}
