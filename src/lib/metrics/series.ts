/** One series of a metric family: its position in the exposition, its value and its text. */
import { formatFloat, renderLabels } from './text.ts'

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
  /** `times`: as often as this at once. */
  observe(value: number, times?: number): void
}

/** The label layout of a family: ordered by name, whatever the order of the given values. */
export interface Layout {
  readonly name: string
  readonly labels: readonly string[]
  /** Which of the values given belongs to each of `labels`. */
  readonly order: readonly number[]
}

/** Where a series stands in the exposition. */
export class SeriesKey {
  readonly name: string
  /** The values in the order the labels are written in, to sort series by. */
  readonly values: readonly string[]
  readonly #names: readonly string[]
  #labels: string | undefined

  constructor({ name, labels, order }: Layout, given: readonly string[]) {
    if (given.length !== labels.length) {
      throw new TypeError(`Metric "${name}" takes ${labels.length} label values, not ${given.length}`)
    }
    this.name = name
    this.#names = labels
    this.values = order.map((at) => given[at] as string)
  }

  /** `a="1",b="2"`, or nothing. Made when it is first read: most series are never written. */
  get labels(): string {
    return (this.#labels ??= renderLabels(this.#names.map((name, at) => [name, this.values[at] as string])))
  }
}

export interface Series {
  readonly key: SeriesKey
  /** False from a reset until it is counted in again: handles that are kept go on counting, unseen ones stay unseen. */
  readonly isShown: boolean
  samples(): string
  /** Resets to 0. A gauge, which shows the present, keeps its value. */
  reset(): void
}

export class CounterSeries implements Counter, Series {
  readonly key: SeriesKey
  isShown = true
  value = 0

  constructor(key: SeriesKey) {
    this.key = key
  }

  inc(by: number = 1): void {
    if (!(by >= 0)) throw new RangeError(`Counter "${this.key.name}" cannot grow by "${by}"; use a gauge`)
    this.value += by
    this.isShown = true
  }

  samples(): string {
    return sample(this.key, this.value)
  }

  reset(): void {
    this.value = 0
    this.isShown = this.key.values.length === 0
  }
}

export class GaugeSeries implements Gauge, Series {
  readonly key: SeriesKey
  readonly isShown = true
  value = 0

  constructor(key: SeriesKey) {
    this.key = key
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
    return sample(this.key, this.value)
  }

  reset(): void {}
}

export interface Buckets {
  readonly bounds: Float64Array
  /** The bounds as they stand in `le`. */
  readonly texts: readonly string[]
}

export class HistogramSeries implements Histogram, Series {
  readonly key: SeriesKey
  isShown = true
  readonly #bounds: Float64Array
  readonly #texts: readonly string[]
  /**
   * How many observations fell between the bound before and this one, then how many above all, then the sum of all: a
   * typed array takes a new number without allocating.
   */
  readonly #counts: Float64Array

  constructor(key: SeriesKey, buckets: Buckets) {
    this.key = key
    this.#bounds = buckets.bounds
    this.#texts = buckets.texts
    this.#counts = new Float64Array(buckets.bounds.length + 2)
  }

  get count(): number {
    return this.#counts.subarray(0, -1).reduce((total, count) => total + count, 0)
  }

  get sum(): number {
    return this.#counts.at(-1) as number
  }

  observe(value: number, times: number = 1): void {
    const bounds = this.#bounds
    const counts = this.#counts
    const last = bounds.length
    let at = 0
    // Not `value > bound`: what is not a number belongs above all bounds.
    while (at < last && !(value <= (bounds[at] as number))) at++
    counts[at] = (counts[at] as number) + times
    counts[last + 1] = (counts[last + 1] as number) + value * times
    this.isShown = true
  }

  samples(): string {
    const { name, labels } = this.key
    const before = labels === '' ? `${name}_bucket{le="` : `${name}_bucket{${labels},le="`
    const after = labels === '' ? '' : `{${labels}}`
    let text = ''
    let total = 0
    for (let at = 0; at <= this.#bounds.length; at++) {
      total += this.#counts[at] as number
      text += `${before}${this.#texts[at] ?? '+Inf'}"} ${formatFloat(total)}\n`
    }
    return `${text}${name}_sum${after} ${formatFloat(this.sum)}\n${name}_count${after} ${formatFloat(total)}\n`
  }

  reset(): void {
    this.#counts.fill(0)
    this.isShown = this.key.values.length === 0
  }
}

export function sample({ name, labels }: SeriesKey, value: number): string {
  return labels === '' ? `${name} ${formatFloat(value)}\n` : `${name}{${labels}} ${formatFloat(value)}\n`
}
