/**
 * The rules of a schema against an object, node by node: values as expressions see them, the old value beside the new one,
 * a budget for all together. What was wrong before and has not changed is a warning.
 */
import type { ValidationRule } from '#apis/apiextensions/v1.ts'
import type { Budget, Variables } from '#cel/program.ts'
import { CelBudgetError, CelError, Optional, type Value } from '#cel/value.ts'
import { fromTyped } from '#cel/values/typed.ts'
import { byteLength } from '#lib/go-text.ts'
import { isJsonObject, type JsonObject, type JsonValue } from '#lib/json-value.ts'
import {
  child,
  duplicate,
  type FieldError,
  fieldErrorText,
  forbidden,
  index,
  invalid,
  key,
  omitted,
  required,
} from '#meta/validation/field-error.ts'

import { Correlation, keyText } from './correlation.ts'
import { findField } from './field-path.ts'
import { compileRules, type NodeRule, type NodeRules } from './rules.ts'
import { HAS_RULES, type Structural } from './structural.ts'
import { NOWHERE } from './validate-value.ts'

/** What all rules may cost for one object. */
export const RULES_BUDGET = 10_000_000
const CALL_LIMIT = 1_000_000
const MAX_MESSAGE_BYTES = 5_120

export interface RuleRun {
  readonly errors: FieldError[]
  readonly warnings: string[]
  /** Negative when it ran out. */
  readonly budgetLeft: number
}

export interface RuleRunOptions {
  readonly old?: JsonValue | undefined
  readonly path?: string
  /** Whether the value is a whole object; default: yes. */
  readonly isResource?: boolean
  /** Whether what has not changed passes with a warning; default: yes. */
  readonly ratchets?: boolean
  readonly budget?: number
}

export function runRules(value: JsonValue, schema: Structural, options: RuleRunOptions = {}): RuleRun {
  const { old, path = '', isResource = true, ratchets = true, budget = RULES_BUDGET } = options
  const run = new Run(budget)
  const current = old === undefined || !ratchets ? undefined : new Correlation(value, old, schema)
  run.walk({ schema, value, old, path, isResource, current, nearest: undefined })
  return { errors: run.errors, warnings: run.warnings, budgetLeft: run.left }
}

/** Rules are compiled when an object first meets them; a schema is changed by making a new one. */
const compiledRules = new WeakMap<Structural, NodeRules | 'none'>()

function rulesOf(schema: Structural, isResource: boolean): NodeRules | 'none' {
  const known = compiledRules.get(schema)
  if (known !== undefined) return known
  const made = compileRules(schema, isResource) ?? 'none'
  compiledRules.set(schema, made)
  return made
}

interface Place {
  readonly schema: Structural
  readonly value: JsonValue
  readonly old: JsonValue | undefined
  readonly path: string
  readonly isResource: boolean
  /** With the old value of this very place; undefined where it cannot be found. */
  readonly current: Correlation | undefined
  /** The nearest above for which it could be found; undefined at the root. */
  readonly nearest: Correlation | undefined
}

class Run {
  readonly errors: FieldError[] = []
  readonly warnings: string[] = []
  left: number

  constructor(budget: number) {
    this.left = budget
  }

  walk(place: Place): void {
    const { schema, value } = place
    if ((schema.has & HAS_RULES) === 0 || value === null || this.left < 0) return
    if (schema.rules.length > 0) this.#judge(place)
    if (Array.isArray(value)) this.#walkItems(place, value)
    else if (isJsonObject(value)) this.#walkMembers(place, value)
  }

  #walkItems(place: Place, list: readonly JsonValue[]): void {
    const { items, listType, mapKeys } = place.schema
    if (items === undefined || (items.has & HAS_RULES) === 0) return
    const old = listType === 'map' && Array.isArray(place.old) ? oldItems(place.old, mapKeys) : undefined
    for (let at = 0; at < list.length && this.left >= 0; at++) {
      const value = list[at] as JsonValue
      const name = old === undefined ? undefined : keyText(value, mapKeys)
      this.walk({
        schema: items,
        value,
        old: name === undefined ? undefined : old?.get(name),
        path: index(place.path, at),
        isResource: items.embedded,
        ...below(place, (correlation) => correlation.index(at)),
      })
    }
  }

  #walkMembers(place: Place, object: JsonObject): void {
    const { properties, additional } = place.schema
    const old = isJsonObject(place.old) ? place.old : {}
    for (const name of Object.keys(object)) {
      if (this.left < 0) return
      const property = properties.get(name)
      const schema = property ?? (typeof additional === 'object' ? additional : undefined)
      if (schema === undefined || (schema.has & HAS_RULES) === 0) continue
      // The server sets these itself: whether they changed says nothing.
      const isHidden = place.nearest === undefined && (name === 'apiVersion' || name === 'kind')
      const found = below(place, (correlation) => correlation.key(name))
      this.walk({
        schema,
        value: object[name] as JsonValue,
        old: Object.hasOwn(old, name) ? old[name] : undefined,
        path: property === undefined ? key(place.path, name) : child(place.path, name),
        isResource: schema.embedded,
        ...(isHidden ? { current: undefined, nearest: undefined } : found),
      })
    }
  }

  #judge(place: Place): void {
    const { schema, isResource } = place
    const compiled = rulesOf(schema, isResource)
    if (compiled === 'none') {
      const detail = 'rule compiler initialization error: failed to convert to declType for CEL validation rules'
      return this.#fault(place, detail)
    }
    if (this.left === 0) return this.#stop(place, NO_BUDGET)
    const variables = variablesFor(place, compiled)
    for (const rule of compiled.rules) {
      if (this.left < 0) return
      this.#judgeRule(place, rule, variables)
    }
  }

  #judgeRule(place: Place, compiled: NodeRule, variables: SelfVariables): void {
    const { rule, judge, usesOldSelf } = compiled
    if (compiled.error !== undefined) return this.#fault(place, `rule compile error: ${compiled.error}`)
    const isOptional = rule.optionalOldSelf === true
    if (judge === undefined || (usesOldSelf && !variables.hasOld && !isOptional)) return
    const outcome = evaluate(judge.program, isOptional ? variables.optional : variables.plain)
    if (outcome.spent > this.left) return this.#stop(place, NO_BUDGET)
    this.left -= outcome.spent
    if (outcome.error !== undefined) this.#failed(place, rule, outcome.error)
    else if (outcome.value !== true) this.#refuse(place, compiled, variables.plain)
  }

  /** The rule itself could not be evaluated. */
  #failed(place: Place, rule: ValidationRule, error: CelError): void {
    const shown = ruleText(rule)
    const { message } = error
    if (error instanceof CelBudgetError) {
      const why = 'no further validation rules will be run due to call cost exceeds limit for rule'
      return this.#stop(place, `'${message}': ${why}: ${shown}`)
    }
    if (message.startsWith('no such overload')) {
      const why = 'call arguments did not match a supported operator, function or macro signature for rule'
      return this.#fault(place, `'${message}': ${why}: ${shown}`)
    }
    this.#fault(place, `${message} evaluating rule: ${shown}`)
  }

  #refuse(place: Place, compiled: NodeRule, variables: Variables): void {
    const { rule } = compiled
    const path = fieldOf(place, rule)
    const message = this.#messageFor(place, compiled, variables)
    if (message === undefined) return
    const { schema, value } = place
    const shown = schema.type === 'object' || schema.type === 'array' ? omitted : value
    const error = refusals[rule.reason ?? '']?.(path, shown, message) ?? invalid(path, shown, message)
    this.#tell(place, compiled, error)
  }

  #tell({ current, nearest }: Place, { usesOldSelf }: NodeRule, error: FieldError): void {
    const isOld = !usesOldSelf && (current ?? nearest)?.isUnchanged === true
    if (isOld) this.warnings.push(fieldErrorText(error))
    else this.errors.push(error)
  }

  /** Undefined when the budget ran out over it. */
  #messageFor(place: Place, compiled: NodeRule, variables: Variables): string | undefined {
    const { rule, message } = compiled
    if (message === undefined) return defaultMessage(rule)
    const { value, error, spent } = evaluate(message.program, variables)
    const stop = (detail: string): undefined => {
      this.#tell(place, compiled, invalid(fieldOf(place, rule), place.schema.type, detail))
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

  #fault({ path, schema }: Place, detail: string): void {
    this.errors.push(invalid(path || NOWHERE, schema.type, detail))
  }

  #stop(place: Place, detail: string): void {
    this.#fault(place, detail)
    this.left = -1
  }
}

const OUT_OF_BUDGET = 'running out of cost budget, no further validation rules will be run'
const NO_BUDGET = `validation failed due to ${OUT_OF_BUDGET}`

type Refuse = (path: string, shown: unknown, message: string) => FieldError

const refusals: Readonly<Record<string, Refuse>> = {
  FieldValueForbidden: (path, _, message) => forbidden(path, message),
  FieldValueRequired: (path, _, message) => required(path, message),
  FieldValueDuplicate: (path, shown) => duplicate(path, shown),
}

function below(
  { current, nearest }: Place,
  find: (correlation: Correlation) => Correlation | undefined,
): Pick<Place, 'current' | 'nearest'> {
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

function variablesFor({ value, old }: Place, { type, rules }: NodeRules): SelfVariables {
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

function fieldOf({ path, schema }: Place, { fieldPath = '' }: ValidationRule): string {
  const found = fieldPath === '' ? '' : findField(fieldPath, schema)
  return typeof found === 'string' || found.path === '' ? path || NOWHERE : child(path, found.path)
}

function ruleText({ rule, message = '' }: ValidationRule): string {
  return (message === '' ? rule : message).trim()
}

function defaultMessage(rule: ValidationRule): string {
  return (rule.message ?? '') === '' ? `failed rule: ${ruleText(rule)}` : ruleText(rule)
}
