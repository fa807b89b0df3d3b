/**
 * A second budget, for work that CEL's cost does not count: deep comparison, string searches and large regular
 * expressions. The budget keeps expressions from blocking the thread. It is global, because an evaluation runs without
 * a pause.
 */
import { CelBudgetError } from './value.ts'

/** Steps of some nanoseconds each; half a second or so in all. */
const LIMIT = 30_000_000

let left = LIMIT
/** Evaluations that run within others: of variables that are expressions themselves. */
let depth = 0

/** Results cached during one evaluation, in which nothing changes. */
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

/** The result of `find` for an object, computed once per evaluation. */
export function noted<T>(object: object, find: () => T): T {
  const known = notes.get(object) as T | undefined
  if (known !== undefined || depth === 0) return known ?? find()
  const found = find()
  notes.set(object, found)
  hasNotes = true
  return found
}

/** Throws the error of an exceeded cost limit. Outside of evaluations, where texts are short, nothing is counted. */
export function spendEffort(steps: number): void {
  if (depth === 0) return
  left -= steps
  if (left < 0) throw new CelBudgetError('operation cancelled: actual cost limit exceeded')
}
