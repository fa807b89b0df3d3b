/**
 * Joins compressed parts into one gzip stream without compressing again. The checksum of the stream is computed from
 * the checksums of the parts.
 */
import type * as Zlib from 'node:zlib'

/** Loaded when something is compressed: that takes 15 ms, which a start need not wait for. */
const zlib = (): typeof Zlib => process.getBuiltinModule('node:zlib')

export interface GzipPart {
  /** Blocks of deflate, none of them marked as the last. */
  readonly blocks: Buffer
  /** Of the original bytes. */
  readonly checksum: number
  readonly length: number
}

/** The fastest there is: what is sent within a machine room hardly gains from more. */
const LEVEL = 1
/** The maximum of a block without compression. */
const MAX_STORED = 0xffff

/** Compresses on a thread of the pool, asynchronously. */
export function deflatePart(bytes: Buffer): Promise<GzipPart> {
  const { constants, crc32, deflateRaw } = zlib()
  const options = { level: LEVEL, finishFlush: constants.Z_SYNC_FLUSH }
  return new Promise((resolve, reject) => {
    deflateRaw(bytes, options, (error, blocks) => {
      if (error === null) resolve({ blocks, checksum: crc32(bytes), length: bytes.length })
      else reject(error)
    })
  })
}

/** The bytes as they are: for small parts that are new each time. Throws beyond 64 KiB. */
export function storedPart(bytes: Buffer): GzipPart {
  if (bytes.length > MAX_STORED) throw new RangeError(`A stored part holds ${MAX_STORED} bytes, not ${bytes.length}`)
  const head = Buffer.from([0, 0, 0, 0, 0])
  head.writeUInt16LE(bytes.length, 1)
  head.writeUInt16LE(~bytes.length & MAX_STORED, 3)
  return { blocks: Buffer.concat([head, bytes]), checksum: zlib().crc32(bytes), length: bytes.length }
}

const HEAD = Buffer.from([0x1f, 0x8b, 8, 0, 0, 0, 0, 0, 0, 0xff])
/** An empty block that says it is the last. */
const LAST_BLOCK = Buffer.from([1, 0, 0, 0xff, 0xff])

/** The gzip of the parts' bytes in a row, in pieces. */
export function joinGzip(parts: readonly GzipPart[]): Buffer[] {
  let checksum = 0
  let length = 0
  for (const part of parts) {
    checksum = joinChecksums(checksum, part)
    length += part.length
  }
  const tail = Buffer.alloc(8)
  tail.writeUInt32LE(checksum)
  tail.writeUInt32LE(length % 2 ** 32, 4)
  return [HEAD, ...parts.map(({ blocks }) => blocks), LAST_BLOCK, tail]
}

/**
 * CRC-32 of two texts in a row. A checksum is a polynomial over GF(2), modulo the generator; appending n bytes multiplies
 * it by x to the 8n.
 */
function joinChecksums(before: number, { checksum, length }: GzipPart): number {
  return (multiply(power(length * 8), before) ^ checksum) >>> 0
}

/** The generator of CRC-32. In this notation the highest bit is x to the 0. */
const GENERATOR = 0xedb88320
const ONE = 0x80000000

function multiply(a: number, b: number): number {
  let product = 0
  for (let bit = ONE; bit !== 0; bit >>>= 1) {
    if ((a & bit) !== 0) product ^= b
    b = (b & 1) === 0 ? b >>> 1 : (b >>> 1) ^ GENERATOR
  }
  return product >>> 0
}

/** x to the 1, 2, 4, 8, …: one for each binary digit of a length in bits. */
const SQUARES: readonly number[] = squares(52)

function squares(count: number): number[] {
  const all: number[] = []
  for (let square = ONE >>> 1; all.length < count; square = multiply(square, square)) all.push(square)
  return all
}

/** x to the `exponent`. */
function power(exponent: number): number {
  let result = ONE
  for (let at = 0, left = exponent; left > 0; at++, left = Math.floor(left / 2)) {
    if (left % 2 === 1) result = multiply(SQUARES[at] ?? ONE, result)
  }
  return result
}
