/**
 * Reads tar archives entry by entry with bounded memory. Supports POSIX ustar, pax, and GNU's long names and large
 * numbers.
 */

export interface TarEntry {
  readonly name: string
  readonly type: 'file' | 'folder' | 'link' | 'hard link' | 'other'
  readonly size: number
  /** Of links: where to. */
  readonly link: string
  /** Must be read before the next entry; unread content is skipped. */
  readonly content: AsyncIterable<Buffer>
}

/** The error of an invalid archive. */
export class TarError extends Error {
  override readonly name = 'TarError'
}

const BROKEN = 'this is no tar archive, or it is broken'
const BROKEN_PAX = 'a pax header is broken'
const LINE_END = 0x0a
const BLOCK_BYTES = 512
/** The limit of names and similar fields. */
const HEADER_BYTES = 1 << 20

/** Throws TarError at the place where it is broken, or cut short. */
export async function* readTar(bytes: AsyncIterable<Uint8Array>): AsyncGenerator<TarEntry, void, undefined> {
  const reader = new PieceReader(bytes)
  let extra: Extra = {}
  for (;;) {
    const header = await reader.block()
    // Archives end in blocks of zeros; some writers leave them out.
    if (header === undefined || header.every((byte) => byte === 0)) return reader.close()
    checkSum(header)
    const type = String.fromCharCode(header[156] ?? 0)
    const stated = numberAt(header, 124, 12)
    if (/[xgLK]/.test(type)) {
      // A size in an earlier pax header is that of the file that follows, not of this header.
      const added = readExtra(type, await reader.whole(stated))
      // A global header sets nothing that is read here.
      if (type !== 'g') extra = { ...extra, ...added }
      continue
    }
    const size = HEADER_ONLY.test(type) ? 0 : (extra.size ?? stated)
    yield {
      name: extra.name ?? nameIn(header),
      type: TYPES[type] ?? 'other',
      size: type === '0' || type === '\0' || type === '7' ? size : 0,
      link: extra.link ?? textAt(header, 157, 100),
      content: reader.content(size),
    }
    await reader.skip()
    extra = {}
  }
}

/** Links, devices, folders and pipes have no content, whatever their size field. */
const HEADER_ONLY = /[1-6]/

const TYPES: Readonly<Record<string, TarEntry['type']>> = {
  '0': 'file',
  '\0': 'file',
  '7': 'file',
  '1': 'hard link',
  '2': 'link',
  '5': 'folder',
}

interface Extra {
  readonly name?: string
  readonly link?: string
  readonly size?: number
}

function readExtra(type: string, data: Buffer): Extra {
  if (type === 'L') return { name: textAt(data, 0, data.length) }
  if (type === 'K') return { link: textAt(data, 0, data.length) }
  const values = new Map<string, string>()
  for (let at = 0; at < data.length;) {
    const blank = data.indexOf(' ', at)
    const length = decimal(data.toString('latin1', at, Math.max(at, blank)))
    const isRecord = blank >= 0 && length > blank - at + 1 && data[at + length - 1] === LINE_END
    if (!isRecord) throw new TarError(BROKEN_PAX)
    const [key = '', ...value] = data.toString('utf8', blank + 1, at + length - 1).split('=')
    if (value.length === 0) throw new TarError(BROKEN_PAX)
    values.set(key, value.join('='))
    at += length
  }
  const [name, link, size] = ['path', 'linkpath', 'size'].map((key) => values.get(key))
  return {
    ...(name !== undefined && { name }),
    ...(link !== undefined && { link }),
    ...(size !== undefined && { size: decimal(size) }),
  }
}

/** Throws TarError for all but digits, and for numbers above those that can be counted exactly. */
function decimal(text: string): number {
  const value = /^\d+$/.test(text) ? Number(text) : Number.NaN
  if (!Number.isSafeInteger(value)) throw new TarError(BROKEN_PAX)
  return value
}

function nameIn(header: Buffer): string {
  const isUstar = header.toString('latin1', 257, 263) === 'ustar\0'
  const prefix = isUstar ? textAt(header, 345, 155) : ''
  return prefix === '' ? textAt(header, 0, 100) : `${prefix}/${textAt(header, 0, 100)}`
}

function textAt(data: Buffer, at: number, length: number): string {
  const end = data.indexOf(0, at)
  return data.toString('utf8', at, end < 0 || end > at + length ? at + length : end)
}

/** In octal digits, or, with the first bit set, as a binary number. */
function numberAt(header: Buffer, at: number, length: number): number {
  const first = header[at] ?? 0
  const value =
    first & 0x80
      ? header.subarray(at + 1, at + length).reduce((sum, byte) => sum * 256 + byte, first & 0x7f)
      : octal(textAt(header, at, length).trim())
  if (!Number.isSafeInteger(value) || value < 0) throw new TarError(BROKEN)
  return value
}

function octal(digits: string): number {
  return /^[0-7]*$/.test(digits) ? Number.parseInt(digits || '0', 8) : Number.NaN
}

function checkSum(header: Buffer): void {
  const stated = numberAt(header, 148, 8)
  const sum = header.reduce((total, byte, at) => total + (at >= 148 && at < 156 ? 0x20 : byte), 0)
  if (sum !== stated) throw new TarError(BROKEN)
}

/** Pieces of any size as blocks, and as contents of known size. */
class PieceReader {
  readonly #pieces: AsyncIterator<Uint8Array>
  #buffered: Buffer = Buffer.alloc(0)
  /** Of the content that was handed out last, with what fills its last block. */
  #left = 0
  #padding = 0

  constructor(bytes: AsyncIterable<Uint8Array>) {
    this.#pieces = bytes[Symbol.asyncIterator]()
  }

  /** Undefined at the end. */
  async block(): Promise<Buffer | undefined> {
    while (this.#buffered.length < BLOCK_BYTES) {
      const next = await this.#next()
      if (next === undefined && this.#buffered.length === 0) return undefined
      if (next === undefined) throw new TarError('the archive is cut short')
      this.#buffered = Buffer.concat([this.#buffered, next])
    }
    return this.#take(BLOCK_BYTES)
  }

  content(size: number): AsyncIterable<Buffer> {
    this.#left = size
    this.#padding = (BLOCK_BYTES - (size % BLOCK_BYTES)) % BLOCK_BYTES
    return this.#parts()
  }

  async *#parts(): AsyncGenerator<Buffer> {
    for (let part = await this.#part(); part !== undefined; part = await this.#part()) yield part
  }

  async whole(size: number): Promise<Buffer> {
    if (size > HEADER_BYTES) throw new TarError('a header is too large')
    const parts: Buffer[] = []
    for await (const part of this.content(size)) parts.push(part)
    await this.skip()
    return Buffer.concat(parts)
  }

  /** To the next header. */
  async skip(): Promise<void> {
    while ((await this.#part()) !== undefined);
    this.#left = this.#padding
    this.#padding = 0
    while ((await this.#part()) !== undefined);
  }

  /** Lets go of what comes after the end. */
  async close(): Promise<void> {
    await this.#pieces.return?.()
  }

  async #part(): Promise<Buffer | undefined> {
    if (this.#left === 0) return undefined
    if (this.#buffered.length === 0) {
      const next = await this.#next()
      if (next === undefined) throw new TarError('the archive is cut short')
      this.#buffered = next
    }
    const part = this.#take(Math.min(this.#left, this.#buffered.length))
    this.#left -= part.length
    return part
  }

  #take(length: number): Buffer {
    const taken = this.#buffered.subarray(0, length)
    this.#buffered = this.#buffered.subarray(length)
    return taken
  }

  async #next(): Promise<Buffer | undefined> {
    const { done, value } = await this.#pieces.next()
    return done === true ? undefined : Buffer.from(value.buffer, value.byteOffset, value.byteLength)
  }
}
