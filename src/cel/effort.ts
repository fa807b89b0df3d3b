/**
 * A second budget, for work that CEL's cost does not see: deep comparison, long strings looked through again and again,
 * large regular expressions. Generous beside every honest rule; there so that no expression holds the thread for long.
 * One for all, because an evaluation runs from its beginning to its end without a pause.
 */
import { CelBudgetError } from './value.ts'

/** Steps of some nanoseconds each; half a second or so in all. */
const LIMIT = 30_000_000

let left = LIMIT
/** Evaluations that run within others: of variables that are expressions themselves. */
let depth = 0

/** What was found out in this evaluation, during which nothing changes, and is forgotten with it. */
let notes = new WeakMap<object, unknown>()

/** A new evaluation begins; one within another shares its budget. */
export function beginEffort(): void {
  if (depth === 0) left = LIMIT
  depth++
}

export function endEffort(): void {
  depth--
  if (depth === 0 && hasNotes) [notes, hasNotes] = [new WeakMap(), false]
}

let hasNotes = false

/** What `find` finds out about an object, which is done once for each evaluation. */
export function noted<T>(object: object, find: () => T): T {
  const known = notes.get(object) as T | undefined
  if (known !== undefined || depth === 0) return known ?? find()
  const found = find()
  notes.set(object, found)
  hasNotes = true
  return found
}

/** Throws what running over the cost limit throws. Outside of evaluations, where texts are short, nothing is counted. */
export function spendEffort(steps: number): void {
  if (depth === 0) return
  left -= steps
  if (left < 0) throw new CelBudgetError('operation cancelled: actual cost limit exceeded')
}
