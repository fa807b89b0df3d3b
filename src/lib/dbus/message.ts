/** Encodes and decodes D-Bus messages: the header, and a body described by a signature. Pure. */

export type DbusValue = string | number | bigint | boolean | Buffer | Variant | readonly DbusValue[]

/** A value that says its own type. */
export interface Variant {
  readonly signature: string
  readonly value: DbusValue
}

export const MESSAGE = { call: 1, answer: 2, error: 3, signal: 4 } as const

export interface DbusMessage {
  readonly type: number
  readonly serial: number
  readonly path?: string
  readonly interface?: string
  readonly member?: string
  readonly errorName?: string
  /** The serial of what it answers. */
  readonly answers?: number
  readonly destination?: string
  readonly sender?: string
  readonly signature?: string
  readonly body: readonly DbusValue[]
}

/** A message may not be longer, by the specification. */
const MAX_BYTES = 134_217_728

const SIGNATURE = 8
const FIELDS = [
  ['path', 1, 'o'],
  ['interface', 2, 's'],
  ['member', 3, 's'],
  ['errorName', 4, 's'],
  ['answers', 5, 'u'],
  ['destination', 6, 's'],
  ['sender', 7, 's'],
  ['signature', SIGNATURE, 'g'],
] as const

const ALIGNMENTS: Readonly<Record<string, number>> = {
  y: 1,
  g: 1,
  v: 1,
  n: 2,
  q: 2,
  b: 4,
  i: 4,
  u: 4,
  h: 4,
  s: 4,
  o: 4,
  a: 4,
  x: 8,
  t: 8,
  d: 8,
  '(': 8,
  '{': 8,
}
const CLOSING: Readonly<Record<string, string>> = { '(': ')', '{': '}' }

/** `a{sv}u` as its complete types: `a{sv}`, `u`. Throws for what is none. */
export function typesIn(signature: string): string[] {
  const types: string[] = []
  for (let at = 0; at < signature.length;) {
    const end = endOfType(signature, at)
    types.push(signature.slice(at, end))
    at = end
  }
  return types
}

function endOfType(signature: string, at: number): number {
  const first = signature[at] ?? ''
  if (ALIGNMENTS[first] === undefined) throw new Error(`Not a signature of D-Bus: "${signature}"`)
  if (first === 'a') return endOfType(signature, at + 1)
  const closing = CLOSING[first]
  if (closing === undefined) return at + 1
  let next = at + 1
  while (signature[next] !== closing) next = endOfType(signature, next)
  return next + 1
}

const padding = (offset: number, alignment: number): number => (alignment - (offset % alignment)) % alignment

class Writer {
  readonly #pieces: Buffer[] = []
  length = 0

  align(alignment: number): void {
    this.bytes(Buffer.alloc(padding(this.length, alignment)))
  }

  bytes(piece: Buffer): void {
    this.#pieces.push(piece)
    this.length += piece.length
  }

  uint32(value: number): void {
    this.align(4)
    const piece = Buffer.alloc(4)
    piece.writeUInt32LE(value >>> 0)
    this.bytes(piece)
  }

  write(type: string, value: DbusValue): void {
    switch (type[0]) {
      case 'y':
        return this.bytes(Buffer.of(Number(value)))
      case 'b':
      case 'u':
      case 'i':
        return this.uint32(Number(value))
      case 't':
      case 'x':
        return this.#uint64(value as bigint)
      case 's':
      case 'o':
        return this.#text(value as string, 4)
      case 'g':
        return this.#text(value as string, 1)
      case 'v':
        return this.#variant(value as Variant)
      case 'a':
        return this.#array(type.slice(1), value as readonly DbusValue[])
      default:
        return this.#struct(type, value as readonly DbusValue[])
    }
  }

  #uint64(value: bigint): void {
    this.align(8)
    const piece = Buffer.alloc(8)
    piece.writeBigUInt64LE(BigInt.asUintN(64, value))
    this.bytes(piece)
  }

  #text(text: string, widthOfLength: 1 | 4): void {
    const bytes = Buffer.from(text)
    if (widthOfLength === 4) this.uint32(bytes.length)
    else this.bytes(Buffer.of(bytes.length))
    this.bytes(bytes)
    this.bytes(Buffer.alloc(1))
  }

  #variant({ signature, value }: Variant): void {
    this.write('g', signature)
    this.write(signature, value)
  }

  #array(type: string, values: readonly DbusValue[]): void {
    const piece = Buffer.alloc(4)
    this.align(4)
    this.bytes(piece)
    this.align(ALIGNMENTS[type[0] ?? ''] ?? 1)
    const startedAt = this.length
    for (const value of values) this.write(type, value)
    piece.writeUInt32LE(this.length - startedAt)
  }

  #struct(type: string, values: readonly DbusValue[]): void {
    this.align(8)
    for (const [at, each] of typesIn(type.slice(1, -1)).entries()) this.write(each, values[at] ?? '')
  }

  done(): Buffer {
    return Buffer.concat(this.#pieces, this.length)
  }
}

export function encodeMessage({ type, serial, body, ...fields }: DbusMessage): Buffer {
  const content = new Writer()
  for (const [at, each] of typesIn(fields.signature ?? '').entries()) content.write(each, body[at] ?? '')
  const head = new Writer()
  // Little-endian, no flags, version 1.
  head.bytes(Buffer.of(LITTLE, type, 0, 1))
  head.uint32(content.length)
  head.uint32(serial)
  const headerFields = FIELDS.flatMap(([name, code, signature]) => {
    const value = fields[name]
    return value === undefined ? [] : [[code, { signature, value }]]
  })
  head.write('a(yv)', headerFields)
  head.align(8)
  return Buffer.concat([head.done(), content.done()])
}

const LITTLE = 0x6c

class Reader {
  readonly #bytes: Buffer
  readonly #isLittle: boolean
  at = 0

  constructor(bytes: Buffer, isLittle: boolean) {
    this.#bytes = bytes
    this.#isLittle = isLittle
  }

  align(alignment: number): void {
    this.at += padding(this.at, alignment)
  }

  #take(length: number): Buffer {
    if (this.at + length > this.#bytes.length) throw new Error('A message of D-Bus ends too soon')
    this.at += length
    return this.#bytes.subarray(this.at - length, this.at)
  }

  uint32(): number {
    this.align(4)
    const bytes = this.#take(4)
    return this.#isLittle ? bytes.readUInt32LE() : bytes.readUInt32BE()
  }

  #uint64(): bigint {
    this.align(8)
    const bytes = this.#take(8)
    return this.#isLittle ? bytes.readBigUInt64LE() : bytes.readBigUInt64BE()
  }

  #text(length: number): string {
    const text = this.#take(length).toString()
    this.#take(1)
    return text
  }

  read(type: string): DbusValue {
    switch (type[0]) {
      case 'y':
        return this.#take(1).readUInt8()
      case 'b':
        return this.uint32() !== 0
      case 'u':
      case 'h':
        return this.uint32()
      case 'i':
        return this.uint32() | 0
      case 't':
        return this.#uint64()
      case 'x':
        return BigInt.asIntN(64, this.#uint64())
      case 's':
      case 'o':
        return this.#text(this.uint32())
      case 'g':
        return this.#signature()
      case 'v':
        return this.#variant()
      case 'a':
        return this.#array(type.slice(1))
      case '(':
      case '{':
        this.align(8)
        return typesIn(type.slice(1, -1)).map((each) => this.read(each))
      default:
        throw new Error(`A type of D-Bus that is not read: "${type}"`)
    }
  }

  #signature(): string {
    return this.#text(this.#take(1).readUInt8())
  }

  #variant(): Variant {
    const signature = this.#signature()
    return { signature, value: this.read(signature) }
  }

  #array(type: string): DbusValue[] {
    const length = this.uint32()
    this.align(ALIGNMENTS[type[0] ?? ''] ?? 1)
    const end = this.at + length
    const values: DbusValue[] = []
    while (this.at < end) values.push(this.read(type))
    return values
  }
}

const HEAD_BYTES = 16

/** The length of the message that begins here; undefined while it is unknown. Throws for an invalid message. */
export function messageLength(bytes: Buffer): number | undefined {
  if (bytes.length < HEAD_BYTES) return undefined
  const isLittle = bytes[0] === LITTLE
  const at = (offset: number): number => (isLittle ? bytes.readUInt32LE(offset) : bytes.readUInt32BE(offset))
  const fields = HEAD_BYTES + at(12)
  const length = fields + padding(fields, 8) + at(4)
  if (length > MAX_BYTES) throw new Error('A message of D-Bus is too long')
  return length
}

/** `bytes`: exactly one. */
export function decodeMessage(bytes: Buffer): DbusMessage {
  const reader = new Reader(bytes, bytes[0] === LITTLE)
  const type = bytes[1] ?? 0
  reader.at = 8
  const serial = reader.uint32()
  const found = new Map((reader.read('a(yv)') as [number, Variant][]).map(([code, { value }]) => [code, value]))
  const fields = FIELDS.flatMap(([name, code]) => (found.has(code) ? [[name, found.get(code)] as const] : []))
  reader.align(8)
  const signature = found.get(SIGNATURE)
  const body = typesIn(typeof signature === 'string' ? signature : '').map((each) => reader.read(each))
  return { type, serial, ...Object.fromEntries(fields), body }
}
