/**
 * InsertionSet: a linked list that iterates in insertion order, for values that come and go thousands of times a
 * second. Unlike a Set, it keeps no reference to a removed value.
 */

/** The link of one value in a set. */
export class Link<T> {
  readonly value: T
  set: InsertionSet<T> | undefined
  before: Link<T> | undefined
  after: Link<T> | undefined

  constructor(value: T, roll: InsertionSet<T>) {
    this.value = value
    this.set = roll
  }

  /** Returns false if the value was already removed. */
  remove(): boolean {
    if (this.set === undefined) return false
    this.set.unlink(this)
    this.set = this.before = this.after = undefined
    return true
  }
}

export class InsertionSet<T> implements Iterable<T> {
  #size = 0
  #first: Link<T> | undefined
  #last: Link<T> | undefined

  get size(): number {
    return this.#size
  }

  get first(): Link<T> | undefined {
    return this.#first
  }

  /** The same value may be added more than once. */
  add(value: T): Link<T> {
    const link = new Link(value, this)
    link.before = this.#last
    if (this.#last === undefined) this.#first = link
    else this.#last.after = link
    this.#last = link
    this.#size++
    return link
  }

  /** Only for `Link.remove`. */
  unlink({ before, after }: Link<T>): void {
    if (before === undefined) this.#first = after
    else before.after = after
    if (after === undefined) this.#last = before
    else after.before = before
    this.#size--
  }

  /** Iterates a snapshot: values added or removed during the iteration do not affect it. */
  [Symbol.iterator](): Iterator<T> {
    const all: T[] = []
    for (let link = this.#first; link !== undefined; link = link.after) all.push(link.value)
    return all.values()
  }
}
