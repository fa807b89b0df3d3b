/** The admission interface that the registry calls: a mutating chain, then a validating one. */
import type { Kind } from '#apis/kinds.ts'
import type { User } from '#auth/user.ts'
import type { Annotate } from '#component/requests/call.ts'
import type { GroupVersionKind, GroupVersionResource } from '#meta/kind.ts'
import type { KubeObject } from '#meta/object.ts'

import type { ObjectReader } from './resource.ts'

export type Operation = 'CREATE' | 'UPDATE' | 'DELETE' | 'CONNECT'

/** The operation of a request. */
export interface Subject {
  readonly operation: Operation
  /** The addressed resource, in its storage version. */
  readonly kind: Kind
  readonly name: string
  /** The object to write; mutating plugins change it in place. Absent for DELETE. */
  readonly object: KubeObject | undefined
  /** The stored object. Absent for CREATE. Never modified. */
  readonly oldObject: KubeObject | undefined
}

/** One write, as plugins see it. */
export interface Attributes extends Subject {
  readonly subresource: string
  /** The resource as the request names it, in the client's version (and group, for events). */
  readonly addressed: GroupVersionResource
  /** The kind of `object`, which differs for subresources with a separate body. */
  readonly objectKind: GroupVersionKind
  readonly namespace: string
  /** Create, update, patch or delete options of the request. */
  readonly options: Readonly<Record<string, unknown>>
  readonly dryRun: boolean
  readonly user: User
  readonly objects: ObjectReader
  /** Adds a Warning header to the response. */
  warn(text: string): void
  /** Adds an audit annotation; absent without auditing. Keys are `<domain>/<name>`. */
  readonly annotate?: Annotate | undefined
  readonly signal: AbortSignal
  /** The deadline by `clock.elapsed()`, after which the client no longer waits; absent: none. */
  readonly deadlineMs?: number | undefined
}

/** Throws or rejects with StatusError to refuse; returns a promise only if it has to wait. */
export interface Admission {
  mutate(attributes: Attributes): Promise<void> | void
  validate(attributes: Attributes): Promise<void> | void
}

/** Admits everything unchanged. */
export const admitAll: Admission = {
  mutate: () => undefined,
  validate: () => undefined,
}
