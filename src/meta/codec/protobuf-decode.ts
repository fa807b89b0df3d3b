/**
 * Decodes protobuf to canonical objects. Each struct is compiled once into a function per field number. Fields get Go's
 * declaration order.
 */
import { JsonError, type JsonObject, setMember } from '#lib/json/value.ts'
import { ProtobufError, WIRE, WireReader } from '#lib/protobuf/wire.ts'

import type { FieldSchema, ListSchema, MapSchema, ProtobufMessage, Schema, StructSchema } from '../schema.ts'
import { goTypeOf, isAlwaysWritten, stepFor } from './decode.ts'
import { CodecError, DEFAULT_MAX_STRUCTS, MAX_NESTING, tooDeep, tooManyParts } from './error.ts'
import { goFieldName, unqualified } from './go-names.ts'
import { buildSmallMessage, type PlainType, smallMessages, type SmallMessageType } from './protobuf-special.ts'
import { readText } from './protobuf-text.ts'
import { sortMembers } from './untyped.ts'

/**
 * The canonical object in `bytes`. Throws CodecError with upstream's text for any invalid bytes. `maxMessages` limits
 * the number of messages.
 */
export function decodeMessage(
  schema: StructSchema,
  bytes: Buffer,
  maxMessages: number = DEFAULT_MAX_STRUCTS,
): JsonObject {
  const reader = new WireReader(bytes)
  try {
    return structReader(schema)({ reader, depth: 0, left: maxMessages })
  } catch (cause) {
    throw explain(cause)
  }
}

/** In the words of upstream's generated code. */
export function explain(cause: unknown): unknown {
  if (cause instanceof JsonError) return new CodecError('syntax', cause.message, { cause })
  if (cause instanceof RangeError) return tooDeep(cause)
  if (!(cause instanceof ProtobufError)) return cause
  const overflow = cause.message.includes('64 bits')
  return new CodecError('syntax', overflow ? 'proto: integer overflow' : 'unexpected EOF', { cause })
}

interface Source {
  readonly reader: WireReader
  depth: number
  /** The remaining number of messages. */
  left: number
}

/** Decodes the value of one field to its position. */
interface FieldReader {
  readonly goName: string
  readonly wireType: number
  /** Repeated numbers may be packed. */
  readonly packable: boolean
  readonly read: (source: Source, values: unknown[]) => void
}

interface MessagePlan {
  readonly goName: string
  readonly byNumber: readonly (FieldReader | undefined)[]
}

/** The target of a value: its name, and how it is completed. */
interface ValueTarget {
  readonly name: string
  readonly isMap: boolean
  readonly always: boolean
  readonly zero: () => unknown
}

interface StructPlan extends MessagePlan {
  readonly positions: readonly ValueTarget[]
  /** Empty values at every position, to copy. */
  readonly blank: readonly unknown[]
}

/** Reads the rest of the current message. */
type StructReader = (source: Source) => JsonObject

const structs = new WeakMap<StructSchema, StructReader>()

function structReader(schema: StructSchema): StructReader {
  let read = structs.get(schema)
  if (read === undefined) {
    // Planned on first use, because structs may be recursive.
    let plan: StructPlan | undefined
    read = (source) => readStruct(source, (plan ??= planStruct(schema)))
    structs.set(schema, read)
  }
  return read
}

function planStruct(schema: StructSchema): StructPlan {
  const fields = [...schema.fields.values()]
  const positions = new Map(fields.map((field, index) => [field.name, index]))
  return {
    ...planMessage(schema.protobuf ?? { fields: [] }, positions, unqualified(schema.goType)),
    blank: Array.from({ length: fields.length }),
    positions: fields.map((field) => ({
      name: field.name,
      isMap: field.schema.type === 'map',
      always: isAlwaysWritten(field),
      zero: field.pointer ? () => null : stepFor(field.schema).zero,
    })),
  }
}

function planMessage(message: ProtobufMessage, positions: ReadonlyMap<string, number>, goName: string): MessagePlan {
  const byNumber: (FieldReader | undefined)[] = []
  for (const { number, field, inline, repeated } of message.fields) {
    if (inline !== undefined) byNumber[number] = inlineField(planMessage(inline, positions, goName))
    else if (field !== undefined) byNumber[number] = planField(field, positions.get(field.name) ?? 0, repeated)
  }
  return { goName, byNumber: Array.from(byNumber) }
}

function inlineField(plan: MessagePlan): FieldReader {
  return {
    goName: plan.goName,
    wireType: WIRE.bytes,
    packable: false,
    read(source, values) {
      const outer = enter(source)
      readFields(source, plan, values)
      leave(source, outer)
    },
  }
}

function planField(field: FieldSchema, position: number, repeated: boolean): FieldReader {
  const { schema } = field
  const goName = goFieldName(field.name)
  if (schema.type === 'map') return { goName, wireType: WIRE.bytes, packable: false, read: mapField(schema, position) }
  if (schema.type === 'list' && repeated) {
    const { wireType, read } = valueReader(schema.items)
    const append: FieldReader['read'] = (source, values) => {
      const list = (values[position] ??= []) as unknown[]
      list.push(read(source))
    }
    return { goName, wireType, packable: wireType !== WIRE.bytes, read: append }
  }
  const { wireType, read } = valueReader(schema)
  const { isEmpty } = stepFor(schema)
  const keepZero = field.pointer || isAlwaysWritten(field)
  return {
    goName,
    wireType,
    packable: false,
    read(source, values) {
      const value = read(source)
      values[position] = keepZero || !isEmpty(value) ? value : undefined
    },
  }
}

function mapField({ values: schema }: MapSchema, position: number): FieldReader['read'] {
  const { wireType, read } = valueReader(schema)
  // A missing byte slice in an entry is empty, not nil.
  const missing = schema.type === 'bytes' ? (): string => '' : stepFor(schema).zero
  const key: FieldReader['read'] = ({ reader }, pair) => (pair[0] = readText(reader))
  const value: FieldReader['read'] = (source, pair) => (pair[1] = read(source))
  const plan: MessagePlan = {
    goName: 'Entry',
    byNumber: [
      undefined,
      { goName: 'Key', wireType: WIRE.bytes, packable: false, read: key },
      { goName: 'Value', wireType, packable: false, read: value },
    ],
  }
  return (source, values) => {
    const map = (values[position] ??= {}) as JsonObject
    const pair: unknown[] = ['', undefined]
    const outer = enter(source)
    readFields(source, plan, pair)
    leave(source, outer)
    setMember(map, pair[0] as string, (pair[1] === undefined ? missing() : pair[1]) as JsonObject)
  }
}

function readStruct(source: Source, plan: StructPlan): JsonObject {
  const { positions } = plan
  const values = plan.blank.slice()
  readFields(source, plan, values)
  const object: JsonObject = {}
  for (let at = 0; at < positions.length; at++) {
    const { name, always, isMap, zero } = positions[at] as ValueTarget
    const value = values[at]
    if (value !== undefined) object[name] = (isMap ? sortMembers(value as JsonObject) : value) as JsonObject
    else if (always) object[name] = zero() as JsonObject
  }
  return object
}

function readFields(source: Source, plan: MessagePlan, values: unknown[]): void {
  const { reader } = source
  while (reader.at < reader.end) {
    const tag = reader.uint32()
    const wireType = tag & 7
    const field = plan.byNumber[tag >>> 3]
    if (field === undefined) skipUnknown(reader, tag, plan.goName)
    else if (wireType === field.wireType) field.read(source, values)
    else readOtherwise(source, field, { values, wireType, goName: plan.goName })
  }
}

interface Otherwise {
  readonly values: unknown[]
  readonly wireType: number
  readonly goName: string
}

/** A known field with another wire type. */
function readOtherwise(source: Source, field: FieldReader, { values, wireType, goName }: Otherwise): void {
  if (wireType === WIRE.groupEnd) throw malformed(`proto: ${goName}: wiretype end group for non-group`)
  if (!field.packable || wireType !== WIRE.bytes) {
    throw malformed(`proto: wrong wireType = ${wireType} for field ${field.goName}`)
  }
  const outer = enter(source)
  while (source.reader.at < source.reader.end) field.read(source, values)
  leave(source, outer)
}

function skipUnknown(reader: WireReader, tag: number, goName: string): void {
  const wireType = tag & 7
  if (wireType === WIRE.groupEnd) throw malformed(`proto: ${goName}: wiretype end group for non-group`)
  if (tag >>> 3 === 0) throw malformed(`proto: ${goName}: illegal tag 0 (wire type ${wireType})`)
  if (wireType > WIRE.fixed32) throw malformed(`proto: illegal wireType ${wireType}`)
  reader.skip(tag)
}

function enter(source: Source): number {
  const { reader } = source
  const length = reader.uint32()
  const outer = reader.end
  if (length > outer - reader.at) throw malformed('unexpected EOF')
  if (--source.left < 0) throw tooManyParts()
  if (++source.depth > MAX_NESTING) throw tooDeep()
  reader.end = reader.at + length
  return outer
}

function leave(source: Source, outer: number): void {
  source.reader.at = source.reader.end
  source.reader.end = outer
  source.depth--
}

function malformed(message: string): CodecError {
  return new CodecError('syntax', message)
}

/** Reads one value, with its length if it has one. */
interface ValueReader {
  readonly wireType: number
  readonly read: (source: Source) => unknown
}

const plainReaders: Readonly<Record<PlainType, ValueReader>> = {
  string: { wireType: WIRE.bytes, read: ({ reader }) => readText(reader) },
  bytes: { wireType: WIRE.bytes, read: ({ reader }) => reader.view().toString('base64') },
  boolean: { wireType: WIRE.varint, read: ({ reader }) => reader.bool() },
  int32: { wireType: WIRE.varint, read: ({ reader }) => reader.int32() },
  int64: { wireType: WIRE.varint, read: ({ reader }) => reader.int64() },
  float64: { wireType: WIRE.fixed64, read: ({ reader }) => reader.double() },
}

function valueReader(schema: Schema): ValueReader {
  switch (schema.type) {
    case 'struct':
      return nested(structReader(schema))
    case 'list':
      return wrappedList(schema)
    case 'map':
      throw new Error('Protobuf has no maps of maps')
    case 'any':
      return schema.alternatives === undefined ? smallMessage('any') : alternatives(schema.alternatives)
    case 'quantity':
    case 'time':
    case 'microtime':
    case 'duration':
    case 'int-or-string':
      return smallMessage(schema.type)
    default:
      return plainReaders[schema.type]
  }
}

function nested(read: (source: Source) => unknown): ValueReader {
  return {
    wireType: WIRE.bytes,
    read(source) {
      const outer = enter(source)
      const value = read(source)
      leave(source, outer)
      return value
    },
  }
}

/** Types that are text in JSON and a message of scalars in protobuf. */
function smallMessage(type: SmallMessageType): ValueReader {
  const { goName, fields } = smallMessages[type]
  const byNumber = fields.map(([name, scalar], position): FieldReader => {
    const { wireType, read } = plainReaders[scalar]
    return { goName: name, wireType, packable: false, read: (source, values) => (values[position] = read(source)) }
  })
  const plan: MessagePlan = { goName, byNumber: [undefined, ...byNumber] }
  return nested((source) => {
    const values: unknown[] = []
    readFields(source, plan, values)
    return buildSmallMessage(type, values)
  })
}

function wrappedList(schema: ListSchema): ValueReader {
  const { wireType, read } = valueReader(schema.items)
  const append: FieldReader['read'] = (source, values) => values.push(read(source))
  const items: FieldReader = { goName: 'Items', wireType, packable: wireType !== WIRE.bytes, read: append }
  const plan: MessagePlan = { goName: unqualified(goTypeOf(schema)), byNumber: [undefined, items] }
  return nested((source) => {
    const values: unknown[] = []
    readFields(source, plan, values)
    return values
  })
}

/** The present alternative: items before a struct before a boolean. */
function alternatives(schema: StructSchema): ValueReader {
  const read = structReader(schema)
  const fields = [...schema.fields.values()]
  const nameOf = (type: Schema['type']): string => fields.find((field) => field.schema.type === type)?.name ?? ''
  const [list, struct, boolean] = [nameOf('list'), nameOf('struct'), nameOf('boolean')]
  return nested((source) => {
    const message = read(source)
    return message[list] ?? message[struct] ?? (boolean === '' ? null : message[boolean] === true)
  })
}
