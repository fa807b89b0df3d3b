/**
 * Pages: entries in order of key, in pages of a few hundred. An insert moves one page, not the collection, and what is
 * derived from a page (its entries' bytes, joined) stays valid until one of its own entries changes, so a list of
 * five thousand objects after one write re-joins one page.
 */
import type { Revision } from '../backend.ts'

/** What the cache itself needs to know of an entry. */
export interface Keyed {
  readonly key: string
  readonly modRevision: Revision
}

/** A run of neighbouring entries. Treat `entries` as read-only. */
export interface Page<E extends Keyed> {
  readonly entries: readonly E[]
  /** What readers derived from exactly these entries, by a name of their own. Emptied by every change of the page. */
  readonly memo: Map<string, unknown>
}

/** Splits at twice this: measured, 256 entries of 1 KiB a page re-join fast and list fast. */
const PAGE_ENTRIES = 256

export class Pages<E extends Keyed> {
  /** In key order; none is empty. */
  readonly #pages: { entries: E[]; memo: Map<string, unknown> }[] = []
  #size = 0

  get size(): number {
    return this.#size
  }

  get(key: string): E | undefined {
    const entries = this.#pages[this.#pageOf(key)]?.entries
    const found = entries?.[lowerBound(entries, key)]
    return found?.key === key ? found : undefined
  }

  /** Puts the entry in, in place of the one with its key, which is returned. */
  set(entry: E): E | undefined {
    if (this.#pages.length === 0) this.#pages.push({ entries: [], memo: new Map() })
    const number = this.#pageOf(entry.key)
    const page = this.#pages[number] as { entries: E[]; memo: Map<string, unknown> }
    const at = lowerBound(page.entries, entry.key)
    const before = page.entries[at]
    page.memo.clear()
    if (before?.key === entry.key) {
      page.entries[at] = entry
      return before
    }
    page.entries.splice(at, 0, entry)
    this.#size++
    if (page.entries.length >= 2 * PAGE_ENTRIES) {
      this.#pages.splice(number + 1, 0, { entries: page.entries.splice(PAGE_ENTRIES), memo: new Map() })
    }
    return undefined
  }

  delete(key: string): E | undefined {
    const number = this.#pageOf(key)
    const page = this.#pages[number]
    const at = page === undefined ? 0 : lowerBound(page.entries, key)
    const before = page?.entries[at]
    if (page === undefined || before?.key !== key) return undefined
    page.entries.splice(at, 1)
    page.memo.clear()
    this.#size--
    if (page.entries.length === 0) this.#pages.splice(number, 1)
    return before
  }

  clear(): void {
    this.#pages.length = 0
    this.#size = 0
  }

  /** All pages, in order. */
  all(): readonly Page<E>[] {
    return this.#pages
  }

  /** Entries from `start` (inclusive) to `end` (exclusive), in order, in an array of the caller's own. */
  slice(start: string, end: string): E[] {
    const parts: E[][] = []
    for (let number = this.#pageOf(start); number < this.#pages.length; number++) {
      const entries = this.#pages[number]?.entries ?? []
      if ((entries[0]?.key ?? end) >= end) break
      parts.push(entries.slice(lowerBound(entries, start), lowerBound(entries, end)))
    }
    return parts.length === 1 ? (parts[0] as E[]) : parts.flat()
  }

  /** The page that holds `key` or would: the last whose first key is not after it. */
  #pageOf(key: string): number {
    let low = 0
    let high = this.#pages.length
    while (low < high) {
      const middle = (low + high) >> 1
      if ((this.#pages[middle]?.entries[0]?.key ?? '') <= key) low = middle + 1
      else high = middle
    }
    return Math.max(0, low - 1)
  }
}

function lowerBound(entries: readonly { readonly key: string }[], key: string): number {
  let low = 0
  let high = entries.length
  while (low < high) {
    const middle = (low + high) >> 1
    if ((entries[middle]?.key ?? '') < key) low = middle + 1
    else high = middle
  }
  return low
}
