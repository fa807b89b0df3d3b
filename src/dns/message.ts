/** Encodes DNS responses within the client's size limit. Pure. */
import { parseIp } from '#lib/net/cidr.ts'

import { CLASS_IN, FLAG, HEADER_BYTES, nameBytes, pointerTo, type Query, RCODE, type Refusal, TYPE } from './wire.ts'

export interface Soa {
  readonly primary: string
  readonly mailbox: string
  readonly serial: number
  readonly refresh: number
  readonly retry: number
  readonly expire: number
  readonly minimum: number
}

/** Record data by type. */
export type RecordData =
  | { readonly address: string }
  | { readonly target: string }
  | { readonly priority: number; readonly weight: number; readonly port: number; readonly host: string }
  | { readonly text: string }
  | { readonly soa: Soa }

export interface ResourceRecord {
  readonly name: string
  readonly type: number
  readonly ttl: number
  readonly data: RecordData
}

export interface Answer {
  readonly rcode: number
  readonly authoritative: boolean
  readonly answers?: readonly ResourceRecord[]
  readonly authority?: readonly ResourceRecord[]
  readonly additional?: readonly ResourceRecord[]
  /** Sets the TC flag. */
  readonly truncated?: boolean
}

/** The safe UDP size since DNS Flag Day 2020. Larger answers use TCP, which cannot be spoofed. */
export const UDP_BYTES = 1232
export const TCP_BYTES = 65_535
/** The limit without EDNS. */
const PLAIN_BYTES = 512
const OPT_BYTES = 11

/** The size limit of a UDP response. */
export function sizeFor({ edns }: Pick<Query, 'edns'>): number {
  return edns === undefined ? PLAIN_BYTES : Math.min(Math.max(edns.size, PLAIN_BYTES), UDP_BYTES)
}

/** Reused for every message; the result is a copy. A record that begins within the limit ends within the buffer. */
const scratch = Buffer.alloc(TCP_BYTES + 2048)

/** Encodes the answer; truncates with TC at `limit`. */
export function writeAnswer(query: Query, answer: Answer, limit: number, recursionAvailable: boolean): Buffer {
  const writer = new Writer(query, limit - (query.edns === undefined ? 0 : OPT_BYTES))
  const answers = writer.section(answer.answers ?? [])
  const authority = writer.section(answer.authority ?? [])
  const additional = writer.section(answer.additional ?? [])
  const isCut = answer.truncated === true || answers < (answer.answers?.length ?? 0)
  const flags =
    (answer.authoritative ? FLAG.authoritative : 0) |
    (isCut ? FLAG.truncated : 0) |
    (recursionAvailable ? FLAG.recursionAvailable : 0)
  return finish(writer.end, query, { flags, rcode: answer.rcode, counts: [answers, authority, additional] })
}

/** The response to an unparsable query: only a header. */
export function writeRefusal({ id, flags, refusal = RCODE.refused }: Refusal): Buffer {
  const bytes = Buffer.alloc(HEADER_BYTES)
  bytes.writeUInt16BE(id, 0)
  bytes.writeUInt16BE(FLAG.response | (flags & (0x78_00 | FLAG.recursionDesired)) | refusal, 2)
  return bytes
}

interface Head {
  readonly flags: number
  readonly rcode: number
  readonly counts: readonly [number, number, number]
}

function finish(end: number, { id, flags, edns }: Query, head: Head): Buffer {
  scratch.writeUInt16BE(id, 0)
  const repeated = flags & (FLAG.recursionDesired | FLAG.checkingDisabled)
  scratch.writeUInt16BE(FLAG.response | repeated | head.flags | (head.rcode & 0xf), 2)
  scratch.writeUInt16BE(1, 4)
  scratch.writeUInt16BE(head.counts[0], 6)
  scratch.writeUInt16BE(head.counts[1], 8)
  scratch.writeUInt16BE(head.counts[2] + (edns === undefined ? 0 : 1), 10)
  const after = edns === undefined ? end : end + optRecord(edns.dnssecOk, head.rcode).copy(scratch, end)
  return Buffer.from(scratch.subarray(0, after))
}

/** Our OPT record. Contains the upper bits of an extended rcode. */
export function optRecord(dnssecOk: boolean, rcode = 0): Buffer {
  const bytes = Buffer.alloc(OPT_BYTES)
  bytes.writeUInt16BE(TYPE.OPT, 1)
  bytes.writeUInt16BE(UDP_BYTES, 3)
  bytes[5] = rcode >>> 4
  bytes.writeUInt16BE(dnssecOk ? 0x80_00 : 0, 7)
  return bytes
}

/** Appends records until one does not fit. */
class Writer {
  end: number
  readonly #limit: number
  readonly #query: Query
  #isFull = false
  /** Offsets of names for compression; created with the first name other than the question's. */
  #known: Map<string, number> | undefined

  constructor(query: Query, limit: number) {
    this.#query = query
    this.#limit = limit
    scratch.set(query.question, HEADER_BYTES)
    this.end = HEADER_BYTES + query.question.length
  }

  /** Returns the number of records that fit. */
  section(records: readonly ResourceRecord[]): number {
    let many = 0
    for (const record of records) {
      if (this.#isFull || !this.#record(record)) return many
      many++
    }
    return many
  }

  #record({ name, type, ttl, data }: ResourceRecord): boolean {
    const before = this.end
    this.#name(name)
    this.#uint16(type)
    this.#uint16(CLASS_IN)
    this.end = scratch.writeUInt32BE(ttl, this.end)
    const lengthAt = this.end
    this.end += 2
    this.#data(data)
    scratch.writeUInt16BE(this.end - lengthAt - 2, lengthAt)
    return this.end <= this.#limit || this.#full(before)
  }

  #full(before: number): boolean {
    this.end = before
    this.#isFull = true
    return false
  }

  #data(data: RecordData): void {
    if ('address' in data) this.end = writeAddress(data.address, this.end)
    else if ('target' in data) this.#name(data.target)
    else if ('host' in data) {
      this.#uint16(data.priority)
      this.#uint16(data.weight)
      this.#uint16(data.port)
      // Not compressed: RFC 2782.
      this.#plainName(data.host)
    } else if ('text' in data) {
      const bytes = Buffer.from(data.text.slice(0, 255), 'latin1')
      scratch[this.end] = bytes.length
      this.end += 1 + bytes.copy(scratch, this.end + 1)
    } else this.#soa(data.soa)
  }

  #soa({ primary, mailbox, ...numbers }: Soa): void {
    this.#name(primary)
    this.#name(mailbox)
    for (const field of ['serial', 'refresh', 'retry', 'expire', 'minimum'] as const)
      this.end = scratch.writeUInt32BE(numbers[field] >>> 0, this.end)
  }

  #uint16(value: number): void {
    this.end = scratch.writeUInt16BE(value, this.end)
  }

  /** Compressed; keeps the spelling of the question. */
  #name(name: string): void {
    if (name === this.#query.name) {
      this.#uint16(0xc0_00 | HEADER_BYTES)
      return
    }
    this.#known ??= suffixesOf(this.#query.name)
    let rest = name
    while (rest !== '') {
      const pointer = pointerTo(this.#known.get(rest) ?? Infinity)
      if (pointer !== undefined) {
        this.#uint16(pointer)
        return
      }
      this.#known.set(rest, this.end)
      const dot = rest.indexOf('.')
      this.#plainName(dot === -1 ? rest : rest.slice(0, dot), false)
      rest = dot === -1 ? '' : rest.slice(dot + 1)
    }
    scratch[this.end++] = 0
  }

  #plainName(name: string, isWhole = true): void {
    const bytes = nameBytes(name)
    const wanted = isWhole ? bytes : bytes.subarray(0, -1)
    scratch.set(wanted, this.end)
    this.end += wanted.length
  }
}

/** The offset of each suffix of the question's name. */
function suffixesOf(name: string): Map<string, number> {
  const known = new Map<string, number>()
  let at = HEADER_BYTES
  for (let rest = name; rest !== '';) {
    known.set(rest, at)
    const dot = rest.indexOf('.')
    const label = dot === -1 ? rest : rest.slice(0, dot)
    at += 1 + label.replaceAll(/\\\d{3}/g, '.').length
    rest = dot === -1 ? '' : rest.slice(dot + 1)
  }
  return known
}

function writeAddress(text: string, at: number): number {
  if (!text.includes(':')) {
    let [end, value] = [at, 0]
    for (let nth = 0; nth < text.length; nth++) {
      const code = text.charCodeAt(nth)
      if (code !== 0x2e) value = value * 10 + code - 0x30
      else {
        scratch[end++] = value
        value = 0
      }
    }
    scratch[end++] = value
    return end
  }
  const hex = (parseIp(text)?.value ?? 0n).toString(16).padStart(32, '0')
  return at + scratch.write(hex, at, 'hex')
}
