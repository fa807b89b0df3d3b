/** Reads test cases from cel-spec's data: an expression, its variables and the expected result. */
import {
  BOOL,
  BYTES,
  type CelType,
  DOUBLE,
  DURATION,
  DYN,
  INT,
  listOf,
  mapOf,
  NULL,
  opaque,
  type SimpleType,
  STRING,
  TIMESTAMP,
  typeOf,
  UINT,
  wrapperOf,
} from '#cel/type.ts'
import { Double, intOf, TypeValue, Uint, type Value } from '#cel/value.ts'
import { listValue } from '#cel/values/list.ts'
import { mapOfEntries } from '#cel/values/map.ts'
import { Duration, Timestamp } from '#cel/values/time.ts'

import type { Field, Message } from './textproto.ts'

export interface Case {
  readonly id: string
  readonly expr: string
  readonly message: Message
}

/** Thrown for cases that no expression of Kubernetes can express; the reason is counted. */
export class NotApplicable extends Error {}

export function casesOf(file: string, whole: Message): Case[] {
  const cases: Case[] = []
  for (const section of messages(whole['section'])) {
    for (const message of messages(section['test'])) {
      const id = [file, text(section['name']), text(message['name'])].join('/')
      cases.push({ id, expr: text(message['expr']), message })
    }
  }
  return cases
}

export function messages(fields: readonly Field[] | undefined): readonly Message[] {
  return (fields ?? []).filter((field) => typeof field === 'object' && !Buffer.isBuffer(field)) as Message[]
}

export function text(fields: readonly Field[] | undefined): string {
  return textOf(fields?.[0] ?? '')
}

/** Empty for a message. */
function textOf(field: Field): string {
  return typeof field === 'string' || Buffer.isBuffer(field) ? field.toString() : ''
}

/** Of a message that has one field: its name and its value. */
function onlyField(message: Message | undefined): readonly [name: string, value: Field | undefined] {
  const [first] = Object.entries(message ?? {})
  return first === undefined ? ['', undefined] : [first[0], first[1][0]]
}

export function flag({ message }: Case, name: string): boolean {
  return text(message[name]) === 'true'
}

/** The variables it declares. */
export function variablesOf({ message }: Case): Record<string, CelType> {
  const entries = messages(message['type_env']).map((declared) => {
    const [ident] = messages(declared['ident'])
    if (ident === undefined) throw new NotApplicable('functions of its own')
    return [text(declared['name']), typeIn(messages(ident['type'])[0])] as const
  })
  return Object.fromEntries(entries)
}

/** The values they have. */
export function bindingsOf({ message }: Case): Record<string, Value> {
  const entries = messages(message['bindings']).map((binding) => {
    const [wrapped] = messages(binding['value'])
    const [value] = messages(wrapped?.['value'])
    if (value === undefined) throw new NotApplicable('values that are unknown')
    return [text(binding['key']), valueIn(value)] as const
  })
  return Object.fromEntries(entries)
}

const PRIMITIVES: Readonly<Record<string, SimpleType>> = {
  BOOL,
  INT64: INT,
  UINT64: UINT,
  DOUBLE,
  STRING,
  BYTES,
}

const NAMED: Readonly<Record<string, CelType>> = {
  'google.protobuf.Timestamp': TIMESTAMP,
  'google.protobuf.Duration': DURATION,
  'google.protobuf.Int32Value': wrapperOf(INT),
  'google.protobuf.Int64Value': wrapperOf(INT),
  'google.protobuf.Any': DYN,
  'google.protobuf.Value': DYN,
}

export function typeIn(message: Message | undefined): CelType {
  const [name, field] = onlyField(message)
  const inner = messages(field === undefined ? [] : [field])[0]
  const read = TYPES[name]
  if (read === undefined) throw new NotApplicable(`the type ${name}`)
  return read(textOf(field ?? ''), inner)
}

const primitive = (name: string): SimpleType => PRIMITIVES[name] ?? missing(`the primitive ${name}`)

function missing(what: string): never {
  throw new NotApplicable(what)
}

const TYPES: Readonly<Record<string, (name: string, inner: Message | undefined) => CelType>> = {
  primitive,
  wrapper: (name) => wrapperOf(primitive(name)),
  well_known: (name) => ({ TIMESTAMP, DURATION, ANY: DYN })[name] ?? missing(`the type ${name}`),
  message_type: (name) => NAMED[name] ?? missing('messages of its own'),
  list_type: (_, inner) => listOf(typeIn(messages(inner?.['elem_type'])[0])),
  map_type: (_, inner) => mapOf(typeIn(messages(inner?.['key_type'])[0]), typeIn(messages(inner?.['value_type'])[0])),
  abstract_type: (_, inner) => opaque(text(inner?.['name']), ...messages(inner?.['parameter_types']).map(typeIn)),
  type: (_, inner) => typeOf(inner === undefined || Object.keys(inner).length === 0 ? undefined : typeIn(inner)),
  dyn: () => DYN,
  null: () => NULL,
}

export function valueIn(message: Message): Value {
  const [name, field] = onlyField(message)
  const read = VALUES[name]
  if (read === undefined || field === undefined) throw new NotApplicable(`the value ${name}`)
  return read(field)
}

const VALUES: Readonly<Record<string, (field: Field) => Value>> = {
  null_value: () => null,
  bool_value: (field) => field === 'true',
  int64_value: (field) => intOf(BigInt(integer(field))),
  uint64_value: (field) => new Uint(BigInt(integer(field))),
  double_value: (field) => new Double(double(textOf(field))),
  string_value: textOf,
  bytes_value: (field) => new Uint8Array(field as Buffer),
  type_value: (field) => new TypeValue(textOf(field)),
  list_value: (field) => listValue(messages((field as Message)['values']).map(valueIn)),
  map_value: (field) =>
    mapOfEntries(
      messages((field as Message)['entries']).map(({ key, value }) => [
        valueIn(messages(key)[0] ?? {}),
        valueIn(messages(value)[0] ?? {}),
      ]),
    ),
  object_value: (field) => objectIn(field as Message),
}

/** Only those messages that an expression of Kubernetes can come by. */
function objectIn(message: Message): Value {
  const [url, field] = onlyField(message)
  const [inner = {}] = messages(field === undefined ? [] : [field])
  const [seconds, nanos] = [Number(text(inner['seconds'])), Number(text(inner['nanos']))]
  switch (url.replace('type.googleapis.com/', '')) {
    case 'google.protobuf.Timestamp':
      return new Timestamp(seconds, nanos)
    case 'google.protobuf.Duration':
      return new Duration(BigInt(seconds) * NANOS + BigInt(nanos))
    default:
      throw new NotApplicable('messages of its own')
  }
}

const NANOS = 1_000_000_000n

/** BigInt reads no sign before `0x`. */
function integer(field: Field): string {
  const written = textOf(field)
  return /^-0x/i.test(written) ? String(-BigInt(written.slice(1))) : written
}

function double(written: string): number {
  const named = { inf: Infinity, '-inf': -Infinity, infinity: Infinity, '-infinity': -Infinity, nan: NaN }
  return named[written.toLowerCase() as keyof typeof named] ?? Number(written.replace(/f$/, ''))
}
