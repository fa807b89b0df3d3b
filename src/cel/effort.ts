/**
 * A second budget, for work that CEL's cost does not see: deep comparison, long strings looked through again and again,
 * large regular expressions. Generous beside every honest rule; there so that no expression holds the thread for long.
 * One for all, because an evaluation runs from its beginning to its end without a pause.
 */
import { CelBudgetError } from './value.ts'

/** Steps of some nanoseconds each; half a second or so in all. */
const LIMIT = 30_000_000

let left = LIMIT

/** A new evaluation begins. */
export function beginEffort(): void {
  left = LIMIT
}

/** Throws what running over the cost limit throws. */
export function spendEffort(steps: number): void {
  left -= steps
  if (left < 0) throw new CelBudgetError('operation cancelled: actual cost limit exceeded')
}
