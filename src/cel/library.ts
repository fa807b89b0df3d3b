/**
 * The shape of a library: functions with all that is known of each overload in one place. The checker reads the
 * signatures, the estimator `estimate`, the planner `evaluate` and `cost`.
 */
import type { CelType } from './type.ts'
import type { Value } from './value.ts'

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
   * Arguments are evaluated and neither errors nor unknown; they fit the overload. Throws CelError. What the planner does
   * itself (`&&`, `?:`, `[]`, comprehensions) is declared without it.
   */
  readonly evaluate?: (args: readonly Value[]) => Value
  /** What a call costs at run time; default 1. */
  readonly cost?: (args: readonly Value[], result: Value) => number
  /** What it may cost, and how large its result may be; default: 1, and size unknown. */
  readonly estimate?: (args: readonly ArgumentEstimate[]) => CallEstimate
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
