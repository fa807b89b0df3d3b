/**
 * Limits concurrent requests if priority and fairness is off. Reads and writes have separate limits. Long-running
 * requests such as watches are not counted, and members of system:masters are always admitted.
 */
import { PRIVILEGED_GROUP } from '#auth/authorizer.ts'
import type { RequestInfo } from '#auth/request-info.ts'
import type { User } from '#auth/user.ts'

export interface InflightLimits {
  /** `--max-requests-inflight`; 0: no limit. */
  readonly maxReading: number
  /** `--max-mutating-requests-inflight`; 0: no limit. */
  readonly maxMutating: number
}

export type RequestKind = 'readOnly' | 'mutating'

/** The current number of requests of a kind. */
export interface Load {
  running(kind: RequestKind): number
  waiting(kind: RequestKind): number
}

export interface Inflight extends Load {
  /** Returns the release function, to be called once; undefined if the limit is reached. */
  enter(user: User, info: RequestInfo): (() => void) | undefined
  /** The number of rejected requests so far. */
  dropped(kind: RequestKind): number
}

export function createInflight({ maxReading, maxMutating }: InflightLimits): Inflight {
  const counts = {
    readOnly: { max: maxReading, running: 0, dropped: 0 },
    mutating: { max: maxMutating, running: 0, dropped: 0 },
  }
  return {
    enter(user, info) {
      if (isLongRunning(info)) return nothing
      const count = counts[requestKindOf(info)]
      if (count.max > 0 && count.running >= count.max) {
        if (user.groups.includes(PRIVILEGED_GROUP)) return nothing
        count.dropped++
        return undefined
      }
      count.running++
      return () => void count.running--
    },
    running: (kind) => counts[kind].running,
    // Without a free slot the request is rejected at once.
    waiting: () => 0,
    dropped: (kind) => counts[kind].dropped,
  }
}

function nothing(): void {}

const READING: ReadonlySet<string> = new Set(['get', 'list', 'watch', 'head', 'options'])

export function requestKindOf({ verb }: RequestInfo): RequestKind {
  return READING.has(verb) ? 'readOnly' : 'mutating'
}

const LONG_SUBRESOURCES: ReadonlySet<string> = new Set(['attach', 'exec', 'proxy', 'log', 'portforward'])

/** Requests without a natural end, limited neither in number nor in time. */
export function isLongRunning({ verb, isResource, subresource }: RequestInfo): boolean {
  return verb === 'watch' || verb === 'proxy' || (isResource && LONG_SUBRESOURCES.has(subresource))
}
