/**
 * Encodes canonical objects like upstream's generated code: fields by ascending number, pointers only if set, maps
 * sorted. Each message is compiled once into a function per field.
 */
import { Buffer } from 'node:buffer'

import { parseDuration } from '#lib/go/duration.ts'
import { compareText } from '#lib/go/text.ts'
import { WIRE, type WireWriter } from '#lib/protobuf/wire.ts'

import type { AnySchema, FieldSchema, MapSchema, ProtobufField, ProtobufMessage, Schema } from '../schema.ts'
import { encodeJson } from './encode-json.ts'

type CanonicalObject = Readonly<Record<string, unknown>>

/** Writes the fields of an object, without length and tag. */
export type MessageWriter = (writer: WireWriter, object: CanonicalObject) => void

/** Writes one value with its length if it has one, without tag. Null and undefined are zero. */
interface ValueWriter {
  readonly wireType: number
  readonly write: (writer: WireWriter, value: unknown) => void
}

const messages = new WeakMap<ProtobufMessage, MessageWriter>()

export function messageWriterFor(message: ProtobufMessage): MessageWriter {
  let write = messages.get(message)
  if (write === undefined) {
    write = compileMessage(message)
    messages.set(message, write)
  }
  return write
}

function compileMessage(message: ProtobufMessage): MessageWriter {
  // Compiled on first use, because messages may be recursive.
  let compiled: readonly MessageWriter[] | undefined
  return (writer, object) => {
    compiled ??= message.fields.toSorted((a, b) => b.number - a.number).map(compileField)
    for (const write of compiled) write(writer, object)
  }
}

function compileField({ number, repeated, field, inline }: ProtobufField): MessageWriter {
  if (inline !== undefined) {
    const write = messageWriterFor(inline)
    return (writer, object) => {
      const mark = writer.length
      write(writer, object)
      writer.lengthSince(mark)
      writer.tag(number, WIRE.bytes)
    }
  }
  if (field === undefined) return () => {}
  const { name, schema } = field
  if (schema.type === 'map') return mapField(number, name, schema)
  if (schema.type === 'list' && repeated) return repeatedField(number, name, valueWriter(schema.items))
  const { wireType, write } = valueWriter(schema)
  if (!isOptional(field)) {
    return (writer, object) => {
      write(writer, object[name])
      writer.tag(number, wireType)
    }
  }
  return (writer, object) => {
    const value = object[name]
    if (value === undefined || value === null) return
    write(writer, value)
    writer.tag(number, wireType)
  }
}

/** Pointers, byte slices and lists with a message type may be nil. */
function isOptional({ pointer, schema }: FieldSchema): boolean {
  return pointer || schema.type === 'bytes' || schema.type === 'list'
}

function repeatedField(number: number, name: string, { wireType, write }: ValueWriter): MessageWriter {
  return (writer, object) => {
    const list = object[name]
    if (!Array.isArray(list)) return
    for (let at = list.length - 1; at >= 0; at--) {
      write(writer, list[at])
      writer.tag(number, wireType)
    }
  }
}

function mapField(number: number, name: string, { values }: MapSchema): MessageWriter {
  const { wireType, write } = valueWriter(values)
  const hasNil = values.type === 'bytes'
  return (writer, object) => {
    const map = object[name] as CanonicalObject | null | undefined
    if (map === undefined || map === null) return
    const keys = Object.keys(map)
    // Only these can be unsorted in a canonical object.
    if (/^\d/.test(keys[0] ?? '')) keys.sort(compareText)
    for (let at = keys.length - 1; at >= 0; at--) {
      const key = keys[at] as string
      const value = map[key]
      const mark = writer.length
      if (value !== null || !hasNil) {
        write(writer, value)
        writer.tag(2, wireType)
      }
      writer.string(key)
      writer.tag(1, WIRE.bytes)
      writer.lengthSince(mark)
      writer.tag(number, WIRE.bytes)
    }
  }
}

const scalarWriters = {
  string: bytesWriter((writer, value) => writer.string(typeof value === 'string' ? value : '')),
  bytes: bytesWriter((writer, value) => writer.view(Buffer.from(typeof value === 'string' ? value : '', 'base64'))),
  boolean: { wireType: WIRE.varint, write: (writer, value) => writer.bool(value === true) },
  int32: { wireType: WIRE.varint, write: (writer, value) => writer.int32(typeof value === 'number' ? value : 0) },
  int64: { wireType: WIRE.varint, write: (writer, value) => writer.int64((value ?? 0) as number | bigint) },
  float64: { wireType: WIRE.fixed64, write: (writer, value) => writer.double(typeof value === 'number' ? value : 0) },
  quantity: messageWriter((writer, value) => {
    writer.string(typeof value === 'string' ? value : '0')
    writer.tag(1, WIRE.bytes)
  }),
  time: messageWriter((writer, value) => writeTime(writer, value, false)),
  microtime: messageWriter((writer, value) => writeTime(writer, value, true)),
  duration: messageWriter((writer, value) => {
    writer.int64(typeof value === 'string' ? parseDuration(value) : 0)
    writer.tag(1, WIRE.varint)
  }),
  'int-or-string': messageWriter((writer, value) => {
    const isText = typeof value === 'string'
    writer.string(isText ? value : '')
    writer.tag(3, WIRE.bytes)
    writer.int32(typeof value === 'number' ? value : 0)
    writer.tag(2, WIRE.varint)
    writer.int64(isText ? 1 : 0)
    writer.tag(1, WIRE.varint)
  }),
} satisfies Record<string, ValueWriter>

function valueWriter(schema: Schema): ValueWriter {
  switch (schema.type) {
    case 'struct': {
      const { protobuf } = schema
      if (protobuf === undefined) return bytesWriter((writer) => writer.uint32(0))
      const write = messageWriterFor(protobuf)
      return messageWriter((writer, value) => write(writer, (value ?? {}) as CanonicalObject))
    }
    case 'list': {
      const write = repeatedField(1, 'items', valueWriter(schema.items))
      return messageWriter((writer, value) => write(writer, { items: value }))
    }
    case 'map':
      throw new Error('Protobuf has no maps of maps')
    case 'any':
      return schema.alternatives === undefined ? rawWriter : alternativesWriter(schema)
    default:
      return scalarWriters[schema.type]
  }
}

const rawWriter = messageWriter((writer, value) => {
  if (value === null || value === undefined) return
  writer.string(encodeJson(value))
  writer.tag(1, WIRE.bytes)
})

/** The value is in the field of its type; in a union with a boolean, other values imply true. */
function alternativesWriter({ alternatives }: AnySchema): ValueWriter {
  const fields = [...(alternatives?.fields.values() ?? [])]
  const write = alternatives?.protobuf === undefined ? () => {} : messageWriterFor(alternatives.protobuf)
  const names = new Map(fields.map(({ name, schema }) => [schema.type, name]))
  return messageWriter((writer, value) => {
    const message: Record<string, unknown> = {}
    const put = (type: Schema['type'], content: unknown): void => {
      const name = names.get(type)
      if (name !== undefined) message[name] = content
    }
    put('boolean', value === true || (typeof value === 'object' && value !== null))
    if (Array.isArray(value)) put('list', value)
    else if (typeof value === 'object') put('struct', value)
    write(writer, message)
  })
}

function bytesWriter(write: ValueWriter['write']): ValueWriter {
  return { wireType: WIRE.bytes, write }
}

function messageWriter(write: ValueWriter['write']): ValueWriter {
  return bytesWriter((writer, value) => {
    const mark = writer.length
    write(writer, value)
    writer.lengthSince(mark)
  })
}

/** A zero time is an empty message. Times have whole seconds, but their nanoseconds are written. */
function writeTime(writer: WireWriter, value: unknown, isMicro: boolean): void {
  if (typeof value !== 'string') return
  writer.int32(isMicro ? Number(value.slice(20, 26)) * 1000 : 0)
  writer.tag(2, WIRE.varint)
  writer.int64(Math.floor(Date.parse(value) / 1000))
  writer.tag(1, WIRE.varint)
}
