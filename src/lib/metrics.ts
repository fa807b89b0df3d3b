/**
 * Metrics in Prometheus' text format 0.0.4, written as client_golang writes it, so that output can be compared line by
 * line. A family has one series for each set of label values; `labels()` finds the series, and what it returns is a
 * handle whose methods allocate nothing. Hot code asks for its handles once and keeps them.
 *
 * OpenMetrics is not offered: upstream's components leave it switched off too.
 */
import { formatFloat, renderHelp, renderLabels } from './metrics-text.ts'

/** What the HTTP answer that carries `render()` must say it is. */
export const METRICS_CONTENT_TYPE = 'text/plain; version=0.0.4; charset=utf-8'

/** How long a metric is promised to stay as it is; written in front of its help. */
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
  /** Runs at each scrape; must not wait. What it does not emit is not there. */
  collect(emit: Emit<L>): void
}

export interface Counter {
  readonly value: number
  /** Throws on a negative amount: a counter only grows. */
  inc(by?: number): void
}

export interface Gauge {
  readonly value: number
  set(value: number): void
  inc(by?: number): void
  dec(by?: number): void
}

export interface Histogram {
  readonly count: number
  readonly sum: number
  observe(value: number): void
}

export interface Family<H, L extends readonly string[]> {
  /** The series with these values, made at first use. Every distinct set stays in memory until removed. */
  labels(...values: LabelValues<L>): H
  /** Takes the series out; a handle still held counts into the void. */
  remove(...values: LabelValues<L>): void
  clear(): void
}

/** A metric is declared once per registry; a second declaration of its name throws. */
export interface Registry {
  counter<const L extends readonly string[] = []>(options: MetricOptions<L>): Family<Counter, L>
  gauge<const L extends readonly string[] = []>(options: MetricOptions<L>): Family<Gauge, L>
  histogram<const L extends readonly string[] = []>(options: HistogramOptions<L>): Family<Histogram, L>
  /** A metric without state of its own, asked for at each scrape. */
  callback<const L extends readonly string[] = []>(options: CallbackOptions<L>): void
  /** The whole exposition, families by name and series by label values. Throws what a callback throws. */
  render(): string
  /** The same, family by family, for writing a large one without holding up the loop. */
  chunks(): Generator<string, void, undefined>
}

/** What client_golang uses when a histogram names none: from 5 ms to 10 s. */
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
}

export function createRegistry(): Registry {
  const exposed = new Map<string, Exposed>()
  const declare = <E extends Exposed>(options: MetricOptions<readonly string[]>, create: () => E): E => {
    checkNames(options)
    if (exposed.has(options.name)) throw new Error(`Metric "${options.name}" is declared twice in this registry`)
    const made = create()
    exposed.set(options.name, made)
    return made
  }
  const chunks = function* (): Generator<string, void, undefined> {
    for (const name of [...exposed.keys()].sort()) {
      const text = exposed.get(name)?.render()
      if (text) yield text
    }
  }
  return {
    counter: (options) => declare(options, () => new SeriesFamily('counter', options, (at) => new CounterSeries(at))),
    gauge: (options) => declare(options, () => new SeriesFamily('gauge', options, (at) => new GaugeSeries(at))),
    histogram(options) {
      const buckets = checkBuckets(options.buckets ?? DEFAULT_BUCKETS)
      return declare(options, () => new SeriesFamily('histogram', options, (at) => new HistogramSeries(at, buckets)))
    },
    callback: (options) => void declare(options, () => ({ render: () => renderCallback(options) })),
    chunks,
    render: () => [...chunks()].join(''),
  }
}

/** Where a series stands in the exposition. */
interface Place {
  readonly name: string
  /** The values in the order the labels are written in, to sort series by. */
  readonly values: readonly string[]
  /** `a="1",b="2"`, or nothing. */
  readonly labels: string
}

interface Series {
  readonly place: Place
  samples(): string
}

class SeriesFamily<S extends Series, L extends readonly string[]> implements Family<S, L>, Exposed {
  readonly #options: MetricOptions<L>
  readonly #type: string
  readonly #create: (place: Place) => S
  readonly #series = new Map<string, S>()
  /** All series in order of their label values; undefined since one came or went. */
  #sorted: readonly S[] | undefined

  constructor(type: string, options: MetricOptions<L>, create: (place: Place) => S) {
    this.#options = options
    this.#type = type
    this.#create = create
    if (labelsOf(options).length === 0) this.#add([])
  }

  labels(...values: LabelValues<L>): S {
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
    if (this.#series.size === 0) return ''
    this.#sorted ??= [...this.#series.values()].sort((a, b) => byPlace(a.place, b.place))
    let text = renderHelp(this.#options, this.#type)
    for (const series of this.#sorted) text += series.samples()
    return text
  }

  #add(values: readonly string[]): S {
    const series = this.#create(placeOf(this.#options, values))
    this.#series.set(keyOf(values), series)
    this.#sorted = undefined
    return series
  }
}

class CounterSeries implements Counter, Series {
  readonly place: Place
  value = 0

  constructor(place: Place) {
    this.place = place
  }

  inc(by: number = 1): void {
    if (!(by >= 0)) throw new RangeError(`Counter "${this.place.name}" cannot grow by "${by}"; use a gauge`)
    this.value += by
  }

  samples(): string {
    return sample(this.place, this.value)
  }
}

class GaugeSeries implements Gauge, Series {
  readonly place: Place
  value = 0

  constructor(place: Place) {
    this.place = place
  }

  set(value: number): void {
    this.value = value
  }

  inc(by: number = 1): void {
    this.value += by
  }

  dec(by: number = 1): void {
    this.value -= by
  }

  samples(): string {
    return sample(this.place, this.value)
  }
}

interface Buckets {
  readonly bounds: Float64Array
  /** The bounds as they stand in `le`. */
  readonly texts: readonly string[]
}

class HistogramSeries implements Histogram, Series {
  readonly place: Place
  readonly #bounds: Float64Array
  readonly #texts: readonly string[]
  /** How many observations fell between the bound before and this one; the last is for all above. */
  readonly #counts: Float64Array
  /** One element: a typed array takes a new number without allocating. */
  readonly #sum = new Float64Array(1)

  constructor(place: Place, buckets: Buckets) {
    this.place = place
    this.#bounds = buckets.bounds
    this.#texts = buckets.texts
    this.#counts = new Float64Array(buckets.bounds.length + 1)
  }

  get count(): number {
    return this.#counts.reduce((total, count) => total + count, 0)
  }

  get sum(): number {
    return this.#sum[0] as number
  }

  observe(value: number): void {
    const bounds = this.#bounds
    let at = 0
    // Not `value > bound`: what is not a number belongs above all bounds.
    while (at < bounds.length && !(value <= (bounds[at] as number))) at++
    this.#counts[at] = (this.#counts[at] as number) + 1
    this.#sum[0] = (this.#sum[0] as number) + value
  }

  samples(): string {
    const { name, labels } = this.place
    const before = labels === '' ? `${name}_bucket{le="` : `${name}_bucket{${labels},le="`
    const after = labels === '' ? '' : `{${labels}}`
    let text = ''
    let total = 0
    for (const [at, count] of this.#counts.entries()) {
      total += count
      text += `${before}${this.#texts[at] ?? '+Inf'}"} ${formatFloat(total)}\n`
    }
    return `${text}${name}_sum${after} ${formatFloat(this.sum)}\n${name}_count${after} ${formatFloat(total)}\n`
  }
}

function renderCallback<L extends readonly string[]>(options: CallbackOptions<L>): string {
  const rows = new Map<string, { readonly place: Place; readonly value: number }>()
  options.collect((value, ...values) => {
    const key = keyOf(values)
    if (rows.has(key)) throw new Error(`Metric "${options.name}" was collected twice with labels "${values.join(',')}"`)
    rows.set(key, { place: placeOf(options, values), value })
  })
  if (rows.size === 0) return ''
  const sorted = [...rows.values()].sort((a, b) => byPlace(a.place, b.place))
  return renderHelp(options, options.type) + sorted.map((row) => sample(row.place, row.value)).join('')
}

function sample({ name, labels }: Place, value: number): string {
  return labels === '' ? `${name} ${formatFloat(value)}\n` : `${name}{${labels}} ${formatFloat(value)}\n`
}

function labelsOf(options: MetricOptions<readonly string[]>): readonly string[] {
  return options.labels ?? []
}

function placeOf(options: MetricOptions<readonly string[]>, values: readonly string[]): Place {
  const names = labelsOf(options)
  if (values.length !== names.length) {
    throw new TypeError(`Metric "${options.name}" takes ${names.length} label values, not ${values.length}`)
  }
  const pairs = names.map((name, at) => [name, values[at] as string] as const).sort(([a], [b]) => (a < b ? -1 : 1))
  return { name: options.name, values: pairs.map(([, value]) => value), labels: renderLabels(pairs) }
}

/** A key no other list of values has: a length before each value tells where it ends. */
function keyOf(values: readonly string[]): string {
  if (values.length === 1) return values[0] as string
  let key = ''
  for (const value of values) key += `${value.length}:${value}`
  return key
}

function byPlace(a: Place, b: Place): number {
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
