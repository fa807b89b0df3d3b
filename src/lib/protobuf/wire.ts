/**
 * Reads and writes the protobuf wire format. The writer writes backwards, last field first, because the length of a
 * nested message is then known.
 */

/** The error for malformed input, and for values that do not fit their type. */
export class ProtobufError extends Error {
  override readonly name = 'ProtobufError'
}

/** 64-bit integers are numbers as long as that is exact, and bigints beyond. */
export type Int64 = number | bigint

export const WIRE = { varint: 0, fixed64: 1, bytes: 2, groupStart: 3, groupEnd: 4, fixed32: 5 } as const

const TWO_32 = 4_294_967_296

/** As deep as protobuf's own libraries go. */
const MAX_DEPTH = 100

export class WireReader {
  readonly bytes: Buffer
  /** Position of the next byte. */
  at = 0
  /** First byte that does not belong to the innermost message entered; never beyond the buffer. */
  end: number
  #depth = 0
  /** Halves of the varint read last. */
  #low = 0
  #high = 0

  /** Reads from `bytes`, without copying: byte fields share its memory. */
  constructor(bytes: Buffer) {
    this.bytes = bytes
    this.end = bytes.length
  }

  /** Whether the innermost message entered has been read to its end. */
  get done(): boolean {
    return this.at >= this.end
  }

  /** Field number and wire type as they stand: `tag >>> 3` and `tag & 7`. */
  tag(): number {
    const tag = this.uint32()
    if (tag < 8) throw new ProtobufError('Field number 0')
    return tag
  }

  uint32(): number {
    const first = this.bytes[this.at] as number
    if (this.at < this.end && first < 0x80) {
      this.at++
      return first
    }
    this.#varint()
    return this.#low >>> 0
  }

  int32(): number {
    return this.uint32() | 0
  }

  sint32(): number {
    const zigzag = this.uint32()
    return (zigzag >>> 1) ^ -(zigzag & 1)
  }

  bool(): boolean {
    this.#varint()
    return this.#low !== 0 || this.#high !== 0
  }

  uint64(): Int64 {
    this.#varint()
    return joinUnsigned(this.#low, this.#high)
  }

  int64(): Int64 {
    this.#varint()
    return joinSigned(this.#low, this.#high)
  }

  sint64(): Int64 {
    this.#varint()
    const sign = -(this.#low & 1)
    return joinSigned(((this.#low >>> 1) | (this.#high << 31)) ^ sign, (this.#high >>> 1) ^ sign)
  }

  fixed32(): number {
    return this.bytes.readUInt32LE(this.#advance(4))
  }

  sfixed32(): number {
    return this.bytes.readInt32LE(this.#advance(4))
  }

  fixed64(): Int64 {
    const at = this.#advance(8)
    return joinUnsigned(this.bytes.readInt32LE(at), this.bytes.readInt32LE(at + 4))
  }

  sfixed64(): Int64 {
    const at = this.#advance(8)
    return joinSigned(this.bytes.readInt32LE(at), this.bytes.readInt32LE(at + 4))
  }

  float(): number {
    return this.bytes.readFloatLE(this.#advance(4))
  }

  double(): number {
    return this.bytes.readDoubleLE(this.#advance(8))
  }

  /** A length and that many bytes, sharing memory with the input. */
  view(): Buffer {
    const length = this.uint32()
    const at = this.#advance(length)
    return this.bytes.subarray(at, at + length)
  }

  /** A length and that many bytes of UTF-8; invalid bytes become U+FFFD, as one bad label must not hide a whole list. */
  string(): string {
    const length = this.uint32()
    const at = this.#advance(length)
    return this.bytes.toString('utf8', at, at + length)
  }

  /** Reads a length and narrows `end` to that many bytes. Hand the answer to `leave` when they are read. */
  enter(): number {
    const length = this.uint32()
    if (length > this.end - this.at) throw new ProtobufError('Message is cut off')
    if (++this.#depth > MAX_DEPTH) throw new ProtobufError(`Messages are nested deeper than ${MAX_DEPTH}`)
    const outer = this.end
    this.end = this.at + length
    return outer
  }

  leave(outer: number): void {
    this.at = this.end
    this.end = outer
    this.#depth--
  }

  /** Passes over the value of a field that is not known. */
  skip(tag: number): void {
    switch (tag & 7) {
      case WIRE.varint:
        return this.#varint()
      case WIRE.fixed64:
        return void this.#advance(8)
      case WIRE.bytes:
        return void this.#advance(this.uint32())
      case WIRE.fixed32:
        return void this.#advance(4)
      case WIRE.groupStart:
        return this.#skipGroup(tag >>> 3)
      default:
        throw new ProtobufError(`Wire type ${tag & 7} has no meaning here`)
    }
  }

  #skipGroup(field: number): void {
    if (++this.#depth > MAX_DEPTH) throw new ProtobufError(`Groups are nested deeper than ${MAX_DEPTH}`)
    for (;;) {
      const tag = this.tag()
      if ((tag & 7) === WIRE.groupEnd) {
        if (tag >>> 3 !== field) throw new ProtobufError('Group ends as another one')
        this.#depth--
        return
      }
      this.skip(tag)
    }
  }

  /** Makes sure that `length` bytes are left and moves behind them; answers where they begin. */
  #advance(length: number): number {
    const { at } = this
    if (length > this.end - at) throw new ProtobufError('Field is cut off')
    this.at = at + length
    return at
  }

  #varint(): void {
    let low = 0
    let high = 0
    for (let shift = 0; shift < 70; shift += 7) {
      if (this.at >= this.end) throw new ProtobufError('Number is cut off')
      const byte = this.bytes[this.at++] as number
      if (shift < 28) low |= (byte & 0x7f) << shift
      else if (shift === 28) {
        low |= (byte & 0x7f) << 28
        high = (byte & 0x7f) >> 4
      } else high |= (byte & 0x7f) << (shift - 32)
      if (shift === 63 && byte > 1) break
      if (byte < 0x80) {
        this.#low = low
        this.#high = high
        return
      }
    }
    throw new ProtobufError('Number has more than 64 bits')
  }
}

function joinUnsigned(low: number, high: number): Int64 {
  const value = (high >>> 0) * TWO_32 + (low >>> 0)
  return value <= Number.MAX_SAFE_INTEGER ? value : (BigInt(high >>> 0) << 32n) | BigInt(low >>> 0)
}

function joinSigned(low: number, high: number): Int64 {
  const value = (high | 0) * TWO_32 + (low >>> 0)
  return Number.isSafeInteger(value) ? value : (BigInt(high | 0) << 32n) | BigInt(low >>> 0)
}

/** Enough for nearly every message, so that the buffer seldom grows. */
const FIRST_BYTES = 4096

/** Strings up to this length are copied character by character, which is faster than a call into the runtime. */
const SHORT_STRING = 24

export class WireWriter {
  #bytes: Buffer = Buffer.allocUnsafeSlow(FIRST_BYTES)
  /** Everything from here to the end of `#bytes` has been written. */
  #at: number = FIRST_BYTES

  /** How much has been written so far: take it before a nested message, hand it to `lengthSince` after. */
  get length(): number {
    return this.#bytes.length - this.#at
  }

  tag(field: number, wireType: number): void {
    this.uint32(field * 8 + wireType)
  }

  /** The length of what was written since `length` was `mark`. */
  lengthSince(mark: number): void {
    this.uint32(this.length - mark)
  }

  uint32(value: number): void {
    if (value < 0x80 && value >= 0 && Number.isInteger(value)) {
      const at = this.#reserve(1)
      this.#bytes[at] = value
      return
    }
    if (value !== value >>> 0) throw new ProtobufError(`Not an unsigned 32-bit integer: ${value}`)
    this.#varint(value, 0)
  }

  int32(value: number): void {
    if (value !== (value | 0)) throw new ProtobufError(`Not a 32-bit integer: ${value}`)
    this.#varint(value >>> 0, value < 0 ? 0xffff_ffff : 0)
  }

  sint32(value: number): void {
    if (value !== (value | 0)) throw new ProtobufError(`Not a 32-bit integer: ${value}`)
    this.uint32(((value << 1) ^ (value >> 31)) >>> 0)
  }

  bool(value: boolean): void {
    const at = this.#reserve(1)
    this.#bytes[at] = value ? 1 : 0
  }

  uint64(value: Int64): void {
    this.#varint(...splitUnsigned(value))
  }

  int64(value: Int64): void {
    this.#varint(...splitSigned(value))
  }

  sint64(value: Int64): void {
    const [low, high] = splitSigned(value)
    const sign = (high | 0) >> 31
    this.#varint(((low << 1) ^ sign) >>> 0, (((high << 1) | (low >>> 31)) ^ sign) >>> 0)
  }

  fixed32(value: number): void {
    if (value !== value >>> 0) throw new ProtobufError(`Not an unsigned 32-bit integer: ${value}`)
    this.#writeHalves([value])
  }

  sfixed32(value: number): void {
    if (value !== (value | 0)) throw new ProtobufError(`Not a 32-bit integer: ${value}`)
    this.#writeHalves([value >>> 0])
  }

  fixed64(value: Int64): void {
    this.#writeHalves(splitUnsigned(value))
  }

  sfixed64(value: Int64): void {
    this.#writeHalves(splitSigned(value))
  }

  float(value: number): void {
    const at = this.#reserve(4)
    this.#bytes.writeFloatLE(value, at)
  }

  double(value: number): void {
    const at = this.#reserve(8)
    this.#bytes.writeDoubleLE(value, at)
  }

  /** Bytes with their length. */
  view(value: Uint8Array): void {
    this.raw(value)
    this.uint32(value.length)
  }

  /** Bytes as they are. */
  raw(value: Uint8Array): void {
    const at = this.#reserve(value.length)
    this.#bytes.set(value, at)
  }

  /** UTF-8 with its length. */
  string(value: string): void {
    if (value.length > SHORT_STRING || !this.#shortAscii(value)) {
      const length = Buffer.byteLength(value)
      const at = this.#reserve(length)
      this.#bytes.write(value, at, length)
      this.uint32(length)
    }
  }

  /**
   * The written bytes as a copy; the writer is then empty. The copy may come from a shared pool: copy it to keep it
   * long.
   */
  finish(): Buffer {
    const out = Buffer.from(this.#bytes.subarray(this.#at))
    this.reset()
    return out
  }

  /** Forgets what was written. Memory that grew far beyond the usual is given back. */
  reset(): void {
    if (this.#bytes.length > 1 << 20) this.#bytes = Buffer.allocUnsafeSlow(FIRST_BYTES)
    this.#at = this.#bytes.length
  }

  /** False, with nothing written, when `value` is not all ASCII. */
  #shortAscii(value: string): boolean {
    const at = this.#reserve(value.length)
    const bytes = this.#bytes
    for (let index = 0; index < value.length; index++) {
      const code = value.charCodeAt(index)
      if (code > 0x7f) {
        this.#at += value.length
        return false
      }
      bytes[at + index] = code
    }
    this.uint32(value.length)
    return true
  }

  #varint(low: number, high: number): void {
    let size = 1
    if (high === 0) for (let rest = low >>> 7; rest > 0; rest >>>= 7) size++
    else {
      size = 5
      for (let rest = high >>> 3; rest > 0; rest >>>= 7) size++
    }
    let at = this.#reserve(size)
    const bytes = this.#bytes
    let lowRest = low
    let highRest = high
    for (; size > 1; size--) {
      bytes[at++] = (lowRest & 0x7f) | 0x80
      lowRest = ((lowRest >>> 7) | (highRest << 25)) >>> 0
      highRest >>>= 7
    }
    bytes[at] = lowRest
  }

  #writeHalves(halves: readonly number[]): void {
    let at = this.#reserve(4 * halves.length)
    for (const half of halves) at = this.#bytes.writeUInt32LE(half, at)
  }

  /** Makes room for `size` more bytes in front and answers where they begin. */
  #reserve(size: number): number {
    if (size > this.#at) this.#grow(size)
    this.#at -= size
    return this.#at
  }

  #grow(size: number): void {
    const written = this.#bytes.subarray(this.#at)
    const larger = Buffer.allocUnsafeSlow(Math.max(this.#bytes.length * 2, written.length + size))
    this.#at = larger.length - written.length
    larger.set(written, this.#at)
    this.#bytes = larger
  }
}

/** Low and high 32 bits, both unsigned. */
function splitUnsigned(value: Int64): [number, number] {
  if (typeof value === 'bigint') {
    if (value !== BigInt.asUintN(64, value)) throw new ProtobufError(`Not an unsigned 64-bit integer: ${value}`)
    return splitBig(value)
  }
  if (!Number.isSafeInteger(value) || value < 0) throw new ProtobufError(`Not an exact unsigned integer: ${value}`)
  return [value >>> 0, (value / TWO_32) >>> 0]
}

function splitSigned(value: Int64): [number, number] {
  if (typeof value === 'bigint') {
    if (value !== BigInt.asIntN(64, value)) throw new ProtobufError(`Not a 64-bit integer: ${value}`)
    return splitBig(BigInt.asUintN(64, value))
  }
  if (!Number.isSafeInteger(value)) throw new ProtobufError(`Not an exact integer: ${value}`)
  return [value >>> 0, Math.floor(value / TWO_32) >>> 0]
}

function splitBig(value: bigint): [number, number] {
  return [Number(value & 0xffff_ffffn), Number(value >> 32n)]
}
