/** Admission as the registry sees it: a chain that may change what is written, then one that may refuse it. */
import type { Kind } from '#apis/kinds.ts'
import type { GroupVersionKind, GroupVersionResource } from '#meta/kind.ts'
import type { KubeObject } from '#meta/object.ts'

import type { ObjectReader, User } from './resource.ts'

export type Operation = 'CREATE' | 'UPDATE' | 'DELETE' | 'CONNECT'

/** What a request is about. */
export interface Subject {
  readonly operation: Operation
  /** The resource addressed, in the version it is stored in. */
  readonly kind: Kind
  readonly name: string
  /** What will be written; mutating plugins change it in place. Absent for DELETE. */
  readonly object: KubeObject | undefined
  /** What is there now. Absent for CREATE. Never changed. */
  readonly oldObject: KubeObject | undefined
}

/** The first value of a key stays. `from` is the level from which on the event shows it; default: all. */
export type Annotate = (key: string, value: string, from?: 'Request') => void

/** One write, as plugins look at it. */
export interface Attributes extends Subject {
  readonly subresource: string
  /** The resource as the request names it: in the version, and for events in the group, that the client speaks. */
  readonly addressed: GroupVersionResource
  /** The kind of `object`: another one for subresources with a body of their own. */
  readonly objectKind: GroupVersionKind
  readonly namespace: string
  /** Create, update, patch or delete options of the request. */
  readonly options: Readonly<Record<string, unknown>>
  readonly dryRun: boolean
  readonly user: User
  readonly objects: ObjectReader
  /** Adds a Warning header to the answer. */
  warn(text: string): void
  /** Adds to the audit event of the request; absent when there is none. Keys are `<domain>/<name>`. */
  readonly annotate?: Annotate | undefined
  readonly signal: AbortSignal
  /** After this, by `clock.elapsed()`, nobody waits for the outcome; absent: somebody always does. */
  readonly deadlineMs?: number | undefined
}

/** Throws StatusError to refuse, or rejects with it; a promise only when there is something to wait for. */
export interface Admission {
  mutate(attributes: Attributes): Promise<void> | void
  validate(attributes: Attributes): Promise<void> | void
}

/** Everything is let in as it is. */
export const admitAll: Admission = {
  mutate: () => undefined,
  validate: () => undefined,
}
