/**
 * Families declared as data. A table says once what every family is called, counts and is split by; code asks for a
 * family by its name and gets it typed by its row. A family is made when it is first asked for, so what nobody records
 * is not shown.
 */
import type { Counter, Emit, Family, Gauge, Histogram, Registry, Stability } from './metrics.ts'

interface Handles {
  readonly counter: Counter
  readonly gauge: Gauge
  readonly histogram: Histogram
}

/** The names of labels stand in one text, `'verb code'`, in the order in which `labels()` takes their values. */
export type FamilyRow<B extends string = string> = readonly [
  type: keyof Handles,
  stability: Stability,
  labels: string,
  help: string,
  /** The bounds of a histogram, by name; the release since which users should look elsewhere. */
  more?: { readonly buckets?: B; readonly since?: string },
]

type Words<S extends string> = S extends ''
  ? []
  : S extends `${infer First} ${infer Rest}`
    ? [First, ...Words<Rest>]
    : [S]
type RowLabels<R> = R extends readonly [unknown, unknown, infer S extends string, ...unknown[]] ? Words<S> : never
type RowHandle<R> = R extends readonly [infer T extends keyof Handles, ...unknown[]] ? Handles[T] : never

/** The families of a table in one registry. */
export interface Meters<T> {
  readonly registry: Registry
  /** The same for every caller. */
  family<N extends keyof T & string>(name: N): Family<RowHandle<T[N]>, RowLabels<T[N]>>
  /** The family has no state of its own: `collect` is asked at each scrape, and must not wait. Once for a name. */
  collect<N extends keyof T & string>(name: N, collect: (emit: Emit<RowLabels<T[N]>>) => void): void
}

export function createMeters<T extends Readonly<Record<keyof T, FamilyRow<B>>>, B extends string>(
  registry: Registry,
  table: T,
  buckets: Readonly<Record<B, readonly number[]>>,
): Meters<T> {
  const known = new Map<string, unknown>()
  const described = (name: keyof T & string): Described => {
    const [, stability, labels, help, { since, ...more } = {}] = table[name]
    return {
      name,
      help,
      stability,
      labels: wordsOf(labels),
      ...(since !== undefined && { deprecatedSince: since }),
      ...(more.buckets !== undefined && { buckets: buckets[more.buckets] }),
    }
  }
  return {
    registry,
    family<N extends keyof T & string>(name: N) {
      let family = known.get(name)
      if (family === undefined) known.set(name, (family = registry[table[name][0]](described(name))))
      return family as Family<RowHandle<T[N]>, RowLabels<T[N]>>
    },
    collect(name, collect) {
      const type = table[name][0] === 'counter' ? 'counter' : 'gauge'
      registry.callback({ ...described(name), type, collect })
    },
  }
}

interface Described {
  readonly name: string
  readonly help: string
  readonly stability: Stability
  readonly labels: readonly string[]
  readonly deprecatedSince?: string
  readonly buckets?: readonly number[]
}

/** `'verb code'` as `['verb', 'code']`. */
export function wordsOf(text: string): readonly string[] {
  return text === '' ? [] : text.split(' ')
}
