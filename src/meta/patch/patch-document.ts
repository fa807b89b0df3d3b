/** Parses a patch and checks its shape. Duplicate and unknown fields are reported with upstream's texts. */
import { goQuote } from '#lib/go/text.ts'
import { parseJsonInSteps } from '#lib/json/json.ts'
import { type JsonDuplicate, JsonError } from '#lib/json/value.ts'
import type { Steps } from '#lib/time-slicing.ts'

import { goWord } from '../codec/decode-state.ts'
import { decodeValue, type FieldValidation } from '../codec/decode.ts'
import { CodecError } from '../codec/error.ts'
import type { PatchType } from '../codec/negotiate.ts'
import type { FieldSchema, ListSchema, Schema } from '../schema.ts'
import { badRequestError, requestEntityTooLargeError } from '../status-errors.ts'
import { isMap, type JsonMap } from './json-map.ts'

export interface PatchDocument {
  readonly type: PatchType
  readonly value: unknown
  /** Reported under Warn and rejected under Strict; empty under Ignore. */
  readonly offences: readonly string[]
}

/** Throws StatusError for an invalid patch of this type. Without validation upstream uses another parser. */
export function* readPatchDocument(body: Buffer, type: PatchType, validation: FieldValidation): Steps<PatchDocument> {
  const duplicates: JsonDuplicate[] = []
  const isValidated = validation !== 'Ignore'
  const words = isValidated ? VALIDATED[type] : UNVALIDATED[type]
  const value = yield* parsePatch(body, duplicates, words)
  if (type === 'application/json-patch+json') {
    if (!isValidated) requireOperations(value)
    return { type, value, offences: isValidated ? validateOperations(value, duplicates) : [] }
  }
  const repeated = isValidated ? duplicates.map(({ path }) => `duplicate field ${goQuote(path)}`) : []
  return { type, value: requireMap(value, type, words), offences: repeated }
}

/** The rejection of an unreadable patch. */
type ErrorText = (why: string) => string

const plain: ErrorText = (why) => why
const prefixed: ErrorText = (why) => `error decoding patch: ${why}`
const VALIDATED: Readonly<Record<PatchType, ErrorText>> = {
  'application/json-patch+json': prefixed,
  'application/merge-patch+json': prefixed,
  'application/strategic-merge-patch+json': plain,
  'application/apply-patch+yaml': plain,
}
const NO_MERGE_PATCH = 'Invalid JSON Patch'
const UNVALIDATED: Readonly<Record<PatchType, ErrorText>> = {
  ...VALIDATED,
  'application/json-patch+json': plain,
  'application/merge-patch+json': () => NO_MERGE_PATCH,
}

function* parsePatch(body: Buffer, duplicates: JsonDuplicate[], words: ErrorText): Steps<unknown> {
  try {
    return yield* parseJsonInSteps(body, { duplicates })
  } catch (cause) {
    if (!(cause instanceof JsonError)) throw cause
    if (cause.code === 'limit') throw requestEntityTooLargeError(cause.message)
    throw badRequestError(words(cause.message))
  }
}

/** Null is an empty strategic patch, but no valid merge patch. */
function requireMap(value: unknown, type: PatchType, words: ErrorText): JsonMap {
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

/** The schema of JSON patch operations, as upstream's server declares it. */
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

/** Duplicates inside of a value, which is not decoded. */
const INSIDE_VALUE = /^\[\d+\]\.value[.[]/

function validateOperations(value: unknown, duplicates: readonly JsonDuplicate[]): string[] {
  const offences: string[] = []
  // Decoding takes over its input; the values of operations are only passed on.
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
