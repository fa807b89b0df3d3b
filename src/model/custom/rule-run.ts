/**
 * Runs the CEL rules of a schema against an object, with old values and a total cost budget. Errors of unchanged values
 * become warnings.
 */
import type { ValidationRule } from '#apis/apiextensions/v1.ts'
import type { Budget, Variables } from '#cel/program.ts'
import { CelBudgetError, CelError, Optional, type Value } from '#cel/value.ts'
import { fromTyped } from '#cel/values/typed.ts'
import { byteLength } from '#lib/go/text.ts'
import { isJsonObject, type JsonObject, type JsonValue } from '#lib/json/value.ts'
import { fieldErrorText } from '#meta/validation/field-error.ts'
import { type FieldError, fieldPath, type FieldPath, omitted } from '#meta/validation/field-path.ts'

import { Correlation, keyText } from './correlation.ts'
import { findField } from './field-path.ts'
import { compileRules, type NodeRule, type NodeRules } from './rules.ts'
import { HAS_RULES, type Structural } from './structural.ts'
import { orNowhere } from './validate-value.ts'

/** The cost budget of all rules for one object. */
export const RULES_BUDGET = 10_000_000
const CALL_LIMIT = 1_000_000
const MAX_MESSAGE_BYTES = 5_120

export interface RuleRun {
  readonly errors: FieldError[]
  readonly warnings: string[]
  /** Negative if it ran out. */
  readonly budgetLeft: number
}

export interface RuleRunOptions {
  readonly old?: JsonValue | undefined
  readonly path?: FieldPath
  /** True if the value is a whole object; the default. */
  readonly isResource?: boolean
  /** True if errors of unchanged values become warnings; the default. */
  readonly ratchets?: boolean
  readonly budget?: number
}

export function runRules(value: JsonValue, schema: Structural, options: RuleRunOptions = {}): RuleRun {
  const { old, path = fieldPath(''), isResource = true, ratchets = true, budget = RULES_BUDGET } = options
  const run = new Run(budget)
  const current = old === undefined || !ratchets ? undefined : new Correlation(value, old, schema)
  run.walk({ schema, value, old, path, isResource, current, nearest: undefined })
  return { errors: run.errors, warnings: run.warnings, budgetLeft: run.left }
}

/** Rules are compiled on first use; a changed schema is a new object. */
const compiledRules = new WeakMap<Structural, NodeRules | 'none'>()

function rulesOf(schema: Structural, isResource: boolean): NodeRules | 'none' {
  const known = compiledRules.get(schema)
  if (known !== undefined) return known
  const made = compileRules(schema, isResource) ?? 'none'
  compiledRules.set(schema, made)
  return made
}

interface ValidatedNode {
  readonly schema: Structural
  readonly value: JsonValue
  readonly old: JsonValue | undefined
  readonly path: FieldPath
  readonly isResource: boolean
  /** The correlation with the old value; undefined without one. */
  readonly current: Correlation | undefined
  /** The nearest correlated ancestor; undefined at the root. */
  readonly nearest: Correlation | undefined
}

class Run {
  readonly errors: FieldError[] = []
  readonly warnings: string[] = []
  left: number

  constructor(budget: number) {
    this.left = budget
  }

  walk(node: ValidatedNode): void {
    const { schema, value } = node
    if ((schema.has & HAS_RULES) === 0 || value === null || this.left < 0) return
    if (schema.rules.length > 0) this.#runRules(node)
    if (Array.isArray(value)) this.#walkItems(node, value)
    else if (isJsonObject(value)) this.#walkMembers(node, value)
  }

  #walkItems(node: ValidatedNode, list: readonly JsonValue[]): void {
    const { items, listType, mapKeys } = node.schema
    if (items === undefined || (items.has & HAS_RULES) === 0) return
    const old = listType === 'map' && Array.isArray(node.old) ? oldItems(node.old, mapKeys) : undefined
    for (let at = 0; at < list.length && this.left >= 0; at++) {
      const value = list[at] as JsonValue
      const name = old === undefined ? undefined : keyText(value, mapKeys)
      this.walk({
        schema: items,
        value,
        old: name === undefined ? undefined : old?.get(name),
        path: node.path.index(at),
        isResource: items.embedded,
        ...below(node, (correlation) => correlation.index(at)),
      })
    }
  }

  #walkMembers(node: ValidatedNode, object: JsonObject): void {
    const { properties, additional } = node.schema
    const old = isJsonObject(node.old) ? node.old : {}
    for (const name of Object.keys(object)) {
      if (this.left < 0) return
      const property = properties.get(name)
      const schema = property ?? (typeof additional === 'object' ? additional : undefined)
      if (schema === undefined || (schema.has & HAS_RULES) === 0) continue
      // The server sets these fields, so their changes do not matter.
      const isHidden = node.nearest === undefined && (name === 'apiVersion' || name === 'kind')
      const found = below(node, (correlation) => correlation.key(name))
      this.walk({
        schema,
        value: object[name] as JsonValue,
        old: Object.hasOwn(old, name) ? old[name] : undefined,
        path: property === undefined ? node.path.key(name) : node.path.child(name),
        isResource: schema.embedded,
        ...(isHidden ? { current: undefined, nearest: undefined } : found),
      })
    }
  }

  #runRules(node: ValidatedNode): void {
    const { schema, isResource } = node
    const compiled = rulesOf(schema, isResource)
    if (compiled === 'none') {
      const detail = 'rule compiler initialization error: failed to convert to declType for CEL validation rules'
      return this.#fault(node, detail)
    }
    if (this.left === 0) return this.#stop(node, NO_BUDGET)
    const variables = variablesFor(node, compiled)
    for (const rule of compiled.rules) {
      if (this.left < 0) return
      this.#runRule(node, rule, variables)
    }
  }

  #runRule(node: ValidatedNode, compiled: NodeRule, variables: SelfVariables): void {
    const { rule, validation, usesOldSelf } = compiled
    if (compiled.error !== undefined) return this.#fault(node, `rule compile error: ${compiled.error}`)
    const isOptional = rule.optionalOldSelf === true
    if (validation === undefined || (usesOldSelf && !variables.hasOld && !isOptional)) return
    const outcome = evaluate(validation.program, isOptional ? variables.optional : variables.plain)
    if (outcome.spent > this.left) return this.#stop(node, NO_BUDGET)
    this.left -= outcome.spent
    if (outcome.error !== undefined) this.#failed(node, rule, outcome.error)
    else if (outcome.value !== true) this.#refuse(node, compiled, variables.plain)
  }

  /** The rule itself failed to evaluate. */
  #failed(node: ValidatedNode, rule: ValidationRule, error: CelError): void {
    const shown = ruleText(rule)
    const { message } = error
    if (error instanceof CelBudgetError) {
      const why = 'no further validation rules will be run due to call cost exceeds limit for rule'
      return this.#stop(node, `'${message}': ${why}: ${shown}`)
    }
    if (message.startsWith('no such overload')) {
      const why = 'call arguments did not match a supported operator, function or macro signature for rule'
      return this.#fault(node, `'${message}': ${why}: ${shown}`)
    }
    this.#fault(node, `${message} evaluating rule: ${shown}`)
  }

  #refuse(node: ValidatedNode, compiled: NodeRule, variables: Variables): void {
    const { rule } = compiled
    const path = fieldOf(node, rule)
    const message = this.#messageFor(node, compiled, variables)
    if (message === undefined) return
    const { schema, value } = node
    const shown = schema.type === 'object' || schema.type === 'array' ? omitted : value
    const error = refusals[rule.reason ?? '']?.(path, shown, message) ?? path.invalid(shown, message)
    this.#tell(node, compiled, error)
  }

  #tell({ current, nearest }: ValidatedNode, { usesOldSelf }: NodeRule, error: FieldError): void {
    const isOld = !usesOldSelf && (current ?? nearest)?.isUnchanged === true
    if (isOld) this.warnings.push(fieldErrorText(error))
    else this.errors.push(error)
  }

  /** Undefined if the budget ran out. */
  #messageFor(node: ValidatedNode, compiled: NodeRule, variables: Variables): string | undefined {
    const { rule, message } = compiled
    if (message === undefined) return defaultMessage(rule)
    const { value, error, spent } = evaluate(message.program, variables)
    const stop = (detail: string): undefined => {
      this.#tell(node, compiled, fieldOf(node, rule).invalid(node.schema.type, detail))
      this.left = -1
    }
    if (spent > this.left) return stop(`messageExpression evaluation failed due to ${OUT_OF_BUDGET}`)
    if (error instanceof CelBudgetError) {
      const why = 'no further validation rules will be run due to call cost exceeds limit for messageExpression'
      return stop(`${why}: ${JSON.stringify(rule.messageExpression)}`)
    }
    this.left -= spent
    const text = typeof value === 'string' ? value.trim() : ''
    const isUsable = text !== '' && !text.includes('\n') && byteLength(text) <= MAX_MESSAGE_BYTES
    return isUsable ? text : defaultMessage(rule)
  }

  #fault({ path, schema }: ValidatedNode, detail: string): void {
    this.errors.push(orNowhere(path).invalid(schema.type, detail))
  }

  #stop(node: ValidatedNode, detail: string): void {
    this.#fault(node, detail)
    this.left = -1
  }
}

const OUT_OF_BUDGET = 'running out of cost budget, no further validation rules will be run'
const NO_BUDGET = `validation failed due to ${OUT_OF_BUDGET}`

type Refuse = (path: FieldPath, shown: unknown, message: string) => FieldError

const refusals: Readonly<Record<string, Refuse>> = {
  FieldValueForbidden: (path, _, message) => path.forbidden(message),
  FieldValueRequired: (path, _, message) => path.required(message),
  FieldValueDuplicate: (path, shown) => path.duplicate(shown),
}

function below(
  { current, nearest }: ValidatedNode,
  find: (correlation: Correlation) => Correlation | undefined,
): Pick<ValidatedNode, 'current' | 'nearest'> {
  return current === undefined ? { current, nearest } : { current: find(current), nearest: current }
}

function oldItems(items: readonly JsonValue[], keys: readonly string[]): Map<string, JsonValue> {
  const found = new Map<string, JsonValue>()
  for (const item of items) {
    const name = keyText(item, keys)
    if (name !== undefined && !found.has(name)) found.set(name, item)
  }
  return found
}

interface SelfVariables {
  readonly plain: Variables
  readonly optional: Variables
  readonly hasOld: boolean
}

function variablesFor({ value, old }: ValidatedNode, { type, rules }: NodeRules): SelfVariables {
  const self = fromTyped(value, type) as Value
  const hasOld = old !== undefined && old !== null
  if (!rules.some(({ usesOldSelf }) => usesOldSelf)) return { plain: { self }, optional: { self }, hasOld }
  const oldSelf = hasOld ? (fromTyped(old, type) as Value) : undefined
  const plain = oldSelf === undefined ? { self } : { self, oldSelf }
  return { plain, optional: { self, oldSelf: oldSelf === undefined ? Optional.none : new Optional(oldSelf) }, hasOld }
}

interface Evaluation {
  readonly value?: Value
  readonly error?: CelError
  readonly spent: number
}

function evaluate(
  program: { evaluate(variables: Variables, budget: Budget): Value },
  variables: Variables,
): Evaluation {
  const budget: Budget = { limit: CALL_LIMIT, spent: 0 }
  try {
    const value = program.evaluate(variables, budget)
    return { value, spent: budget.spent }
  } catch (error) {
    if (error instanceof CelError) return { error, spent: budget.spent }
    throw error
  }
}

function fieldOf({ path, schema }: ValidatedNode, { fieldPath = '' }: ValidationRule): FieldPath {
  const found = fieldPath === '' ? '' : findField(fieldPath, schema)
  return typeof found === 'string' || found.path === '' ? orNowhere(path) : path.child(found.path)
}

function ruleText({ rule, message = '' }: ValidationRule): string {
  return (message === '' ? rule : message).trim()
}

function defaultMessage(rule: ValidationRule): string {
  return (rule.message ?? '') === '' ? `failed rule: ${ruleText(rule)}` : ruleText(rule)
}
