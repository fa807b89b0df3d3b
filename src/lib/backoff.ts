/**
 * Backoff and rate limiters: exponential delay with jitter for one retried operation, and limiters for many keys. The
 * limiters behave as client-go's util/workqueue (v1.36).
 */
import type { Clock } from './clock.ts'
import type { Random } from './random.ts'

export interface Growth {
  /** The first delay. */
  readonly baseMs: number
  /** Each delay is this many times the one before. Default 2. */
  readonly factor?: number
  /** No delay is longer than this, jitter apart. */
  readonly capMs: number
}

export interface BackoffPolicy extends Growth {
  /** The maximum random fraction that is added to the delay, so that simultaneous failures do not retry together. */
  readonly jitter?: number
}

export interface Backoff {
  /** The delay before the next attempt. */
  next(): number
  /** After a success: the next delay is the first again. */
  reset(): void
  /** How many delays were given since the last reset. */
  readonly attempts: number
}

/** The delay after `attempt` earlier ones (0 is the first), without jitter. Never overflows. */
export function exponentialDelayMs(growth: Growth, attempt: number): number {
  return Math.min(growth.capMs, growth.baseMs * (growth.factor ?? 2) ** attempt)
}

/** Between `delayMs` and `delayMs * (1 + fraction)`, uniformly. */
export function jitteredMs(random: Random, delayMs: number, fraction: number): number {
  return delayMs * (1 + random.float() * fraction)
}

export function createBackoff(random: Random, policy: BackoffPolicy): Backoff {
  let attempts = 0
  return {
    next: () => jitteredMs(random, exponentialDelayMs(policy, attempts++), policy.jitter ?? 0),
    reset() {
      attempts = 0
    },
    get attempts() {
      return attempts
    },
  }
}

export interface RateLimiter<K> {
  /** Counts one more try of `item` and says how long it has to wait. */
  when(item: K): number
  /** The item is not retried any more, for good or ill: its next try counts as the first. */
  forget(item: K): void
  /** How many tries `when` has counted since the item was last forgotten. */
  numRequeues(item: K): number
}

/** From 5 ms, doubling, to about 17 minutes: quick for a lost race, slow for a broken object. */
const ITEM_BACKOFF: Growth = { baseMs: 5, capMs: 1_000_000 }

/** Each item's delay grows with its own failures. An item is remembered until it is forgotten. */
export function createItemBackoff<K>(growth: Growth = ITEM_BACKOFF): RateLimiter<K> {
  const failures = new Map<K, number>()
  return {
    when(item) {
      const failed = failures.get(item) ?? 0
      failures.set(item, failed + 1)
      return exponentialDelayMs(growth, failed)
    },
    forget: (item) => void failures.delete(item),
    numRequeues: (item) => failures.get(item) ?? 0,
  }
}

export interface BucketOptions {
  /** Tokens that come back per second. */
  readonly qps: number
  /** Tokens a full bucket holds. */
  readonly burst: number
}

export interface TokenBucket<K> extends RateLimiter<K> {
  /** Takes a token if there is one; whether there was. */
  tryTake(): boolean
}

/** All items together: `burst` at once, then `qps` a second. Each `when` takes a token, if need be one of the future. */
export function createTokenBucket<K>(clock: Clock, { qps, burst }: BucketOptions): TokenBucket<K> {
  let tokens = burst
  let filledAt = clock.elapsed()
  const fill = (): void => {
    const now = clock.elapsed()
    tokens = Math.min(burst, tokens + ((now - filledAt) / 1000) * qps)
    filledAt = now
  }
  return {
    when() {
      fill()
      tokens--
      return tokens < 0 ? (-tokens / qps) * 1000 : 0
    },
    tryTake() {
      fill()
      if (tokens < 1) return false
      tokens--
      return true
    },
    forget: () => undefined,
    numRequeues: () => 0,
  }
}

/** Asks every limiter, each of which counts the try, and takes the longest answer. */
export function maxOf<K>(...limiters: readonly RateLimiter<K>[]): RateLimiter<K> {
  return {
    when: (item) => Math.max(0, ...limiters.map((limiter) => limiter.when(item))),
    forget(item) {
      for (const limiter of limiters) limiter.forget(item)
    },
    numRequeues: (item) => Math.max(0, ...limiters.map((limiter) => limiter.numRequeues(item))),
  }
}

/** The default of a controller's queue: item backoff of 5 ms to 1000 s, and 10 retries a second after 100. */
export function createControllerRateLimiter<K>(clock: Clock): RateLimiter<K> {
  return maxOf(createItemBackoff<K>(), createTokenBucket<K>(clock, { qps: 10, burst: 100 }))
}
