/**
 * How many requests run at once, without priority and fairness. Reads and writes are counted apart, so that a flood of one leaves room for the other;
 * requests that go on, such as watches, are not counted, and whoever may do everything always gets an answer.
 */
import { PRIVILEGED_GROUP } from '../authorizers/authorizer.ts'
import type { User } from '../registry/resource.ts'
import type { RequestInfo } from '../request-info.ts'

export interface InflightLimits {
  /** `--max-requests-inflight`; 0: no limit. */
  readonly maxReading: number
  /** `--max-mutating-requests-inflight`; 0: no limit. */
  readonly maxMutating: number
}

export type RequestKind = 'readOnly' | 'mutating'

/** How many requests of a kind there are now. */
export interface Load {
  running(kind: RequestKind): number
  waiting(kind: RequestKind): number
}

export interface Inflight extends Load {
  /** Takes a place. Returns what gives it back, to be called once; undefined when there is no room. */
  enter(user: User, info: RequestInfo): (() => void) | undefined
  /** How many requests were turned away so far. */
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
    // Whoever finds no room is turned away at once.
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

/** Requests without a natural end: neither limited in number nor in time. */
export function isLongRunning({ verb, isResource, subresource }: RequestInfo): boolean {
  return verb === 'watch' || verb === 'proxy' || (isResource && LONG_SUBRESOURCES.has(subresource))
}
