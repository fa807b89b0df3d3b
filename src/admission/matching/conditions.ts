/** Match conditions: whether a webhook or a policy is about a request, beyond what its rules and selectors say. */
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
  /** Of a policy: what its conditions may refer to. */
  readonly composition?: Composition
  readonly failurePolicy: string | undefined
}

/** `error`: the request is refused for it. */
export interface ConditionOutcome {
  readonly matches: boolean
  readonly error?: string
  /** How many conditions failed, whatever came of it. */
  readonly failures: number
}

const NOTHING: Composition = new Map()

/** One that is false settles it, whatever the others are; else one that fails counts as the failure policy says. */
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
