/**
 * Compiles CEL operators that need more than a function call: logic, equality, optionals, and `in` or a pattern with
 * constant arguments.
 */
import { compileRegexp, RegexpError } from '#lib/regexp.ts'

import type { Overload } from '../library.ts'
import {
  CelError,
  Double,
  Failure,
  ListValue,
  MAX_INT64,
  MIN_INT64,
  NO_SUCH_OVERLOAD,
  Optional,
  Uint,
  intOf,
  type Result,
  type Value,
} from '../value.ts'
import { mapKey } from '../values/map.ts'
import { attributeOf, choiceOf } from './attribute.ts'
import { foldCall, planCall, type PlannedCall } from './call.ts'
import { attributePlan, constantPlan, type Attribute, type Evaluate, type Plan } from './frame.ts'
import { conjunction, disjunction, equality, intOperator, notStrictlyFalse } from './operator.ts'
import { fits } from './signature.ts'

const conversions: ReadonlySet<string> = new Set(
  'bool bytes double duration dyn int string timestamp type uint'.split(' '),
)

export function planBuiltIn(call: PlannedCall): Plan {
  const special = planSpecial(call) ?? planConstant(call)
  if (special !== undefined) return special
  const [overload] = call.overloads
  const [left, right] = call.args
  if (overload?.evaluate !== undefined && call.overloads.length === 1 && left !== undefined && right !== undefined) {
    const evaluate = intOperator(overload.id, overload.evaluate as (a: Value, b: Value) => Result)
    if (evaluate !== undefined) return { evaluate: evaluate(left.evaluate, right.evaluate) }
  }
  return { evaluate: planCall(patternKnown(call)) }
}

function planSpecial({ name, args }: PlannedCall): Plan | undefined {
  const [a, b, c] = args.map(({ evaluate }) => evaluate)
  if (a === undefined) return undefined
  if (name === '@not_strictly_false') return { evaluate: notStrictlyFalse(a) }
  if (b === undefined) return undefined
  switch (name) {
    case '_&&_':
      return { evaluate: conjunction(a, b) }
    case '_||_':
      return { evaluate: disjunction(a, b) }
    case '_==_':
    case '_!=_':
      return { evaluate: equality(a, b, name === '_!=_') }
    case 'or':
      return { evaluate: orElse(a, b, (optional) => optional) }
    case 'orValue':
      return { evaluate: orElse(a, b, ({ value }) => value as Value) }
    case '_?_:_':
      return c === undefined ? undefined : attributePlan(choiceOf(a, branch(args[1]), branch(args[2])))
    default:
      return undefined
  }
}

/** A branch that is an attribute is resolved as one, which spares it the cost of being a value. */
const branch = (plan: Plan | undefined): Attribute => plan?.attribute ?? attributeOf(plan?.evaluate ?? (() => null))

function orElse(left: Evaluate, right: Evaluate, take: (optional: Optional) => Value): Evaluate {
  return (frame) => {
    const optional = left(frame)
    if (!(optional instanceof Optional)) return optional
    return optional.value === undefined ? right(frame) : take(optional)
  }
}

/** Plans calls that are constant: conversions of constants, and `in` among constants. */
function planConstant(call: PlannedCall): Plan | undefined {
  const { name, overloads, args } = call
  const [first, second] = args
  if (conversions.has(name) && args.length === 1 && first?.constant !== undefined) {
    const value = foldCall(call)
    if (value instanceof Failure) throw new CelError(value.message)
    return constantPlan(value)
  }
  const list = second?.constant?.value
  if (name !== '@in' || overloads.length !== 1 || !(list instanceof ListValue) || first === undefined) return undefined
  return planMembership(first.evaluate, list)
}

function planMembership(part: Evaluate, list: ListValue): Plan | undefined {
  if (list.size === 0) return constantPlan(false)
  const members = new Set<unknown>()
  for (let at = 0; at < list.size; at++) {
    const element = list.at(at) as Value
    if (!isPrimitive(element)) return undefined
    for (const member of [element, ...equalInOtherTypes(element)]) members.add(mapKey(member))
  }
  return {
    evaluate(frame) {
      const value = part(frame)
      return value instanceof Failure ? value : members.has(mapKey(value))
    },
  }
}

const isPrimitive = (value: Value): boolean =>
  value !== null && (typeof value !== 'object' || value instanceof Double || value instanceof Uint)

/** The same number as the other numeric types have it. */
function equalInOtherTypes(value: Value): Value[] {
  if (typeof value === 'number' || typeof value === 'bigint') {
    return [new Double(Number(value)), ...(value >= 0 ? [new Uint(BigInt(value))] : [])]
  }
  if (value instanceof Uint) {
    return [new Double(Number(value.value)), ...(value.value <= MAX_INT64 ? [intOf(value.value)] : [])]
  }
  if (!(value instanceof Double) || !Number.isInteger(value.value)) return []
  const whole = BigInt(value.value)
  const isInt = whole > MIN_INT64 && whole < MAX_INT64
  return [...(isInt ? [intOf(whole)] : []), ...(whole >= 0n && whole < 2n ** 64n ? [new Uint(whole)] : [])]
}

/** Upstream's call of a compiled pattern does not name the function and its types in its error. */
function withPlainError(overload: Overload): Overload {
  const { evaluate, args } = overload
  if (evaluate === undefined) return { ...overload, variadic: true }
  const guarded: typeof evaluate = (...values) =>
    args.every((type, at) => fits(values[at] ?? null, type)) ? evaluate(...values) : NO_SUCH_OVERLOAD
  return { ...overload, variadic: true, unguarded: true, evaluate: guarded }
}

const patterned: ReadonlySet<string> = new Set(['matches', 'find', 'findAll'])

/** A constant pattern is compiled now, to fail now; the cache of patterns has it from then on. */
function patternKnown(call: PlannedCall): PlannedCall {
  const pattern = call.args[1]?.constant?.value
  if (!patterned.has(call.name) || typeof pattern !== 'string') return call
  try {
    compileRegexp(pattern)
  } catch (error) {
    if (error instanceof RegexpError) throw new CelError(error.message)
    throw error
  }
  return { ...call, overloads: call.overloads.map(withPlainError) }
}
