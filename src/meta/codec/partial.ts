/**
 * Encodes objects with only their metadata, and watch frames. A frame wraps the encoded bytes of an object, which many
 * watchers share.
 */
import { Buffer } from 'node:buffer'

import type { JsonObject } from '#lib/json/value.ts'
import { defineMessage } from '#lib/protobuf/message.ts'

import { CodecError } from './error.ts'
import { explain } from './protobuf-decode.ts'

export interface PartialForm {
  /** Of the group `meta.k8s.io`: `v1` or `v1beta1`. */
  readonly version: string
  readonly omitsManagedFields?: boolean
}

/** A partial object, which shares the metadata. */
export function partialObject(object: JsonObject, { version, omitsManagedFields = false }: PartialForm): JsonObject {
  const metadata = (object['metadata'] ?? {}) as JsonObject
  return {
    kind: 'PartialObjectMetadata',
    apiVersion: `meta.k8s.io/${version}`,
    metadata: omitsManagedFields ? withoutManagedFields(metadata) : metadata,
  }
}

/** The partial form of a list. Unlike in other lists, items have their kind. */
export function partialList(list: JsonObject, form: PartialForm): JsonObject {
  const items = (list['items'] ?? []) as JsonObject[]
  return {
    kind: 'PartialObjectMetadataList',
    apiVersion: `meta.k8s.io/${form.version}`,
    metadata: list['metadata'] ?? {},
    items: items.map((item) => partialObject(item, form)),
  }
}

function withoutManagedFields({ managedFields: _managedFields, ...metadata }: JsonObject): JsonObject {
  return metadata
}

export type WatchEventType = 'ADDED' | 'MODIFIED' | 'DELETED' | 'BOOKMARK' | 'ERROR'

/** One line of a JSON watch, from the JSON of the object. */
export function jsonWatchFrame(type: WatchEventType, object: string): string {
  return `{"type":"${type}","object":${object}}\n`
}

/** One frame of a protobuf watch, from the object in its envelope: length, event, envelope. */
export function protobufWatchFrame(type: WatchEventType, envelope: Uint8Array): Buffer {
  const event = WatchEvent.encode({ type, object: { raw: envelope } })
  const frame = Buffer.allocUnsafe(LENGTH_BYTES + event.length)
  frame.writeUInt32BE(event.length)
  frame.set(event, LENGTH_BYTES)
  return frame
}

export interface WatchFrame {
  /** Any text: servers may have more types than we know. */
  readonly type: string
  /** The object in its envelope. Shares memory with the frame. */
  readonly object: Buffer
}

/** Parses a frame of `protobufWatchFrame` without the length. Throws CodecError. */
export function decodeWatchEvent(event: Buffer): WatchFrame {
  try {
    const { type, object } = WatchEvent.decode(event)
    return { type, object: object?.raw ?? Buffer.alloc(0) }
  } catch (cause) {
    throw explain(cause)
  }
}

/**
 * Splits a stream into frames: the complete ones in `bytes`, without their lengths, and the rest. All share memory with
 * `bytes`. Throws CodecError if a frame is longer than `limitBytes`.
 */
export function splitFrames(bytes: Buffer, limitBytes: number): { frames: Buffer[]; rest: Buffer } {
  const frames: Buffer[] = []
  let at = 0
  while (bytes.length - at >= LENGTH_BYTES) {
    const length = bytes.readUInt32BE(at)
    if (length > limitBytes) throw new CodecError('limit', `Watch frame of ${length} bytes is over ${limitBytes}`)
    const end = at + LENGTH_BYTES + length
    if (end > bytes.length) break
    frames.push(bytes.subarray(at + LENGTH_BYTES, end))
    at = end
  }
  return { frames, rest: bytes.subarray(at) }
}

export const LENGTH_BYTES = 4
const RawExtension = defineMessage({ raw: [1, 'bytes'] })
const WatchEvent = defineMessage({ type: [1, 'string'], object: [2, RawExtension] })
