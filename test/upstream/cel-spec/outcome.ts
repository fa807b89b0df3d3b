/** Evaluates an expression with our engine and with cel-go, and returns the errors, type, value and cost of each. */
import { createEnvironment } from '#cel/environment.ts'
import { type CelType, describeType } from '#cel/type.ts'
import { CelError, type Value } from '#cel/value.ts'

import { canonical, protoJson } from './proto-json.ts'

/** As upstream's server has it for one expression. */
const COST_LIMIT = 1_000_000

export interface Outcome {
  readonly compileError?: string
  readonly programError?: string
  readonly evalError?: string
  readonly type?: string
  readonly value?: unknown
  readonly cost?: number
  /** Of cel-go: whether what it costs is another number each time, since Go walks maps in any order. */
  readonly varies?: boolean
}

/** Runs an expression with our engine. */
export function evaluate(
  expr: string,
  variables: Readonly<Record<string, CelType>> = {},
  bindingsOf: () => Readonly<Record<string, Value>> = () => ({}),
): Outcome {
  const compiled = createEnvironment({ variables }).compile(expr)
  if (compiled.issues !== undefined) return { compileError: compiled.report }
  const type = describeType(compiled.type)
  const budget = { limit: COST_LIMIT, spent: 0 }
  const bindings = bindingsOf()
  let failure: 'programError' | 'evalError' = 'programError'
  try {
    const program = compiled.program()
    failure = 'evalError'
    const value = program.evaluate(bindings, budget)
    return { type, value: protoJson(value), cost: budget.spent }
  } catch (error) {
    if (error instanceof CelError) return { type, [failure]: error.message, cost: budget.spent }
    throw error
  }
}

const FIELDS = ['compileError', 'programError', 'evalError', 'type', 'value', 'cost'] as const

/**
 * The differences from cel-go. The costs of failed expressions are not compared, and optional values have no form in
 * JSON.
 */
export function differences(own: Outcome, theirs: Outcome): string[] {
  const isFailed =
    theirs.evalError !== undefined || theirs.compileError !== undefined || theirs.programError !== undefined
  const isIncomparable: Partial<Record<keyof Outcome, boolean>> = {
    cost: isFailed || theirs.varies === true,
    value: theirs.type?.startsWith('optional_type(') === true,
  }
  return FIELDS.filter((field) => isIncomparable[field] !== true)
    .filter((field) => canonical(own[field]) !== canonical(theirs[field]))
    .map((field) => `${field}\n    ours   ${canonical(own[field])}\n    cel-go ${canonical(theirs[field])}`)
}
