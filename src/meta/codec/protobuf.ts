/**
 * Encodes and decodes objects in protobuf. Each object has an envelope: the bytes `k8s\0` and a runtime.Unknown with
 * kind and apiVersion.
 */
import { Buffer } from 'node:buffer'

import type { JsonObject } from '#lib/json/value.ts'
import { defineMessage } from '#lib/protobuf/message.ts'
import { WIRE, WireWriter } from '#lib/protobuf/wire.ts'

import { apiVersionOf, type GroupVersionKind } from '../kind.ts'
import type { StructSchema } from '../schema.ts'
import { CodecError } from './error.ts'
import { explain } from './protobuf-decode.ts'
import { messageWriterFor } from './protobuf-encode.ts'

const MAGIC = Buffer.from('k8s\0', 'latin1')

/** One shared writer: encoding never yields, and the next call discards the rest of a failed one. */
const writer = new WireWriter()

/** The message of a canonical object, without envelope. Throws if the schema has no protobuf form. */
export function encodeMessage(schema: StructSchema, object: JsonObject): Buffer {
  if (schema.protobuf === undefined) throw new Error(`"${schema.goType}" has no protobuf form: encode it as JSON`)
  writer.reset()
  messageWriterFor(schema.protobuf)(writer, object)
  return writer.finish()
}

/** Wraps a message in the envelope. */
export function encodeEnvelope(gvk: GroupVersionKind, message: Uint8Array): Buffer {
  writer.reset()
  writer.raw(ENVELOPE_TAIL)
  writer.raw(message)
  writeEnvelopeHead(gvk, message.length)
  return writer.finish()
}

/** An envelope in two halves, for a message too large to copy: `start`, then `restBytes` of message. */
export function encodeEnvelopeAround(
  gvk: GroupVersionKind,
  start: Uint8Array,
  restBytes: number,
): { readonly head: Buffer; readonly tail: Buffer } {
  writer.reset()
  writer.raw(start)
  writeEnvelopeHead(gvk, start.length + restBytes)
  return { head: writer.finish(), tail: ENVELOPE_TAIL }
}

/** contentType and contentEncoding, which upstream writes and ignores. */
const ENVELOPE_TAIL = Buffer.from([0x1a, 0, 0x22, 0])

function writeEnvelopeHead(gvk: GroupVersionKind, messageBytes: number): void {
  writer.uint32(messageBytes)
  writer.tag(2, WIRE.bytes)
  const mark = writer.length
  writer.string(gvk.kind)
  writer.tag(2, WIRE.bytes)
  writer.string(apiVersionOf(gvk))
  writer.tag(1, WIRE.bytes)
  writer.lengthSince(mark)
  writer.tag(1, WIRE.bytes)
  writer.raw(MAGIC)
}

/** Messages as items of a list: appended to its metadata or other items. */
export function encodeListItems(list: StructSchema, items: readonly Uint8Array[]): Buffer {
  // Usually 2, but metadata and items of PartialObjectMetadataList were swapped after v1beta1.
  const number = list.protobuf?.fields.find(({ field }) => field?.name === 'items')?.number ?? 2
  writer.reset()
  for (const item of items.toReversed()) {
    writer.view(item)
    writer.tag(number, WIRE.bytes)
  }
  return writer.finish()
}

/** A whole object: a message in an envelope. */
export function encodeProtobuf(schema: StructSchema, gvk: GroupVersionKind, object: JsonObject): Buffer {
  return encodeEnvelope(gvk, encodeMessage(schema, object))
}

export interface Envelope {
  readonly apiVersion: string
  readonly kind: string
  /** Shares memory with its source. */
  readonly message: Buffer
}

/** True if the bytes have the prefix of a protobuf object, as upstream's kube-apiserver stores. */
export function isProtobuf(bytes: Uint8Array): boolean {
  return bytes.length >= MAGIC.length && MAGIC.every((byte, at) => bytes[at] === byte)
}

/** Opens the envelope. Throws CodecError with upstream's text. */
export function decodeEnvelope(bytes: Buffer): Envelope {
  if (bytes.length === 0) throw new CodecError('syntax', 'empty data')
  if (!isProtobuf(bytes)) {
    const prefix = `[${[...MAGIC].join(' ')}]`
    const message = `provided data does not appear to be a protobuf message, expected prefix ${prefix}`
    throw new CodecError('syntax', message)
  }
  if (bytes.length === MAGIC.length) throw new CodecError('syntax', 'empty body')
  try {
    const { typeMeta, raw } = Unknown.decode(bytes.subarray(MAGIC.length))
    return { apiVersion: typeMeta?.apiVersion ?? '', kind: typeMeta?.kind ?? '', message: raw }
  } catch (cause) {
    throw explain(cause)
  }
}

/** `runtime.Unknown` without the two unused fields. */
const TypeMeta = defineMessage({ apiVersion: [1, 'string'], kind: [2, 'string'] })
const Unknown = defineMessage({ typeMeta: [1, TypeMeta], raw: [2, 'bytes'] })
