/** Reads the text of a search: words that names contain, and labels as `key=value`. */

export interface SearchQuery {
  /** Lower-case; a name has all of them. */
  readonly words: readonly string[]
  /** A label selector; empty: any labels. */
  readonly labels: string
}

const MIN_LETTERS = 2
const MAX_LETTERS = 300

/** Undefined: the text is too short to search for. */
export function parseSearch(text: string): SearchQuery | undefined {
  const parts = text.slice(0, MAX_LETTERS).trim().split(/\s+/).filter(Boolean)
  const words = parts.filter((part) => !part.includes('=')).map((part) => part.toLowerCase())
  const labels = parts.filter((part) => part.includes('=') && !part.startsWith('=')).join(',')
  return labels === '' && words.join('').length < MIN_LETTERS ? undefined : { words, labels }
}

/** 0: the name does not fit. The name itself fits better than its beginning, and that better than a part. */
export function rankOf(name: string, { words }: SearchQuery): number {
  const lower = name.toLowerCase()
  if (!words.every((word) => lower.includes(word))) return 0
  const [first = ''] = words
  return lower === first ? 3 : lower.startsWith(first) ? 2 : 1
}
