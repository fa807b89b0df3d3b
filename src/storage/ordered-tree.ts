/**
 * An immutable map ordered by key, as a B+ tree. A change creates a new tree that shares all nodes but one path, so old
 * versions cost almost nothing. Strings are compared by UTF-16 code unit, which for ASCII equals the order of bytes.
 */

/** Node width: wide enough that 100,000 keys are three levels deep, narrow enough that copying a path is cheap. */
const MAX_WIDTH = 48
/** A node this many times smaller than it may be is merged with a neighbour, if they fit together. */
const SPARSE = 3

/** Neighbours in order. Never changes, so what is derived from exactly these values is remembered with them. */
export interface Run<V> {
  readonly keys: readonly string[]
  readonly values: readonly V[]
  /** By a name of the deriver's own. */
  readonly memo: Map<string, unknown>
}

class Leaf<V> implements Run<V> {
  readonly keys: readonly string[]
  readonly values: readonly V[]
  readonly children: undefined
  #memo: Map<string, unknown> | undefined

  constructor(keys: readonly string[], values: readonly V[]) {
    this.keys = keys
    this.values = values
  }

  get size(): number {
    return this.keys.length
  }

  get memo(): Map<string, unknown> {
    this.#memo ??= new Map()
    return this.#memo
  }
}

interface Branch<V> {
  /** `keys[i]` is not after any key below `children[i]` and after every key below `children[i - 1]`. */
  readonly keys: readonly string[]
  readonly children: readonly Node<V>[]
  readonly size: number
}

/** Every node but an empty root has at least one key; all leaves are at the same depth. */
type Node<V> = Leaf<V> | Branch<V>

export class OrderedTree<V> {
  readonly #root: Node<V>
  /** How many values a run may have. */
  readonly #runWidth: number

  private constructor(root: Node<V>, runWidth: number) {
    this.#root = root
    this.#runWidth = runWidth
  }

  static empty<V>(runWidth: number = MAX_WIDTH): OrderedTree<V> {
    return new OrderedTree<V>(new Leaf<V>([], []), runWidth)
  }

  /** From values in ascending order of key, without duplicates; quicker than one by one. */
  static fromSorted<V>(
    values: readonly V[],
    keyOf: (value: V) => string,
    runWidth: number = MAX_WIDTH,
  ): OrderedTree<V> {
    let level: Node<V>[] = []
    for (let at = 0; at < values.length; at += runWidth) {
      const part = values.slice(at, at + runWidth)
      level.push(new Leaf(part.map(keyOf), part))
    }
    while (level.length > 1) {
      const upper: Node<V>[] = []
      for (let at = 0; at < level.length; at += MAX_WIDTH) upper.push(branch(level.slice(at, at + MAX_WIDTH)))
      level = upper
    }
    return new OrderedTree<V>(level[0] ?? new Leaf<V>([], []), runWidth)
  }

  get size(): number {
    return this.#root.size
  }

  get(key: string): V | undefined {
    let node = this.#root
    while (node.children !== undefined) node = node.children[childOf(node, key)] as Node<V>
    const at = lowerBound(node.keys, key)
    return isAt(node.keys, at, key) ? node.values[at] : undefined
  }

  set(key: string, value: V): OrderedTree<V> {
    const parts = insert(this.#root, key, value, this.#runWidth)
    return new OrderedTree<V>(parts.length === 1 ? (parts[0] as Node<V>) : branch(parts), this.#runWidth)
  }

  /** The same tree when the key is not there. */
  delete(key: string): OrderedTree<V> {
    let root = remove(this.#root, key, this.#runWidth)
    if (root === this.#root) return this
    while (root.children?.length === 1) root = root.children[0] as Node<V>
    return new OrderedTree<V>(root.size === 0 ? new Leaf<V>([], []) : root, this.#runWidth)
  }

  /** How many keys are before `key`. */
  rank(key: string): number {
    let before = 0
    let node = this.#root
    while (node.children !== undefined) {
      const at = childOf(node, key)
      for (let left = 0; left < at; left++) before += (node.children[left] as Node<V>).size
      node = node.children[at] as Node<V>
    }
    return before + lowerBound(node.keys, key)
  }

  /** How many keys there are from `start` inclusive to `end` exclusive. */
  count(start: string, end: string): number {
    return Math.max(0, this.rank(end) - this.rank(start))
  }

  /** In order, every run that holds something from `start` inclusive to `end` exclusive, whatever else it holds. */
  runs(start: string, end: string): Iterable<Run<V>> {
    return runsOf(this.#root, start, end)
  }

  /** In order, in pieces, what is from `start` inclusive to `end` exclusive; finding the first costs a look at a path. */
  *slices(start: string, end: string): Generator<readonly V[], void, undefined> {
    for (const { keys, values } of this.runs(start, end)) {
      const [from, to] = [lowerBound(keys, start), lowerBound(keys, end)]
      yield from === 0 && to === values.length ? values : values.slice(from, to)
    }
  }

  /** Visits in order from `start` inclusive to `end` exclusive, until `visit` returns false. */
  scan(start: string, end: string, visit: (value: V, key: string) => boolean | void): void {
    scanNode(this.#root, start, end, visit)
  }
}

function* runsOf<V>(node: Node<V>, start: string, end: string): Generator<Run<V>, void, undefined> {
  if (node.children === undefined) {
    const at = lowerBound(node.keys, start)
    if (at < node.keys.length && (node.keys[at] as string) < end) yield node
    return
  }
  for (let at = childOf(node, start); at < node.children.length; at++) {
    if (at > 0 && (node.keys[at] as string) >= end) return
    yield* runsOf(node.children[at] as Node<V>, start, end)
  }
}

function scanNode<V>(
  node: Node<V>,
  start: string,
  end: string,
  visit: (value: V, key: string) => boolean | void,
): boolean {
  if (node.children === undefined) {
    for (let at = lowerBound(node.keys, start); at < node.keys.length; at++) {
      const key = node.keys[at] as string
      if (key >= end || visit(node.values[at] as V, key) === false) return false
    }
    return true
  }
  for (let at = childOf(node, start); at < node.children.length; at++) {
    if (!scanNode(node.children[at] as Node<V>, start, end, visit)) return false
  }
  return true
}

/** The node with the entry added, in two parts when it has become too wide. */
function insert<V>(node: Node<V>, key: string, value: V, runWidth: number): readonly Node<V>[] {
  if (node.children === undefined) {
    const at = lowerBound(node.keys, key)
    if (isAt(node.keys, at, key)) return [new Leaf(node.keys, node.values.with(at, value))]
    const keys = node.keys.toSpliced(at, 0, key)
    const values = node.values.toSpliced(at, 0, value)
    if (keys.length <= runWidth) return [new Leaf(keys, values)]
    const cut = splitPoint(at, keys.length)
    return [new Leaf(keys.slice(0, cut), values.slice(0, cut)), new Leaf(keys.slice(cut), values.slice(cut))]
  }
  const at = childOf(node, key)
  const children = node.children.toSpliced(at, 1, ...insert(node.children[at] as Node<V>, key, value, runWidth))
  if (children.length <= MAX_WIDTH) return [branch(children)]
  const cut = splitPoint(at, children.length)
  return [branch(children.slice(0, cut)), branch(children.slice(cut))]
}

/** Keys that arrive in ascending order leave full nodes behind instead of half empty ones. */
function splitPoint(insertedAt: number, length: number): number {
  return insertedAt >= length - 2 ? length - 1 : length >> 1
}

/** The node without the key, itself when the key is not there; may be empty. */
function remove<V>(node: Node<V>, key: string, runWidth: number): Node<V> {
  if (node.children === undefined) {
    const at = lowerBound(node.keys, key)
    if (!isAt(node.keys, at, key)) return node
    return new Leaf(node.keys.toSpliced(at, 1), node.values.toSpliced(at, 1))
  }
  const at = childOf(node, key)
  const child = node.children[at] as Node<V>
  const smaller = remove(child, key, runWidth)
  if (smaller === child) return node
  if (smaller.size === 0) return branch(node.children.toSpliced(at, 1))
  const width = smaller.children === undefined ? runWidth : MAX_WIDTH
  const neighbour =
    smaller.keys.length * SPARSE < width ? neighbourOf(node.children, at, width - smaller.keys.length) : at
  if (neighbour === at) return branch(node.children.with(at, smaller))
  const other = node.children[neighbour] as Node<V>
  const joined = neighbour < at ? join(other, smaller) : join(smaller, other)
  return branch(node.children.toSpliced(Math.min(at, neighbour), 2, joined))
}

/** Where the child next to `at` is that has at most `room` keys; `at` itself when there is none. */
function neighbourOf<V>(children: readonly Node<V>[], at: number, room: number): number {
  return [at - 1, at + 1].find((next) => (children[next]?.keys.length ?? Infinity) <= room) ?? at
}

function join<V>(left: Node<V>, right: Node<V>): Node<V> {
  if (left.children !== undefined && right.children !== undefined) return branch([...left.children, ...right.children])
  return new Leaf([...left.keys, ...right.keys], [...(left as Leaf<V>).values, ...(right as Leaf<V>).values])
}

function branch<V>(children: readonly Node<V>[]): Branch<V> {
  let size = 0
  for (const child of children) size += child.size
  return { keys: children.map((child) => child.keys[0] as string), children, size }
}

/** The child a key belongs below. */
function childOf<V>(node: Branch<V>, key: string): number {
  const at = lowerBound(node.keys, key)
  return isAt(node.keys, at, key) ? at : Math.max(0, at - 1)
}

/** Never looks beyond the end: V8 throws code away that does, and every key that is the last so far would. */
function isAt(keys: readonly string[], at: number, key: string): boolean {
  return at < keys.length && keys[at] === key
}

/** The first position whose key is not before `key`. */
function lowerBound(keys: readonly string[], key: string): number {
  let low = 0
  let high = keys.length
  while (low < high) {
    const middle = (low + high) >>> 1
    if ((keys[middle] as string) < key) low = middle + 1
    else high = middle
  }
  return low
}
