/** A priority heap that finds, moves and removes items by key, in O(log n). */

export interface HeapOptions<T, K> {
  /** The identity of an item. Must not change while the item is in the heap. */
  key(item: T): K
  /** Negative when `a` goes before `b`. The answer for two items in the heap may only change through `put`. */
  compare(a: T, b: T): number
}

interface Node<T, K> {
  readonly key: K
  item: T
  /** Order of arrival: among items that compare equal, first come, first served. */
  readonly order: number
  /** Always the index of this node in `#nodes`. */
  at: number
}

export class KeyedHeap<T, K = string> {
  readonly #key: (item: T) => K
  readonly #compare: (a: T, b: T) => number
  /** No node goes before its parent, which is at `(at - 1) >> 1`. */
  readonly #nodes: Node<T, K>[] = []
  readonly #byKey = new Map<K, Node<T, K>>()
  #order = 0

  constructor(options: HeapOptions<T, K>) {
    this.#key = (item) => options.key(item)
    this.#compare = (a, b) => options.compare(a, b)
  }

  get size(): number {
    return this.#nodes.length
  }

  has(key: K): boolean {
    return this.#byKey.has(key)
  }

  get(key: K): T | undefined {
    return this.#byKey.get(key)?.item
  }

  /**
   * Adds the item, or replaces the one with its key and moves it to where it now belongs. A replaced item keeps its
   * place among equals.
   */
  put(item: T): void {
    const key = this.#key(item)
    const known = this.#byKey.get(key)
    if (known !== undefined) {
      known.item = item
      this.#settle(known)
      return
    }
    const node = { key, item, order: this.#order++, at: this.#nodes.length }
    this.#byKey.set(key, node)
    this.#nodes.push(node)
    this.#rise(node)
  }

  /** The first item, left in place; undefined when empty. */
  peek(): T | undefined {
    return this.#nodes[0]?.item
  }

  /** Takes the first item out; undefined when empty. */
  pop(): T | undefined {
    return this.#take(this.#nodes[0])
  }

  /** Takes out the item with this key; undefined when there is none. */
  remove(key: K): T | undefined {
    return this.#take(this.#byKey.get(key))
  }

  clear(): void {
    this.#nodes.length = 0
    this.#byKey.clear()
  }

  /** Every item, in no promised order. The heap must not change on the way. */
  *items(): Generator<T, void, undefined> {
    for (const node of this.#nodes) yield node.item
  }

  #take(node: Node<T, K> | undefined): T | undefined {
    if (node === undefined) return undefined
    this.#byKey.delete(node.key)
    const last = this.#nodes.pop() as Node<T, K>
    if (last !== node) {
      last.at = node.at
      this.#nodes[last.at] = last
      this.#settle(last)
    }
    return node.item
  }

  #settle(node: Node<T, K>): void {
    this.#rise(node)
    this.#sink(node)
  }

  #rise(node: Node<T, K>): void {
    while (node.at > 0) {
      const parent = this.#nodes[(node.at - 1) >> 1] as Node<T, K>
      if (!this.#before(node, parent)) return
      this.#swap(node, parent)
    }
  }

  #sink(node: Node<T, K>): void {
    for (;;) {
      const left = this.#nodes[2 * node.at + 1]
      const right = this.#nodes[2 * node.at + 2]
      if (left === undefined) return
      const child = right !== undefined && this.#before(right, left) ? right : left
      if (!this.#before(child, node)) return
      this.#swap(child, node)
    }
  }

  #swap(a: Node<T, K>, b: Node<T, K>): void {
    const at = a.at
    a.at = b.at
    b.at = at
    this.#nodes[a.at] = a
    this.#nodes[b.at] = b
  }

  #before(a: Node<T, K>, b: Node<T, K>): boolean {
    const order = this.#compare(a.item, b.item)
    return order < 0 || (order === 0 && a.order < b.order)
  }
}
