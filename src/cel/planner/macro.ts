/**
 * Compiles and evaluates CEL comprehensions, to which every macro over lists and maps expands. A comprehension creates
 * its accumulator on first use, as upstream does. An earlier creation would change costs and errors.
 */
import type { Comprehension, Expression } from '../syntax/ast.ts'
import { Failure, ListValue, MapValue, NO_SUCH_OVERLOAD, goTypeOf, type Result, type Value } from '../value.ts'
import { ArrayList, GrowingList } from '../values/list.ts'
import { EntryMap, GrowingMap } from '../values/map.ts'
import { charge, chargeSteps, type Evaluate, type Frame } from './frame.ts'

/** Marks the slot of an accumulator that was not used yet. */
const UNSET = new Failure('unset')

export interface Fold {
  readonly range: Evaluate
  readonly initial: Evaluate
  readonly condition: Evaluate
  readonly step: Evaluate
  readonly result: Evaluate
  readonly slot: number
  /** Of the index or key, when there are two variables. */
  readonly keySlot: number | undefined
  readonly accumulator: number
}

/** Reads an accumulator, and makes it first where it is not made yet. */
export function readAccumulator(slot: number, initial: Evaluate): Evaluate {
  return (frame) => {
    const value = frame.slots[slot] as Result
    return value === UNSET ? (frame.slots[slot] = growing(initial(frame))) : value
  }
}

function growing(value: Result): Result {
  if (value instanceof ListValue && value.size === 0) return new GrowingList()
  return value instanceof MapValue && value.size === 0 ? new GrowingMap() : value
}

function settled(value: Result): Result {
  if (value instanceof GrowingList) return new ArrayList(value.items)
  return value instanceof GrowingMap ? new EntryMap(value.entries) : value
}

export function foldPlan(fold: Fold): Evaluate {
  return (frame) => {
    const range = fold.range(frame)
    if (range instanceof Failure) return range
    frame.slots[fold.accumulator] = UNSET
    const failure = iterate(frame, range, fold, () => {
      if (fold.condition(frame) === false) return false
      frame.slots[fold.accumulator] = fold.step(frame)
      return true
    })
    return failure ?? settled(fold.result(frame))
  }
}

type FoldSlots = Pick<Fold, 'slot' | 'keySlot'>

/** Sets the variables for each element in turn, until `body` says no. A failure where nothing can be iterated over. */
function iterate(frame: Frame, range: Value, places: FoldSlots, body: () => boolean): Failure | undefined {
  if (range instanceof ListValue) iterateList(frame, range, places, body)
  else if (range instanceof MapValue) iterateMap(frame, range, places, body)
  else return notIterable(range, places)
  return undefined
}

function notIterable(range: Value, { keySlot }: FoldSlots): Failure {
  if (keySlot !== undefined) return new Failure(`unsupported comprehension range type: ${goTypeOf(range)}`)
  return new Failure(`got '${goTypeOf(range)}', expected iterable type`)
}

function iterateList(frame: Frame, range: ListValue, { slot, keySlot }: FoldSlots, body: () => boolean): void {
  for (let at = 0; at < range.size; at++) {
    if (keySlot !== undefined) frame.slots[keySlot] = at
    frame.slots[slot] = range.at(at)
    if (!body()) return
  }
}

function iterateMap(frame: Frame, range: MapValue, { slot, keySlot }: FoldSlots, body: () => boolean): void {
  for (const key of range.keys()) {
    if (keySlot === undefined) frame.slots[slot] = key
    else {
      frame.slots[keySlot] = key
      // Not a number is a key that finds nothing, not even itself.
      frame.slots[slot] = range.get(key) ?? null
    }
    if (!body()) return
  }
}

/** `all` and `exists`, recognised by their shape: the same results and costs as the fold, without its steps. */
export interface Quantifier {
  /** The value of the predicate that ends the loop: false for `all`, true for `exists`. */
  readonly decisive: boolean
  readonly predicate: Expression
}

export function quantifierOf({ initial, condition, step, result, accumulator }: Comprehension): Quantifier | undefined {
  const isAccumulator = (expression: Expression | undefined): boolean =>
    expression?.kind === 'identifier' && expression.name === accumulator
  if (initial.kind !== 'literal' || initial.value.type !== 'bool' || !isAccumulator(result)) return undefined
  const isAll = initial.value.value
  const [conditionOperand] = argumentsOf(condition, '@not_strictly_false')
  const tested = isAll ? conditionOperand : argumentsOf(conditionOperand, '!_')[0]
  const [first, predicate] = argumentsOf(step, isAll ? '_&&_' : '_||_')
  if (!isAccumulator(tested) || !isAccumulator(first) || predicate === undefined) return undefined
  return { decisive: !isAll, predicate }
}

const argumentsOf = (node: Expression | undefined, name: string): readonly Expression[] =>
  node?.kind === 'call' && node.function === name ? node.args : []

export function quantifierPlan(range: Evaluate, places: FoldSlots, decisive: boolean, predicate: Evaluate): Evaluate {
  // Asking whether to go on reads the accumulator and calls one function, for `exists` two; then it is read again.
  const check = decisive ? 3 : 2
  return (frame) => {
    const over = range(frame)
    if (over instanceof Failure) return over
    let result: Result = !decisive
    const failure = iterate(frame, over, places, () => {
      if (result === decisive) {
        chargeSteps(frame, check)
        return false
      }
      chargeSteps(frame, check + 1)
      const next = predicate(frame)
      if (next === decisive) result = decisive
      else if (result === !decisive && next !== !decisive) result = next instanceof Failure ? next : NO_SUCH_OVERLOAD
      return true
    })
    if (failure !== undefined) return failure
    charge(frame, 1)
    return result
  }
}
