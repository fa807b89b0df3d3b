/**
 * Applies the result of a mutating policy's expression: an apply configuration that is merged as in server-side apply,
 * or a JSON patch.
 */
import { MessageValue } from '#cel/planner/literal.ts'
import { CelError, type Failure, ListValue, MapValue, type Value } from '#cel/value.ts'
import { EntryMap } from '#cel/values/map.ts'
import { toJson } from '#cel/values/to-json.ts'
import { goQuote } from '#lib/go/text.ts'
import { applyJsonPatch, JsonPatchError } from '#lib/json/patch.ts'
import type { JsonValue } from '#lib/json/value.ts'
import { asList, asMap, atomOf, entryType, isDeclared, itemType, type TypeRef } from '#meta/apply/atom.ts'
import { mergeTyped } from '#meta/apply/merge.ts'
import { fieldElement, type PathElement, printPath } from '#meta/apply/path-element.ts'
import { faultsText, validateTyped } from '#meta/apply/validate.ts'
import { decodeValue } from '#meta/codec/decode.ts'
import { CodecError } from '#meta/codec/error.ts'
import { deepCopy, type KubeObject } from '#meta/object.ts'
import type { StructSchema } from '#meta/schema.ts'
import { internalError } from '#meta/status-errors.ts'
import {
  Activation,
  type ActivationInputs,
  type AuthorizerValues,
  type Composition,
  type Evaluation,
  OutOfBudget,
  POLICY_BUDGET,
} from '#model/expressions/activation.ts'

import type { Schemas } from '../matching/forms.ts'
import type { CompiledMutation } from './compiled-policy.ts'

/** A mutation that cannot be applied; the failure policy decides. The message is upstream's. */
export class MutationError extends Error {
  override name = 'MutationError'
}

export interface MutationTerms {
  readonly inputs: ActivationInputs
  readonly composition: Composition
  readonly asking: AuthorizerValues
}

/** The object to change, and the schemas of its kind. */
export interface MutationTarget extends Schemas {
  readonly object: KubeObject
}

/** The mutated object, possibly the same one. Throws MutationError, or StatusError 500. */
export function mutationOf(
  { type, expression }: CompiledMutation,
  { inputs, composition, asking }: MutationTerms,
  { schema, type: merged, object }: MutationTarget,
): KubeObject {
  if (expression.fault !== undefined) throw new MutationError(expression.fault.detail)
  const { value, error } = evaluate(new Activation(inputs, composition, asking), expression)
  if (error !== undefined) throw new MutationError(error)
  return type === 'json-patch' ? applyPatch(schema, object, value) : applyConfiguration(merged, object, value)
}

function evaluate(activation: Activation, expression: CompiledMutation['expression']): Evaluation {
  try {
    return activation.evaluate(expression, { left: POLICY_BUDGET })
  } catch (error) {
    if (error instanceof OutOfBudget) return { error: error.message }
    throw error
  }
}

/** The object merged with the configuration; neither is modified. */
function applyConfiguration(schema: StructSchema, object: KubeObject, made: Value): KubeObject {
  checkTypeNames(made)
  const { kind, apiVersion } = object
  const applied = { ...(nativeOf(made) as object), kind, apiVersion }
  const type = { schema }
  const faults = validateTyped(type, applied)
  if (faults.length > 0) throw notApplied(`failed to convert patch object to typed object: ${faultsText(faults)}`)
  const atomics = findAtomics(type, applied, [])
  if (atomics.length > 0) {
    throw notApplied(`invalid ApplyConfiguration: may not mutate atomic arrays, maps or structs: ${atomics.join(', ')}`)
  }
  return deepCopy(mergeTyped(type, object, applied)) as KubeObject
}

function notApplied(why: string): MutationError {
  return new MutationError(`error applying patch: ${why}`)
}

/** Converts objects as upstream does, which differs from JSON: nulls are zero values, and bytes stay bytes. */
function nativeOf(value: Value | Failure | undefined): unknown {
  if (value === null) return 0
  if (value instanceof Uint8Array) return value
  if (value instanceof MessageValue) {
    return Object.fromEntries([...value.fields].map(([name, part]) => [name, nativeOf(part)]))
  }
  if (value instanceof ListValue) return Array.from({ length: value.size }, (_, at) => nativeOf(value.at(at)))
  return value instanceof EntryMap ? nativeEntries(value) : jsonOf(value as Value)
}

function nativeEntries(map: EntryMap): object {
  const entries = [...map.keys()].map((key) => {
    if (typeof key === 'string') return [key, nativeOf(map.get(key))] as const
    throw new MutationError('invalid return type: *dynamic.ObjectVal')
  })
  return Object.fromEntries(entries)
}

function jsonOf(value: Value): unknown {
  try {
    return toJson(value)
  } catch (error) {
    if (error instanceof CelError) throw new MutationError(error.message)
    throw error
  }
}

/** Setting one field of an atomic value would unintentionally remove the others. */
function findAtomics(type: TypeRef, value: unknown, path: readonly PathElement[]): string[] {
  const isAtomic = atomOf(type, value) === 'leaf' && (type.schema.type === 'list' || isStructured(type))
  const own = isAtomic ? [printPath(path)] : []
  const map = isStructured(type) ? asMap(value) : undefined
  if (map !== undefined) {
    const declared = Object.entries(map).filter(([name]) => isDeclared(type, name))
    return [
      ...own,
      ...declared.flatMap(([name, part]) => findAtomics(entryType(type, name), part, [...path, fieldElement(name)])),
    ]
  }
  const list = type.schema.type === 'list' ? asList(value) : undefined
  if (list === undefined) return []
  return [...own, ...list.flatMap((item, at) => findAtomics(itemType(type), item, [...path, `i:${at}`]))]
}

const isStructured = ({ schema }: TypeRef): boolean => schema.type === 'struct' || schema.type === 'map'

/**
 * Types of objects must match their field: the field `spec` of an `Object` takes an `Object.spec`. Maps and lists
 * between them have no type names.
 */
function checkTypeNames(made: Value): void {
  if (!(made instanceof MessageValue)) return
  const faults = wrongNames(made, made.typeName)
  if (faults.length > 0) throw new MutationError(`type mismatch: ${faults.join('\n')}`)
}

function wrongNames(value: unknown, expected: string): string[] {
  if (value instanceof MessageValue) {
    const { typeName } = value
    const own = `unexpected type name ${goQuote(typeName)}, expected ${goQuote(expected)}, which matches field name path from root Object type`
    const parts = [...value.fields].flatMap(([name, part]) => wrongNames(part, `${expected}.${name}`))
    return typeName === expected ? parts : [own, ...parts]
  }
  if (value instanceof ListValue) {
    return Array.from({ length: value.size }, (_, at) => wrongNames(value.at(at), expected)).flat()
  }
  if (value instanceof MapValue) return [...value.keys()].flatMap((key) => wrongNames(value.get(key), expected))
  return []
}

/** The patched object in canonical form. A failed test operation changes nothing and is no error. */
function applyPatch(schema: StructSchema, object: KubeObject, made: Value): KubeObject {
  const operations = operationsOf(made)
  try {
    return decode(schema, applyJsonPatch(object as unknown as JsonValue, operations))
  } catch (error) {
    if (!(error instanceof JsonPatchError)) throw error
    if (error.code === 'test') return object
    throw new MutationError(`JSON Patch: ${error.message}`)
  }
}

function operationsOf(made: Value): JsonValue[] {
  if (!(made instanceof ListValue)) {
    throw new MutationError('type mismatch: JSONPatchType.expression should evaluate to array')
  }
  return Array.from({ length: made.size }, (_, at) => operationOf(made.at(at)))
}

function operationOf(operation: Value | Failure): JsonValue {
  if (!(operation instanceof MessageValue)) {
    throw new MutationError('type mismatch: JSONPatchType.expression should evaluate to array of JSONPatch')
  }
  const { fields } = operation
  const value = fields.get('value')
  if (value !== undefined) checkTypeNames(value)
  const from = textOf(fields.get('from'))
  return {
    op: textOf(fields.get('op')),
    path: textOf(fields.get('path')),
    ...(from !== '' && { from }),
    ...(value !== undefined && { value: jsonOf(value) as JsonValue }),
  }
}

const textOf = (value: Value | undefined): string => (typeof value === 'string' ? value : '')

/** The result of a patch must strictly match its kind, unlike that of a webhook. */
function decode(schema: StructSchema, patched: unknown): KubeObject {
  const offences: string[] = []
  try {
    const object = decodeValue(schema, deepCopy(patched), 'Strict', { offences }) as KubeObject
    if (offences.length === 0) return object
  } catch (error) {
    if (error instanceof CodecError) throw internalError(error)
    throw error
  }
  throw internalError(new Error(`strict decoding error: ${offences.join(', ')}`))
}
