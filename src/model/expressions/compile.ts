/** Compiles a CEL expression, or returns the error with upstream's text. */
import type { Environment } from '#cel/environment.ts'
import type { Program } from '#cel/program.ts'
import { type CelType, describeType, isSameType } from '#cel/type.ts'
import { CelError } from '#cel/value.ts'
import type { FieldError, FieldPath } from '#meta/validation/field-path.ts'

export interface CompiledExpression {
  readonly fault?: undefined
  readonly source: string
  readonly type: CelType
  readonly program: Program
  /** True if it selects the field of the variable. */
  selects(variable: string, field: string): boolean
  /** The maximum cost. */
  maxCost(): bigint
}

export interface UnfitExpression {
  readonly source: string
  readonly fault: ExpressionFault
}

export interface ExpressionFault {
  /** `internal`: it is valid, but cannot be run. */
  readonly kind: 'invalid' | 'internal'
  readonly detail: string
}

/** The required result type. */
export interface Demand {
  accepts(type: CelType): boolean
  /** The error for another type. */
  refusal(type: CelType): string
}

/** Any type. */
export const ANYTHING: Demand = { accepts: () => true, refusal: () => '' }

/** Exactly one of these types, without dynamic ones. */
export function exactly(...types: readonly CelType[]): Demand {
  const names = types.map(describeType)
  const wanted = names.length === 1 ? names[0] : `one of [${names.join(' ')}]`
  return {
    accepts: (type) => types.some((one) => isSameType(one, type)),
    refusal: (type) => `must evaluate to ${wanted} but got ${describeType(type)}`,
  }
}

/** The same, with an error that does not print the actual type. */
export function exactlySilent(...types: readonly CelType[]): Demand {
  const demand = exactly(...types)
  return { ...demand, refusal: (type) => demand.refusal(type).replace(/ but got .*$/s, '') }
}

/** Never throws for an invalid expression. */
export function compileExpression(
  environment: Environment,
  source: string,
  demand: Demand,
): CompiledExpression | UnfitExpression {
  const compiled = environment.compile(source)
  const unfit = (kind: ExpressionFault['kind'], detail: string): UnfitExpression => ({
    source,
    fault: { kind, detail },
  })
  if (compiled.issues !== undefined) return unfit('invalid', `compilation failed: ${compiled.report}`)
  const { type } = compiled
  if (!demand.accepts(type)) return unfit('invalid', demand.refusal(type))
  try {
    return {
      source,
      type,
      program: compiled.program(),
      selects: (variable, field) => compiled.selects(variable, field),
      maxCost: () => compiled.estimateCost().max,
    }
  } catch (error) {
    if (error instanceof CelError) return unfit('internal', `program instantiation failed: ${error.message}`)
    throw error
  }
}

/** The error at the field of the expression. */
export function expressionErrors(
  path: FieldPath,
  { source, fault }: CompiledExpression | UnfitExpression,
): FieldError[] {
  if (fault === undefined) return []
  // Upstream does not print the text of a valid expression that cannot be run.
  return [fault.kind === 'invalid' ? path.invalid(source, fault.detail) : path.internal(new Error(fault.detail))]
}

/** For an expression that is known to be valid: a list of one. */
export function fit(expression: CompiledExpression | UnfitExpression): CompiledExpression[] {
  return expression.fault === undefined ? [expression] : []
}
