/** Defaults must be values that their own schema takes: judged when a definition is written, as an object would be. */
import type { JsonObject, JsonValue } from '#lib/json-value.ts'
import { flatMapSteps, isDue, type Steps } from '#lib/slices.ts'
import { deepCopy } from '#meta/object.ts'
import { aggregateText, child, type FieldError, fieldErrorText, invalid, key } from '#meta/validation/field-error.ts'

import { coerceEmbedded, validateEmbedded } from './embedded.ts'
import { metaFields, prune } from './prune.ts'
import { runRules } from './rule-run.ts'
import { HAS_DEFAULTS, HAS_EMBEDDED, type Structural } from './structural.ts'
import { validateValue } from './validate-value.ts'

export interface DefaultRules {
  /** Whether a default may hold fields that its schema does not know; only what was stored before may. */
  readonly pruned: boolean
}

/** Of the schema of a whole object, at `path`. */
export function* validateDefaults(schema: Structural, path: string, rules: DefaultRules): Steps<FieldError[]> {
  if (!hasDefaults(schema)) return []
  const root: Structural = { ...schema, embedded: true, has: schema.has | HAS_EMBEDDED }
  return yield* validateNode(root, path, { root, steps: [], inMeta: false, rules })
}

/** Where a schema stands: in which object, and on which way from there. */
interface Place {
  readonly root: Structural
  readonly steps: readonly (string | typeof ITEM)[]
  /** Within metadata, apiVersion or kind of that object. */
  readonly inMeta: boolean
  readonly rules: DefaultRules
}

const ITEM: unique symbol = Symbol('item')

function* validateNode(schema: Structural, path: string, outer: Place): Steps<FieldError[]> {
  if (schema.default !== undefined || isDue()) yield
  const place: Place = schema.embedded ? { ...outer, root: schema, steps: [], inMeta: false } : outer
  const { steps } = place
  const errors =
    schema.default === undefined ? [] : validateDefault(schema.default, schema, child(path, 'default'), place)
  const { items, properties } = schema
  const inItems =
    items !== undefined && hasDefaults(items)
      ? yield* validateNode(items, child(path, 'items'), { ...place, steps: [...steps, ITEM] })
      : []
  const defaulted = [...properties].filter(([, property]) => hasDefaults(property))
  const inProperties = yield* flatMapSteps(defaulted, ([name, property]) => {
    const inMeta = place.inMeta || (schema.embedded && metaFields.has(name))
    const inside = { ...place, steps: [...steps, name], inMeta }
    return validateNode(property, key(child(path, 'properties'), name), inside)
  })
  return [...errors, ...inItems, ...inProperties]
}

function hasDefaults({ has }: Structural): boolean {
  return (has & HAS_DEFAULTS) !== 0
}

function validateDefault(given: JsonValue, schema: Structural, path: string, place: Place): FieldError[] {
  const { rules } = place
  const value = deepCopy(given)
  const before = place.inMeta ? validateInMeta(value, path, place) : validateShape(value, schema, path, rules.pruned)
  if (before.stop) return before.errors
  const faults = validateValue(value, schema, { path, anyFormat: true })
  return [...before.errors, ...(faults.length > 0 ? faults : validateByRules(value, schema, path))]
}

/** As a value that stays, and as one that is new: some rules tell the two apart. */
function validateByRules(value: JsonValue, schema: Structural, path: string): FieldError[] {
  const run = (old: JsonValue | undefined): FieldError[] =>
    runRules(value, schema, { old, path, isResource: schema.embedded, ratchets: false }).errors
  const errors = run(value)
  return errors.length > 0 ? errors : run(undefined)
}

interface Outcome {
  readonly errors: FieldError[]
  /** Nothing else can be said of it. */
  readonly stop: boolean
}

function validateShape(value: JsonValue, schema: Structural, path: string, pruned: boolean): Outcome {
  const unknown = pruned ? prune(deepCopy(value), schema, schema.embedded) : []
  const errors = unknown.length > 0 ? [invalid(path, value, 'must not have unknown fields')] : []
  const fault = coerceEmbedded(value, schema, { path })
  const faults = fault === undefined ? validateEmbedded(value, schema, path) : [fault]
  return { errors: [...errors, ...faults], stop: faults.length > 0 }
}

/** What is inside of metadata is judged by the object that it would make. */
function validateInMeta(value: JsonValue, path: string, { root, steps }: Place): Outcome {
  const object = surrounding(value, steps)
  const fault = coerceEmbedded(object, root)
  const faults = fault === undefined ? validateEmbedded(object, root) : [fault]
  if (faults.length === 0) return { errors: [], stop: false }
  const text = fault === undefined ? aggregateText(faults) : fieldErrorText(fault)
  return { errors: [invalid(path, value, `must result in valid metadata: ${text}`)], stop: true }
}

/** The smallest object that has the value at its place. */
function surrounding(value: JsonValue, steps: Place['steps']): JsonObject {
  const object = steps.reduceRight<JsonValue>((inner, step) => (step === ITEM ? [inner] : { [step]: inner }), value)
  return { apiVersion: 'validation/v1', kind: 'Validation', ...(object as JsonObject) }
}
