/**
 * Declares metric families as data. A table has the name, type and labels of each family. Code gets a family by name,
 * with the types of its row. A family is created on first use, so unused ones are not exposed.
 */
import type { Counter, Emit, Family, Gauge, Histogram, Registry, Stability } from './metrics.ts'

/**
 * `counter STABLE [verb code] The help text`: type, stability, names of the labels in the order in which `labels()` takes
 * their values, help. A histogram names its buckets (`histogram:request`), a deprecated family its release (`STABLE/1.34.0`).
 */
export type FamilyRow<B extends string = string> =
  `${'counter' | 'gauge' | `histogram:${B}`} ${Stability}${'' | `/${string}`} [${string}] ${string}`

export interface ParsedFamily {
  readonly type: 'counter' | 'gauge' | 'histogram'
  readonly stability: Stability
  readonly labels: readonly string[]
  readonly help: string
  /** The name of the bounds of a histogram. */
  readonly buckets?: string
  readonly deprecatedSince?: string
}

/** The words of a text: `'a b'` is `['a', 'b']`. */
export type Words<S extends string> = S extends ''
  ? []
  : S extends `${infer First} ${infer Rest}`
    ? [First, ...Words<Rest>]
    : [S]
type RowLabels<R> = R extends `${string} [${infer S}] ${string}` ? Words<S> : never
type RowHandle<R> = R extends `histogram:${string}` ? Histogram : R extends `counter ${string}` ? Counter : Gauge

/** The families of a table in one registry. */
export interface Meters<T> {
  readonly registry: Registry
  /** The same for every caller. */
  family<N extends keyof T & string>(name: N): Family<RowHandle<T[N]>, RowLabels<T[N]>>
  /** A family without state: `collect` runs at each scrape, and must not wait. Once per name. */
  collect<N extends keyof T & string>(name: N, collect: (emit: Emit<RowLabels<T[N]>>) => void): void
}

export function createMeters<T extends Readonly<Record<keyof T, FamilyRow<B>>>, B extends string>(
  registry: Registry,
  table: T,
  buckets: Readonly<Record<B, readonly number[]>>,
): Meters<T> {
  const known = new Map<string, unknown>()
  const rowOf = (name: keyof T & string) => {
    const { buckets: bounds, ...row } = parseFamily(table[name])
    return { ...row, name, ...(bounds !== undefined && { buckets: buckets[bounds as B] }) }
  }
  return {
    registry,
    family<N extends keyof T & string>(name: N) {
      let family = known.get(name)
      if (family === undefined) {
        const { type, ...options } = rowOf(name)
        known.set(name, (family = registry[type](options)))
      }
      return family as Family<RowHandle<T[N]>, RowLabels<T[N]>>
    },
    collect(name, collect) {
      const row = rowOf(name)
      registry.callback({ ...row, type: row.type === 'counter' ? 'counter' : 'gauge', collect })
    },
  }
}

/** Throws on a text that is no row. */
export function parseFamily(row: FamilyRow): ParsedFamily {
  const [, type, buckets, stability, since, labels = '', help = ''] =
    /^(\w+)(?::(\w+))? (\w+)(?:\/(\S+))? \[(.*?)\] ([^]*)$/.exec(row) ?? fail(row)
  return {
    type: type as ParsedFamily['type'],
    stability: stability as Stability,
    labels: labels === '' ? [] : labels.split(' '),
    help,
    ...(buckets !== undefined && { buckets }),
    ...(since !== undefined && { deprecatedSince: since }),
  }
}

function fail(row: string): never {
  throw new Error(`"${row}" does not describe a metric family`)
}
