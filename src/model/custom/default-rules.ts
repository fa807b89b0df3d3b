/** Validates the defaults in a CustomResourceDefinition against their schema, like values of an object. */
import type { JsonObject, JsonValue } from '#lib/json/value.ts'
import { flatMapSteps, shouldYield, type Steps } from '#lib/time-slicing.ts'
import { deepCopy } from '#meta/object.ts'
import { aggregateText, fieldErrorText } from '#meta/validation/field-error.ts'
import type { FieldError, FieldPath } from '#meta/validation/field-path.ts'

import { coerceEmbedded, validateEmbedded } from './embedded.ts'
import { metaFields, prune } from './prune.ts'
import { runRules } from './rule-run.ts'
import { HAS_DEFAULTS, HAS_EMBEDDED, type Structural } from './structural.ts'
import { validateValue } from './validate-value.ts'

export interface DefaultRules {
  /** True if a default may contain unknown fields; only stored definitions may. */
  readonly pruned: boolean
}

/** For the schema of a whole object at `path`. */
export function* validateDefaults(schema: Structural, path: FieldPath, rules: DefaultRules): Steps<FieldError[]> {
  if (!hasDefaults(schema)) return []
  const root: Structural = { ...schema, embedded: true, has: schema.has | HAS_EMBEDDED }
  return yield* validateNode(root, path, { root, steps: [], inMeta: false, rules })
}

/** The position of a schema: its object, and the path from there. */
interface SchemaPosition {
  readonly root: Structural
  readonly steps: readonly (string | typeof ITEM)[]
  /** Within metadata, apiVersion or kind of that object. */
  readonly inMeta: boolean
  readonly rules: DefaultRules
}

const ITEM: unique symbol = Symbol('item')

function* validateNode(schema: Structural, path: FieldPath, outer: SchemaPosition): Steps<FieldError[]> {
  if (schema.default !== undefined || shouldYield()) yield
  const position: SchemaPosition = schema.embedded ? { ...outer, root: schema, steps: [], inMeta: false } : outer
  const { steps } = position
  const errors =
    schema.default === undefined ? [] : validateDefault(schema.default, schema, path.child('default'), position)
  const { items, properties } = schema
  const inItems =
    items !== undefined && hasDefaults(items)
      ? yield* validateNode(items, path.child('items'), { ...position, steps: [...steps, ITEM] })
      : []
  const defaulted = [...properties].filter(([, property]) => hasDefaults(property))
  const inProperties = yield* flatMapSteps(defaulted, ([name, property]) => {
    const inMeta = position.inMeta || (schema.embedded && metaFields.has(name))
    const inside = { ...position, steps: [...steps, name], inMeta }
    return validateNode(property, path.child('properties').key(name), inside)
  })
  return [...errors, ...inItems, ...inProperties]
}

function hasDefaults({ has }: Structural): boolean {
  return (has & HAS_DEFAULTS) !== 0
}

function validateDefault(
  given: JsonValue,
  schema: Structural,
  path: FieldPath,
  position: SchemaPosition,
): FieldError[] {
  const { rules } = position
  const value = deepCopy(given)
  const before = position.inMeta
    ? validateInMeta(value, path, position)
    : validateShape(value, schema, path, rules.pruned)
  if (before.stop) return before.errors
  const faults = validateValue(value, schema, { path, anyFormat: true })
  return [...before.errors, ...(faults.length > 0 ? faults : validateByRules(value, schema, path))]
}

/** Validated both as an unchanged and as a new value, because some rules distinguish them. */
function validateByRules(value: JsonValue, schema: Structural, path: FieldPath): FieldError[] {
  const run = (old: JsonValue | undefined): FieldError[] =>
    runRules(value, schema, { old, path, isResource: schema.embedded, ratchets: false }).errors
  const errors = run(value)
  return errors.length > 0 ? errors : run(undefined)
}

interface Outcome {
  readonly errors: FieldError[]
  /** No further errors can be determined. */
  readonly stop: boolean
}

function validateShape(value: JsonValue, schema: Structural, path: FieldPath, pruned: boolean): Outcome {
  const unknown = pruned ? prune(deepCopy(value), schema, schema.embedded) : []
  const errors = unknown.length > 0 ? [path.invalid(value, 'must not have unknown fields')] : []
  const fault = coerceEmbedded(value, schema, { path })
  const faults = fault === undefined ? validateEmbedded(value, schema, path) : [fault]
  return { errors: [...errors, ...faults], stop: faults.length > 0 }
}

/** A value inside metadata is validated as part of the object that it would make. */
function validateInMeta(value: JsonValue, path: FieldPath, { root, steps }: SchemaPosition): Outcome {
  const object = surrounding(value, steps)
  const fault = coerceEmbedded(object, root)
  const faults = fault === undefined ? validateEmbedded(object, root) : [fault]
  if (faults.length === 0) return { errors: [], stop: false }
  const text = fault === undefined ? aggregateText(faults) : fieldErrorText(fault)
  return { errors: [path.invalid(value, `must result in valid metadata: ${text}`)], stop: true }
}

/** The smallest object that contains the value at its position. */
function surrounding(value: JsonValue, steps: SchemaPosition['steps']): JsonObject {
  const object = steps.reduceRight<JsonValue>((inner, step) => (step === ITEM ? [inner] : { [step]: inner }), value)
  return { apiVersion: 'validation/v1', kind: 'Validation', ...(object as JsonObject) }
}
