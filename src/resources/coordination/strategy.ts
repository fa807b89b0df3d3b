/** Validates the election strategy of leases: one of Kubernetes', or a qualified name. */
import { asJson, type FieldError, fieldPath } from '#meta/validation/field-path.ts'
import { qualifiedName } from '#meta/validation/names.ts'

export const OLDEST_EMULATION_VERSION = 'OldestEmulationVersion'

/** Upstream repeats the field name. */
export function validateStrategy(strategy: string): FieldError[] {
  const field = fieldPath('spec.strategy.strategy')
  if (strategy.includes('/')) {
    return qualifiedName(strategy).map((complaint) => field.invalid(asJson(strategy), complaint))
  }
  return strategy === OLDEST_EMULATION_VERSION ? [] : [field.notSupported(asJson(strategy), [OLDEST_EMULATION_VERSION])]
}
