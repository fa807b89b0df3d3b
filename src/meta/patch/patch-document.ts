/**
 * A patch as it was sent, before it meets an object: read, of the shape its language asks for, with what in it is
 * repeated or unknown told in upstream's words. Apply configurations are YAML and read elsewhere.
 */
import { goQuote } from '#lib/go-text.ts'
import { type JsonDuplicate, JsonError } from '#lib/json-value.ts'
import { parseJson } from '#lib/json.ts'

import { decodeValue, type FieldValidation } from '../codec/decode.ts'
import { CodecError } from '../codec/error.ts'
import type { PatchType } from '../codec/negotiate.ts'
import type { FieldSchema, ListSchema, Schema } from '../schema.ts'
import { badRequestError } from '../status-errors.ts'
import { isMap, type JsonMap } from './json-map.ts'

export interface PatchDocument {
  readonly type: PatchType
  readonly value: unknown
  /** What is told of under Warn and refused under Strict; empty under Ignore. */
  readonly offences: readonly string[]
}

/** Throws StatusError for what is no patch of this type. */
export function readPatchDocument(body: Buffer, type: PatchType, validation: FieldValidation): PatchDocument {
  const duplicates: JsonDuplicate[] = []
  const value = parsePatch(body, duplicates)
  const isJudged = validation !== 'Ignore'
  if (type === 'application/json-patch+json') {
    return { type, value, offences: isJudged ? judgeOperations(value, duplicates) : [] }
  }
  const prefix = type === 'application/merge-patch+json' ? 'error decoding patch: ' : ''
  const repeated = isJudged ? duplicates.map(({ path }) => `duplicate field ${goQuote(path)}`) : []
  return { type, value: requireMap(value, type, prefix), offences: repeated }
}

function parsePatch(body: Buffer, duplicates: JsonDuplicate[]): unknown {
  try {
    return parseJson(body, { duplicates })
  } catch (cause) {
    if (!(cause instanceof JsonError)) throw cause
    throw badRequestError(`error decoding patch: ${cause.message}`)
  }
}

/** Null is an empty strategic patch, and no merge patch at all. */
function requireMap(value: unknown, type: PatchType, prefix: string): JsonMap {
  if (isMap(value)) return value
  if (value === null && type === 'application/strategic-merge-patch+json') return {}
  if (value === null) throw badRequestError('Invalid JSON Patch')
  const word = Array.isArray(value) ? 'array' : typeof value === 'boolean' ? 'bool' : typeof value
  throw badRequestError(`${prefix}json: cannot unmarshal ${word} into Go value of type map[string]interface {}`)
}

function operationField(name: string, schema: Schema): [string, FieldSchema] {
  return [name, { name, schema, required: false, pointer: false, omitEmpty: false }]
}

const TEXT: Schema = { type: 'string', goType: 'string' }

/** The operations of a JSON patch as upstream's server declares them. */
const OPERATIONS: ListSchema = {
  type: 'list',
  pointerItems: false,
  goType: '[]handlers.jsonPatchOp',
  items: {
    type: 'struct',
    goType: 'handlers.jsonPatchOp',
    fields: new Map([
      operationField('op', TEXT),
      operationField('path', TEXT),
      operationField('from', TEXT),
      operationField('value', { type: 'any', goType: 'json' }),
    ]),
    mapType: 'granular',
    preserveUnknown: false,
  },
}

/** What was repeated inside of a value, which is not looked into. */
const INSIDE_VALUE = /^\[\d+\]\.value[.[]/

function judgeOperations(value: unknown, duplicates: readonly JsonDuplicate[]): string[] {
  const offences: string[] = []
  // Decoding takes over what it is given; the values of operations it only passes on.
  const copy = Array.isArray(value)
    ? value.map((operation) => (isMap(operation) ? { ...operation } : operation))
    : value
  try {
    decodeValue(OPERATIONS, copy, 'Warn', { duplicates, offences })
  } catch (cause) {
    if (!(cause instanceof CodecError)) throw cause
    throw badRequestError(`error decoding patch: ${cause.message}`)
  }
  const inside = duplicates.filter(({ path }) => INSIDE_VALUE.test(path))
  return [...offences, ...inside.map(({ path }) => `duplicate field ${goQuote(path)}`)].map(
    (one) => `json patch ${one}`,
  )
}
