/** What a watch delivers. */
import { type KubeObject } from './object.ts'
import { type Status } from './status.ts'

/** Something happened to an object, or with a bookmark nothing did up to its resourceVersion. */
export interface ObjectEvent<T extends KubeObject = KubeObject> {
  readonly type: 'ADDED' | 'MODIFIED' | 'DELETED' | 'BOOKMARK'
  /** After the change; for DELETED the last state, with the version of the deletion. */
  readonly object: T
}

/** The watch is over. */
export interface ErrorEvent {
  readonly type: 'ERROR'
  readonly object: Status
}

export type WatchEvent<T extends KubeObject = KubeObject> = ObjectEvent<T> | ErrorEvent

/** On the bookmark that ends the objects that existed when the watch began. */
export const initialEventsEnd = 'k8s.io/initial-events-end'

export function isInitialEventsEnd(event: WatchEvent): boolean {
  return event.type === 'BOOKMARK' && event.object.metadata.annotations?.[initialEventsEnd] === 'true'
}
