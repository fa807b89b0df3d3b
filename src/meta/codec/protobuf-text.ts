/**
 * Decodes strings from protobuf. Short strings, such as label keys and `TCP`, repeat often and are cached by their
 * bytes.
 */
import type { WireReader } from '#lib/protobuf/wire.ts'

/** Longer strings repeat less and cost more to compare. */
const MAX_BYTES = 40

/** A power of two. Each slot has the last string with its hash, so this bounds the cache. */
const SLOTS = 4096

const kept: string[] = Array.from({ length: SLOTS }, () => '')

/** Equivalent to `reader.string()`. */
export function readText(reader: WireReader): string {
  const { bytes, at, end } = reader
  const length = bytes[at] as number
  const first = at + 1
  // The reader handles unusual cases: long lengths, and lengths beyond the message.
  if (at >= end || length > MAX_BYTES || length > end - first) return reader.string()
  if (length === 0) {
    reader.at = first
    return ''
  }
  let hash = length
  for (let index = first; index < first + length; index++) hash = Math.imul(hash ^ (bytes[index] as number), 0x01000193)
  const slot = (hash ^ (hash >>> 15)) & (SLOTS - 1)
  const text = kept[slot] as string
  if (isSame(text, bytes, first, length)) {
    reader.at = first + length
    return text
  }
  return (kept[slot] = reader.string())
}

/** Only ASCII can match here: other characters have more bytes than code units, or other values. */
function isSame(text: string, bytes: Uint8Array, first: number, length: number): boolean {
  if (text.length !== length) return false
  for (let index = 0; index < length; index++) {
    const byte = bytes[first + index] as number
    if (byte > 0x7f || text.charCodeAt(index) !== byte) return false
  }
  return true
}
