/**
 * Activation: the values of one request for expressions that were compiled for it, and the budget they share. Variables
 * that a policy composes are evaluated when they are first asked for, and then kept as long as the activation.
 */
import type { Variables } from '#cel/program.ts'
import { CelError, Failure, MapValue, type Result, type Value } from '#cel/value.ts'
import { fromJson } from '#cel/values/json.ts'

import type { CompiledExpression, UnfitExpression } from './compile.ts'

/** Of one expression. */
const CALL_LIMIT = 1_000_000

/** Of all expressions of a policy for one binding and one parameter, and of all conditions of a webhook or policy. */
export const POLICY_BUDGET = 10_000_000
export const CONDITIONS_BUDGET = 2_500_000

/** All evaluations end: those that share it have cost too much together. */
export class OutOfBudget extends Error {
  override name = 'OutOfBudget'
  constructor() {
    super('validation failed due to running out of cost budget, no further validation rules will be run')
  }
}

/** What is left for those who share it. */
export interface SharedBudget {
  left: number
}

/** What expressions see, as JSON. Absent: there is no such thing in this request, which is null to them. */
export interface ActivationInputs {
  readonly object?: unknown
  readonly oldObject?: unknown
  readonly request: unknown
  readonly namespaceObject?: unknown
  readonly params?: unknown
}

/** Absent where expressions may ask nothing. */
export interface AuthorizerValues {
  readonly authorizer: Value
  readonly requestResource: Value
}

export type Composition = ReadonlyMap<string, CompiledExpression | UnfitExpression>

/** A value, or upstream's text of what went wrong. */
export type Evaluated =
  | { readonly error?: undefined; readonly value: Value }
  | { readonly error: string; readonly value?: undefined }

export class Activation {
  readonly #values: Variables
  readonly #composed: ComposedVariables

  constructor(inputs: ActivationInputs, composition: Composition, asking?: AuthorizerValues) {
    this.#composed = new ComposedVariables(composition, () => this.#values)
    this.#values = {
      object: fromJson(inputs.object ?? null),
      oldObject: fromJson(inputs.oldObject ?? null),
      request: fromJson(inputs.request),
      namespaceObject: fromJson(inputs.namespaceObject ?? null),
      params: fromJson(inputs.params ?? null),
      variables: this.#composed,
      ...(asking && { authorizer: asking.authorizer, 'authorizer.requestResource': asking.requestResource }),
    }
  }

  /** Throws OutOfBudget. */
  evaluate(expression: CompiledExpression | UnfitExpression, budget: SharedBudget): Evaluated {
    if (expression.fault !== undefined) return { error: `compilation error: ${expression.fault.detail}` }
    const outcome = evaluateOnce(expression, this.#values)
    spend(budget, this.#composed.takeCost())
    spend(budget, outcome.spent)
    if (outcome.error === undefined) return { value: outcome.value }
    return { error: `expression '${expression.source}' resulted in error: ${outcome.error}` }
  }
}

function spend(budget: SharedBudget, cost: number): void {
  if (cost > budget.left) throw new OutOfBudget()
  budget.left -= cost
}

type Outcome = Evaluated & { readonly spent: number }

/** One expression within the limit that every expression has. */
export function evaluateOnce({ program }: CompiledExpression, values: Variables, limit: number = CALL_LIMIT): Outcome {
  const budget = { limit, spent: 0 }
  try {
    return { value: program.evaluate(values, budget), spent: budget.spent }
  } catch (error) {
    if (error instanceof CelError) return { error: error.message, spent: budget.spent }
    throw error
  }
}

/** `variables`: known by name, evaluated at most once each. */
class ComposedVariables extends MapValue {
  readonly #composition: Composition
  readonly #values: () => Variables
  readonly #known = new Map<string, Result>()
  #cost = 0

  constructor(composition: Composition, values: () => Variables) {
    super()
    this.#composition = composition
    this.#values = values
  }

  get size(): number {
    return this.#composition.size
  }

  keys(): Iterable<Value> {
    return this.#composition.keys()
  }

  get(name: Value): Result | undefined {
    if (typeof name !== 'string') return undefined
    const expression = this.#composition.get(name)
    if (expression === undefined) return undefined
    const known = this.#known.get(name)
    if (known !== undefined) return known
    const made = this.#evaluate(name, expression)
    this.#known.set(name, made)
    return made
  }

  /** What evaluating variables has cost since the last time. */
  takeCost(): number {
    const cost = this.#cost
    this.#cost = 0
    return cost
  }

  #evaluate(name: string, expression: CompiledExpression | UnfitExpression): Result {
    const text = `composited variable ${JSON.stringify(name)} fails to`
    if (expression.fault !== undefined) return new Failure(`${text} compile: ${expression.fault.detail}`)
    const { value, error, spent } = evaluateOnce(expression, this.#values())
    this.#cost += spent
    return error === undefined ? value : new Failure(`${text} evaluate: ${error}`)
  }
}
