/** What every store of the registry works with: handed in once, so that tests can hand in others. */
import type { Clock } from '#lib/clock.ts'
import type { Random } from '#lib/random.ts'
import type { YamlReader } from '#lib/yaml-reader.ts'
import type { GroupVersionKind, GroupVersionResource } from '#meta/kind.ts'
import type { ServerMeters } from '#model/metrics/families.ts'
import type { Backend } from '#storage/backend.ts'
import type { AtRest } from '#storage/encryption/at-rest.ts'
import type { WatchCache } from '#storage/watch-cache/watch-cache.ts'

import type { Room } from '../answers/room.ts'
import type { Admission, Annotate } from './admission.ts'
import type { ByteMemo } from './byte-memo.ts'
import type { ObjectReader, ObjectWriter, User } from './resource.ts'

export interface Services {
  readonly backend: Backend
  readonly cache: WatchCache
  readonly clock: Clock
  readonly random: Random
  readonly admission: Admission
  readonly objects: ObjectReader
  /** What the server itself writes, as itself. */
  readonly writer: ObjectWriter
  readonly isEnabled: (gate: string) => boolean
  readonly allowPrivileged: boolean
  /** Bytes of answers that were made before. */
  readonly memos: ByteMemo
  /** Large lists are made and sent when there is room for them. */
  readonly answers: Room
  /** Reads bodies in YAML without holding everybody up. */
  readonly yaml: YamlReader
  /** Values as they rest on disk. */
  readonly atRest: AtRest
  /** Whether kinds that have a form in protobuf rest in it; default: all rest as JSON, which they are made of. */
  readonly storesProtobuf?: boolean
  /** For how long what has a time to live may share its lease with what comes later; default: a minute. */
  readonly leaseReuseMs?: number
  /** Where everything that is done is counted. */
  readonly metrics: ServerMeters
  /** How long a watch lasts that does not say, and up to twice as long by chance. Default: half an hour. */
  readonly minWatchMs?: number
  /** Of each request that deletes a collection; default: one. */
  readonly deleteWorkers?: number
}

/** What all writing verbs have in common. */
export interface WriteRequest {
  /** The version the client speaks: bodies come and go in it. */
  readonly gvk: GroupVersionKind
  /** The resource as the path names it; default: as it is stored. */
  readonly addressed?: GroupVersionResource
  readonly namespace: string
  readonly subresource: string
  readonly user: User
  /** That of the request, where there is one; `update` otherwise. */
  readonly verb?: string
  readonly dryRun: boolean
  /** Who will own the fields. */
  readonly manager: string
  /** Who owns which field is what it is about. */
  readonly isApply?: boolean
  /** The request's own options, for admission. */
  readonly options: Readonly<Record<string, unknown>>
  readonly warn: (text: string) => void
  /** Adds to the audit event; absent when there is none. */
  readonly annotate?: Annotate | undefined
  readonly signal: AbortSignal
  /** After this, by `clock.elapsed()`, nobody waits for the outcome; absent: somebody always does. */
  readonly deadlineMs?: number | undefined
  /** What the client sent: what is large is written with turns for others in between. */
  readonly bodyBytes?: number | undefined
  /**
   * It was let in as something else, an eviction or a binding: admission is not asked again, and nobody owns what it
   * changes, as upstream has it.
   */
  readonly isAdmitted?: boolean
  /** It deletes a selection, object by object: admission is not told their names, as upstream has it. */
  readonly isOneOfMany?: boolean
}
