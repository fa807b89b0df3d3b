/**
 * The interface of a benchmark, and its statistics. The compared programs take turns in short samples, so that other
 * load on the machine affects all of them. The median of the samples counts, and ratios are computed per turn.
 */
import { performance } from 'node:perf_hooks'

import type { Table } from './table.ts'

/** Each `<name>.bench.ts` exports one as `bench`. */
export interface BenchOptions {
  /** Upstream's programs are measured as well. */
  readonly reference: boolean
  /** Only workloads whose name has this in it, where a bench has several; undefined: all. */
  readonly only: string | undefined
}

export interface Bench {
  /** One line for people: what is measured. */
  readonly about: string
  /** Prints nothing itself. Stops everything it started. */
  run(options: BenchOptions): Promise<readonly Table[]>
}

export interface Contestant {
  readonly name: string
  /** One operation, or `perCall` of them. */
  readonly run: () => unknown
  readonly perCall?: number
}

export interface Rate {
  readonly name: string
  readonly perSecond: number
  /** How many times as fast as the first contestant; the first is 1. */
  readonly ratio: number
}

/** Long enough for the compiler to have seen all there is. */
export const WARM_UP_MS = 250
const SAMPLE_MS = 60
const ROUNDS = 9

/** Operations a second of each contestant, and against the first one. */
export async function compareRates(contestants: readonly Contestant[]): Promise<Rate[]> {
  for (const contestant of contestants) await sample(contestant, WARM_UP_MS)
  const measures = contestants.map((contestant) => () => sample(contestant, SAMPLE_MS))
  const samples = await inTurns(measures, ROUNDS)
  const [reference = []] = samples
  return contestants.map(({ name }, index) => {
    const own = samples[index] ?? []
    const ratios = own.map((rate, round) => rate / (reference[round] ?? rate))
    return { name, perSecond: quantile(own, 0.5), ratio: quantile(ratios, 0.5) }
  })
}

/**
 * Runs all measurements in each round, one after the other. Every second round reverses the order, so that none always
 * follows the same one.
 */
export async function inTurns(
  measures: readonly ((round: number) => Promise<number>)[],
  rounds: number,
): Promise<number[][]> {
  const samples: number[][] = measures.map(() => [])
  for (let round = 0; round < rounds; round++) {
    const order = [...measures.entries()]
    if (round % 2 === 1) order.reverse()
    for (const [index, measure] of order) samples[index]?.push(await measure(round))
  }
  return samples
}

/** Operations a second over at least `durationMs`. */
async function sample({ run, perCall = 1 }: Contestant, durationMs: number): Promise<number> {
  const start = performance.now()
  let calls = 0
  let spent = 0
  do {
    const result = run()
    if (result instanceof Promise) await result
    sink.last = result
    calls++
    spent = performance.now() - start
  } while (spent < durationMs)
  return (calls * perCall * 1000) / spent
}

/** Stores results, because V8 may skip the computation of unused values. */
const sink: { last: unknown } = { last: undefined }

/** The value below which `part` of the values lie (0.5: the median). NaN of nothing. */
export function quantile(values: readonly number[], part: number): number {
  const sorted = values.toSorted((a, b) => a - b)
  return sorted[Math.min(sorted.length - 1, Math.floor(sorted.length * part))] ?? Number.NaN
}
