/** Compares two texts line by line. */

/** The table of what is common grows with the square. */
const MOST_LINES = 2000

/** Lines that only one of them has there, in their order: what is left beside the longest common sequence. */
export function differences(theirs: string, ours: string): string[] {
  if (theirs === ours) return []
  const [left, right] = withoutCommonEnds(theirs.split('\n'), ours.split('\n'))
  const common = commonLengths(left, right)
  const lines: string[] = []
  let [at, other] = [0, 0]
  while (at < left.length || other < right.length) {
    if (at < left.length && left[at] === right[other]) {
      at++
      other++
    } else if (other >= right.length || (common[at + 1]?.[other] ?? -1) >= (common[at]?.[other + 1] ?? 0)) {
      lines.push(`    -${left[at++]}`)
    } else lines.push(`    +${right[other++]}`)
  }
  return lines
}

/** Most lines are equal at the beginning and the end. */
function withoutCommonEnds(left: readonly string[], right: readonly string[]): [string[], string[]] {
  const shortest = Math.min(left.length, right.length)
  let first = 0
  while (first < shortest && left[first] === right[first]) first++
  let last = 0
  while (last < shortest - first && left.at(-1 - last) === right.at(-1 - last)) last++
  const middle = (lines: readonly string[]): string[] => lines.slice(first, lines.length - last).slice(0, MOST_LINES)
  return [middle(left), middle(right)]
}

/** `lengths[i][j]`: how many lines what begins with `left[i]` and `right[j]` has in common. */
function commonLengths(left: readonly string[], right: readonly string[]): Uint16Array[] {
  let next = new Uint16Array(right.length + 1)
  const lengths = [next]
  for (const line of left.toReversed()) {
    const row = new Uint16Array(right.length + 1)
    for (let at = right.length - 1; at >= 0; at--) {
      row[at] = line === right[at] ? (next[at + 1] ?? 0) + 1 : Math.max(next[at] ?? 0, row[at + 1] ?? 0)
    }
    lengths.unshift(row)
    next = row
  }
  return lengths
}
