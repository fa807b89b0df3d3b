/**
 * Changes as bytes, one after the other: type, revisions and lengths as variable-length integers, then key, value and
 * note.
 */
import type { ChangeType, RecordedChange } from './recorded-change.ts'

const TYPES: readonly ChangeType[] = ['put', 'delete', 'state']

/** One byte for the type, and at most 8 for each of five integers. */
const MAX_HEAD = 1 + 5 * 8

/** In a separate buffer, which a message can transfer to a thread. */
export function encodeChanges(changes: readonly RecordedChange[]): Buffer {
  const bytes = Buffer.allocUnsafeSlow(changes.reduce((sum, change) => sum + maxLength(change), 0))
  let at = 0
  for (const { type, key, createRevision, modRevision, value, note } of changes) {
    bytes[at++] = TYPES.indexOf(type)
    at = putInteger(bytes, at, modRevision)
    at = putInteger(bytes, at, createRevision)
    at = putText(bytes, at, key)
    at = putInteger(bytes, at, value.length)
    bytes.set(value, at)
    at = putText(bytes, at + value.length, note)
  }
  return bytes.subarray(0, at)
}

/** The values are parts of `bytes`. Throws RangeError for bytes that are no changes. */
export function* decodeChanges(bytes: Buffer): Generator<RecordedChange> {
  const place = { at: 0 }
  while (place.at < bytes.length) {
    const type = TYPES[bytes[place.at++] as number]
    if (type === undefined) throw new RangeError(`there is no change at byte ${place.at - 1}`)
    const modRevision = takeInteger(bytes, place)
    const createRevision = takeInteger(bytes, place)
    const key = take(bytes, place).toString()
    const value = take(bytes, place)
    const note = take(bytes, place).toString()
    yield { type, key, createRevision, modRevision, value, note }
  }
}

/** About the memory of a change. */
export function changeBytes({ key, value, note }: RecordedChange): number {
  return key.length + value.length + note.length + MAX_HEAD
}

function maxLength({ key, value, note }: RecordedChange): number {
  return MAX_HEAD + 3 * (key.length + note.length) + value.length
}

function putText(bytes: Buffer, at: number, text: string): number {
  const length = Buffer.byteLength(text)
  const start = putInteger(bytes, at, length)
  return start + bytes.write(text, start)
}

function take(bytes: Buffer, place: { at: number }): Buffer {
  const length = takeInteger(bytes, place)
  const end = place.at + length
  if (end > bytes.length) throw new RangeError(`a change ends after byte ${bytes.length}`)
  const part = bytes.subarray(place.at, end)
  place.at = end
  return part
}

/** Seven bits a byte, the lowest first. */
export function putInteger(bytes: Buffer, at: number, value: number): number {
  let left = value
  while (left > 127) {
    bytes[at++] = (left % 128) | 128
    left = Math.floor(left / 128)
  }
  bytes[at++] = left
  return at
}

export function takeInteger(bytes: Buffer, place: { at: number }): number {
  let value = 0
  for (let scale = 1; ; scale *= 128) {
    const byte = bytes[place.at++]
    if (byte === undefined) throw new RangeError(`an integer ends after byte ${bytes.length}`)
    value += (byte & 127) * scale
    if (byte < 128) return value
  }
}
