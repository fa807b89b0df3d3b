/** Suggests known words that are similar to a mistyped one, by cobra's rule. */

/** How many keystrokes a slip of the finger may cost. */
const MAX_EDITS = 2

/** Those of `words` that are at most two edits away from `typed` or begin with it, upper and lower case being equal. */
export function nearest(typed: string, words: readonly string[]): string[] {
  const wanted = typed.toLowerCase()
  return words.filter((word) => {
    const lower = word.toLowerCase()
    return lower.startsWith(wanted) || editDistance(wanted, lower) <= MAX_EDITS
  })
}

/** Shorter beginnings are shared by words that have nothing else in common. */
const MIN_PREFIX = 4

/**
 * The word that was most likely meant: as `nearest`, but more slips count in longer words, `-` and `_` are nothing, and
 * one word may be the beginning of the other.
 */
export function closest(typed: string, words: readonly string[]): string | undefined {
  const bare = (word: string): string => word.toLowerCase().replaceAll(/[-_]/g, '')
  const wanted = bare(typed)
  const found = words
    .map((word) => ({ word, other: bare(word) }))
    .map(({ word, other }) => ({ word, other, edits: editDistance(wanted, other) }))
    .filter(({ other, edits }) => edits <= Math.max(MAX_EDITS, other.length / 3) || beginsAlike(wanted, other))
  return found.toSorted((one, another) => one.edits - another.edits)[0]?.word
}

function beginsAlike(one: string, other: string): boolean {
  return Math.min(one.length, other.length) >= MIN_PREFIX && (one.startsWith(other) || other.startsWith(one))
}

/** The Levenshtein distance: the fewest insertions, deletions and replacements between two words. */
export function editDistance(from: string, to: string): number {
  let row = Array.from({ length: to.length + 1 }, (_, at) => at)
  for (const [done, char] of from.split('').entries()) {
    const next = [done + 1]
    for (const [at, other] of to.split('').entries()) {
      const replaced = (row[at] ?? 0) + (char === other ? 0 : 1)
      next.push(Math.min(replaced, (row[at + 1] ?? 0) + 1, (next[at] ?? 0) + 1))
    }
    row = next
  }
  return row[to.length] ?? 0
}
