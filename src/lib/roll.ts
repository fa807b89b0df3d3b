/**
 * Roll: those who are here now, in the order in which they came. What a Set is for, but for what comes and goes thousands
 * of times a second: a Set makes itself a new table every so often, and the engine, which looks at young objects alone
 * most of the time, takes everything in the old table for alive: whatever was under way would grow old and be copied
 * twice. Here nothing refers to those who have left.
 */

/** Somebody's place on a roll. */
export class Link<T> {
  readonly value: T
  roll: Roll<T> | undefined
  before: Link<T> | undefined
  after: Link<T> | undefined

  constructor(value: T, roll: Roll<T>) {
    this.value = value
    this.roll = roll
  }

  /** False when that was done before. */
  leave(): boolean {
    if (this.roll === undefined) return false
    this.roll.unlink(this)
    this.roll = this.before = this.after = undefined
    return true
  }
}

export class Roll<T> implements Iterable<T> {
  #size = 0
  #first: Link<T> | undefined
  #last: Link<T> | undefined

  get size(): number {
    return this.#size
  }

  /** Who came first. */
  get first(): Link<T> | undefined {
    return this.#first
  }

  /** The same value may be on it more than once. */
  add(value: T): Link<T> {
    const link = new Link(value, this)
    link.before = this.#last
    if (this.#last === undefined) this.#first = link
    else this.#last.after = link
    this.#last = link
    this.#size++
    return link
  }

  /** For `Link.leave`. */
  unlink({ before, after }: Link<T>): void {
    if (before === undefined) this.#first = after
    else before.after = after
    if (after === undefined) this.#last = before
    else after.before = before
    this.#size--
  }

  /** As they are now: whoever comes or goes meanwhile changes nothing. */
  [Symbol.iterator](): Iterator<T> {
    const all: T[] = []
    for (let link = this.#first; link !== undefined; link = link.after) all.push(link.value)
    return all.values()
  }
}
