/** Compiles the CEL rules of one schema node (`x-kubernetes-validations`) and estimates their cost. */
import type { ValidationRule } from '#apis/apiextensions/v1.ts'
import { type Compiled, createEnvironment, type Environment } from '#cel/environment.ts'
import type { Program } from '#cel/program.ts'
import { type CelType, optionalOf } from '#cel/type.ts'
import { CelError } from '#cel/value.ts'
import { runAtOnce, type Steps } from '#lib/time-slicing.ts'

import { celTypeOf } from './cel-type.ts'
import type { Structural } from './structural.ts'

export interface NodeRules {
  /** The type of `self` and `oldSelf`. */
  readonly type: CelType
  readonly rules: readonly NodeRule[]
}

export interface NodeRule {
  readonly rule: ValidationRule
  readonly usesOldSelf: boolean
  /** Absent if the rule is empty or `error` is set. */
  readonly validation?: Expression
  /** Upstream's error for a rule that does not compile. */
  readonly error?: string
  readonly message?: Expression
  readonly messageError?: string
}

export interface Expression {
  readonly program: Program
  /** The upper bound of the static estimate; computed on demand. */
  maxCost(): bigint
}

export function compileRules(schema: Structural, isResource: boolean): NodeRules | undefined {
  return runAtOnce(compileInSteps(schema, isResource))
}

/** Undefined if expressions cannot see values of the schema. */
export function* compileInSteps(schema: Structural, isResource: boolean): Steps<NodeRules | undefined> {
  const type = celTypeOf(schema, isResource)
  if (type === undefined) return undefined
  const environments = new Map<boolean, Environment>()
  const environmentFor = ({ optionalOldSelf = false }: ValidationRule): Environment => {
    const oldSelf = optionalOldSelf ? optionalOf(type) : type
    const known = environments.get(optionalOldSelf) ?? createEnvironment({ variables: { self: type, oldSelf } })
    environments.set(optionalOldSelf, known)
    return known
  }
  const rules: NodeRule[] = []
  for (const rule of schema.rules) {
    yield
    rules.push(compileRule(rule, environmentFor(rule)))
  }
  return { type, rules }
}

function compileRule(rule: ValidationRule, environment: Environment): NodeRule {
  if (rule.rule.trim() === '') return { rule, usesOldSelf: false }
  const compiled = environment.compile(rule.rule)
  if (compiled.issues !== undefined) {
    return { rule, usesOldSelf: false, error: `compilation failed: ${compiled.report}` }
  }
  if (compiled.type.kind !== 'bool') {
    return { rule, usesOldSelf: false, error: 'cel expression must evaluate to a bool' }
  }
  const usesOldSelf = compiled.uses('oldSelf')
  const validation = expressionOf(compiled)
  if (typeof validation === 'string') return { rule, usesOldSelf, error: `program instantiation failed: ${validation}` }
  return { rule, usesOldSelf, validation, ...compileMessage(rule.messageExpression ?? '', environment) }
}

function compileMessage(source: string, environment: Environment): Pick<NodeRule, 'message' | 'messageError'> {
  if (source === '') return {}
  const compiled = environment.compile(source)
  if (compiled.issues !== undefined) return { messageError: `messageExpression compilation failed: ${compiled.report}` }
  if (compiled.type.kind !== 'string') return { messageError: 'messageExpression must evaluate to a string' }
  const message = expressionOf(compiled)
  return typeof message === 'string'
    ? { messageError: `messageExpression instantiation failed: ${message}` }
    : { message }
}

/** Or the reason why there is no program. */
function expressionOf(compiled: Compiled): Expression | string {
  try {
    return { program: compiled.program(), maxCost: () => compiled.estimateCost().max }
  } catch (error) {
    if (error instanceof CelError) return error.message
    throw error
  }
}
