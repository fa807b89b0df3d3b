/**
 * Evaluates match conditions, which decide whether a webhook or policy applies to a request after its rules and
 * selectors match.
 */
import {
  Activation,
  type ActivationInputs,
  type AuthorizerValues,
  type Composition,
  CONDITIONS_BUDGET,
  OutOfBudget,
} from '#model/expressions/activation.ts'
import type { CompiledExpression, UnfitExpression } from '#model/expressions/compile.ts'

import { aggregate } from '../kit/refusal.ts'

export interface CompiledCondition {
  readonly name: string
  readonly expression: CompiledExpression | UnfitExpression
}

export interface ConditionTerms {
  readonly inputs: ActivationInputs
  readonly asking: AuthorizerValues
  /** For a policy: the variables of its conditions. */
  readonly composition?: Composition
  readonly failurePolicy: string | undefined
}

/** `error`: the request is refused because of it. */
export interface ConditionOutcome {
  readonly matches: boolean
  readonly error?: string
  /** The number of failed conditions, whatever the result. */
  readonly failures: number
}

const NOTHING: Composition = new Map()

/** A false condition decides; otherwise a failed one counts according to the failure policy. */
export function evaluateConditions(conditions: readonly CompiledCondition[], terms: ConditionTerms): ConditionOutcome {
  const { inputs, asking, composition = NOTHING, failurePolicy } = terms
  const activation = new Activation(inputs, composition, asking)
  const budget = { left: CONDITIONS_BUDGET }
  const outcome = (errors: readonly string[], failures: number): ConditionOutcome =>
    failurePolicy === 'Ignore' ? { matches: false, failures } : { matches: false, error: aggregate(errors), failures }
  try {
    const results = conditions.map(({ expression }) => activation.evaluate(expression, budget))
    const excluding = results.findIndex(({ value }) => value === false)
    const looked = excluding < 0 ? results : results.slice(0, excluding)
    const errors = looked.flatMap(({ error }) => error ?? [])
    if (excluding >= 0) return { matches: false, failures: errors.length }
    return errors.length === 0 ? { matches: true, failures: 0 } : outcome(errors, errors.length)
  } catch (error) {
    if (error instanceof OutOfBudget) return outcome([error.message], 0)
    throw error
  }
}
