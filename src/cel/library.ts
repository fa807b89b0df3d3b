/**
 * The interface of a CEL library: each overload with its signature for the checker, `estimate` for the estimator, and
 * `evaluate` and `cost` for the planner.
 */
import type { CelType } from './type.ts'
import type { Result, Value } from './value.ts'

export interface Library {
  readonly name: string
  readonly functions: readonly FunctionDeclaration[]
  /** Names of types that can be written in an expression, with the type each stands for. */
  readonly types?: Readonly<Record<string, CelType>>
}

export interface FunctionDeclaration {
  readonly name: string
  readonly overloads: readonly Overload[]
}

export interface Overload {
  /** cel-go's or Kubernetes' own id, unique among all libraries; costs and messages go by it. */
  readonly id: string
  /** Called as `a.f(b)`; the receiver is then the first argument. */
  readonly isMember: boolean
  readonly args: readonly CelType[]
  readonly result: CelType
  /**
   * Arguments are evaluated, none has failed, and they fit the overload unless it is `unguarded`. Operators that the
   * planner implements (`&&`, `?:`, `[]`, comprehensions) are declared without it.
   */
  evaluate?(this: void, a: Value, b: Value, c: Value, d: Value): Result
  /** One implementation serves all overloads of the function: it looks at its arguments itself, whatever they are. */
  readonly unguarded?: true
  /** Bound by upstream with any number of arguments: one that fails stops the rest from being evaluated. */
  readonly variadic?: true
  /**
   * The cost of a call at run time; default 1. It is also computed for calls that failed, or whose arguments failed.
   * Without a parameter for the result it is charged before the call runs.
   */
  readonly cost?: Cost
  /** The same where, before run time, more than one overload fits; default 1. */
  readonly dynamicCost?: Cost
  /** The cost and the size of the result, estimated; default: 1, and an unknown size. */
  readonly estimate?: (args: readonly ArgumentEstimate[]) => CallEstimate
}

export type Cost = (a: Result, b: Result, result: Result) => number

type Behaviour = Pick<Overload, 'evaluate' | 'unguarded' | 'variadic' | 'cost' | 'dynamicCost' | 'estimate'>

/** `f(a, b)`. */
export function free(id: string, args: readonly CelType[], result: CelType, behaviour: Behaviour = {}): Overload {
  return { id, isMember: false, args, result, ...behaviour }
}

/** `a.f(b)`. */
export function member(id: string, args: readonly CelType[], result: CelType, behaviour: Behaviour = {}): Overload {
  return { id, isMember: true, args, result, ...behaviour }
}

/** A library from its overloads by function. */
export function defineLibrary(
  name: string,
  functions: Readonly<Record<string, readonly Overload[]>>,
  types: Readonly<Record<string, CelType>> = {},
): Library {
  return { name, functions: Object.entries(functions).map(([name, overloads]) => ({ name, overloads })), types }
}

/** Inclusive; max saturates at 2^64 - 1 as upstream's does. */
export interface Span {
  readonly min: bigint
  readonly max: bigint
}

export interface ArgumentEstimate {
  readonly type: CelType
  /** Of strings, bytes, lists and maps; undefined when nothing is known. */
  readonly size: Span | undefined
  /** Of the elements of a list or the values of a map. */
  readonly elementSize: Span | undefined
  /** When the argument is a literal. */
  readonly literal: Value | undefined
}

export interface CallEstimate {
  readonly cost: Span
  readonly resultSize?: Span
}
