/**
 * Validates the CEL rules in a CustomResourceDefinition: each rule must compile, and the cost of one rule and of all
 * rules is limited.
 */
import type { ValidationRule } from '#apis/apiextensions/v1.ts'
import type { Steps } from '#lib/time-slicing.ts'
import type { FieldError, FieldPath } from '#meta/validation/field-path.ts'

import { MAX_REQUEST_BYTES, minSizeOf, withMetadata } from './cel-type.ts'
import { compileInSteps, type NodeRule } from './rules.ts'
import { HAS_RULES, type Structural } from './structural.ts'

export interface RuleCheckOptions {
  /** True if the schema has an error at a path or below; rules there are skipped. */
  readonly isFaulty: (path: FieldPath) => boolean
  /** The printed form of a rule. */
  readonly show: (rule: ValidationRule) => unknown
  /** The schema existed before: the cost of its rules is not limited. */
  readonly costsAnything: boolean
}

const MAX_RULE_COST = 10_000_000n
const MAX_SCHEMA_COST = 100_000_000n
const MAX_UINT64 = 2n ** 64n - 1n
/** The number of most expensive rules that are listed if the total is too high. */
const NAMED_RULES = 4

/** For the schema of whole objects at `path`, in upstream's order. */
export function* checkRules(schema: Structural, path: FieldPath, options: RuleCheckOptions): Steps<FieldError[]> {
  if ((schema.has & HAS_RULES) === 0) return []
  const check = new RuleCheck(options)
  yield* check.walk({ schema, path, isResource: true, cardinality: 1n, uncorrelated: undefined, isBroken: false })
  return [...check.errors, ...check.totalErrors(path)]
}

/** A schema node, with the context of its ancestors. */
interface CheckedNode {
  readonly schema: Structural
  readonly path: FieldPath
  readonly isResource: boolean
  /** The maximum number of such values in one object; undefined without a limit. */
  readonly cardinality: bigint | undefined
  /** An ancestor list whose items cannot be correlated with an old object. */
  readonly uncorrelated: FieldPath | undefined
  /** An ancestor has rules and no type. */
  readonly isBroken: boolean
}

class RuleCheck {
  readonly errors: FieldError[] = []
  readonly #options: RuleCheckOptions
  #total = 0n
  readonly #dearest: { readonly path: FieldPath; readonly cost: bigint }[] = []

  constructor(options: RuleCheckOptions) {
    this.#options = options
  }

  /** Nested nodes come before the node itself, like upstream. */
  *walk(node: CheckedNode): Steps<void> {
    const { schema, path, isResource, uncorrelated } = node
    if ((schema.has & HAS_RULES) === 0) return
    const compiled = schema.rules.length === 0 ? undefined : yield* compileInSteps(schema, isResource)
    const inside = {
      cardinality: multiply(node.cardinality, multiplicity(schema)),
      isBroken: node.isBroken || (schema.rules.length > 0 && compiled === undefined),
    }
    const into = (inner: Structural, at: FieldPath, correlated = uncorrelated): Steps<void> =>
      this.walk({ ...inside, schema: inner, path: at, isResource: inner.embedded, uncorrelated: correlated })
    const { additional, items } = schema
    if (typeof additional === 'object') yield* into(additional, path.child('additionalProperties'))
    const properties = isResource ? withMetadata(schema).properties : schema.properties
    for (const name of schema.properties.keys()) {
      const property = schema.properties.get(name) as Structural
      const seen = properties.get(name) as Structural
      yield* into({ ...seen, rules: property.rules, has: property.has }, path.child('properties').key(name))
    }
    if (items !== undefined) yield* into(items, path.child('items'), schema.listType === 'map' ? uncorrelated : path)
    if (schema.rules.length === 0 || this.#options.isFaulty(path)) return
    yield* this.#checkRules(node, compiled?.rules, inside.isBroken)
  }

  *#checkRules(node: CheckedNode, rules: readonly NodeRule[] | undefined, isBroken: boolean): Steps<void> {
    const field = node.path.child('x-kubernetes-validations')
    if (rules === undefined || isBroken) {
      this.errors.push(field.internal(new Error(NO_TYPE)))
      return
    }
    for (const [at, rule] of rules.entries()) {
      yield
      this.#checkRule(rule, field.index(at), node)
    }
  }

  #checkRule(compiled: NodeRule, path: FieldPath, node: CheckedNode): void {
    const { rule } = compiled
    const shown = this.#options.show(rule)
    const field = path.child('rule')
    this.#observe(field, 'estimated rule cost', ruleCost(compiled, node))
    if (compiled.error !== undefined) this.errors.push(field.invalid(shown, compiled.error))
    const messageField = path.child('messageExpression')
    if (compiled.messageError !== undefined) this.errors.push(messageField.invalid(shown, compiled.messageError))
    if (compiled.message !== undefined) {
      this.#observe(messageField, 'estimated messageExpression cost', compiled.message.maxCost())
    }
    if (compiled.usesOldSelf && node.uncorrelated !== undefined) {
      const detail = `oldSelf cannot be used on the uncorrelatable portion of the schema within ${node.uncorrelated}`
      this.errors.push(field.invalid(rule.rule, detail))
    } else if (!compiled.usesOldSelf && rule.optionalOldSelf !== undefined) {
      const detail = 'may not be set if oldSelf is not used in rule'
      this.errors.push(path.child('optionalOldSelf').invalid(rule.optionalOldSelf, detail))
    }
  }

  #observe(path: FieldPath, what: string, cost: bigint): void {
    if (!this.#options.costsAnything && cost > MAX_RULE_COST) {
      this.errors.push(path.forbidden(costText(what, cost, MAX_RULE_COST)))
    }
    this.#total = saturated(this.#total + cost)
    // Rules below a hundredth of the limit are not listed.
    if (cost < MAX_SCHEMA_COST / 100n) return
    this.#dearest.push({ path, cost })
    this.#dearest.sort((a, b) => (a.cost < b.cost ? 1 : a.cost > b.cost ? -1 : 0))
    this.#dearest.length = Math.min(this.#dearest.length, NAMED_RULES)
  }

  totalErrors(path: FieldPath): FieldError[] {
    if (this.#total <= MAX_SCHEMA_COST) return []
    const what = 'x-kubernetes-validations estimated rule cost total for entire OpenAPIv3 schema'
    const contributed = 'contributed to estimated rule cost total exceeding cost limit for entire OpenAPIv3 schema'
    return [
      ...this.#dearest.map((one) => one.path.forbidden(contributed)),
      path.forbidden(costText(what, this.#total, MAX_SCHEMA_COST)),
    ]
  }
}

const NO_TYPE =
  'internal error: failed to construct type information for x-kubernetes-validations rules: unable to convert structural schema to CEL declarations'

/** Without a limit, the number that fits into the largest request. */
function ruleCost({ validation }: NodeRule, { schema, isResource, cardinality }: CheckedNode): bigint {
  if (validation === undefined) return 0n
  const most = BigInt(Math.floor(MAX_REQUEST_BYTES / ((minSizeOf(schema, isResource) ?? 0) + 1)))
  return saturated(validation.maxCost() * (cardinality ?? most))
}

/** The maximum number of values inside one; undefined without a limit. */
function multiplicity({ type, additional, values }: Structural): bigint | undefined {
  if (type === 'array') return limitOf(values?.maxItems)
  return type === 'object' && additional !== undefined ? limitOf(values?.maxProperties) : 1n
}

function limitOf(limit: number | undefined): bigint | undefined {
  return limit === undefined ? undefined : BigInt(Math.max(0, limit))
}

function multiply(a: bigint | undefined, b: bigint | undefined): bigint | undefined {
  return a === undefined || b === undefined ? undefined : saturated(a * b)
}

function saturated(cost: bigint): bigint {
  return cost > MAX_UINT64 ? MAX_UINT64 : cost
}

function costText(what: string, cost: bigint, limit: bigint): string {
  const factor = Number(cost) / Number(limit)
  const text = factor > 100 ? 'more than 100x' : `${factor.toFixed(factor < 1.5 ? 6 : 1)}x`
  return `${what} exceeds budget by factor of ${text} (try simplifying the rule, or adding maxItems, maxProperties, and maxLength where arrays, maps, and strings are declared)`
}
