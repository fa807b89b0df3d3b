/**
 * Compiles CEL function calls and resolves everything constant: overloads, cost functions, regular expressions and the
 * set of `in`.
 *
 * Failed arguments follow upstream's rules, because costs depend on them. A call with one or two arguments evaluates
 * all of them and adds its cost even if one fails. With more arguments, the first failure ends the call.
 */
import type { Cost, Overload } from '../library.ts'
import type { CelType } from '../type.ts'
import { Failure, type Result, type Value } from '../value.ts'
import { charge, type Evaluate, type Plan } from './frame.ts'
import { apply, dispatch, isKnown } from './signature.ts'

export interface PlannedCall {
  readonly name: string
  readonly overloads: readonly Overload[]
  readonly args: readonly Plan[]
  /** As checked. */
  readonly types: readonly (CelType | undefined)[]
}

export function planCall(call: PlannedCall): Evaluate {
  const { overloads, args } = call
  const [overload] = overloads
  if (overload === undefined) return () => new Failure(`no such overload: ${call.name}`)
  const isOpen = overloads.length > 1
  const cost = isOpen ? overload.dynamicCost : overload.cost
  const invoke = invocation(call)
  const isVariadic = args.length > 2 || overload.variadic === true || (isOpen && overload.unguarded !== true)
  const parts = args.map(({ evaluate }) => evaluate)
  if (isVariadic) return variadic(parts, cost, invoke)
  const [a, b] = parts
  if (a === undefined) return nullary(invoke)
  return b === undefined ? unary(a, cost, invoke) : binary([a, b], cost, invoke)
}

type Invoke = (a: Value, b: Value, c: Value, d: Value) => Result

/** The overload itself where it is sure to fit, else a look at the values first. */
function invocation({ name, overloads, args, types }: PlannedCall): Invoke {
  const [overload] = overloads as readonly [Overload]
  const evaluate = overload.evaluate
  const isSure = overloads.length === 1 && types.every(isKnown)
  if (evaluate !== undefined && (overload.unguarded === true || isSure)) return evaluate
  const call = dispatch(name, overloads)
  return (...values) => call(values.slice(0, args.length))
}

const NOTHING = null

function nullary(invoke: Invoke): Evaluate {
  return (frame) => {
    charge(frame, 1)
    return invoke(NOTHING, NOTHING, NOTHING, NOTHING)
  }
}

/** Whether a cost needs the result, and so comes after the work. */
const isLate = (cost: Cost | undefined): boolean => cost !== undefined && cost.length > 2

function unary(part: Evaluate, cost: Cost | undefined, invoke: Invoke): Evaluate {
  if (cost !== undefined && isLate(cost)) {
    return (frame) => {
      const a = part(frame)
      const result = a instanceof Failure ? a : invoke(a, NOTHING, NOTHING, NOTHING)
      charge(frame, cost(a, NOTHING, result))
      return result
    }
  }
  return (frame) => {
    const a = part(frame)
    charge(frame, cost === undefined ? 1 : cost(a, NOTHING, NOTHING))
    return a instanceof Failure ? a : invoke(a, NOTHING, NOTHING, NOTHING)
  }
}

function binary([left, right]: readonly [Evaluate, Evaluate], cost: Cost | undefined, invoke: Invoke): Evaluate {
  if (cost !== undefined && isLate(cost)) {
    return (frame) => {
      const a = left(frame)
      const b = right(frame)
      const result = a instanceof Failure ? a : b instanceof Failure ? b : invoke(a, b, NOTHING, NOTHING)
      charge(frame, cost(a, b, result))
      return result
    }
  }
  return (frame) => {
    const a = left(frame)
    const b = right(frame)
    charge(frame, cost === undefined ? 1 : cost(a, b, NOTHING))
    if (a instanceof Failure) return a
    return b instanceof Failure ? b : invoke(a, b, NOTHING, NOTHING)
  }
}

function variadic(parts: readonly Evaluate[], cost: Cost | undefined, invoke: Invoke): Evaluate {
  return (frame) => {
    const values: Value[] = []
    let failed: Failure | undefined
    for (const [at, part] of parts.entries()) {
      const value = part(frame)
      if (value instanceof Failure) {
        if (at < parts.length - 1) return value
        failed = value
      } else values.push(value)
    }
    const [a = NOTHING, b = NOTHING] = values
    const last: Result = failed ?? b
    if (!isLate(cost))
      charge(frame, cost === undefined ? 1 : cost(parts.length === 1 ? (failed ?? a) : a, last, NOTHING))
    const result = failed ?? invoke(a, b, values[2] as Value, values[3] as Value)
    if (cost !== undefined && isLate(cost)) charge(frame, cost(a, b, result))
    return result
  }
}

/** A function of nothing but constants, done now. */
export function foldCall({ name, overloads, args }: PlannedCall): Result {
  const values = args.map(({ constant }) => constant?.value as Value)
  const [overload] = overloads
  if (overload?.unguarded === true) return apply(overload, values)
  return dispatch(name, overloads)(values)
}
