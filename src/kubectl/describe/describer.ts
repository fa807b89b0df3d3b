/** What a describer is, and what it may ask of the cluster around the object. */
import type { KubeObject } from '#meta/object.ts'

export interface Selecting {
  readonly labels?: string
  readonly fields?: string
}

/** Resources are named with their version: `v1/pods`, `apps/v1/replicasets`. */
export interface Surroundings {
  readonly nowMs: number
  readonly showsEvents: boolean
  /** All of them, in however many pages; of all namespaces when that is empty. Throws StatusError. */
  list<T extends KubeObject>(resource: string, namespace: string, selecting?: Selecting): Promise<T[]>
  /** Throws StatusError. */
  get<T extends KubeObject>(resource: string, namespace: string, name: string): Promise<T>
}

/** The description of an object; ends with a line break. */
export type Describer<T extends KubeObject = KubeObject> = (object: T, around: Surroundings) => Promise<string>

/** A describer and the version of the kind that it describes. */
export interface DescribedKind {
  readonly resource: string
  readonly describe: Describer<never>
}

export function describes<T extends KubeObject>(resource: string, describe: Describer<T>): DescribedKind {
  return { resource, describe }
}
