/** Parses sets of pod indexes, `0-3,5,7-8`: intervals in ascending order. */
import { goQuote, parseGoInt } from '#lib/go/text.ts'

interface Interval {
  readonly first: number
  readonly last: number
}

/** The number of indexes. Throws upstream's error if they are malformed, unordered or not below `completions`. */
export function countIndexes(text: string, completions: number): number {
  if (text === '') return 0
  let total = 0
  let previous: number | undefined
  for (const part of text.split(',')) {
    const { first, last } = parseInterval(part, completions)
    if (previous !== undefined && previous >= first) throw unordered(previous, first)
    total += last - first + 1
    previous = last
  }
  return total
}

/** The first common index; malformed intervals are ignored. */
export function sharedIndex(completed: string, failed: string, completions: number): number | undefined {
  const left = wellFormed(completed, completions)
  const right = wellFormed(failed, completions)
  for (let at = 0, other = 0; at < left.length && other < right.length;) {
    const [a, b] = [left[at] as Interval, right[other] as Interval]
    if (a.first <= b.last && b.first <= a.last) return Math.max(a.first, b.first)
    if (a.first <= b.first) at++
    else other++
  }
  return undefined
}

function wellFormed(text: string, completions: number): Interval[] {
  if (text === '') return []
  return text.split(',').flatMap((part) => {
    try {
      return [parseInterval(part, completions)]
    } catch {
      return []
    }
  })
}

function parseInterval(text: string, completions: number): Interval {
  const parts = text.split('-')
  if (parts.length > 2) {
    const rule = "an index interval can have at most two parts separated by '-'"
    throw new Error(`the fragment ${goQuote(text)} violates the requirement that ${rule}`)
  }
  const [first, last] = parts.map((part) => parseIndex(part, completions)) as [number, number | undefined]
  if (last !== undefined && first >= last) throw unordered(first, last)
  return { first, last: last ?? first }
}

function parseIndex(text: string, completions: number): number {
  let index: number
  try {
    index = parseGoInt(text, 'Atoi')
  } catch (cause) {
    throw new Error(`cannot convert string to integer for index: ${goQuote(text)}`, { cause })
  }
  if (index >= completions) throw new Error(`too large index: ${goQuote(text)}`)
  return index
}

function unordered(previous: number, current: number): Error {
  return new Error(`non-increasing order, previous: ${previous}, current: ${current}`)
}
