/** Index sets of a Job, `0-2,5`: ordered intervals that do not touch. Pure. */

export interface Interval {
  readonly first: number
  readonly last: number
}

export type Indexes = readonly Interval[]

/** Drops indexes at or above `completions`, and invalid numbers. */
export function parseIndexes(text: string | undefined, completions: number): Indexes {
  if (text === undefined || text === '') return []
  const found = text.split(',').map((part) => part.split('-').map(Number))
  const valid = found.filter((limits) => limits.every(Number.isInteger))
  return merge(
    [],
    valid
      .map(([first = 0, last = first]) => ({ first, last: Math.min(last, completions - 1) }))
      .filter(({ first }) => first < completions),
  )
}

export function indexesText(indexes: Indexes): string {
  return indexes
    .map(({ first, last }) => {
      if (first === last) return String(first)
      return last === first + 1 ? `${first},${last}` : `${first}-${last}`
    })
    .join(',')
}

export function countIndexes(indexes: Indexes): number {
  return indexes.reduce((total, { first, last }) => total + last - first + 1, 0)
}

export function hasIndex(indexes: Indexes, index: number): boolean {
  return indexes.some(({ first, last }) => first <= index && index <= last)
}

export function withIndexes(indexes: Indexes, added: Iterable<number>): Indexes {
  return merge(
    indexes,
    [...added].map((index) => ({ first: index, last: index })),
  )
}

export function merge(one: Indexes, other: Indexes): Indexes {
  const merged: { first: number; last: number }[] = []
  for (const { first, last } of [...one, ...other].sort((a, b) => a.first - b.first)) {
    const before = merged.at(-1)
    if (before === undefined || first > before.last + 1) merged.push({ first, last })
    else before.last = Math.max(before.last, last)
  }
  return merged
}

/** The number of common indexes. */
export function countCommon(one: Indexes, other: Indexes): number {
  const overlaps = one.flatMap((a) =>
    other.map((b) => Math.max(0, Math.min(a.last, b.last) - Math.max(a.first, b.first) + 1)),
  )
  return overlaps.reduce((total, overlap) => total + overlap, 0)
}

/** The first `count` free indexes below `completions`. */
export function freeIndexes(taken: Indexes, count: number, completions: number): number[] {
  const free: number[] = []
  let next = 0
  for (const { first, last } of [...taken, { first: completions, last: completions }]) {
    for (; next < Math.min(first, completions) && free.length < count; next++) free.push(next)
    next = Math.max(next, last + 1)
  }
  return free
}
