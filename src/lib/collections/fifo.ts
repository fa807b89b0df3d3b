/**
 * A first-in, first-out queue that takes constant time at both ends. `Array.shift` moves every element of a large
 * array.
 */

/** Below this many dead slots at the front, moving the rest down costs more than it frees. */
const COMPACT_FROM = 64

export class Fifo<T> {
  #items: (T | undefined)[] = []
  /** Slots before `#head` are empty; the oldest item is at `#head`. */
  #head = 0

  get size(): number {
    return this.#items.length - this.#head
  }

  push(item: T): void {
    this.#items.push(item)
  }

  /** Takes the oldest item out; undefined when empty. */
  shift(): T | undefined {
    const items = this.#items
    if (this.#head === items.length) return undefined
    const item = items[this.#head]
    items[this.#head++] = undefined
    if (this.#head === items.length) this.clear()
    // Half of the slots are dead, so each move is paid for by as many shifts.
    else if (this.#head >= COMPACT_FROM && this.#head * 2 >= items.length) {
      items.copyWithin(0, this.#head)
      items.length -= this.#head
      this.#head = 0
    }
    return item
  }

  clear(): void {
    this.#items = []
    this.#head = 0
  }
}
