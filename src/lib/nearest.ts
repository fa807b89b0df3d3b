/** Guesses what a mistyped word was meant to be, by cobra's rule. */

/** How many keystrokes a slip of the finger may cost. */
const MAX_EDITS = 2

/** Those of `words` that are at most two edits away from `typed` or begin with it, upper and lower case being equal. */
export function nearest(typed: string, words: readonly string[]): string[] {
  const wanted = typed.toLowerCase()
  return words.filter((word) => {
    const lower = word.toLowerCase()
    return lower.startsWith(wanted) || distance(wanted, lower) <= MAX_EDITS
  })
}

/** Levenshtein's: the fewest insertions, deletions and replacements that turn one word into the other. */
function distance(from: string, to: string): number {
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
