/**
 * The rules of a whole schema, judged when a definition is written: each must compile, and neither one nor all together
 * may cost too much, however large the objects get that the schema allows.
 */
import type { ValidationRule } from '#apis/apiextensions/v1.ts'
import type { Steps } from '#lib/slices.ts'
import { child, type FieldError, forbidden, index, internal, invalid, key } from '#meta/validation/field-error.ts'

import { MAX_REQUEST_BYTES, minSizeOf, withMetadata } from './cel-type.ts'
import { compileInSteps, type NodeRule } from './rules.ts'
import { HAS_RULES, type Structural } from './structural.ts'

export interface RuleCheckOptions {
  /** Whether there is a fault of the schema at a path or below; rules there are not looked at. */
  readonly isFaulty: (path: string) => boolean
  /** How a rule is shown. */
  readonly show: (rule: ValidationRule) => unknown
  /** The schema was there before: its rules may cost what they cost. */
  readonly costsAnything: boolean
}

const MAX_RULE_COST = 10_000_000n
const MAX_SCHEMA_COST = 100_000_000n
const MAX_UINT64 = 2n ** 64n - 1n
/** So many of the dearest rules are named when all together are too dear. */
const NAMED_RULES = 4

/** Of the schema of whole objects at `path`, in upstream's order. */
export function* checkRules(schema: Structural, path: string, options: RuleCheckOptions): Steps<FieldError[]> {
  if ((schema.has & HAS_RULES) === 0) return []
  const check = new RuleCheck(options)
  yield* check.walk({ schema, path, isResource: true, cardinality: 1n, uncorrelated: undefined, isBroken: false })
  return [...check.errors, ...check.totalErrors(path)]
}

/** A schema node, and what those above it mean for its rules. */
interface Place {
  readonly schema: Structural
  readonly path: string
  readonly isResource: boolean
  /** How many such values there may be in one object; undefined when nothing limits them. */
  readonly cardinality: bigint | undefined
  /** The list above whose items cannot be found again in an old object. */
  readonly uncorrelated: string | undefined
  /** Something above has rules and no type. */
  readonly isBroken: boolean
}

class RuleCheck {
  readonly errors: FieldError[] = []
  readonly #options: RuleCheckOptions
  #total = 0n
  readonly #dearest: { readonly path: string; readonly cost: bigint }[] = []

  constructor(options: RuleCheckOptions) {
    this.#options = options
  }

  /** What is inside comes before the node itself, as upstream has it. */
  *walk(place: Place): Steps<void> {
    const { schema, path, isResource, uncorrelated } = place
    if ((schema.has & HAS_RULES) === 0) return
    const compiled = schema.rules.length === 0 ? undefined : yield* compileInSteps(schema, isResource)
    const inside = {
      cardinality: multiply(place.cardinality, multiplicity(schema)),
      isBroken: place.isBroken || (schema.rules.length > 0 && compiled === undefined),
    }
    const into = (inner: Structural, at: string, correlated = uncorrelated): Steps<void> =>
      this.walk({ ...inside, schema: inner, path: at, isResource: inner.embedded, uncorrelated: correlated })
    const { additional, items } = schema
    if (typeof additional === 'object') yield* into(additional, child(path, 'additionalProperties'))
    const properties = isResource ? withMetadata(schema).properties : schema.properties
    for (const name of schema.properties.keys()) {
      const property = schema.properties.get(name) as Structural
      const seen = properties.get(name) as Structural
      yield* into({ ...seen, rules: property.rules, has: property.has }, key(child(path, 'properties'), name))
    }
    if (items !== undefined) yield* into(items, child(path, 'items'), schema.listType === 'map' ? uncorrelated : path)
    if (schema.rules.length === 0 || this.#options.isFaulty(path)) return
    yield* this.#judge(place, compiled?.rules, inside.isBroken)
  }

  *#judge(place: Place, rules: readonly NodeRule[] | undefined, isBroken: boolean): Steps<void> {
    const field = child(place.path, 'x-kubernetes-validations')
    if (rules === undefined || isBroken) {
      this.errors.push(internal(field, new Error(NO_TYPE)))
      return
    }
    for (const [at, rule] of rules.entries()) {
      yield
      this.#judgeRule(rule, index(field, at), place)
    }
  }

  #judgeRule(compiled: NodeRule, path: string, place: Place): void {
    const { rule } = compiled
    const shown = this.#options.show(rule)
    const field = child(path, 'rule')
    this.#observe(field, 'estimated rule cost', ruleCost(compiled, place))
    if (compiled.error !== undefined) this.errors.push(invalid(field, shown, compiled.error))
    const messageField = child(path, 'messageExpression')
    if (compiled.messageError !== undefined) this.errors.push(invalid(messageField, shown, compiled.messageError))
    if (compiled.message !== undefined) {
      this.#observe(messageField, 'estimated messageExpression cost', compiled.message.maxCost())
    }
    if (compiled.usesOldSelf && place.uncorrelated !== undefined) {
      const detail = `oldSelf cannot be used on the uncorrelatable portion of the schema within ${place.uncorrelated}`
      this.errors.push(invalid(field, rule.rule, detail))
    } else if (!compiled.usesOldSelf && rule.optionalOldSelf !== undefined) {
      const detail = 'may not be set if oldSelf is not used in rule'
      this.errors.push(invalid(child(path, 'optionalOldSelf'), rule.optionalOldSelf, detail))
    }
  }

  #observe(path: string, what: string, cost: bigint): void {
    if (!this.#options.costsAnything && cost > MAX_RULE_COST) {
      this.errors.push(forbidden(path, costText(what, cost, MAX_RULE_COST)))
    }
    this.#total = saturated(this.#total + cost)
    // What is less than a hundredth of the limit is not to blame.
    if (cost < MAX_SCHEMA_COST / 100n) return
    this.#dearest.push({ path, cost })
    this.#dearest.sort((a, b) => (a.cost < b.cost ? 1 : a.cost > b.cost ? -1 : 0))
    this.#dearest.length = Math.min(this.#dearest.length, NAMED_RULES)
  }

  totalErrors(path: string): FieldError[] {
    if (this.#total <= MAX_SCHEMA_COST) return []
    const what = 'x-kubernetes-validations estimated rule cost total for entire OpenAPIv3 schema'
    const contributed = 'contributed to estimated rule cost total exceeding cost limit for entire OpenAPIv3 schema'
    return [
      ...this.#dearest.map((one) => forbidden(one.path, contributed)),
      forbidden(path, costText(what, this.#total, MAX_SCHEMA_COST)),
    ]
  }
}

const NO_TYPE =
  'internal error: failed to construct type information for x-kubernetes-validations rules: unable to convert structural schema to CEL declarations'

/** Without a limit above, as many as fit into the largest request. */
function ruleCost({ judge }: NodeRule, { schema, isResource, cardinality }: Place): bigint {
  if (judge === undefined) return 0n
  const most = BigInt(Math.floor(MAX_REQUEST_BYTES / ((minSizeOf(schema, isResource) ?? 0) + 1)))
  return saturated(judge.maxCost() * (cardinality ?? most))
}

/** How many values there may be inside of one; undefined without a limit. */
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
