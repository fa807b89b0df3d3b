/**
 * The objects in audit events: request and response bodies, each as one line of JSON. JSON responses are copied
 * unchanged; responses in another encoding are decoded first.
 */

import type { WholeAnswer } from '#component/requests/call.ts'
import { gvkOf } from '#component/requests/value-encoder.ts'
import { parseJson } from '#lib/json/json.ts'
import { DEFAULT_JSON_LIMITS } from '#lib/json/scan.ts'
import { escapeLikeGo, quoteJson } from '#lib/json/write.ts'
import { latin1 } from '#lib/latin1.ts'
import { parseYaml } from '#lib/yaml/yaml.ts'
import { decodeValue } from '#meta/codec/decode.ts'
import { encodeJson } from '#meta/codec/encode-json.ts'
import { decodeObject } from '#meta/codec/object.ts'
import type { GroupVersionKind } from '#meta/kind.ts'
import type { KubeObject } from '#meta/object.ts'
import type { StructSchema } from '#meta/schema.ts'
import type { Status } from '#meta/status.ts'

export type SchemaFor = (gvk: GroupVersionKind) => StructSchema | undefined

type JsonMap = Record<string, unknown>

/** Restores the order of fields, because defaulting appends fields at the end. */
export function canonical(object: KubeObject, schemaFor: SchemaFor): KubeObject {
  const schema = schemaFor(gvkOf(object))
  if (schema === undefined) return object
  const { kind, apiVersion } = object
  return { kind, apiVersion, ...(decodeValue(schema, object, 'Ignore', { offences: [] }) as KubeObject) } as KubeObject
}

/** The object of a request, in the form of events. */
export function objectText(object: object, omitManagedFields: boolean): string {
  return latin1(encodeJson(omitManagedFields ? withoutManagedFields(object) : object))
}

/**
 * A patch. JSON keeps its numbers and order; YAML becomes JSON; anything else is kept as a string. (Upstream loses the
 * whole event of a patch that is not JSON.)
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

/** Removes the whitespace between tokens and escapes as Go does. The text must be JSON. */
export function compactJson(text: string): string {
  return escapeLikeGo(text.replaceAll(/("(?:[^"\\]|\\.)*")|\s+/g, (_, literal?: string) => literal ?? ''))
}

/** The object of a response; undefined if it is not an object. */
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

/** No size limit, because this server produced the body. */
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

/** The Status of a response, if it is one. Reads only the beginning of other responses. */
export function answeredStatus(answer: WholeAnswer, schemaFor: SchemaFor): Status | undefined {
  if (!mayBeStatus(answer)) return undefined
  const text = answerText(answer, schemaFor)
  if (text === undefined || !text.startsWith(STATUS_START)) return undefined
  return JSON.parse(Buffer.from(text, 'latin1').toString('utf8')) as Status
}

/** The first bytes of a Status in protobuf: the magic number and an envelope with `v1` and `Status`. */
const STATUS_ENVELOPE = Buffer.from('k8s\0\n\f\n\x02v1\x12\x06Status', 'latin1')
/** A Status is small, so larger YAML responses are not parsed to find out. */
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

/** A text of `answerText` without managed fields: of the object, of list items and of table rows. */
export function textWithoutManagedFields(text: string): string {
  if (!text.includes('"managedFields"')) return text
  const object = parseJson(Buffer.from(text, 'latin1'), { limits: NO_LIMITS }) as unknown as JsonMap
  return latin1(encodeJson(withoutManagedFields(object)))
}

/** Copies only the parts that differ. */
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
