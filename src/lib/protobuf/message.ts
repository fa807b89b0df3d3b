/**
 * Creates protobuf codecs from tables: `defineMessage({ key: [1, 'bytes'], kvs: [2, KeyValue, 'repeated'] })`. The
 * types of the values follow from the table, and the encoding from proto3.
 */
import type { Int64 } from './wire.ts'
import { ProtobufError, WIRE, WireReader, WireWriter } from './wire.ts'

interface Scalars {
  int32: number
  int64: Int64
  uint32: number
  uint64: Int64
  sint32: number
  sint64: Int64
  bool: boolean
  enum: number
  fixed32: number
  fixed64: Int64
  sfixed32: number
  sfixed64: Int64
  float: number
  double: number
  string: string
  /** Shares memory with what it was read from: copy it to keep it long. */
  bytes: Buffer
}

export type ScalarType = keyof Scalars

interface ScalarCodec {
  readonly wireType: number
  readonly zero: unknown
  read(reader: WireReader): unknown
  write(writer: WireWriter, value: never): void
}

const SCALARS: { readonly [K in ScalarType]: ScalarCodec } = {
  int32: { wireType: 0, zero: 0, read: (r) => r.int32(), write: (w, value: number) => w.int32(value) },
  int64: { wireType: 0, zero: 0, read: (r) => r.int64(), write: (w, value: Int64) => w.int64(value) },
  uint32: { wireType: 0, zero: 0, read: (r) => r.uint32(), write: (w, value: number) => w.uint32(value) },
  uint64: { wireType: 0, zero: 0, read: (r) => r.uint64(), write: (w, value: Int64) => w.uint64(value) },
  sint32: { wireType: 0, zero: 0, read: (r) => r.sint32(), write: (w, value: number) => w.sint32(value) },
  sint64: { wireType: 0, zero: 0, read: (r) => r.sint64(), write: (w, value: Int64) => w.sint64(value) },
  bool: { wireType: 0, zero: false, read: (r) => r.bool(), write: (w, value: boolean) => w.bool(value) },
  enum: { wireType: 0, zero: 0, read: (r) => r.int32(), write: (w, value: number) => w.int32(value) },
  fixed32: { wireType: 5, zero: 0, read: (r) => r.fixed32(), write: (w, value: number) => w.fixed32(value) },
  fixed64: { wireType: 1, zero: 0, read: (r) => r.fixed64(), write: (w, value: Int64) => w.fixed64(value) },
  sfixed32: { wireType: 5, zero: 0, read: (r) => r.sfixed32(), write: (w, value: number) => w.sfixed32(value) },
  sfixed64: { wireType: 1, zero: 0, read: (r) => r.sfixed64(), write: (w, value: Int64) => w.sfixed64(value) },
  float: { wireType: 5, zero: 0, read: (r) => r.float(), write: (w, value: number) => w.float(value) },
  double: { wireType: 1, zero: 0, read: (r) => r.double(), write: (w, value: number) => w.double(value) },
  string: { wireType: 2, zero: '', read: (r) => r.string(), write: (w, value: string) => w.string(value) },
  bytes: { wireType: 2, zero: Buffer.alloc(0), read: (r) => r.view(), write: (w, value: Uint8Array) => w.view(value) },
}

/** The part of a message codec that other codecs use: reading into, and writing from, an object of the right shape. */
export interface MessageCodec {
  /** A message with every field at its zero. */
  create(): object
  /** Reads fields into `target` until the reader is done; what is already there is merged, as protobuf demands. */
  read(reader: WireReader, target: object): void
  /** Writes the fields of `value`, backwards, without length or tag. */
  write(writer: WireWriter, value: object): void
}

/** A message type with values of type `T`. */
export interface Message<T> extends MessageCodec {
  /** Throws `ProtobufError` for values that do not fit their type. */
  encode(value: Input<T>): Buffer
  /** Throws nothing but `ProtobufError`. Byte fields share memory with `bytes`. */
  decode(bytes: Buffer): T
}

/** A writable message: any part may be left out. */
export type Input<T> = T extends Buffer
  ? Uint8Array
  : T extends ReadonlyMap<infer K, infer V>
    ? ReadonlyMap<K, Input<V>>
    : T extends readonly (infer E)[]
      ? readonly Input<E>[]
      : T extends object
        ? { readonly [K in keyof T]?: Input<T[K]> | undefined }
        : T

/** A function for a message that is defined further down, or that contains itself. */
type Element = ScalarType | MessageCodec | (() => MessageCodec)

interface MapType {
  readonly key: Exclude<ScalarType, 'bytes' | 'float' | 'double' | 'enum'>
  readonly value: Element
}

/**
 * Number, type, label. `repeated`: a list. `unpacked`: a list of numbers one by one, as proto2 writes them.
 * `optional`: a scalar that may be absent (also for members of a oneof). `{ key, value }` is a map.
 */
export type Field =
  | readonly [number: number, type: Element | MapType]
  | readonly [number: number, type: Element, label: 'repeated' | 'unpacked' | 'optional']

type ElementValue<E> = E extends ScalarType
  ? Scalars[E]
  : E extends { decode(bytes: Buffer): infer V }
    ? V
    : E extends () => { decode(bytes: Buffer): infer V }
      ? V
      : object

type FieldValue<F> = F extends readonly [number, infer E, 'repeated' | 'unpacked']
  ? ElementValue<E>[]
  : F extends readonly [number, infer E, 'optional']
    ? ElementValue<E> | undefined
    : F extends readonly [number, { key: infer K; value: infer V }]
      ? Map<ElementValue<K>, ElementValue<V>>
      : F extends readonly [number, infer E]
        ? E extends ScalarType
          ? Scalars[E]
          : ElementValue<E> | undefined
        : never

/** The value a table describes. Messages that are absent are undefined. */
export type MessageOf<F> = { -readonly [K in keyof F]: FieldValue<F[K]> }

type Values = Record<string, unknown>

interface FieldCodec {
  /** Wire types it can be read from. */
  readonly wireTypes: readonly number[]
  /** Value in a new message; a function when it must be a new one each time. */
  readonly initial: unknown
  read(reader: WireReader, target: Values, wireType: number): void
  /** Writes value and tag, unless the value is the zero that stands for absence. */
  write(writer: WireWriter, value: unknown): void
}

/** A codec for the messages the table describes. The order of fields in the table does not matter. */
export function defineMessage<const F extends Readonly<Record<string, Field>>>(fields: F): Message<MessageOf<F>> {
  const codecs = Object.entries(fields).map(([name, field]) => ({
    name,
    number: field[0],
    codec: fieldCodec(name, field),
  }))
  const template = Object.fromEntries(codecs.map(({ name, codec }) => [name, makeInitial(codec)]))
  const fresh = codecs.filter(({ codec }) => typeof codec.initial === 'function')
  const byNumber = new Map(codecs.map(({ number, codec }) => [number, codec]))
  if (byNumber.size !== codecs.length) throw new ProtobufError('Two fields of a message have the same number')
  const backwards = codecs.toSorted((a, b) => b.number - a.number)

  const create = (): Values => {
    const out = { ...template }
    for (const { name, codec } of fresh) out[name] = makeInitial(codec)
    return out
  }
  const read = (reader: WireReader, target: object): void => {
    while (!reader.done) {
      const tag = reader.tag()
      const codec = byNumber.get(tag >>> 3)
      if (codec === undefined || !codec.wireTypes.includes(tag & 7)) reader.skip(tag)
      else codec.read(reader, target as Values, tag & 7)
    }
  }
  const write = (writer: WireWriter, value: object): void => {
    for (const { name, codec } of backwards) {
      const one = (value as Values)[name]
      if (one !== undefined && one !== null) codec.write(writer, one)
    }
  }
  return {
    create,
    read,
    write,
    encode: (value) => encode(write, value),
    decode: (bytes) => decode(create as () => MessageOf<F>, read, bytes),
  }
}

/** One shared writer: encoding never yields, and the next use discards the remains of a failed one. */
const sharedWriter = new WireWriter()

function encode(write: MessageCodec['write'], value: object): Buffer {
  sharedWriter.reset()
  write(sharedWriter, value)
  return sharedWriter.finish()
}

function decode<T extends object>(create: () => T, read: MessageCodec['read'], bytes: Buffer): T {
  const out = create()
  read(new WireReader(bytes), out)
  return out
}

function makeInitial({ initial }: FieldCodec): unknown {
  return typeof initial === 'function' ? (initial as () => unknown)() : initial
}

function fieldCodec(name: string, [number, type, label]: Field): FieldCodec {
  if (!Number.isInteger(number) || number < 1 || number > 0x1fff_ffff) {
    throw new ProtobufError(`Field "${name}" cannot have number ${number}`)
  }
  if (typeof type === 'object' && 'key' in type) return mapField(name, number, type)
  if (typeof type !== 'string') {
    return label === 'repeated' ? messagesField(name, number, type) : messageField(name, number, type)
  }
  const scalar = SCALARS[type]
  if (label === 'repeated' && scalar.wireType !== WIRE.bytes) return packedField(name, number, scalar)
  if (label === 'repeated' || label === 'unpacked') return listField(name, number, scalar)
  return scalarField(name, number, { scalar, isOptional: label === 'optional' })
}

function scalarField(
  name: string,
  number: number,
  { scalar, isOptional }: { scalar: ScalarCodec; isOptional: boolean },
): FieldCodec {
  const { wireType, zero } = scalar
  return {
    wireTypes: [wireType],
    initial: isOptional ? undefined : zero,
    read(reader, target) {
      target[name] = scalar.read(reader)
    },
    write(writer, value) {
      if (!isOptional && isZero(value)) return
      scalar.write(writer, value as never)
      writer.tag(number, wireType)
    },
  }
}

/** Negative zero is a distinct value and must be written. */
function isZero(value: unknown): boolean {
  if (value instanceof Uint8Array) return value.length === 0
  return Object.is(value, 0) || value === '' || value === false || value === 0n
}

function listField(name: string, number: number, scalar: ScalarCodec): FieldCodec {
  const isNumeric = scalar.wireType !== WIRE.bytes
  return {
    wireTypes: isNumeric ? [scalar.wireType, WIRE.bytes] : [WIRE.bytes],
    initial: () => [],
    read(reader, target, wireType) {
      const list = target[name] as unknown[]
      if (isNumeric && wireType === WIRE.bytes) readPacked(reader, scalar, list)
      else list.push(scalar.read(reader))
    },
    write(writer, value) {
      for (const one of backwardsOver(value as readonly unknown[])) {
        scalar.write(writer, one as never)
        writer.tag(number, scalar.wireType)
      }
    },
  }
}

function packedField(name: string, number: number, scalar: ScalarCodec): FieldCodec {
  return {
    ...listField(name, number, scalar),
    write(writer, value) {
      const list = value as readonly unknown[]
      if (list.length === 0) return
      const mark = writer.length
      for (const one of backwardsOver(list)) scalar.write(writer, one as never)
      writer.lengthSince(mark)
      writer.tag(number, WIRE.bytes)
    },
  }
}

function readPacked(reader: WireReader, scalar: ScalarCodec, list: unknown[]): void {
  const outer = reader.enter()
  while (!reader.done) list.push(scalar.read(reader))
  reader.leave(outer)
}

function* backwardsOver<T>(list: readonly T[]): Generator<T> {
  for (let index = list.length - 1; index >= 0; index--) yield list[index] as T
}

type MessageElement = MessageCodec | (() => MessageCodec)

function resolve(type: MessageElement): MessageCodec {
  return typeof type === 'function' ? type() : type
}

function readNested(reader: WireReader, codec: MessageCodec, target: object): void {
  const outer = reader.enter()
  codec.read(reader, target)
  reader.leave(outer)
}

function writeNested(writer: WireWriter, codec: MessageCodec, value: object): void {
  const mark = writer.length
  codec.write(writer, value)
  writer.lengthSince(mark)
}

function messageField(name: string, number: number, type: MessageElement): FieldCodec {
  return {
    wireTypes: [WIRE.bytes],
    initial: undefined,
    read(reader, target) {
      const codec = resolve(type)
      const value = target[name] ?? codec.create()
      target[name] = value
      readNested(reader, codec, value)
    },
    write(writer, value) {
      writeNested(writer, resolve(type), value as object)
      writer.tag(number, WIRE.bytes)
    },
  }
}

function messagesField(name: string, number: number, type: MessageElement): FieldCodec {
  return {
    wireTypes: [WIRE.bytes],
    initial: () => [],
    read(reader, target) {
      const codec = resolve(type)
      const value = codec.create()
      readNested(reader, codec, value)
      ;(target[name] as unknown[]).push(value)
    },
    write(writer, value) {
      const codec = resolve(type)
      for (const one of backwardsOver(value as readonly object[])) {
        writeNested(writer, codec, one)
        writer.tag(number, WIRE.bytes)
      }
    },
  }
}

/** A map is a list of messages with key and value, both always written; of several with one key the last counts. */
function mapField(name: string, number: number, { key, value }: MapType): FieldCodec {
  const entryType = defineMessage({ key: [1, key, 'optional'], value: [2, value, 'optional'] })
  const absent = (): unknown => (typeof value === 'string' ? SCALARS[value].zero : resolve(value).create())
  const list = messagesField(name, number, entryType)
  return {
    wireTypes: [WIRE.bytes],
    initial: () => new Map(),
    read(reader, target) {
      const entry = entryType.create() as { key: unknown; value: unknown }
      readNested(reader, entryType, entry)
      ;(target[name] as Map<unknown, unknown>).set(entry.key ?? SCALARS[key].zero, entry.value ?? absent())
    },
    write(writer, map) {
      const entries = [...(map as ReadonlyMap<unknown, unknown>)]
      list.write(
        writer,
        entries.map(([entryKey, entryValue]) => ({ key: entryKey, value: entryValue })),
      )
    },
  }
}
