/** A compiled CEL expression that can be evaluated repeatedly. */
import type { Value } from './value.ts'

export interface Program {
  /**
   * Throws CelError, or CelBudgetError. In any case `budget.spent` contains the cost.
   */
  evaluate(variables: Variables, budget: Budget): Value
}

/** Values by variable; a getter may compute a value at the first access. */
export type Variables = Readonly<Record<string, Value | undefined>>

/** Counts up; evaluation stops when it is strictly over. One may be shared by several evaluations. */
export interface Budget {
  /** Of one evaluation; upstream's default is 1,000,000. */
  readonly limit: number
  /** Of the last evaluation. */
  spent: number
}
