/** A list in chunks. Inserting or removing an element moves only the elements of one chunk, however long the list is. */

/** The number of elements that a new chunk gets. A chunk that grows to twice as many is split. */
const CHUNK_ITEMS = 1024

export class ChunkedList<T> {
  readonly #chunks: T[][] = []
  #length: number

  /** Copies `items`. */
  constructor(items: readonly T[]) {
    for (let at = 0; at < items.length; at += CHUNK_ITEMS) this.#chunks.push(items.slice(at, at + CHUNK_ITEMS))
    if (items.length === 0) this.#chunks.push([])
    this.#length = items.length
  }

  get length(): number {
    return this.#length
  }

  /** `index` must be below the length, as it must be for `set` and `remove`. */
  get(index: number): T {
    const { chunk, at } = this.#locate(index)
    return chunk[at] as T
  }

  set(index: number, item: T): void {
    const { chunk, at } = this.#locate(index)
    chunk[at] = item
  }

  /** `index` may be the length: the item is appended. */
  insert(index: number, item: T): void {
    const { chunk, at, number } = this.#locate(index)
    chunk.splice(at, 0, item)
    this.#length++
    if (chunk.length >= 2 * CHUNK_ITEMS) this.#chunks.splice(number + 1, 0, chunk.splice(CHUNK_ITEMS))
  }

  remove(index: number): T {
    const { chunk, at, number } = this.#locate(index)
    const [item] = chunk.splice(at, 1)
    this.#length--
    if (chunk.length === 0 && this.#chunks.length > 1) this.#chunks.splice(number, 1)
    return item as T
  }

  toArray(): T[] {
    return this.#chunks.flatMap((chunk) => chunk)
  }

  #locate(index: number): { readonly chunk: T[]; readonly at: number; readonly number: number } {
    let at = index
    let number = 0
    let chunk = this.#chunks[0] as T[]
    while (at >= chunk.length && number + 1 < this.#chunks.length) {
      at -= chunk.length
      chunk = this.#chunks[++number] as T[]
    }
    return { chunk, at, number }
  }
}
