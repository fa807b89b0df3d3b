/**
 * Decodes any JSON value to the canonical form of a schema (see `schema.ts`), with Go's type rules. Canonical values
 * are returned unchanged, without a copy.
 */
import { isJsonObject, type JsonDuplicate, type JsonObject, setMember } from '#lib/json/value.ts'

import type { AnySchema, FieldSchema, ListSchema, MapSchema, Schema, StructSchema } from '../schema.ts'
import { scalarStep } from './decode-scalar.ts'
import { DecodeState, type FieldFrame, type Step } from './decode-state.ts'
import { CodecError, DEFAULT_MAX_STRUCTS, tooDeep } from './error.ts'
import { embeddedNames, unqualified } from './go-names.ts'
import { normalizeUntyped, sortMembers } from './untyped.ts'

/** The handling of unknown and duplicate fields: an error, a warning each, or nothing. */
export type FieldValidation = 'Strict' | 'Warn' | 'Ignore'

/** Inputs and results of a run. */
export interface Sink {
  /** Duplicate keys from the JSON parser. */
  readonly duplicates?: readonly JsonDuplicate[]
  /** Receives every offence, in document order. */
  readonly offences: string[]
  /** For storage: drops all empty values, even where they differ from absent ones (see `emptyCounts`). */
  readonly settles?: boolean
  /** The maximum number of structs, see \`DEFAULT_MAX_STRUCTS\`. */
  readonly maxStructs?: number
}

/**
 * The canonical form of `value`, which it takes over: it changes the value in place or makes it part of the result.
 * Pass an unshared value, or one whose shared parts are canonical. Throws CodecError with code `type` for the first
 * value of a wrong type, \`limit\` or \`depth\` for exceeded limits. Under Strict and Warn the sink receives offences;
 * the caller handles them.
 */
export function decodeValue(schema: Schema, value: unknown, validation: FieldValidation, sink: Sink): unknown {
  const left = { structs: sink.maxStructs ?? DEFAULT_MAX_STRUCTS }
  const state = new DecodeState(validation !== 'Ignore', sink.duplicates ?? [], { frames: [], left })
  state.settles = sink.settles ?? false
  const { decode, zero } = stepFor(schema)
  const result = guardStack(() => (value === null ? zero() : decode(state, value)))
  state.finish()
  sink.offences.push(...state.offences)
  return result
}

/** The canonical form of Go's zero value: the always-written fields of a struct, and so on. */
export function zeroValue(schema: Schema): unknown {
  return stepFor(schema).zero()
}

/** Recursive structs refer to their steps here before those are complete. */
const steps = new WeakMap<Schema, Step>()

export function stepFor(schema: Schema): Step {
  let step = steps.get(schema)
  if (step === undefined) {
    step = compile(schema)
    steps.set(schema, step)
  }
  return step
}

function compile(schema: Schema): Step {
  switch (schema.type) {
    case 'struct':
      return structStep(schema)
    case 'list':
      return listStep(schema)
    case 'map':
      return mapStep(schema)
    case 'any':
      return anyStep(schema)
    default:
      return scalarStep(schema)
  }
}

/** The caller may already have used most of the stack. */
function guardStack(run: () => unknown): unknown {
  try {
    return run()
  } catch (cause) {
    throw cause instanceof RangeError ? tooDeep(cause) : cause
  }
}

interface FieldPlan extends FieldFrame {
  /** The position in Go's declaration order. */
  readonly index: number
  readonly always: boolean
  /** Undefined omits the field. Gets null too. */
  readonly decode: (state: DecodeState, value: unknown) => unknown
  readonly zero: () => unknown
}

interface StructPlan {
  readonly schema: StructSchema
  readonly byName: ReadonlyMap<string, FieldPlan>
  /** The always-written fields, in order. */
  readonly always: readonly FieldPlan[]
}

function structStep(schema: StructSchema): Step {
  let compiled: StructPlan | undefined
  const plan = (): StructPlan => (compiled ??= planStruct(schema))
  return {
    decode(state, value) {
      if (!isJsonObject(value)) return state.mismatch(value, schema.goType)
      return schema.preserveUnknown ? decodeOpenStruct(state, value, plan()) : decodeStruct(state, value, plan())
    },
    zero: () => zeroStruct(plan()),
    isEmpty: () => false,
  }
}

function planStruct(schema: StructSchema): StructPlan {
  const owner = unqualified(schema.goType)
  const embedded = embeddedNames(schema)
  const fields = [...schema.fields.values()].map((field, index) => {
    const errorName = embedded.get(field.name) ?? field.name
    return planField(field, index, { name: field.name, errorName, owner })
  })
  return {
    schema,
    byName: new Map(fields.map((field) => [field.name, field])),
    always: fields.filter((field) => field.always),
  }
}

function planField(field: FieldSchema, index: number, frame: FieldFrame): FieldPlan {
  const { pointer, emptyCounts = false } = field
  const step = stepFor(field.schema)
  const always = isAlwaysWritten(field)
  const zero = pointer ? (): null => null : step.zero
  const whenNull = always ? zero : (): undefined => undefined
  const keep = always || pointer
  return {
    ...frame,
    index,
    always,
    zero,
    decode: keep
      ? (state, value) => {
          const result = value === null ? whenNull() : step.decode(state, value)
          // Empty lists and maps are not stored: upstream's storage cannot distinguish them from absent ones.
          return state.settles && !pointer && step.isEmpty(result) ? zero() : result
        }
      : (state, value) => {
          const result = value === null ? undefined : step.decode(state, value)
          if (result === undefined || !step.isEmpty(result)) return result
          return emptyCounts && !state.settles ? result : undefined
        },
  }
}

/** True if Go writes the field even if empty: `omitempty` has no effect on struct values. */
export function isAlwaysWritten({ omitEmpty, pointer, schema }: FieldSchema): boolean {
  if (!omitEmpty) return true
  if (pointer) return false
  return structLike.has(schema.type)
}

const structLike: ReadonlySet<Schema['type']> = new Set(['struct', 'quantity', 'duration', 'int-or-string', 'any'])

function decodeStruct(state: DecodeState, input: JsonObject, plan: StructPlan): JsonObject {
  state.countStruct()
  const duplicates = state.duplicatesHere()
  const base = state.depth
  let always = 0
  let last = -1
  let canonical = true
  let count = 0
  for (const key of Object.keys(input)) {
    const field = plan.byName.get(key)
    if (field === undefined) {
      state.depth = base
      state.unknownField(key)
      canonical = false
    } else {
      state.frames[base] = field
      state.depth = base + 1
      const value = input[key]
      const result = field.decode(state, value)
      if (result !== value) input[key] = result as JsonObject
      if (result === undefined || field.index < last) canonical = false
      else last = field.index
      if (field.always) always++
    }
    if (duplicates !== undefined) state.repeated(duplicates, ++count, (name) => plan.byName.has(name))
  }
  state.depth = base
  return canonical && always === plan.always.length ? input : rebuild(input, plan)
}

/** A struct that keeps unknown fields is a map in Go, so all its keys are sorted. */
function decodeOpenStruct(state: DecodeState, input: JsonObject, plan: StructPlan): JsonObject {
  const known: JsonObject = {}
  const output: JsonObject = {}
  for (const key of Object.keys(input)) {
    if (plan.byName.has(key)) setMember(known, key, input[key] as JsonObject)
    else setMember(output, key, normalizeUntyped(input[key]) as JsonObject)
  }
  const decoded = decodeStruct(state, known, plan)
  // A whole object begins with its kind, like every other kind.
  if (plan.byName.has('metadata') && plan.byName.has('kind')) return { ...decoded, ...sortMembers(output) }
  for (const key of Object.keys(decoded)) setMember(output, key, decoded[key] as JsonObject)
  return sortMembers(output)
}

/** The known fields with a value and the always-written ones, in Go's order. */
function rebuild(input: JsonObject, plan: StructPlan): JsonObject {
  const present: FieldPlan[] = []
  for (const key of Object.keys(input)) {
    const field = plan.byName.get(key)
    if (field !== undefined && input[key] !== undefined) present.push(field)
  }
  if (present.length === 0) return zeroStruct(plan)
  for (const field of plan.always) if (!Object.hasOwn(input, field.name)) present.push(field)
  const output: JsonObject = {}
  for (const { name, zero } of present.sort(byIndex)) {
    output[name] = Object.hasOwn(input, name) ? (input[name] as JsonObject) : (zero() as JsonObject)
  }
  return output
}

function zeroStruct(plan: StructPlan): JsonObject {
  const output: JsonObject = {}
  for (const { name, zero } of plan.always) output[name] = zero() as JsonObject
  return output
}

function byIndex(a: FieldPlan, b: FieldPlan): number {
  return a.index - b.index
}

function listStep(schema: ListSchema): Step {
  const item = lazily(() => stepFor(schema.items))
  const goType = goTypeOf(schema)
  const whenNull = schema.pointerItems ? (): null => null : (): unknown => item().zero()
  return {
    decode(state, value) {
      if (!Array.isArray(value)) return state.mismatch(value, goType)
      const base = state.depth
      const { decode } = item()
      for (let index = 0; index < value.length; index++) {
        state.frames[base] = index
        state.depth = base + 1
        const given: unknown = value[index]
        if (given === null) state.countStruct()
        const result = given === null ? whenNull() : decode(state, given)
        if (result !== given) value[index] = result
      }
      state.depth = base
      return value
    },
    zero: () => null,
    isEmpty: (value) => Array.isArray(value) && value.length === 0,
  }
}

function mapStep(schema: MapSchema): Step {
  const values = lazily(() => stepFor(schema.values))
  const goType = goTypeOf(schema)
  return {
    decode(state, value) {
      return isJsonObject(value) ? decodeMap(state, value, values()) : state.mismatch(value, goType)
    },
    zero: () => null,
    isEmpty: (value) => isJsonObject(value) && Object.keys(value).length === 0,
  }
}

function decodeMap(state: DecodeState, input: JsonObject, { decode, zero }: Step): JsonObject {
  const duplicates = state.duplicatesHere()
  const base = state.depth
  let count = 0
  for (const key of Object.keys(input)) {
    state.frames[base] = key
    state.depth = base + 1
    const value = input[key]
    const result = (value === null ? zero() : decode(state, value)) as JsonObject
    if (result !== value) setMember(input, key, result)
    state.depth = base
    if (duplicates !== undefined) state.repeated(duplicates, ++count, () => true)
  }
  return sortMembers(input)
}

function anyStep({ goType, alternatives }: AnySchema): Step {
  const never = (): boolean => false
  if (alternatives !== undefined) return { decode: alternativesOf(alternatives), zero: () => null, isEmpty: never }
  const decode: Step['decode'] = goType === 'interface {}' ? (_state, value) => normalizeUntyped(value) : keep
  return { decode, zero: () => null, isEmpty: never }
}

function keep(_state: DecodeState, value: unknown): unknown {
  return value
}

/** A union of object, list and boolean: Go decodes its parts separately, so unknown fields are not reported. */
function alternativesOf(alternatives: StructSchema): Step['decode'] {
  const stepOf = (type: Schema['type']): Step | undefined => {
    const field = [...alternatives.fields.values()].find(({ schema }) => schema.type === type)
    return field && stepFor(field.schema)
  }
  const parts = lazily(() => ({ struct: stepOf('struct'), list: stepOf('list'), boolean: stepOf('boolean') }))
  return (state, value) => {
    const { struct, list, boolean } = parts()
    if (struct !== undefined && isJsonObject(value)) return state.apart((inner) => struct.decode(inner, value))
    if (list !== undefined && Array.isArray(value)) {
      return value.length === 0 ? null : state.apart((inner) => list.decode(inner, value))
    }
    if (boolean === undefined) return null
    if (typeof value === 'boolean') return value
    throw new CodecError('type', 'boolean or JSON schema expected')
  }
}

function lazily<Value>(make: () => Value): () => Value {
  let value: Value | undefined
  return () => (value ??= make())
}

/** The Go type in error texts. */
export function goTypeOf(schema: Schema): string {
  if (schema.type === 'map') return schema.goType ?? `map[string]${goTypeOf(schema.values)}`
  if (schema.type === 'list') return schema.goType ?? `[]${schema.pointerItems ? '*' : ''}${goTypeOf(schema.items)}`
  return schema.goType
}
