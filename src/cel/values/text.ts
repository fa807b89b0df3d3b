/** String functions that count code points, as CEL does; JavaScript counts UTF-16 units. */
import { spendEffort } from '../effort.ts'

const LONG = 256

/** The long string that was last measured: expressions tend to ask for the same again. */
let last = { text: '', size: 0 }

/** The number of code points. */
export function textSize(text: string): number {
  if (text.length <= LONG) return countCodePoints(text)
  if (text !== last.text) {
    spendEffort(text.length / 8)
    last = { text, size: countCodePoints(text) }
  }
  return last.size
}

/** Strings without any, which nearly all are, the engine tells apart without looking at each character. */
const HIGH_SURROGATE = /[\ud800-\udbff]/

function countCodePoints(text: string): number {
  if (!HIGH_SURROGATE.test(text)) return text.length
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
  spendEffort(index)
  let at = 0
  for (let count = 0; count < index; count++) at += isPair(text, at) ? 2 : 1
  return at
}

/** The number of code points before a UTF-16 unit. */
export function codePointOffset(text: string, unit: number): number {
  return unit <= 0 ? unit : textSize(text.slice(0, unit))
}

/** Each code point as a separate string. */
export const codePoints = (text: string): string[] => Array.from(text)
