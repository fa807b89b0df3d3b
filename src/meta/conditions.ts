/** Reads and sets status conditions. The transition time of a condition changes only when its status does. */
import { type Clock } from '#lib/clock.ts'
import { byteLength } from '#lib/go/text.ts'
import { createRepetition } from '#lib/repetition.ts'

import { timeOf } from './time.ts'
import { asJson, collectErrors, type FieldError, type FieldPath } from './validation/field-path.ts'
import { conditionReason } from './validation/names.ts'
import { validateLabelName } from './validation/rules.ts'

export type ConditionStatus = 'True' | 'False' | 'Unknown'

/** metav1.Condition. */
export interface Condition {
  type: string
  status: ConditionStatus
  observedGeneration?: number
  lastTransitionTime: string
  reason: string
  message: string
}

/** The common fields of all conditions, including those older than metav1.Condition. */
export interface AnyCondition {
  type: string
  status: string
  observedGeneration?: number
  lastTransitionTime?: string
  reason?: string
  message?: string
}

/** A condition whose transition time may be set by the clock. */
export type ConditionUpdate<T extends AnyCondition> = Omit<T, 'lastTransitionTime'> & AnyCondition

const REASON_LIMIT_BYTES = 1024
const MESSAGE_LIMIT_BYTES = 32 * 1024

export function findCondition<T extends AnyCondition>(
  conditions: readonly T[] | undefined,
  type: string,
): T | undefined {
  return conditions?.find((condition) => condition.type === type)
}

export function isConditionTrue(conditions: readonly AnyCondition[] | undefined, type: string): boolean {
  return findCondition(conditions, type)?.status === 'True'
}

/** Not the opposite of the above: an absent or unknown condition is neither. */
export function isConditionFalse(conditions: readonly AnyCondition[] | undefined, type: string): boolean {
  return findCondition(conditions, type)?.status === 'False'
}

/**
 * Replaces the condition of the same type, or appends it. The transition time changes only with the status, to the
 * given one or to now. Changes `conditions`; returns false if nothing changed.
 */
export function setCondition<T extends AnyCondition>(
  conditions: T[],
  next: NoInfer<ConditionUpdate<T>>,
  clock: Clock,
): boolean {
  const now = next.lastTransitionTime ?? timeOf(clock.now())
  const current = findCondition(conditions, next.type)
  if (current === undefined) {
    conditions.push({ ...next, lastTransitionTime: now } as unknown as T)
    return true
  }
  const turned = current.status !== next.status
  const reworded = (['reason', 'message'] as const).some((field) => (current[field] ?? '') !== (next[field] ?? ''))
  const regenerated = (current.observedGeneration ?? 0) !== (next.observedGeneration ?? 0)
  if (!turned && !reworded && !regenerated) return false
  const lastTransitionTime = turned || current.lastTransitionTime === undefined ? now : current.lastTransitionTime
  conditions[conditions.indexOf(current)] = { ...next, lastTransitionTime } as unknown as T
  return true
}

/** Changes `conditions`; returns false if there is none of that type. */
export function removeCondition(conditions: AnyCondition[], type: string): boolean {
  const before = conditions.length
  for (let at = before - 1; at >= 0; at--) if (conditions[at]?.type === type) conditions.splice(at, 1)
  return conditions.length < before
}

/** The rules of metav1.Condition; each type occurs once. */
export function validateConditions(path: FieldPath, conditions: readonly Condition[] = []): FieldError[] {
  const isRepeated = createRepetition()
  return path.each(conditions, (path, condition) => {
    const errors = isRepeated(condition.type) ? [path.child('type').duplicate(condition.type)] : []
    return [...errors, ...validateCondition(path, condition)]
  })
}

export function validateCondition(path: FieldPath, condition: Condition): FieldError[] {
  const generation = condition.observedGeneration ?? 0
  return collectErrors(
    validateLabelName(path.child('type'), condition.type ?? ''),
    !['True', 'False', 'Unknown'].includes(condition.status) &&
      path.child('status').notInSet(asJson(condition.status ?? ''), ['True', 'False', 'Unknown']),
    generation < 0 && path.child('observedGeneration').invalid(generation, 'must be greater than or equal to zero'),
    (condition.lastTransitionTime ?? '') === '' && path.child('lastTransitionTime').required(),
    validateReason(path.child('reason'), condition.reason ?? ''),
    byteLength(condition.message ?? '') > MESSAGE_LIMIT_BYTES && path.child('message').tooLong(MESSAGE_LIMIT_BYTES),
  )
}

function validateReason(path: FieldPath, reason: string): FieldError[] {
  if (reason === '') return [path.required()]
  const errors = path.check(reason, conditionReason)
  return byteLength(reason) > REASON_LIMIT_BYTES ? [...errors, path.tooLong(REASON_LIMIT_BYTES)] : errors
}
