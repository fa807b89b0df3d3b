/** The types of watch events. */
import { type KubeObject } from './object.ts'
import { type Status } from './status.ts'

/** A change of an object, or a bookmark for its resourceVersion. */
export interface ObjectEvent<T extends KubeObject = KubeObject> {
  readonly type: 'ADDED' | 'MODIFIED' | 'DELETED' | 'BOOKMARK'
  /** The object after the change; for DELETED the last state, with the version of the deletion. */
  readonly object: T
}

/** The watch is over. */
export interface ErrorEvent {
  readonly type: 'ERROR'
  readonly object: Status
}

export type WatchEvent<T extends KubeObject = KubeObject> = ObjectEvent<T> | ErrorEvent

/** The annotation of the bookmark that ends the initial events. */
export const initialEventsEnd = 'k8s.io/initial-events-end'

export function isInitialEventsEnd(event: WatchEvent): boolean {
  return event.type === 'BOOKMARK' && event.object.metadata.annotations?.[initialEventsEnd] === 'true'
}
