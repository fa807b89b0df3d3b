/**
 * Encodes and decodes header blocks of SPDY/3: names and values in one zlib stream per connection. Our blocks are
 * stored without compression.
 */
import { DICTIONARY_ID, HEADER_DICTIONARY } from './dictionary.ts'

/** By name in lower case. */
export type SpdyHeaders = ReadonlyMap<string, string>

/** A peer's headers unpacked. Those of Kubernetes are a hundred bytes. */
const MAX_BLOCK_BYTES = 64 << 10
const MAX_HEADERS = 100
/** The maximum of one stored block. */
const MAX_STORED_BYTES = 0xffff

/** Says zlib, 32 KiB window, with a dictionary; its last five bits make the two bytes a multiple of 31. */
const ZLIB_HEAD = 0x78bb
/** An empty stored block, which makes the receiver emit everything before it. */
const FLUSH: Buffer = Buffer.from([0, 0, 0, 0xff, 0xff])

/** Writes the blocks of one connection, in the order in which they are sent. */
export class HeaderWriter {
  #isFirst = true

  write(headers: Iterable<readonly [string, string]>): Buffer {
    const parts = this.#isFirst ? [streamHead()] : []
    this.#isFirst = false
    const plain = plainBlock([...headers])
    for (let at = 0; at < plain.length; at += MAX_STORED_BYTES) {
      parts.push(...storedBlock(plain.subarray(at, at + MAX_STORED_BYTES)))
    }
    return Buffer.concat([...parts, FLUSH])
  }
}

function streamHead(): Buffer {
  const head = Buffer.alloc(6)
  head.writeUInt16BE(ZLIB_HEAD)
  head.writeUInt32BE(DICTIONARY_ID, 2)
  return head
}

function storedBlock(bytes: Buffer): [Buffer, Buffer] {
  const head = Buffer.alloc(5)
  head.writeUInt16LE(bytes.length, 1)
  head.writeUInt16LE(~bytes.length & 0xffff, 3)
  return [head, bytes]
}

function plainBlock(headers: readonly (readonly [string, string])[]): Buffer {
  const count = Buffer.alloc(4)
  count.writeUInt32BE(headers.length)
  const texts = headers.flatMap(([name, value]) => [name.toLowerCase(), value])
  return Buffer.concat([count, ...texts.flatMap((text) => lengthPrefixed(Buffer.from(text)))])
}

function lengthPrefixed(bytes: Buffer): [Buffer, Buffer] {
  const length = Buffer.alloc(4)
  length.writeUInt32BE(bytes.length)
  return [length, bytes]
}

/** Reads the blocks of one connection, in the order in which they came: one at a time. */
export class HeaderReader {
  readonly #inflate = process.getBuiltinModule('node:zlib').createInflate({ dictionary: HEADER_DICTIONARY })

  /** Rejects when the block is no header block, or too large; the stream cannot be read on after that. */
  async read(block: Buffer): Promise<SpdyHeaders> {
    return parseBlock(await this.#unpack(block))
  }

  close(): void {
    this.#inflate.close()
  }

  #unpack(block: Buffer): Promise<Buffer> {
    const inflate = this.#inflate
    return new Promise((resolve, reject) => {
      const pieces: Buffer[] = []
      let size = 0
      const finish = (settle: () => void): void => {
        inflate.off('data', onData)
        inflate.off('error', onError)
        settle()
      }
      const onError = (cause: Error): void => finish(() => reject(new Error('Broken header block', { cause })))
      const onData = (piece: Buffer): void => {
        pieces.push(piece)
        size += piece.length
        if (size > MAX_BLOCK_BYTES) onError(new Error(`More than ${MAX_BLOCK_BYTES} bytes of headers`))
      }
      inflate.on('data', onData)
      inflate.on('error', onError)
      inflate.write(block)
      // Peers flush at the end of every block, so that all of it can be had by now.
      inflate.flush(() => finish(() => resolve(Buffer.concat(pieces))))
    })
  }
}

function parseBlock(plain: Buffer): SpdyHeaders {
  const headers = new Map<string, string>()
  if (plain.length < 4) throw new Error('Broken header block: too short')
  const count = plain.readUInt32BE(0)
  if (count > MAX_HEADERS) throw new Error(`More than ${MAX_HEADERS} headers`)
  let at = 4
  const text = (): string => {
    const length = at + 4 <= plain.length ? plain.readUInt32BE(at) : Infinity
    if (at + 4 + length > plain.length) throw new Error('Broken header block: too short')
    const found = plain.toString('utf8', at + 4, at + 4 + length)
    at += 4 + length
    return found
  }
  for (let left = count; left > 0; left--) {
    const name = text().toLowerCase()
    // Several values of one name are separated by NUL; here each name has one.
    headers.set(name, text().split('\0')[0] ?? '')
  }
  return headers
}
