/**
 * Environment: what an expression may use, and the way from text to program. Made once for each place that takes
 * expressions (rules of a schema, match conditions, policies, device selectors, …) and kept.
 */
import type { Library, Span } from './library.ts'
import type { CelType } from './type.ts'
import type { Value } from './value.ts'

export interface EnvironmentOptions {
  /** Default: everything Kubernetes 1.36 has. */
  readonly libraries?: readonly Library[]
  /** Variables by name. */
  readonly variables: Readonly<Record<string, CelType>>
  /** Declared types that literals may name (`Object{…}`, `JSONPatch{…}`) besides those reached through variables. */
  readonly types?: readonly CelType[]
}

export interface Environment {
  /** Parses and checks. Never throws for a bad expression. */
  compile(source: string): Compilation
  /** The same with more variables. */
  extend(variables: Readonly<Record<string, CelType>>): Environment
}

export type Compilation =
  | Compiled
  | { readonly issues: readonly Issue[]; /** Upstream's whole report. */ readonly report: string }

export interface Issue {
  readonly message: string
  /** From 1; -1 where the whole expression is meant. */
  readonly line: number
  /** From 0, in code points. */
  readonly column: number
}

export interface Compiled {
  readonly issues?: undefined
  readonly type: CelType
  /** Of `oldSelf` and the like: whether the expression, with macros expanded, uses the variable. */
  uses(variable: string): boolean
  /** The static estimate; sizes of variables are in their types. */
  estimateCost(): Span
  /** Plans it; throws CelError with upstream's text when constant parts already fail (`programError`). */
  program(): Program
}

export interface Program {
  /**
   * Throws CelError, or CelBudgetError. What it cost is in `budget.spent` either way.
   */
  evaluate(variables: Variables, budget: Budget): Value
}

/** Values by variable; a getter may make one when it is first asked for. */
export type Variables = Readonly<Record<string, Value | undefined>>

/** Counts up; evaluation stops when it is strictly over. One may be shared by several evaluations. */
export interface Budget {
  /** Of one evaluation; upstream's default is 1,000,000. */
  readonly limit: number
  /** Of the last evaluation. */
  spent: number
}
