/**
 * From the text of an expression to something that can be evaluated, or to what is wrong with it in upstream's words. All
 * places that take expressions go through here; they differ in their environment and in what must come out.
 */
import type { Environment } from '#cel/environment.ts'
import type { Program } from '#cel/program.ts'
import { type CelType, describeType, isSameType } from '#cel/type.ts'
import { CelError } from '#cel/value.ts'
import { type FieldError, internal, invalid } from '#meta/validation/field-error.ts'

export interface CompiledExpression {
  readonly fault?: undefined
  readonly source: string
  readonly type: CelType
  readonly program: Program
  /** Whether it selects the field of the variable anywhere. */
  selects(variable: string, field: string): boolean
  /** The dearest it can be. */
  maxCost(): bigint
}

export interface UnfitExpression {
  readonly source: string
  readonly fault: ExpressionFault
}

export interface ExpressionFault {
  /** `internal`: it is well formed, but cannot be made to run. */
  readonly kind: 'invalid' | 'internal'
  readonly detail: string
}

/** What an expression must yield. */
export interface Demand {
  accepts(type: CelType): boolean
  /** Why another type is refused. */
  refusal(type: CelType): string
}

/** Whatever it is. */
export const ANYTHING: Demand = { accepts: () => true, refusal: () => '' }

/** One of these types and no other, not even a type that might turn out to be one of them. */
export function exactly(...types: readonly CelType[]): Demand {
  const names = types.map(describeType)
  const wanted = names.length === 1 ? names[0] : `one of [${names.join(' ')}]`
  return {
    accepts: (type) => types.some((one) => isSameType(one, type)),
    refusal: (type) => `must evaluate to ${wanted} but got ${describeType(type)}`,
  }
}

/** The same for places whose refusals do not say what was found instead. */
export function exactlySilent(...types: readonly CelType[]): Demand {
  const demand = exactly(...types)
  return { ...demand, refusal: (type) => demand.refusal(type).replace(/ but got .*$/s, '') }
}

/** Never throws for a bad expression. */
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

/** What is wrong with it, as a complaint about the field that holds it. */
export function expressionErrors(field: string, { source, fault }: CompiledExpression | UnfitExpression): FieldError[] {
  if (fault === undefined) return []
  // Of one that is well formed and cannot be run all the same, upstream does not show the text.
  return [fault.kind === 'invalid' ? invalid(field, source, fault.detail) : internal(field, new Error(fault.detail))]
}

/** Of what is known to be fit: the one, as a list. */
export function fit(expression: CompiledExpression | UnfitExpression): CompiledExpression[] {
  return expression.fault === undefined ? [expression] : []
}
