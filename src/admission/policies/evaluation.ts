/** Evaluates a validating policy for one request and one parameter. Pure except for the clock. */
import type { Clock } from '#lib/clock.ts'
import { byteLength } from '#lib/go/text.ts'
import {
  Activation,
  type ActivationInputs,
  type AuthorizerValues,
  type Evaluation,
  OutOfBudget,
  POLICY_BUDGET,
  type SharedBudget,
} from '#model/expressions/activation.ts'

import type { CompiledAnnotation, CompiledValidatingPolicy, CompiledValidation } from './compiled-policy.ts'

export interface Decision {
  readonly isDenied: boolean
  /** The evaluation failed; the failure policy decides. */
  readonly isFault: boolean
  readonly message: string
  /** The reason of the refusal's Status. */
  readonly reason?: string
  readonly elapsedMs: number
}

export interface AnnotationOutcome {
  readonly key: string
  /** Absent: no audit annotation. */
  readonly value?: string
  /** The evaluation failed, and the policy does not ignore that. */
  readonly fault?: string
  readonly elapsedMs: number
}

export interface PolicyOutcome {
  readonly decisions: readonly Decision[]
  readonly annotations: readonly AnnotationOutcome[]
}

export interface EvaluationTerms {
  readonly inputs: ActivationInputs
  /** Only for validations: messages and annotations may not use the authorizer. */
  readonly asking: AuthorizerValues
  readonly ignoresFaults: boolean
  readonly clock: Clock
}

interface Timed {
  readonly outcome: Evaluation
  readonly elapsedMs: number
}

/** The decision if a whole policy could not be evaluated. */
export function faultOutcome(message: string, ignoresFaults: boolean): PolicyOutcome {
  return { decisions: [fault(message, 0, ignoresFaults)], annotations: [] }
}

function fault(message: string, elapsedMs: number, ignoresFaults: boolean): Decision {
  return { isDenied: !ignoresFaults, isFault: true, message, elapsedMs }
}

export function evaluateValidations(policy: CompiledValidatingPolicy, terms: EvaluationTerms): PolicyOutcome {
  try {
    return evaluate(policy, terms)
  } catch (error) {
    if (error instanceof OutOfBudget) return faultOutcome(error.message, terms.ignoresFaults)
    throw error
  }
}

function evaluate(
  { composition, validations, annotations }: CompiledValidatingPolicy,
  terms: EvaluationTerms,
): PolicyOutcome {
  const { inputs, asking, ignoresFaults } = terms
  const budget = { left: POLICY_BUDGET }
  const run = timed(terms.clock, new Activation(inputs, composition, asking))
  const results = validations.map(({ expression }) => run(expression, budget))
  const quiet = (): Activation => new Activation(inputs, composition)
  const messages = evaluateMessages(validations, timed(terms.clock, quiet()), budget)
  const decisions = results.map(({ outcome, elapsedMs }, at) => {
    if (outcome.error !== undefined) return fault(outcome.error, elapsedMs, ignoresFaults)
    if (typeof messages === 'string') return fault(`failed messageExpression: ${messages}`, elapsedMs, ignoresFaults)
    if (outcome.value === true) return { isDenied: false, isFault: false, message: '', elapsedMs }
    const validation = validations[at] as CompiledValidation
    return {
      isDenied: true,
      isFault: false,
      message: messageOf(validation, messages[at]),
      reason: validation.reason,
      elapsedMs,
    }
  })
  const note = timed(terms.clock, quiet())
  const noteBudget = { left: POLICY_BUDGET }
  return {
    decisions,
    annotations: annotations.map((one) => annotate(one, note(one.expression, noteBudget), ignoresFaults)),
  }
}

type Run = (expression: CompiledValidation['expression'], budget: SharedBudget) => Timed

function timed(clock: Clock, activation: Activation): Run {
  return (expression, budget) => {
    const startMs = clock.elapsed()
    const outcome = activation.evaluate(expression, budget)
    return { outcome, elapsedMs: clock.elapsed() - startMs }
  }
}

/** The results of all validations, or the error of the evaluation. */
function evaluateMessages(
  validations: readonly CompiledValidation[],
  run: Run,
  budget: SharedBudget,
): readonly (Evaluation | undefined)[] | string {
  try {
    return validations.map(({ messageExpression }) => messageExpression && run(messageExpression, budget).outcome)
  } catch (error) {
    if (error instanceof OutOfBudget) return error.message
    throw error
  }
}

const MAX_MESSAGE_BYTES = 5 * 1024

/**
 * The message expression's result, if it is one line and not too long; else the fixed message; else the failed
 * expression.
 */
function messageOf({ expression, message }: CompiledValidation, made: Evaluation | undefined): string {
  const text = typeof made?.value === 'string' ? made.value.trim() : ''
  if (text !== '' && byteLength(text) <= MAX_MESSAGE_BYTES && !text.includes('\n')) return text
  return message.trim() || `failed expression: ${expression.source.trim()}`
}

function annotate(
  { key }: CompiledAnnotation,
  { outcome, elapsedMs }: Timed,
  ignoresFaults: boolean,
): AnnotationOutcome {
  if (outcome.error !== undefined) return { key, elapsedMs, ...(!ignoresFaults && { fault: outcome.error }) }
  const value = typeof outcome.value === 'string' ? outcome.value.trim() : ''
  return { key, elapsedMs, ...(value !== '' && { value }) }
}
