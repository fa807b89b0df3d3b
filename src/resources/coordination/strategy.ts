/** How the next leader is chosen among candidates: a strategy of Kubernetes' own, or the qualified name of another's. */
import { asJson, type FieldError, invalid, notSupported } from '#meta/validation/field-error.ts'
import { qualifiedName } from '#meta/validation/names.ts'

export const OLDEST_EMULATION_VERSION = 'OldestEmulationVersion'

/** Upstream names the field twice. */
export function validateStrategy(strategy: string): FieldError[] {
  const field = 'spec.strategy.strategy'
  if (strategy.includes('/')) {
    return qualifiedName(strategy).map((complaint) => invalid(field, asJson(strategy), complaint))
  }
  return strategy === OLDEST_EMULATION_VERSION
    ? []
    : [notSupported(field, asJson(strategy), [OLDEST_EMULATION_VERSION])]
}
