/** Strings by code point, which is how CEL counts; JavaScript counts UTF-16 units. */
import { spendEffort } from '../effort.ts'

/** Sizes of long strings, which expressions tend to ask for again. */
const known = new Map<string, number>()
const MAX_KNOWN = 64
const LONG = 256

/** The number of code points. */
export function textSize(text: string): number {
  if (text.length <= LONG) return countCodePoints(text)
  const size = known.get(text) ?? remember(text)
  return size
}

function remember(text: string): number {
  spendEffort(text.length)
  const size = countCodePoints(text)
  if (known.size >= MAX_KNOWN) known.clear()
  known.set(text, size)
  return size
}

function countCodePoints(text: string): number {
  let pairs = 0
  for (let at = 0; at < text.length - 1; at++) {
    if (isPair(text, at)) {
      pairs++
      at++
    }
  }
  return text.length - pairs
}

function isPair(text: string, at: number): boolean {
  const unit = text.charCodeAt(at)
  if (unit < 0xd800 || unit > 0xdbff) return false
  const next = text.charCodeAt(at + 1)
  return next >= 0xdc00 && next <= 0xdfff
}

/** Where the `index`-th code point begins, in UTF-16 units; `index` is at most the size. */
export function unitOffset(text: string, index: number): number {
  if (textSize(text) === text.length) return index
  let at = 0
  for (let count = 0; count < index; count++) at += isPair(text, at) ? 2 : 1
  return at
}

/** The number of code points before a UTF-16 unit. */
export function codePointOffset(text: string, unit: number): number {
  return unit <= 0 ? unit : textSize(text.slice(0, unit))
}

/** Each code point as a string of its own. */
export const codePoints = (text: string): string[] => Array.from(text)
