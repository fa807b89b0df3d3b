/** List values that the evaluation of a CEL expression creates. */
import { ListValue, type Result, type Value } from '../value.ts'

export class ArrayList extends ListValue {
  readonly items: readonly Value[]
  constructor(items: readonly Value[]) {
    super()
    this.items = items
  }
  get size(): number {
    return this.items.length
  }
  at(index: number): Result {
    return this.items[index] as Value
  }
}

/** The result of a macro while elements are appended. Only the macro has access to it until it is complete. */
export class GrowingList extends ListValue {
  readonly items: Value[] = []
  get size(): number {
    return this.items.length
  }
  at(index: number): Result {
    return this.items[index] as Value
  }
}

/** Two lists end to end, without copying either: adding lists costs 1 however long they are. */
class JoinedList extends ListValue {
  readonly size: number
  readonly first: ListValue
  readonly second: ListValue
  constructor(first: ListValue, second: ListValue) {
    super()
    this.size = first.size + second.size
    this.first = first
    this.second = second
  }
  at(index: number): Result {
    return index < this.first.size ? this.first.at(index) : this.second.at(index - this.first.size)
  }
}

/** A list that computes or finds elements on access: ranges, slices, reversed lists. */
export class PickedList extends ListValue {
  readonly size: number
  readonly #pick: (index: number) => Result
  constructor(size: number, pick: (index: number) => Result) {
    super()
    this.size = size
    this.#pick = pick
  }
  at(index: number): Result {
    return this.#pick(index)
  }
}

export function addLists(a: ListValue, b: ListValue): Result {
  if (a instanceof GrowingList) {
    for (let at = 0; at < b.size; at++) a.items.push(b.at(at) as Value)
    return a
  }
  const merged = a.plusUnordered(b)
  if (merged !== undefined) return merged
  if (a.size === 0) return b
  return b.size === 0 ? a : new JoinedList(a, b)
}

export const listValue = (items: readonly Value[]): ListValue => new ArrayList(items)
