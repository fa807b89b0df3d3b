/**
 * The interface for reading the current state of the objects that a token depends on: service account, secret, pod and
 * node.
 */
import type { Kind } from '#apis/kinds.ts'
import type { KubeObject } from '#meta/object.ts'

/** Returns the same entry as long as the object has not changed. */
export interface LiveObject {
  readonly object: KubeObject
}

export interface LiveObjects {
  /** Reads from the cache without waiting; undefined if the cache does not have the object. */
  peek(kind: Kind, namespace: string, name: string): LiveObject | undefined
  /** Reads the newest state. */
  get(kind: Kind, namespace: string, name: string): Promise<LiveObject | undefined>
}
