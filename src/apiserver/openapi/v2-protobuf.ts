/**
 * Encodes OpenAPI v2 in gnostic's protobuf messages, which client-go, Helm and older kubectls request. Keys that the
 * message table lacks become vendor extensions.
 */
import { WireWriter } from '#lib/protobuf/wire.ts'
import { shouldYield, type Steps } from '#lib/time-slicing.ts'
import { stringifyYaml } from '#lib/yaml/yaml.ts'

type Json = unknown
type JsonMap = Readonly<Record<string, Json>>

/** The encoding of a key's value. */
type Form =
  | 'string'
  | 'bool'
  | 'strings'
  /** As YAML text in a separate message. */
  | 'any'
  | 'anys'
  | { readonly message: () => Message }
  | { readonly list: () => Message }
  /** An object with arbitrary keys: a wrapper with one named value each. */
  | { readonly named: () => Message }

interface Message {
  readonly fields: Readonly<Record<string, readonly [number: number, form: Form]>>
  /** The field for keys that start with `x-`. */
  readonly extensions?: number
  /** The message is a oneof: the number of the matching form. */
  readonly wrapIn?: readonly number[]
}

const LENGTH_DELIMITED = 2
const VARINT = 0

const schema: Message = {
  extensions: 31,
  fields: {
    $ref: [1, 'string'],
    format: [2, 'string'],
    description: [4, 'string'],
    default: [5, 'any'],
    required: [19, 'strings'],
    enum: [20, 'anys'],
    additionalProperties: [21, { message: () => ({ ...schema, wrapIn: [1] }) }],
    type: [22, { message: () => typeItem }],
    items: [23, { message: () => ({ ...schema, wrapIn: [1] }) }],
    properties: [25, { named: () => schema }],
  },
}
const typeItem: Message = { fields: { value: [1, 'string'] } }

const bodyParameter: Message = {
  wrapIn: [1, 1],
  fields: {
    description: [1, 'string'],
    name: [2, 'string'],
    in: [3, 'string'],
    required: [4, 'bool'],
    schema: [5, { message: () => schema }],
  },
}
const queryParameter: Message = {
  wrapIn: [1, 2, 3],
  fields: {
    required: [1, 'bool'],
    in: [2, 'string'],
    description: [3, 'string'],
    name: [4, 'string'],
    type: [6, 'string'],
    format: [7, 'string'],
    uniqueItems: [20, 'bool'],
  },
}
const pathParameter: Message = {
  wrapIn: [1, 2, 4],
  fields: {
    required: [1, 'bool'],
    in: [2, 'string'],
    description: [3, 'string'],
    name: [4, 'string'],
    type: [5, 'string'],
    format: [6, 'string'],
    uniqueItems: [19, 'bool'],
  },
}
const response: Message = {
  wrapIn: [1],
  fields: { description: [1, 'string'], schema: [2, { message: () => ({ ...schema, wrapIn: [1] }) }] },
}
const operation: Message = {
  extensions: 13,
  fields: {
    tags: [1, 'strings'],
    description: [3, 'string'],
    operationId: [5, 'string'],
    produces: [6, 'strings'],
    consumes: [7, 'strings'],
    parameters: [8, { list: () => queryParameter }],
    responses: [9, { named: () => response }],
    schemes: [10, 'strings'],
  },
}
const pathItem: Message = {
  extensions: 10,
  fields: {
    get: [2, { message: () => operation }],
    put: [3, { message: () => operation }],
    post: [4, { message: () => operation }],
    delete: [5, { message: () => operation }],
    options: [6, { message: () => operation }],
    head: [7, { message: () => operation }],
    patch: [8, { message: () => operation }],
    parameters: [9, { list: () => queryParameter }],
  },
}
const info: Message = { fields: { title: [1, 'string'], version: [2, 'string'] } }
const security: Message = {
  wrapIn: [2],
  fields: { type: [1, 'string'], name: [2, 'string'], in: [3, 'string'], description: [4, 'string'] },
}
const document: Message = {
  fields: {
    swagger: [1, 'string'],
    info: [2, { message: () => info }],
    paths: [8, { named: () => pathItem }],
    definitions: [9, { named: () => schema }],
    securityDefinitions: [13, { named: () => security }],
  },
}

/** The document as protobuf, path by path and definition by definition. */
export function* encodeOpenApiV2(swagger: JsonMap): Steps<Buffer> {
  const writer = new WireWriter()
  for (const [key, part] of Object.entries(swagger).toReversed()) {
    const [number, form] = Object.hasOwn(document.fields, key) ? (document.fields[key] ?? []) : []
    if (number === undefined || form === undefined) continue
    if (typeof form !== 'object' || !('named' in form)) {
      writeForm(writer, number, form, part)
      continue
    }
    const mark = writer.length
    for (const [name, value] of Object.entries(part as JsonMap).toReversed()) {
      if (shouldYield() || key === 'definitions') yield
      writeNamedValues(writer, form.named(), { [name]: value })
    }
    writer.lengthSince(mark)
    writer.tag(number, LENGTH_DELIMITED)
  }
  return writer.finish()
}

/** The writer works backwards, so that lengths are known: the last field is written first. */
function writeFields(writer: WireWriter, { fields, extensions }: Message, value: JsonMap): void {
  for (const [key, part] of Object.entries(value).toReversed()) {
    if (Object.hasOwn(fields, key)) {
      const [number, form] = fields[key] as readonly [number, Form]
      writeForm(writer, number, form, part)
    } else if (extensions !== undefined && key.startsWith('x-')) {
      writeNested(writer, extensions, () => writeNamed(writer, key, () => writeAny(writer, part)))
    }
  }
}

function writeForm(writer: WireWriter, number: number, form: Form, value: Json): void {
  if (form === 'string') return writeString(writer, number, value as string)
  if (form === 'bool') {
    writer.bool(value as boolean)
    return writer.tag(number, VARINT)
  }
  if (form === 'strings') return (value as string[]).toReversed().forEach((text) => writeString(writer, number, text))
  if (form === 'any') return writeNested(writer, number, () => writeAny(writer, value))
  if (form === 'anys') {
    return (value as Json[]).toReversed().forEach((item) => writeNested(writer, number, () => writeAny(writer, item)))
  }
  if ('list' in form)
    return (value as JsonMap[]).toReversed().forEach((item) => writeMessage(writer, number, form.list(), item))
  if ('message' in form)
    return writeMessage(writer, number, form.message(), typeof value === 'string' ? { value } : (value as JsonMap))
  writeNested(writer, number, () => writeNamedValues(writer, form.named(), value as JsonMap))
}

/** Paths keep their entries in field 2 and extensions in field 1; all other wrappers have entries in field 1. */
function writeNamedValues(writer: WireWriter, message: Message, values: JsonMap): void {
  const entry = message === pathItem ? 2 : 1
  for (const [name, value] of Object.entries(values).toReversed()) {
    writeNested(writer, entry, () => writeNamed(writer, name, () => writeWrapped(writer, message, value as JsonMap)))
  }
}

function writeNamed(writer: WireWriter, name: string, writeValue: () => void): void {
  writeNested(writer, 2, writeValue)
  writeString(writer, 1, name)
}

function writeMessage(writer: WireWriter, number: number, message: Message, value: JsonMap): void {
  writeNested(writer, number, () => writeWrapped(writer, message, value))
}

/** Parameters come in three forms, which differ in their wrappers and numbers. */
function writeWrapped(writer: WireWriter, message: Message, value: JsonMap): void {
  const actual = message === queryParameter ? parameterForm(value) : message
  const wrap = (depth: number): void => {
    const number = actual.wrapIn?.[depth]
    if (number === undefined) writeFields(writer, actual, value)
    else writeNested(writer, number, () => wrap(depth + 1))
  }
  wrap(0)
}

function parameterForm({ in: place }: JsonMap): Message {
  return place === 'body' ? bodyParameter : place === 'path' ? pathParameter : queryParameter
}

function writeAny(writer: WireWriter, value: Json): void {
  writeString(writer, 2, stringifyYaml(value))
}

function writeString(writer: WireWriter, number: number, text: string): void {
  writer.string(text)
  writer.tag(number, LENGTH_DELIMITED)
}

function writeNested(writer: WireWriter, number: number, write: () => void): void {
  const mark = writer.length
  write()
  writer.lengthSince(mark)
  writer.tag(number, LENGTH_DELIMITED)
}
