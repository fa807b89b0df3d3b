/**
 * Computes with ranges of unsigned 64-bit numbers, for cost estimates. Arithmetic saturates instead of overflowing, and
 * rounds large numbers as upstream does.
 */
import type { Span } from '../library.ts'

export const MAX_UINT64: bigint = 2n ** 64n - 1n

export const UNKNOWN_SIZE: Span = { min: 0n, max: MAX_UINT64 }

export const fixed = (value: number | bigint): Span => ({ min: BigInt(value), max: BigInt(value) })

export const saturate = (value: bigint): bigint => (value > MAX_UINT64 ? MAX_UINT64 : value)

export function addSpans(...spans: readonly Span[]): Span {
  let [min, max] = [0n, 0n]
  for (const span of spans) [min, max] = [saturate(min + span.min), saturate(max + span.max)]
  return { min, max }
}

export const multiplySpans = (a: Span, b: Span): Span => ({
  min: saturate(a.min * b.min),
  max: saturate(a.max * b.max),
})

/** Both ends times the factor, rounded up. */
export const scaleSpan = ({ min, max }: Span, factor: number): Span => ({
  min: scale(min, factor),
  max: scale(max, factor),
})

function scale(value: bigint, factor: number): bigint {
  const product = Math.ceil(Number(value) * factor)
  return product >= 2 ** 64 ? MAX_UINT64 : BigInt(product)
}

/** The smallest span that contains both. */
export const unionSpans = (a: Span, b: Span): Span => ({
  min: a.min < b.min ? a.min : b.min,
  max: a.max > b.max ? a.max : b.max,
})
