/**
 * Metrics in Prometheus' text format 0.0.4, written byte for byte as client_golang does. `labels()` returns the series
 * of a family for a set of label values.
 *
 * OpenMetrics is not supported, because upstream's components disable it too.
 */
import {
  type Buckets,
  type Counter,
  CounterSeries,
  type Gauge,
  GaugeSeries,
  type Histogram,
  HistogramSeries,
  type Layout,
  SeriesKey,
  sample,
  type Series,
} from './series.ts'
import { formatFloat, renderHelp } from './text.ts'

export type { Counter, Gauge, Histogram } from './series.ts'

/** The Content-Type of `render()`. */
export const METRICS_CONTENT_TYPE = 'text/plain; version=0.0.4; charset=utf-8'

/** The stability level of a metric, written in front of its help. */
export type Stability = 'ALPHA' | 'BETA' | 'STABLE' | 'INTERNAL'

export interface MetricOptions<L extends readonly string[]> {
  readonly name: string
  readonly help: string
  /** Names of the labels, in the order `labels()` takes their values. */
  readonly labels?: L
  /** Without it the help stands alone, as for metrics that are not Kubernetes' own. */
  readonly stability?: Stability
  /** The release since which users should look elsewhere. */
  readonly deprecatedSince?: string
}

export interface HistogramOptions<L extends readonly string[]> extends MetricOptions<L> {
  /** Upper bounds, ascending; the one of infinity is added. Default `DEFAULT_BUCKETS`. */
  readonly buckets?: readonly number[]
}

export type LabelValues<L extends readonly string[]> = { readonly [K in keyof L]: string }

/** Reports one value at scrape time. The same label values twice in one scrape is an error. */
export type Emit<L extends readonly string[]> = (value: number, ...labels: LabelValues<L>) => void

export interface CallbackOptions<L extends readonly string[]> extends MetricOptions<L> {
  readonly type: 'counter' | 'gauge'
  /** Runs at each scrape; must not wait. Series that it does not emit are absent. */
  collect(emit: Emit<L>): void
}

export interface Family<H, L extends readonly string[]> {
  /** The series with these values, made at first use. Every distinct set stays in memory until removed. */
  labels(...values: LabelValues<L>): H
  /** Removes the series; existing handles then have no effect. */
  remove(...values: LabelValues<L>): void
  clear(): void
}

/** A metric is declared once per registry; a second declaration of its name throws. */
export interface Registry {
  counter<const L extends readonly string[] = []>(options: MetricOptions<L>): Family<Counter, L>
  gauge<const L extends readonly string[] = []>(options: MetricOptions<L>): Family<Gauge, L>
  histogram<const L extends readonly string[] = []>(options: HistogramOptions<L>): Family<Histogram, L>
  /** A metric without state, computed at each scrape. */
  callback<const L extends readonly string[] = []>(options: CallbackOptions<L>): void
  /** `task` runs before each exposition: what is counted over time is brought up to now. */
  beforeRender(task: () => void): void
  /** The whole exposition, families by name and series by label values. Throws what a callback throws. */
  render(): string
  /** The same, family by family, for writing a large one without holding up the loop. */
  chunks(): Generator<string, void, undefined>
  /** Resets counters; handles stay valid. Gauges keep their values. */
  reset(): void
  /** Everything declared so far, whether it is exposed or not. */
  declared(): Iterable<MetricOptions<readonly string[]>>
}

/** The operator's settings for families. */
export interface RegistryRules {
  /** Such families count into the void. */
  readonly isHidden?: (options: MetricOptions<readonly string[]>) => boolean
  /** The values a label may have; every other is written as `unexpected`. Undefined: all. */
  readonly allowedValues?: (metric: string, label: string) => ReadonlySet<string> | undefined
  /** Called for each value that was not allowed. */
  readonly onUnexpected?: () => void
}

/** client_golang's default buckets of a histogram: from 5 ms to 10 s. */
export const DEFAULT_BUCKETS: readonly number[] = [0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10]

/**
 * `count` bounds, each `factor` times the one before. Multiplied step by step, for the same rounding, and so the same
 * `le` labels, as upstream.
 */
export function exponentialBuckets(start: number, factor: number, count: number): number[] {
  const buckets: number[] = []
  for (let bound = start; buckets.length < count; bound *= factor) buckets.push(bound)
  return buckets
}

/** `count` bounds, each `width` more than the one before. */
export function linearBuckets(start: number, width: number, count: number): number[] {
  const buckets: number[] = []
  for (let bound = start; buckets.length < count; bound += width) buckets.push(bound)
  return buckets
}

/** Anything that can stand in the exposition under one name. */
interface Exposed {
  /** HELP, TYPE and all samples; empty when there are no samples. */
  render(): string
  reset(): void
}

export function createRegistry(rules: RegistryRules = {}): Registry {
  const declared = new Map<string, MetricOptions<readonly string[]>>()
  const exposed = new Map<string, Exposed>()
  const declare = <E extends Exposed>(options: MetricOptions<readonly string[]>, create: () => E): E => {
    checkNames(options)
    if (declared.has(options.name)) throw new Error(`Metric "${options.name}" is declared twice in this registry`)
    const made = create()
    declared.set(options.name, options)
    if (rules.isHidden?.(options) !== true) exposed.set(options.name, made)
    return made
  }
  const preparing: (() => void)[] = []
  const chunks = function* (): Generator<string, void, undefined> {
    for (const task of preparing) task()
    for (const name of [...exposed.keys()].sort()) {
      const text = exposed.get(name)?.render()
      if (text) yield text
    }
  }
  return {
    counter: (options) =>
      declare(options, () => new SeriesFamily('counter', options, rules, (at) => new CounterSeries(at))),
    gauge: (options) => declare(options, () => new SeriesFamily('gauge', options, rules, (at) => new GaugeSeries(at))),
    histogram(options) {
      const buckets = checkBuckets(options.buckets ?? DEFAULT_BUCKETS)
      return declare(
        options,
        () => new SeriesFamily('histogram', options, rules, (at) => new HistogramSeries(at, buckets)),
      )
    },
    callback: (options) => void declare(options, () => ({ render: () => renderCallback(options), reset: nothing })),
    beforeRender: (task) => void preparing.push(task),
    chunks,
    render: () => [...chunks()].join(''),
    reset: () => exposed.forEach((family) => family.reset()),
    declared: () => declared.values(),
  }
}

function nothing(): void {}

class SeriesFamily<S extends Series, L extends readonly string[]> implements Family<S, L>, Exposed {
  readonly #options: MetricOptions<L>
  readonly #type: string
  readonly #create: (place: SeriesKey) => S
  readonly #layout: Layout
  readonly #series = new Map<string, S>()
  /** All series in order of their label values; undefined since one came or went. */
  #sorted: readonly S[] | undefined

  /** Of labels that may not have every value: where their value stands, and which it may be. */
  readonly #limits: readonly (readonly [at: number, allowed: ReadonlySet<string>])[]
  readonly #onUnexpected: (() => void) | undefined

  constructor(type: string, options: MetricOptions<L>, rules: RegistryRules, create: (place: SeriesKey) => S) {
    this.#options = options
    this.#layout = layoutOf(options)
    this.#type = type
    this.#create = create
    this.#onUnexpected = rules.onUnexpected
    this.#limits = labelsOf(options).flatMap((label, at) => {
      const allowed = rules.allowedValues?.(options.name, label)
      return allowed === undefined ? [] : [[at, allowed] as const]
    })
    if (labelsOf(options).length === 0) this.#add([])
  }

  labels(...given: LabelValues<L>): S {
    const values = this.#limits.length === 0 ? given : this.#limited(given)
    return this.#series.get(keyOf(values)) ?? this.#add(values)
  }

  remove(...values: LabelValues<L>): void {
    if (this.#series.delete(keyOf(values))) this.#sorted = undefined
  }

  clear(): void {
    this.#series.clear()
    this.#sorted = undefined
  }

  render(): string {
    this.#sorted ??= [...this.#series.values()].sort((a, b) => byPlace(a.key, b.key))
    let text = ''
    for (const series of this.#sorted) if (series.isShown) text += series.samples()
    return text === '' ? '' : renderHelp(this.#options, this.#type) + text
  }

  reset(): void {
    for (const series of this.#series.values()) series.reset()
  }

  #limited(given: readonly string[]): readonly string[] {
    const values = [...given]
    for (const [at, allowed] of this.#limits) {
      if (allowed.has(values[at] as string)) continue
      values[at] = 'unexpected'
      this.#onUnexpected?.()
    }
    return values
  }

  #add(values: readonly string[]): S {
    const series = this.#create(new SeriesKey(this.#layout, values))
    this.#series.set(keyOf(values), series)
    this.#sorted = undefined
    return series
  }
}

function renderCallback<L extends readonly string[]>(options: CallbackOptions<L>): string {
  const layout = layoutOf(options)
  const rows = new Map<string, { readonly place: SeriesKey; readonly value: number }>()
  options.collect((value, ...values) => {
    const key = keyOf(values)
    if (rows.has(key)) throw new Error(`Metric "${options.name}" was collected twice with labels "${values.join(',')}"`)
    rows.set(key, { place: new SeriesKey(layout, values), value })
  })
  if (rows.size === 0) return ''
  const sorted = [...rows.values()].sort((a, b) => byPlace(a.place, b.place))
  return renderHelp(options, options.type) + sorted.map((row) => sample(row.place, row.value)).join('')
}

function labelsOf(options: MetricOptions<readonly string[]>): readonly string[] {
  return options.labels ?? []
}

function layoutOf(options: MetricOptions<readonly string[]>): Layout {
  const given = labelsOf(options)
  const labels = given.toSorted()
  return { name: options.name, labels, order: labels.map((label) => given.indexOf(label)) }
}

/** A key no other list of values has: a length before each value tells where it ends. */
function keyOf(values: readonly string[]): string {
  if (values.length === 1) return values[0] as string
  let key = ''
  for (const value of values) key += `${value.length}:${value}`
  return key
}

function byPlace(a: SeriesKey, b: SeriesKey): number {
  for (const [at, value] of a.values.entries()) {
    const other = b.values[at] as string
    if (value !== other) return value < other ? -1 : 1
  }
  return 0
}

function checkNames(options: MetricOptions<readonly string[]>): void {
  const names = labelsOf(options)
  if (!/^[a-zA-Z_:][a-zA-Z0-9_:]*$/.test(options.name)) throw new Error(`"${options.name}" cannot name a metric`)
  for (const name of names) {
    const taken = name === 'le' || name.startsWith('__') || names.indexOf(name) !== names.lastIndexOf(name)
    if (taken || !/^[a-zA-Z_][a-zA-Z0-9_]*$/.test(name)) {
      throw new Error(`"${name}" cannot name a label of metric "${options.name}"`)
    }
  }
}

function checkBuckets(given: readonly number[]): Buckets {
  const bounds = Float64Array.from(given.filter((bound) => bound !== Infinity))
  for (let at = 1; at < bounds.length; at++) {
    if (!((bounds[at - 1] as number) < (bounds[at] as number))) {
      throw new RangeError(`Histogram buckets must ascend, got "${given.join(', ')}"`)
    }
  }
  return { bounds, texts: Array.from(bounds, formatFloat) }
}
