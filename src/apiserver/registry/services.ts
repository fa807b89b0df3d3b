/** The dependencies of every resource store, passed in once so that tests can replace them. */
import type { User } from '#auth/user.ts'
import type { Annotate } from '#component/requests/call.ts'
import type { MemoryBudget } from '#component/requests/response-memory.ts'
import type { Clock } from '#lib/clock.ts'
import type { Random } from '#lib/random.ts'
import type { YamlReader } from '#lib/yaml/reader.ts'
import type { GroupVersionKind, GroupVersionResource } from '#meta/kind.ts'
import type { ServerMeters } from '#model/metrics/families.ts'
import type { Backend } from '#storage/backend.ts'
import type { AtRest } from '#storage/encryption/at-rest.ts'
import type { WatchCache } from '#storage/watch-cache/watch-cache.ts'

import type { Trail } from '../trail/trail.ts'
import type { Admission } from './admission.ts'
import type { ByteMemo } from './byte-memo.ts'
import type { ObjectReader, ObjectWriter } from './resource.ts'

export interface Services {
  readonly backend: Backend
  readonly cache: WatchCache
  readonly clock: Clock
  readonly random: Random
  readonly admission: Admission
  readonly objects: ObjectReader
  /** The writer of the server itself. */
  readonly writer: ObjectWriter
  readonly isEnabled: (gate: string) => boolean
  readonly allowPrivileged: boolean
  /** The writers of the newest revisions. */
  readonly trail: Trail
  /** Cached encodings. */
  readonly memos: ByteMemo
  /** The memory budget of large lists. */
  readonly answers: MemoryBudget
  /** Parses YAML bodies without blocking the event loop. */
  readonly yaml: YamlReader
  /** Encryption at rest. */
  readonly atRest: AtRest
  /** True if kinds with a protobuf form are stored in it; default: all are stored as JSON. */
  readonly storesProtobuf?: boolean
  /** The time for which objects with a time to live may share a lease; default: a minute. */
  readonly leaseReuseMs?: number
  /** The metrics. */
  readonly metrics: ServerMeters
  /** The minimal duration of a watch without a timeout; up to twice as long at random. Default: half an hour. */
  readonly minWatchMs?: number
  /** The workers of each deletecollection; default: one. */
  readonly deleteWorkers?: number
}

/** The common options of all writing verbs. */
export interface WriteRequest {
  /** The client's version, in which bodies are received and sent. */
  readonly gvk: GroupVersionKind
  /** The resource of the path; default: the stored one. */
  readonly addressed?: GroupVersionResource
  readonly namespace: string
  readonly subresource: string
  readonly user: User
  /** The request's verb; `update` without a request. */
  readonly verb?: string
  /** Absent without a request. */
  readonly auditId?: string
  readonly dryRun: boolean
  /** The field manager. */
  readonly manager: string
  /** True if the request is about managed fields. */
  readonly isApply?: boolean
  /** The request's own options, for admission. */
  readonly options: Readonly<Record<string, unknown>>
  readonly warn: (text: string) => void
  /** Adds an audit annotation; absent without auditing. */
  readonly annotate?: Annotate | undefined
  readonly signal: AbortSignal
  /** The deadline by `clock.elapsed()`, after which the client no longer waits; absent: none. */
  readonly deadlineMs?: number | undefined
  /** The size of the client's body: large objects are written in steps that yield. */
  readonly bodyBytes?: number | undefined
  /**
   * The write was admitted as something else, an eviction or a binding: admission does not run again, and the changes
   * have no owner, as upstream.
   */
  readonly isAdmitted?: boolean
  /** True for objects of a deletecollection: like upstream, admission does not receive their names. */
  readonly isOneOfMany?: boolean
}
