/**
 * The objects in audit events: what was sent and what was answered, as JSON of one line. Answers are mostly JSON already
 * and are taken as they are; other forms are read back, which only those pay for who want answers in their log.
 */

import { DEFAULT_JSON_LIMITS } from '#lib/json-scan.ts'
import { escapeLikeGo, quoteJson } from '#lib/json-write.ts'
import { parseJson } from '#lib/json.ts'
import { parseYaml } from '#lib/yaml.ts'
import { decodeValue } from '#meta/codec/decode.ts'
import { encodeJson } from '#meta/codec/encode-json.ts'
import { decodeObject } from '#meta/codec/object.ts'
import type { GroupVersionKind } from '#meta/kind.ts'
import type { KubeObject } from '#meta/object.ts'
import type { StructSchema } from '#meta/schema.ts'
import type { Status } from '#meta/status.ts'

import { gvkOf } from '../answers/representation.ts'
import type { WholeAnswer } from '../call.ts'
import { latin1 } from '../registry/latin1.ts'

export type SchemaFor = (gvk: GroupVersionKind) => StructSchema | undefined

type JsonMap = Record<string, unknown>

/** With the fields in their order, which defaults are added out of. */
export function canonical(object: KubeObject, schemaFor: SchemaFor): KubeObject {
  const schema = schemaFor(gvkOf(object))
  if (schema === undefined) return object
  const { kind, apiVersion } = object
  return { kind, apiVersion, ...(decodeValue(schema, object, 'Ignore', { offences: [] }) as KubeObject) } as KubeObject
}

/** An object as it is sent, in the form of events. */
export function objectText(object: object, omitManagedFields: boolean): string {
  return latin1(encodeJson(omitManagedFields ? withoutManagedFields(object) : object))
}

/**
 * A patch. JSON keeps its numbers and its order; YAML becomes JSON; what is neither is kept as a text. (Upstream loses
 * the whole event of a patch that is no JSON.)
 */
export function patchText(body: Buffer): string {
  const text = body.toString('utf8')
  try {
    parseJson(text)
    return latin1(compactJson(text))
  } catch {
    return latin1(readYaml(text) ?? quoteJson(text))
  }
}

function readYaml(text: string): string | undefined {
  try {
    return encodeJson(parseYaml(text))
  } catch {
    return undefined
  }
}

/** Without the space between tokens, escaped as Go does. The text must be JSON. */
export function compactJson(text: string): string {
  return escapeLikeGo(text.replaceAll(/("(?:[^"\\]|\\.)*")|\s+/g, (_, literal?: string) => literal ?? ''))
}

/** The object of an answer; undefined when it is none: text, a document, nothing. */
export function answerText({ body, contentType, headers }: WholeAnswer, schemaFor: SchemaFor): string | undefined {
  const mediaType = contentType.split(';', 1)[0] ?? ''
  const isCompressed = headers?.['Content-Encoding'] === 'gzip'
  const text = readAnswer(
    mediaType,
    isCompressed ? process.getBuiltinModule('node:zlib').gunzipSync(bytesOf(body)) : body,
    schemaFor,
  )
  return text?.startsWith('{"kind":') === true ? text : undefined
}

/** What we made ourselves may be as large as it is. */
const NO_LIMITS = { ...DEFAULT_JSON_LIMITS, maxWeight: Infinity }

function readAnswer(mediaType: string, body: WholeAnswer['body'], schemaFor: SchemaFor): string | undefined {
  switch (mediaType) {
    case 'application/json': {
      const text = typeof body === 'string' ? body : bytesOf(body).toString('latin1')
      return text.startsWith('{"kind":') ? text.trimEnd() : isIndented(text) ? compactJson(text) : undefined
    }
    case 'application/yaml': {
      const { kind, apiVersion, ...rest } = parseYaml(bytesOf(body)) as JsonMap
      return latin1(encodeJson({ kind, apiVersion, ...rest }))
    }
    case 'application/vnd.kubernetes.protobuf':
      return latin1(encodeJson(decodeObject(bytesOf(body), mediaType, { schemaFor, limits: NO_LIMITS }).object))
    default:
      return undefined
  }
}

const INDENTED_START = '{\n  "kind":'

function isIndented(text: string): boolean {
  return text.startsWith(INDENTED_START)
}

function bytesOf(body: WholeAnswer['body']): Buffer {
  if (typeof body === 'string') return Buffer.from(body, 'latin1')
  return Buffer.isBuffer(body) ? body : Buffer.concat([...body])
}

const STATUS_START = '{"kind":"Status","apiVersion":"v1"'

/** The Status an answer is, if it is one. Looks at no more of other answers than their beginning. */
export function answeredStatus(answer: WholeAnswer, schemaFor: SchemaFor): Status | undefined {
  if (!mayBeStatus(answer)) return undefined
  const text = answerText(answer, schemaFor)
  if (text === undefined || !text.startsWith(STATUS_START)) return undefined
  return JSON.parse(Buffer.from(text, 'latin1').toString('utf8')) as Status
}

/** How a Status starts in protobuf: the magic number, and an envelope that says `v1` and `Status`. */
const STATUS_ENVELOPE = Buffer.from('k8s\0\n\f\n\x02v1\x12\x06Status', 'latin1')
/** A Status is small; a larger answer in YAML is not worth reading to find out. */
const MAX_YAML_STATUS = 64 << 10

function mayBeStatus({ body, contentType }: WholeAnswer): boolean {
  if (typeof body !== 'string' && !Buffer.isBuffer(body)) return false
  const starts = (start: string): boolean =>
    typeof body === 'string' ? body.startsWith(start) : body.subarray(0, start.length).toString('latin1') === start
  if (contentType.startsWith('application/json')) {
    return starts(STATUS_START) || starts(`${INDENTED_START} "Status"`)
  }
  if (contentType.startsWith('application/yaml')) return body.length <= MAX_YAML_STATUS
  return starts(STATUS_ENVELOPE.toString('latin1'))
}

/** A text as `answerText` gives it, without managed fields: of the object, of the items of a list, of a table's rows. */
export function textWithoutManagedFields(text: string): string {
  if (!text.includes('"managedFields"')) return text
  const object = parseJson(Buffer.from(text, 'latin1'), { limits: NO_LIMITS }) as unknown as JsonMap
  return latin1(encodeJson(withoutManagedFields(object)))
}

/** A copy as far as it differs. */
function withoutManagedFields(object: object): object {
  const { metadata, items, rows } = object as JsonMap
  return {
    ...object,
    ...(isMap(metadata) && { metadata: stripped(metadata) }),
    ...(Array.isArray(items) && { items: items.map(strip) }),
    ...(Array.isArray(rows) && { rows: rows.map((row: unknown) => (isMap(row) ? stripRow(row) : row)) }),
  }
}

function stripRow(row: JsonMap): JsonMap {
  return isMap(row['object']) ? { ...row, object: strip(row['object']) } : row
}

function strip(value: unknown): unknown {
  return isMap(value) && isMap(value['metadata']) ? { ...value, metadata: stripped(value['metadata']) } : value
}

function stripped(metadata: JsonMap): JsonMap {
  const { managedFields: _fields, ...rest } = metadata
  return rest
}

function isMap(value: unknown): value is JsonMap {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
}
