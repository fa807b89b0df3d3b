/**
 * The variables of one request for compiled CEL expressions (activation), and the cost budget that they share.
 * Variables of a policy are evaluated on first use.
 */
import type { Variables } from '#cel/program.ts'
import { CelError, Failure, MapValue, type Result, type Value } from '#cel/value.ts'
import { fromJson } from '#cel/values/json.ts'

import type { CompiledExpression, UnfitExpression } from './compile.ts'

/** The limit of one expression. */
const CALL_LIMIT = 1_000_000

/**
 * The limit of all expressions of a policy for one binding and parameter, and of all match conditions of a webhook or
 * policy.
 */
export const POLICY_BUDGET = 10_000_000
export const CONDITIONS_BUDGET = 2_500_000

/** The shared budget is exhausted: all evaluations end. */
export class OutOfBudget extends Error {
  override name = 'OutOfBudget'
  constructor() {
    super('validation failed due to running out of cost budget, no further validation rules will be run')
  }
}

/** The remaining shared budget. */
export interface SharedBudget {
  left: number
}

/** The values as JSON. Absent: the request has no such value, and expressions see null. */
export interface ActivationInputs {
  readonly object?: unknown
  readonly oldObject?: unknown
  readonly request: unknown
  readonly namespaceObject?: unknown
  readonly params?: unknown
}

/** Absent if expressions may not use the authorizer. */
export interface AuthorizerValues {
  readonly authorizer: Value
  readonly requestResource: Value
}

export type Composition = ReadonlyMap<string, CompiledExpression | UnfitExpression>

/** A value, or upstream's error text. */
export type Evaluation =
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
  evaluate(expression: CompiledExpression | UnfitExpression, budget: SharedBudget): Evaluation {
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

type Outcome = Evaluation & { readonly spent: number }

/** Evaluates one expression within the limit of every expression. */
export function evaluateOnce({ program }: CompiledExpression, values: Variables, limit: number = CALL_LIMIT): Outcome {
  const budget = { limit, spent: 0 }
  try {
    return { value: program.evaluate(values, budget), spent: budget.spent }
  } catch (error) {
    if (error instanceof CelError) return { error: error.message, spent: budget.spent }
    throw error
  }
}

/** `variables`: by name, each evaluated at most once. */
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

  /** The cost of variable evaluation since the last call. */
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
