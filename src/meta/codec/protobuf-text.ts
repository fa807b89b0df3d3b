/**
 * Strings out of protobuf. Most strings of most objects have been seen before (kinds, label keys, `TCP`, `Always`), and
 * making a string out of bytes is what decoding costs most: short ones are kept, found again by their bytes, and
 * shared, which also saves the memory of many copies.
 */
import type { WireReader } from '#lib/protobuf/wire.ts'

/** Longer ones repeat less and cost more to compare. */
const MAX_BYTES = 40

/** A power of two. Each slot holds the last string that fell into it, so this is the most that is ever kept. */
const SLOTS = 4096

const kept: string[] = Array.from({ length: SLOTS }, () => '')

/** The same as `reader.string()`. */
export function readText(reader: WireReader): string {
  const { bytes, at, end } = reader
  const length = bytes[at] as number
  const first = at + 1
  // Everything unusual is the reader's business: long lengths, and those that lead out of the message.
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

/** Only ASCII can be the same here: other characters have more bytes than units, or other values. */
function isSame(text: string, bytes: Uint8Array, first: number, length: number): boolean {
  if (text.length !== length) return false
  for (let index = 0; index < length; index++) {
    const byte = bytes[first + index] as number
    if (byte > 0x7f || text.charCodeAt(index) !== byte) return false
  }
  return true
}
