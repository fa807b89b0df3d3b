/**
 * Writes and reads DER, the encoding of certificates and keys. The reader accepts only canonical DER and throws only
 * `Asn1Error`.
 */
import { isUtf8 } from 'node:buffer'

/** The reader's error; also thrown by the writers for values that DER cannot represent. */
export class Asn1Error extends Error {
  override readonly name = 'Asn1Error'
}

/** Tag bytes (class, constructed bit and number together) of the universal types in use. */
export const TAG = {
  boolean: 0x01,
  integer: 0x02,
  bitString: 0x03,
  octetString: 0x04,
  null: 0x05,
  oid: 0x06,
  utf8String: 0x0c,
  numericString: 0x12,
  printableString: 0x13,
  teletexString: 0x14,
  ia5String: 0x16,
  utcTime: 0x17,
  generalizedTime: 0x18,
  visibleString: 0x1a,
  bmpString: 0x1e,
  sequence: 0x30,
  set: 0x31,
} as const

/** The tag byte of context-specific element `[number]`. */
export function contextTag(number: number, constructed = true): number {
  return (constructed ? 0xa0 : 0x80) | number
}

/** One element: tag, length, contents. */
export function element(tag: number, ...contents: readonly Buffer[]): Buffer {
  let length = 0
  for (const part of contents) length += part.length
  return Buffer.concat([elementHead(tag, length), ...contents])
}

function elementHead(tag: number, length: number): Buffer {
  if (length < 0x80) return Buffer.from([tag, length])
  if (length < 0x100) return Buffer.from([tag, 0x81, length])
  if (length < 0x1_0000) return Buffer.from([tag, 0x82, length >> 8, length & 0xff])
  if (length < 0x100_0000) return Buffer.from([tag, 0x83, length >> 16, (length >> 8) & 0xff, length & 0xff])
  throw new Asn1Error(`Element of ${length} bytes is too long to write`)
}

export function sequence(...parts: readonly Buffer[]): Buffer {
  return element(TAG.sequence, ...parts)
}

/** SET OF: DER wants the members sorted by their encoding. */
export function setOf(...parts: readonly Buffer[]): Buffer {
  return element(TAG.set, ...parts.toSorted((a, b) => Buffer.compare(a, b)))
}

/** An INTEGER that is never negative, from a small number or from big-endian magnitude bytes. */
export function integer(value: number | Buffer): Buffer {
  const bytes = typeof value === 'number' ? magnitude(value) : value
  let start = 0
  while (start < bytes.length - 1 && bytes[start] === 0) start++
  const trimmed = bytes.subarray(start)
  const negativeLooking = ((trimmed[0] ?? 0) & 0x80) !== 0
  return element(TAG.integer, ...(negativeLooking || trimmed.length === 0 ? [Buffer.from([0]), trimmed] : [trimmed]))
}

function magnitude(value: number): Buffer {
  if (!Number.isSafeInteger(value) || value < 0) throw new Asn1Error(`Not a whole number that can be written: ${value}`)
  const bytes = Buffer.alloc(8)
  bytes.writeBigUInt64BE(BigInt(value))
  return bytes
}

export function boolean(value: boolean): Buffer {
  return element(TAG.boolean, Buffer.from([value ? 0xff : 0x00]))
}

export function nothing(): Buffer {
  return element(TAG.null)
}

export function octetString(bytes: Buffer): Buffer {
  return element(TAG.octetString, bytes)
}

/** BIT STRING of whole bytes, or with `unusedBits` low bits of the last byte left out. */
export function bitString(bytes: Buffer, unusedBits = 0): Buffer {
  return element(TAG.bitString, Buffer.from([unusedBits]), bytes)
}

/** BIT STRING of named flags as X.509 writes them: bit 0 first, trailing zero bits dropped. */
export function flagBits(bits: readonly number[]): Buffer {
  const highest = Math.max(-1, ...bits)
  const bytes = Buffer.alloc((highest >> 3) + 1)
  for (const bit of bits) bytes[bit >> 3] = (bytes[bit >> 3] ?? 0) | (0x80 >> (bit & 7))
  return bitString(bytes, highest < 0 ? 0 : 7 - (highest & 7))
}

export function utf8String(text: string): Buffer {
  return element(TAG.utf8String, Buffer.from(text))
}

/** An OBJECT IDENTIFIER from its dotted form. */
export function oid(dotted: string): Buffer {
  const arcs = dotted.split('.').map(Number)
  const [first, second, ...rest] = arcs
  if (first === undefined || second === undefined || arcs.some((arc) => !Number.isSafeInteger(arc) || arc < 0)) {
    throw new Asn1Error(`Not an object identifier: "${dotted}"`)
  }
  const bytes: number[] = []
  for (const arc of [first * 40 + second, ...rest]) bytes.push(...base128(arc))
  return element(TAG.oid, Buffer.from(bytes))
}

function base128(arc: number): number[] {
  const out = [arc % 128]
  for (let rest = Math.floor(arc / 128); rest > 0; rest = Math.floor(rest / 128)) out.unshift((rest % 128) | 0x80)
  return out
}

/** A moment with whole seconds: UTCTime for the years 1950 to 2049, GeneralizedTime otherwise, as RFC 5280 wants. */
export function time(ms: number): Buffer {
  const date = new Date(ms)
  const year = date.getUTCFullYear()
  if (!(year >= 0 && year <= 9999)) throw new Asn1Error(`Not a moment that can be written: ${ms}`)
  const digits = date.toISOString().slice(0, 19).replaceAll(/[-:T]/g, '')
  const short = year >= 1950 && year <= 2049
  return element(short ? TAG.utcTime : TAG.generalizedTime, Buffer.from(`${short ? digits.slice(2) : digits}Z`))
}

/** Deeper nesting than any certificate has; a bound for hostile input, not for honest one. */
const MAX_DEPTH = 32

/** Far above any certificate or request, far below what would hold up the process. */
const MAX_BYTES = 1 << 20

/** One element as read. Its inside is looked at only by the methods, which throw `Asn1Error` when it does not fit. */
export interface DerElement {
  readonly tag: number
  readonly contents: Buffer
  /** The element with its tag and length, sharing memory with the input. */
  readonly raw: Buffer
  /** The elements inside a constructed element, in order. */
  children(): DerElement[]
}

/** Reads exactly one element that fills `bytes`; more than `limitBytes` are refused unread. */
export function readDer(bytes: Buffer, limitBytes: number = MAX_BYTES): DerElement {
  if (bytes.length > limitBytes) throw new Asn1Error(`${bytes.length} bytes are more than the limit of ${limitBytes}`)
  const first = readElement(bytes, 0, 0)
  if (first.raw.length !== bytes.length) throw new Asn1Error('Bytes follow the element')
  return first
}

function readElement(bytes: Buffer, at: number, depth: number): DerElement {
  const tag = bytes[at]
  if (tag === undefined) throw new Asn1Error('Element is cut off')
  if ((tag & 0x1f) === 0x1f) throw new Asn1Error('Tags of several bytes are not supported')
  const { length, start } = readLength(bytes, at + 1)
  if (length > bytes.length - start) throw new Asn1Error('Element is cut off')
  const contents = bytes.subarray(start, start + length)
  return {
    tag,
    contents,
    raw: bytes.subarray(at, start + length),
    children: () => readChildren(tag, contents, depth + 1),
  }
}

function readLength(bytes: Buffer, at: number): { length: number; start: number } {
  const first = bytes[at]
  if (first === undefined) throw new Asn1Error('Element is cut off')
  if (first < 0x80) return { length: first, start: at + 1 }
  const count = first & 0x7f
  if (count === 0 || count > 4) throw new Asn1Error('Length is indefinite or absurd')
  if (at + 1 + count > bytes.length) throw new Asn1Error('Element is cut off')
  const length = bytes.readUIntBE(at + 1, count)
  if (length < 0x80 || length < 2 ** (8 * (count - 1))) throw new Asn1Error('Length is not in its shortest form')
  return { length, start: at + 1 + count }
}

function readChildren(tag: number, contents: Buffer, depth: number): DerElement[] {
  if ((tag & 0x20) === 0) throw new Asn1Error('Element has no inside')
  if (depth > MAX_DEPTH) throw new Asn1Error(`Nesting is deeper than ${MAX_DEPTH}`)
  const out: DerElement[] = []
  for (let at = 0; at < contents.length;) {
    const child = readElement(contents, at, depth)
    out.push(child)
    at += child.raw.length
  }
  return out
}

/** The element if it has the wanted tag; `what` names it in the refusal. */
export function expectTag(found: DerElement | undefined, tag: number, what: string): DerElement {
  if (found === undefined) throw new Asn1Error(`${what} is missing`)
  if (found.tag !== tag) throw new Asn1Error(`${what} has tag ${found.tag} instead of ${tag}`)
  return found
}

/** Dotted form of an OBJECT IDENTIFIER. */
export function readOid(found: DerElement | undefined): string {
  const { contents } = expectTag(found, TAG.oid, 'Object identifier')
  if (contents.length === 0 || ((contents.at(-1) ?? 0) & 0x80) !== 0)
    throw new Asn1Error('Object identifier is cut off')
  const arcs: number[] = []
  let arc = 0
  for (const byte of contents) {
    if (arc === 0 && byte === 0x80) throw new Asn1Error('Object identifier is not in its shortest form')
    arc = arc * 128 + (byte & 0x7f)
    if (arc > Number.MAX_SAFE_INTEGER / 128) throw new Asn1Error('Object identifier is too large')
    if ((byte & 0x80) !== 0) continue
    if (arcs.length === 0) {
      const root = Math.min(2, Math.floor(arc / 40))
      arcs.push(root, arc - root * 40)
    } else arcs.push(arc)
    arc = 0
  }
  return arcs.join('.')
}

export function readBoolean(found: DerElement | undefined): boolean {
  const { contents } = expectTag(found, TAG.boolean, 'Boolean')
  if (contents.length !== 1 || (contents[0] !== 0 && contents[0] !== 0xff)) throw new Asn1Error('Not a DER boolean')
  return contents[0] === 0xff
}

/** Magnitude of an INTEGER that is not negative, without leading zeros (one zero byte for 0). */
export function readInteger(found: DerElement | undefined): Buffer {
  const { contents } = expectTag(found, TAG.integer, 'Integer')
  const [first, second] = contents
  if (first === undefined) throw new Asn1Error('Integer is empty')
  if ((first & 0x80) !== 0) throw new Asn1Error('Integer is negative')
  if (first === 0 && second !== undefined && (second & 0x80) === 0) {
    throw new Asn1Error('Integer is not in its shortest form')
  }
  return first === 0 && second !== undefined ? contents.subarray(1) : contents
}

/** An INTEGER from 0 to 2^31-1. */
export function readSmallInteger(found: DerElement | undefined): number {
  const bytes = readInteger(found)
  const value = bytes.length > 4 ? Number.POSITIVE_INFINITY : bytes.readUIntBE(0, bytes.length)
  if (value > 0x7fff_ffff) throw new Asn1Error('Integer is too large')
  return value
}

/** The bytes of a BIT STRING that consists of whole bytes. */
export function readBitString(found: DerElement | undefined): Buffer {
  const { contents } = expectTag(found, TAG.bitString, 'Bit string')
  if (contents[0] !== 0) throw new Asn1Error('Bit string does not consist of whole bytes')
  return contents.subarray(1)
}

/** Numbers of the set bits of a BIT STRING of named flags, at most 16. */
export function readFlagBits(found: DerElement | undefined): number[] {
  const { contents } = expectTag(found, TAG.bitString, 'Bit string')
  if (contents.length < 1 || contents.length > 3 || (contents[0] ?? 8) > 7) throw new Asn1Error('Not a set of flags')
  const out: number[] = []
  for (let bit = 0; bit < (contents.length - 1) * 8; bit++) {
    if (((contents[1 + (bit >> 3)] ?? 0) & (0x80 >> (bit & 7))) !== 0) out.push(bit)
  }
  return out
}

/** Text of any of the string types that names in certificates use. */
export function readText(found: DerElement | undefined): string {
  switch (found?.tag) {
    case TAG.utf8String:
      return decodeUtf8(found.contents)
    case TAG.printableString:
    case TAG.numericString:
    case TAG.ia5String:
    case TAG.visibleString:
      return readAscii(found)
    case TAG.teletexString:
      return found.contents.toString('latin1')
    case TAG.bmpString:
      if (found.contents.length % 2 !== 0) throw new Asn1Error('Text is cut off')
      return Buffer.from(found.contents).swap16().toString('utf16le')
    default:
      throw new Asn1Error('Not a text')
  }
}

function decodeUtf8(bytes: Buffer): string {
  if (!isUtf8(bytes)) throw new Asn1Error('Text is not UTF-8')
  return bytes.toString()
}

/** The contents as ASCII text, for any tag (for implicitly tagged IA5 strings). */
export function readAscii(found: DerElement): string {
  if (found.contents.some((byte) => byte > 0x7f)) throw new Asn1Error('Text is not ASCII')
  return found.contents.toString('latin1')
}

/** Milliseconds since the epoch of a UTCTime or GeneralizedTime in the one form RFC 5280 allows. */
export function readTime(found: DerElement | undefined): number {
  const text = found?.contents.toString('latin1') ?? ''
  let digits = text.slice(0, -1)
  if (found?.tag === TAG.utcTime) digits = (Number(text.slice(0, 2)) >= 50 ? '19' : '20') + digits
  else if (found?.tag !== TAG.generalizedTime) throw new Asn1Error('Not a time')
  const fields = /^(\d{4})(\d\d)(\d\d)(\d\d)(\d\d)(\d\d)$/.exec(digits)
  if (fields === null || !text.endsWith('Z')) throw new Asn1Error('Not a time with whole seconds in UTC')
  const [year, month, day, hour, minute, second] = fields.slice(1) as [string, string, string, string, string, string]
  const ms = Date.parse(`${year}-${month}-${day}T${hour}:${minute}:${second}Z`)
  if (!Number.isFinite(ms) || new Date(ms).getUTCDate() !== Number(day)) throw new Asn1Error(`Not a time: "${digits}"`)
  return ms
}
