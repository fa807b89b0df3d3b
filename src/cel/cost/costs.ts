/** Cost functions and cost estimates that many CEL functions share. */
import type { ArgumentEstimate, CallEstimate, Cost, Span } from '../library.ts'
import { sizeOf, tenth, traversalCost } from '../values/size.ts'
import { addSpans, fixed, multiplySpans, scaleSpan, UNKNOWN_SIZE } from './span.ts'

export const ONE: Span = fixed(1)
/** Per unit of a pattern: an expression in one has four or so. */
const PATTERN_FACTOR = 0.25

type Estimate = (args: readonly ArgumentEstimate[]) => CallEstimate

export const sizeAt = (args: readonly ArgumentEstimate[], at: number): Span => args[at]?.size ?? UNKNOWN_SIZE

/** Reading the first argument: a tenth of its size. */
export const readFirst: Cost = (a) => tenth(sizeOf(a))
/** The same, and writing as much. */
export const readAndWriteFirst: Cost = (a) => tenth(2 * sizeOf(a))
/** Everything in the first argument, to any depth. */
export const traverseFirst: Cost = (a) => traversalCost(a)
/** Up to the end of the shorter one. */
export const readShorter: Cost = (a, b) => tenth(Math.min(sizeOf(a), sizeOf(b)))
/** A text times a pattern. Never 0: an empty text does not make a pattern free. */
export const matchPattern: Cost = (a, b) => tenth(sizeOf(a) + 1) * Math.ceil(sizeOf(b) * PATTERN_FACTOR)

export const estimateRead: Estimate = (args) => ({ cost: scaleSpan(sizeAt(args, 0), 0.1) })
/** The result is no longer than what was read. */
export const estimateReadKept: Estimate = (args) => ({
  cost: scaleSpan(sizeAt(args, 0), 0.1),
  resultSize: sizeAt(args, 0),
})
export const estimateShorter: Estimate = (args) => {
  const [a, b] = [sizeAt(args, 0).max, sizeAt(args, 1).max]
  const max = a < b ? a : b
  return { cost: scaleSpan({ min: max > 0n ? 1n : 0n, max }, 0.1) }
}
export const estimatePattern: Estimate = (args) => {
  const text = scaleSpan(addSpans(sizeAt(args, 0), ONE), 0.1)
  return { cost: multiplySpans(text, scaleSpan(sizeAt(args, 1), PATTERN_FACTOR)) }
}
/** Every element of a list once, texts by their length; or a text from end to end. */
export const estimateTraversal: Estimate = (args) => {
  const [list] = args
  if (list?.type.kind !== 'list' && list?.type.kind !== 'map') return estimateRead(args)
  const element = list.type.kind === 'list' ? list.type.element.kind : list.type.key.kind
  const isText = element === 'string' || element === 'bytes'
  const each = isText ? addSpans(ONE, scaleSpan(list.elementSize ?? UNKNOWN_SIZE, 0.1)) : ONE
  return { cost: multiplySpans(sizeAt(args, 0), each) }
}
