/** The interface through which describers read other objects of the cluster, such as the events of a pod. */
import type { KubeObject } from '#meta/object.ts'

export interface RelatedSelector {
  readonly labels?: string
  readonly fields?: string
}

/** Resource names include the version: `v1/pods`, `apps/v1/replicasets`. */
export interface RelatedObjects {
  readonly nowMs: number
  readonly showsEvents: boolean
  /** All objects, over all pages; an empty namespace means all namespaces. Throws StatusError. */
  list<T extends KubeObject>(resource: string, namespace: string, selecting?: RelatedSelector): Promise<T[]>
  /** Throws StatusError. */
  get<T extends KubeObject>(resource: string, namespace: string, name: string): Promise<T>
}
