/** Conditions: what can be said of an object, each with its own time of change. */
import { type Clock } from '#lib/clock.ts'
import { byteLength } from '#lib/go-text.ts'

import { timeOf } from './time.ts'
import {
  asJson,
  child,
  duplicate,
  type FieldError,
  index,
  invalid,
  notInSet,
  required,
  tooLong,
} from './validation/field-error.ts'
import { conditionReason } from './validation/names.ts'
import { complaining, validateLabelName } from './validation/rules.ts'

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

/** What all conditions have in common, those of kinds older than metav1.Condition included. */
export interface AnyCondition {
  type: string
  status: string
  observedGeneration?: number
  lastTransitionTime?: string
  reason?: string
  message?: string
}

/** A condition that may leave the time of its transition to the clock. */
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
 * Puts a condition in place of the one of its type, or at the end. The transition time moves only when the status does,
 * to the one given or else to now. Changes `conditions`; false when it said all that already.
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
  const told = (['reason', 'message'] as const).some((field) => (current[field] ?? '') !== (next[field] ?? ''))
  const regenerated = (current.observedGeneration ?? 0) !== (next.observedGeneration ?? 0)
  if (!turned && !told && !regenerated) return false
  const lastTransitionTime = turned || current.lastTransitionTime === undefined ? now : current.lastTransitionTime
  conditions[conditions.indexOf(current)] = { ...next, lastTransitionTime } as unknown as T
  return true
}

/** Changes `conditions`; false when there was none of that type. */
export function removeCondition(conditions: AnyCondition[], type: string): boolean {
  const before = conditions.length
  for (let at = before - 1; at >= 0; at--) if (conditions[at]?.type === type) conditions.splice(at, 1)
  return conditions.length < before
}

/** The rules of metav1.Condition; each type once. */
export function validateConditions(field: string, conditions: readonly Condition[] = []): FieldError[] {
  const seen = new Set<string>()
  return conditions.flatMap((condition, at) => {
    const path = index(field, at)
    const errors = seen.has(condition.type) ? [duplicate(child(path, 'type'), condition.type)] : []
    seen.add(condition.type)
    return [...errors, ...validateCondition(path, condition)]
  })
}

export function validateCondition(field: string, condition: Condition): FieldError[] {
  const errors = validateLabelName(child(field, 'type'), condition.type ?? '')
  if (!['True', 'False', 'Unknown'].includes(condition.status)) {
    errors.push(notInSet(child(field, 'status'), asJson(condition.status ?? ''), ['True', 'False', 'Unknown']))
  }
  const generation = condition.observedGeneration ?? 0
  if (generation < 0) {
    errors.push(invalid(child(field, 'observedGeneration'), generation, 'must be greater than or equal to zero'))
  }
  if ((condition.lastTransitionTime ?? '') === '') errors.push(required(child(field, 'lastTransitionTime')))
  errors.push(...validateReason(child(field, 'reason'), condition.reason ?? ''))
  if (byteLength(condition.message ?? '') > MESSAGE_LIMIT_BYTES) {
    errors.push(tooLong(child(field, 'message'), MESSAGE_LIMIT_BYTES))
  }
  return errors
}

function validateReason(field: string, reason: string): FieldError[] {
  if (reason === '') return [required(field)]
  const errors = complaining(field, reason, conditionReason(reason))
  return byteLength(reason) > REASON_LIMIT_BYTES ? [...errors, tooLong(field, REASON_LIMIT_BYTES)] : errors
}
