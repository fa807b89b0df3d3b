/**
 * EventRateLimit: limits the rate of events for the server, by namespace, by user, or by source and object. Off by
 * default; requires a configuration. Upstream's plugin/pkg/admission/eventratelimit, v1.36.
 */
import type { Event } from '#apis/core/v1.ts'
import type { Attributes } from '#apiserver/registry/admission.ts'
import { aggregatedText } from '#auth/authorizer.ts'
import type { Clock } from '#lib/clock.ts'
import { failure } from '#meta/status-errors.ts'

import { type AdmissionPlugin, defineAdmission } from './plugin.ts'

export type EventLimitType = 'Server' | 'Namespace' | 'User' | 'SourceAndObject'

export interface EventLimit {
  readonly type: EventLimitType
  /** Events per second, after a burst. */
  readonly qps: number
  readonly burst: number
  /** The maximum number of remembered namespaces, users or objects; 0: the default. */
  readonly cacheSize?: number
}

export interface EventRateLimitOptions {
  readonly clock: Clock
  readonly limits: readonly EventLimit[]
}

const DEFAULT_CACHE_SIZE = 4096

export function createEventRateLimit({ clock, limits }: EventRateLimitOptions): AdmissionPlugin {
  const enforced = limits.map((limit) => ({ type: limit.type, accept: createLimit(clock, limit) }))
  return defineAdmission({
    name: 'EventRateLimit',
    on: ['CREATE', 'UPDATE'],
    resources: ['events'],

    validate(attributes) {
      // Upstream's events of the newer group have another kind, which it does not limit.
      if (attributes.dryRun || attributes.objectKind.group !== '') return
      const reached = enforced.flatMap(({ type, accept }) => {
        const key = KEYS[type](attributes)
        return accept(key) ? [] : [`limit reached on type ${type} for key ${key}`]
      })
      if (reached.length === 0) return
      throw failure({
        code: 429,
        reason: 'TooManyRequests',
        message: `Too many requests: ${aggregatedText(reached)}`,
      })
    },
  })
}

const KEYS: Readonly<Record<EventLimitType, (attributes: Attributes) => string>> = {
  Server: () => '',
  Namespace: ({ namespace }) => namespace,
  User: ({ user }) => user.name,
  SourceAndObject({ object }) {
    const { source, involvedObject } = object as Event
    const { kind = '', namespace = '', name = '', uid = '', apiVersion = '' } = involvedObject
    return [source.component ?? '', source.host ?? '', kind, namespace, name, uid, apiVersion].join('')
  },
}

interface Bucket {
  tokens: number
  /** The time at which `tokens` was computed. */
  atMs: number
}

/** True if one more event is within the limit; counts it then. */
function createLimit(clock: Clock, { type, qps, burst, cacheSize = 0 }: EventLimit): (key: string) => boolean {
  const size = type === 'Server' ? 1 : cacheSize || DEFAULT_CACHE_SIZE
  /** Least recently used first. */
  const buckets = new Map<string, Bucket>()
  return (key) => {
    const nowMs = clock.elapsed()
    const bucket = buckets.get(key) ?? { tokens: burst, atMs: nowMs }
    buckets.delete(key)
    const [oldest] = buckets.size >= size ? buckets.keys() : []
    if (oldest !== undefined) buckets.delete(oldest)
    buckets.set(key, bucket)
    bucket.tokens = Math.min(burst, bucket.tokens + ((nowMs - bucket.atMs) / 1000) * qps)
    bucket.atMs = nowMs
    if (bucket.tokens < 1) return false
    bucket.tokens--
    return true
  }
}
