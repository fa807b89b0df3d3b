/**
 * The response formats that clients can request. For each: the request headers, the decoder, and the expected content,
 * derived from the plain JSON response without code of the server.
 */
import assert from 'node:assert/strict'

import { schemaFor } from '#apis/schemas.ts'
import type { JsonObject } from '#lib/json/value.ts'
import { parseYaml, stringifyYaml } from '#lib/yaml/yaml.ts'
import { decodeObject } from '#meta/codec/object.ts'
import { decodeWatchEvent, partialList, partialObject, splitFrames } from '#meta/codec/partial.ts'
import { encodeProtobuf } from '#meta/codec/protobuf.ts'
import { parseApiVersion } from '#meta/kind.ts'

import { type Json, PROTOBUF } from '../wire/server.ts'

/** The kind of a successful response. */
export type Endpoint = 'object' | 'list' | 'watch'

export interface Event {
  readonly type: string
  readonly object: Json
}

type Media = 'application/json' | 'application/yaml' | typeof PROTOBUF

/** Another kind that an answer is turned into. */
interface Target {
  readonly kind: 'Table' | 'Partial' | 'the wrong Partial'
  readonly version: 'v1' | 'v1beta1'
  readonly omitsManagedFields?: boolean
}

export interface Form {
  readonly name: string
  readonly media: Media
  readonly as?: Target
  readonly pretty?: boolean
}

export const JSON_FORM: Form = { name: 'JSON', media: 'application/json' }

const WITHOUT_MANAGED_FIELDS = { version: 'v1', omitsManagedFields: true } as const

/** Every form but plain JSON, which is what they are held against. */
export const FORMS: readonly Form[] = [
  { name: 'indented JSON', media: 'application/json', pretty: true },
  { name: 'YAML', media: 'application/yaml' },
  { name: 'protobuf', media: PROTOBUF },
  { name: 'a Table', media: 'application/json', as: { kind: 'Table', version: 'v1' } },
  { name: 'a Table of v1beta1', media: 'application/json', as: { kind: 'Table', version: 'v1beta1' } },
  { name: 'a Table in YAML', media: 'application/yaml', as: { kind: 'Table', version: 'v1' } },
  { name: 'metadata', media: 'application/json', as: { kind: 'Partial', version: 'v1' } },
  { name: 'metadata in YAML', media: 'application/yaml', as: { kind: 'Partial', version: 'v1' } },
  { name: 'metadata in protobuf', media: PROTOBUF, as: { kind: 'Partial', version: 'v1' } },
  { name: 'metadata of v1beta1 in protobuf', media: PROTOBUF, as: { kind: 'Partial', version: 'v1beta1' } },
  {
    name: 'a Table that omits managed fields',
    media: 'application/json',
    as: { kind: 'Table', ...WITHOUT_MANAGED_FIELDS },
  },
  {
    name: 'metadata that omits managed fields',
    media: 'application/json',
    as: { kind: 'Partial', ...WITHOUT_MANAGED_FIELDS },
  },
  {
    name: 'protobuf metadata that omits managed fields',
    media: PROTOBUF,
    as: { kind: 'Partial', ...WITHOUT_MANAGED_FIELDS },
  },
  { name: 'metadata of one as of many', media: PROTOBUF, as: { kind: 'the wrong Partial', version: 'v1' } },
]

/** As client-go and kubectl write it: what they want first, then what they take as well. */
export function acceptOf({ media, as }: Form, endpoint: Endpoint): string {
  if (as === undefined) return media === PROTOBUF ? `${PROTOBUF},application/json` : media
  const omit = as.omitsManagedFields === true ? ';omit=managedFields' : ''
  return `${media};as=${targetKind(as, endpoint)};v=${as.version};g=meta.k8s.io${omit},${media}`
}

function targetKind({ kind }: Target, endpoint: Endpoint): string {
  if (kind === 'Table') return kind
  // A watch sends objects, not lists.
  const isList = endpoint !== 'watch' && (endpoint === 'list') === (kind === 'Partial')
  return isList ? 'PartialObjectMetadataList' : 'PartialObjectMetadata'
}

/** A body as clients send it that ask for the form. */
export function encodeBody({ media }: Form, object: Json): string | Buffer {
  if (media === 'application/json') return JSON.stringify(object)
  if (media === 'application/yaml') return stringifyYaml(object as JsonObject)
  const gvk = { ...parseApiVersion(String(object.apiVersion)), kind: String(object.kind) }
  const schema = schemaFor(gvk)
  assert.ok(schema !== undefined, `${object.apiVersion} ${object.kind} has no protobuf form`)
  return encodeProtobuf(schema, gvk, object as JsonObject)
}

/** An answer that is one object, list, table or Status. */
export function decodeAnswer(form: Form, bytes: Buffer): Json {
  const { media, pretty = false } = form
  if (media === 'application/yaml') return parseYaml(bytes.toString())
  if (media === PROTOBUF) return fromProtobuf(bytes)
  const text = bytes.toString()
  const value: Json = JSON.parse(text)
  if (pretty) assert.equal(text, JSON.stringify(value, null, 2).replaceAll(/[<>&\u2028\u2029]/g, escape))
  return value
}

/** Protobuf cannot tell an empty list from none. */
function fromProtobuf(bytes: Buffer): Json {
  const object = decodeObject(bytes, PROTOBUF, { schemaFor }).object as Json
  return object.items === null ? { ...object, items: [] } : object
}

/** As Go does it, so that JSON can stand in HTML. */
function escape(character: string): string {
  return `\\u${character.charCodeAt(0).toString(16).padStart(4, '0')}`
}

/** The whole events at the start of what came so far. */
export function decodeEvents({ media }: Form, bytes: Buffer): Event[] {
  if (media === PROTOBUF) {
    return splitFrames(bytes, bytes.length).frames.map((frame) => {
      const { type, object } = decodeWatchEvent(frame)
      return { type, object: fromProtobuf(object) }
    })
  }
  const lines = bytes.toString().split('\n').slice(0, -1)
  return lines.map((line) => JSON.parse(line) as Event)
}

/** Derives the content in this form from plain JSON. A Status stays unchanged. */
export function expected({ as, media }: Form, json: Json): Json {
  if (json.kind === 'Status') return json
  if (as === undefined) return media === PROTOBUF ? withoutNestedTypes(json) : json
  const items = json.items as JsonObject[] | undefined
  if (as.kind !== 'Table' && items === undefined) return partialObject(json, as)
  // Lists with a Go type omit an empty continue token.
  const { continue: left, ...bare } = json.metadata
  const metadata = left === '' ? bare : json.metadata
  if (as.kind !== 'Table') {
    const list = partialList({ ...json, metadata }, as) as Json
    if (media === PROTOBUF) return withoutNestedTypes(list)
    return items?.length === 0 ? { ...list, items: null } : list
  }
  const { resourceVersion, continue: rest, remainingItemCount } = metadata
  return {
    kind: 'Table',
    apiVersion: `meta.k8s.io/${as.version}`,
    metadata: JSON.parse(JSON.stringify({ resourceVersion, continue: rest, remainingItemCount })),
    rows: (items ?? [json as JsonObject]).map((item) => partialObject(item, as)),
  }
}

/** Only the whole says in protobuf what it is, not the objects in it: items of lists, templates of claims. */
function withoutNestedTypes(whole: Json): Json {
  const isObject = (value: Json): boolean => value?.kind !== undefined && value.metadata !== undefined
  const { kind, apiVersion } = whole
  const rest: Json = JSON.parse(JSON.stringify(whole), (_key, value: Json) =>
    isObject(value) ? { ...value, kind: undefined, apiVersion: undefined } : value,
  )
  return JSON.parse(JSON.stringify({ ...rest, kind, apiVersion }))
}

/** An answer in the form, to be compared with `expected`: of a Table the objects in its rows. */
export function compared(answer: Json): Json {
  if (answer.kind !== 'Table') return answer
  const { columnDefinitions, rows, ...rest } = answer
  // A watch names its columns once.
  for (const { cells } of rows) assert.equal(cells.length, columnDefinitions?.length ?? cells.length)
  return { ...rest, rows: rows.map(({ object }: Json) => object) }
}
