/** Validates taints and tolerations. */
import type { Toleration } from '#apis/core/v1.ts'
import { parseGoInt } from '#lib/go/text.ts'
import { asJson, collectErrors, type FieldError, type FieldPath } from '#meta/validation/field-path.ts'
import { decimalInteger, labelValue } from '#meta/validation/names.ts'
import { requiredOneOf, validateLabelName } from '#meta/validation/rules.ts'

const effects = ['NoSchedule', 'PreferNoSchedule', 'NoExecute']

/** The effect of a taint; that of a toleration may be empty, which matches all. */
export function validateTaintEffect(path: FieldPath, effect: string, mayBeEmpty: boolean): FieldError[] {
  return effect === '' && mayBeEmpty ? [] : requiredOneOf(path, effect, effects)
}

/** `comparisons`: true if the operators Lt and Gt are allowed. */
export function validateTolerations(
  path: FieldPath,
  tolerations: readonly Toleration[] = [],
  comparisons = false,
): FieldError[] {
  return path.each(tolerations, (path, toleration) => {
    const { key = '', operator = '', effect = '', tolerationSeconds } = toleration
    return collectErrors(
      key !== '' && validateLabelName(path.child('key'), key),
      key === '' &&
        operator !== 'Exists' &&
        path
          .child('operator')
          .invalid(
            asJson(operator),
            'operator must be Exists when `key` is empty, which means "match all values and all keys"',
          ),
      tolerationSeconds !== undefined &&
        effect !== 'NoExecute' &&
        path.child('effect').invalid(asJson(effect), "effect must be 'NoExecute' when `tolerationSeconds` is set"),
      validateOperator(path, toleration, comparisons),
      validateTaintEffect(path.child('effect'), effect, true),
    )
  })
}

function validateOperator(
  path: FieldPath,
  { operator = '', value = '' }: Toleration,
  comparisons: boolean,
): FieldError[] {
  const field = path.child('operator')
  switch (operator) {
    case '':
    case 'Equal': {
      const complaints = labelValue(value)
      return complaints.length === 0 ? [] : [field.invalid(value, complaints.join(';'))]
    }
    case 'Exists':
      return value === '' ? [] : [field.invalid(value, "value must be empty when `operator` is 'Exists'")]
    case 'Lt':
    case 'Gt':
      if (comparisons) return validateInteger(path.child('value'), value)
      return [field.notSupported(asJson(operator), ['Equal', 'Exists', 'Lt', 'Gt'])]
    default:
      return [field.notSupported(asJson(operator), ['Equal', 'Exists'])]
  }
}

function validateInteger(path: FieldPath, value: string): FieldError[] {
  const errors = path.check(value, decimalInteger)
  try {
    parseGoInt(value)
    return errors
  } catch (error) {
    return [...errors, path.invalid(value, (error as Error).message)]
  }
}
