/**
 * A patch as it was sent, before it meets an object: read, of the shape its language asks for, with what in it is
 * repeated or unknown told in upstream's words. Apply configurations are YAML and read elsewhere.
 */
import { goQuote } from '#lib/go-text.ts'
import { type JsonDuplicate, JsonError } from '#lib/json-value.ts'
import { parseJson } from '#lib/json.ts'

import { goWord } from '../codec/decode-state.ts'
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

/** Throws StatusError for what is no patch of this type. Where nothing is judged, upstream uses another reader. */
export function readPatchDocument(body: Buffer, type: PatchType, validation: FieldValidation): PatchDocument {
  const duplicates: JsonDuplicate[] = []
  const isJudged = validation !== 'Ignore'
  const words = isJudged ? JUDGED[type] : UNJUDGED[type]
  const value = parsePatch(body, duplicates, words)
  if (type === 'application/json-patch+json') {
    if (!isJudged) requireOperations(value)
    return { type, value, offences: isJudged ? judgeOperations(value, duplicates) : [] }
  }
  const repeated = isJudged ? duplicates.map(({ path }) => `duplicate field ${goQuote(path)}`) : []
  return { type, value: requireMap(value, type, words), offences: repeated }
}

/** How a patch that cannot be read is refused. */
type Words = (why: string) => string

const plain: Words = (why) => why
const prefixed: Words = (why) => `error decoding patch: ${why}`
const JUDGED: Readonly<Record<PatchType, Words>> = {
  'application/json-patch+json': prefixed,
  'application/merge-patch+json': prefixed,
  'application/strategic-merge-patch+json': plain,
  'application/apply-patch+yaml': plain,
}
const NO_MERGE_PATCH = 'Invalid JSON Patch'
const UNJUDGED: Readonly<Record<PatchType, Words>> = {
  ...JUDGED,
  'application/json-patch+json': plain,
  'application/merge-patch+json': () => NO_MERGE_PATCH,
}

function parsePatch(body: Buffer, duplicates: JsonDuplicate[], words: Words): unknown {
  try {
    return parseJson(body, { duplicates })
  } catch (cause) {
    if (!(cause instanceof JsonError)) throw cause
    throw badRequestError(words(cause.message))
  }
}

/** Null is an empty strategic patch, and no merge patch at all. */
function requireMap(value: unknown, type: PatchType, words: Words): JsonMap {
  if (isMap(value)) return value
  if (value === null && type === 'application/strategic-merge-patch+json') return {}
  if (value === null) throw badRequestError(NO_MERGE_PATCH)
  throw badRequestError(
    words(`json: cannot unmarshal ${goWord(value, false)} into Go value of type map[string]interface {}`),
  )
}

function requireOperations(value: unknown): void {
  const refuse = (what: unknown, goType: string): Error =>
    badRequestError(`json: cannot unmarshal ${goWord(what, false)} into Go value of type jsonpatch.${goType}`)
  if (value !== null && !Array.isArray(value)) throw refuse(value, 'Patch')
  const wrong = (value ?? []).find((operation) => operation !== null && !isMap(operation))
  if (wrong !== undefined) throw refuse(wrong, 'Operation')
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
