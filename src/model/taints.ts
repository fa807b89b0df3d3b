/** Taints of nodes and what pods say to them: their rules. */
import type { Toleration } from '#apis/core/v1.ts'
import { parseGoInt } from '#lib/go-text.ts'
import { asJson, child, type FieldError, index, invalid, notSupported, required } from '#meta/validation/field-error.ts'
import { decimalInteger, labelValue } from '#meta/validation/names.ts'
import { complaining, validateLabelName } from '#meta/validation/rules.ts'

const effects = ['NoSchedule', 'PreferNoSchedule', 'NoExecute']

/** The effect of a taint; that of a toleration may be empty, which stands for all. */
export function validateTaintEffect(field: string, effect: string, mayBeEmpty: boolean): FieldError[] {
  if (effect === '') return mayBeEmpty ? [] : [required(field)]
  return effects.includes(effect) ? [] : [notSupported(field, asJson(effect), effects)]
}

/** `comparisons`: whether the operators Lt and Gt may be used. */
export function validateTolerations(
  field: string,
  tolerations: readonly Toleration[] = [],
  comparisons = false,
): FieldError[] {
  return tolerations.flatMap((toleration, at) => {
    const path = index(field, at)
    const { key = '', operator = '', effect = '', tolerationSeconds } = toleration
    const errors = key === '' ? [] : validateLabelName(child(path, 'key'), key)
    if (key === '' && operator !== 'Exists') {
      const complaint = 'operator must be Exists when `key` is empty, which means "match all values and all keys"'
      errors.push(invalid(child(path, 'operator'), asJson(operator), complaint))
    }
    if (tolerationSeconds !== undefined && effect !== 'NoExecute') {
      const complaint = "effect must be 'NoExecute' when `tolerationSeconds` is set"
      errors.push(invalid(child(path, 'effect'), asJson(effect), complaint))
    }
    return [
      ...errors,
      ...validateOperator(path, toleration, comparisons),
      ...validateTaintEffect(child(path, 'effect'), effect, true),
    ]
  })
}

function validateOperator(path: string, { operator = '', value = '' }: Toleration, comparisons: boolean): FieldError[] {
  const field = child(path, 'operator')
  switch (operator) {
    case '':
    case 'Equal': {
      const complaints = labelValue(value)
      return complaints.length === 0 ? [] : [invalid(field, value, complaints.join(';'))]
    }
    case 'Exists':
      return value === '' ? [] : [invalid(field, value, "value must be empty when `operator` is 'Exists'")]
    case 'Lt':
    case 'Gt':
      if (comparisons) return validateInteger(child(path, 'value'), value)
      return [notSupported(field, asJson(operator), ['Equal', 'Exists', 'Lt', 'Gt'])]
    default:
      return [notSupported(field, asJson(operator), ['Equal', 'Exists'])]
  }
}

function validateInteger(field: string, value: string): FieldError[] {
  const errors = complaining(field, value, decimalInteger(value))
  try {
    parseGoInt(value)
    return errors
  } catch (error) {
    return [...errors, invalid(field, value, (error as Error).message)]
  }
}
