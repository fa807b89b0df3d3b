/**
 * Parses DNS messages (RFC 1035, EDNS of RFC 6891): names, questions and record boundaries. Every length and count is
 * checked, because any sender may be malicious. Pure.
 *
 * A name is lower-case text without the final dot; the root is empty. Special bytes are written as `\ddd`, so that
 * equal names have equal texts.
 */

export const TYPE = {
  A: 1,
  NS: 2,
  CNAME: 5,
  SOA: 6,
  PTR: 12,
  MX: 15,
  TXT: 16,
  AAAA: 28,
  SRV: 33,
  OPT: 41,
  IXFR: 251,
  AXFR: 252,
} as const

export const CLASS_IN = 1

export const RCODE = {
  success: 0,
  formatError: 1,
  serverFailure: 2,
  nameError: 3,
  notImplemented: 4,
  refused: 5,
  badVersion: 16,
} as const

export const FLAG = {
  response: 0x80_00,
  authoritative: 0x04_00,
  truncated: 0x02_00,
  recursionDesired: 0x01_00,
  recursionAvailable: 0x00_80,
  checkingDisabled: 0x00_10,
} as const

export const HEADER_BYTES = 12
const MAX_NAME_BYTES = 255
const MAX_LABEL_BYTES = 63
const POINTER = 0xc0
const MAX_POINTER = 0x3f_ff
/** OPT and a signature. */
const MAX_ADDITIONAL = 2

/** The EDNS options of a query. */
export interface Edns {
  readonly size: number
  readonly version: number
  readonly dnssecOk: boolean
}

export interface Query {
  readonly id: number
  readonly flags: number
  /** In lower case; the original spelling is in `question`. */
  readonly name: string
  readonly type: number
  readonly class: number
  /** Name, type and class as received. */
  readonly question: Uint8Array
  readonly edns: Edns | undefined
}

/** A message that gets an rcode, or, if undefined, no response. */
export interface Refusal {
  readonly id: number
  readonly flags: number
  readonly refusal: number | undefined
}

/** The text of each byte in a name. */
const SPELLED: readonly string[] = Array.from({ length: 256 }, (_, byte) => {
  const char = String.fromCharCode(byte).toLowerCase()
  return /^[!-[\]-~]$/.test(char) && char !== '.' ? char : `\\${String(byte).padStart(3, '0')}`
})

interface NameAt {
  readonly name: string
  readonly end: number
}

/**
 * The name at `start`, ending at `end`; undefined if invalid. Each pointer must lead further back than the previous
 * one, which excludes cycles. `allowsPointers` false: none are allowed.
 */
export function readName(bytes: Uint8Array, start: number, allowsPointers = true): NameAt | undefined {
  let text = ''
  let at = start
  let end: number | undefined
  let length = 0
  let lowest = start
  for (;;) {
    const size = bytes[at]
    if (size === undefined) return undefined
    if (size === 0) return { name: text, end: end ?? at + 1 }
    if ((size & POINTER) === POINTER) {
      const target = uint16(bytes, at) & MAX_POINTER
      if (!allowsPointers || at + 1 >= bytes.length || target >= lowest) return undefined
      end ??= at + 2
      lowest = target
      at = target
      continue
    }
    length += size + 1
    if (size > MAX_LABEL_BYTES || length >= MAX_NAME_BYTES || at + size >= bytes.length) return undefined
    text += (text && '.') + readLabel(bytes, at + 1, size)
    at += size + 1
  }
}

function readLabel(bytes: Uint8Array, start: number, size: number): string {
  let text = ''
  for (let at = start; at < start + size; at++) text += SPELLED[bytes[at] ?? 0] ?? ''
  return text
}

/** The uncompressed bytes of a name. */
export function nameBytes(name: string): Uint8Array {
  if (name === '') return Uint8Array.of(0)
  const bytes: number[] = []
  for (const label of name.split('.')) {
    const plain = label.replaceAll(/\\(\d{3})/g, (_, code: string) => String.fromCharCode(Number(code)))
    bytes.push(plain.length, ...Buffer.from(plain, 'latin1'))
  }
  bytes.push(0)
  return Uint8Array.from(bytes)
}

/** Whether the text is a valid name. */
export function isName(name: string): boolean {
  const labels = name.split('.')
  return (
    name.length < MAX_NAME_BYTES - 1 && labels.every((label) => label.length > 0 && label.length <= MAX_LABEL_BYTES)
  )
}

export const uint16 = (bytes: Uint8Array, at: number): number => ((bytes[at] ?? 0) << 8) | (bytes[at + 1] ?? 0)

const uint32 = (bytes: Uint8Array, at: number): number => ((uint16(bytes, at) << 16) | uint16(bytes, at + 2)) >>> 0

/** Parses a query. Ignores responses: replying to one could cause a loop between servers. */
export function readQuery(bytes: Uint8Array): Query | Refusal {
  const [id, flags] = [uint16(bytes, 0), uint16(bytes, 2)]
  const refuse = (refusal: number | undefined): Refusal => ({ id, flags, refusal })
  if (bytes.length < HEADER_BYTES || (flags & FLAG.response) !== 0) return refuse(undefined)
  if ((flags & 0x78_00) !== 0) return refuse(RCODE.notImplemented)
  const counts = [4, 6, 8, 10].map((at) => uint16(bytes, at))
  if (counts[0] !== 1 || counts[1] !== 0 || counts[2] !== 0 || (counts[3] ?? 0) > MAX_ADDITIONAL)
    return refuse(RCODE.formatError)
  const question = readName(bytes, HEADER_BYTES, false)
  if (question === undefined || question.end + 4 > bytes.length) return refuse(RCODE.formatError)
  const edns = readEdns(bytes, question.end + 4, counts[3] ?? 0)
  if (edns === null) return refuse(RCODE.formatError)
  return {
    id,
    flags,
    name: question.name,
    type: uint16(bytes, question.end),
    class: uint16(bytes, question.end + 2),
    question: bytes.subarray(HEADER_BYTES, question.end + 4),
    edns,
  }
}

/** Null: malformed. */
function readEdns(bytes: Uint8Array, start: number, count: number): Edns | undefined | null {
  let found: Edns | undefined
  let at = start
  for (let nth = 0; nth < count; nth++) {
    const record = readRecord(bytes, at)
    if (record === undefined) return null
    at = record.end
    if (record.type !== TYPE.OPT) continue
    if (found !== undefined || record.name !== '') return null
    const ttl = uint32(bytes, record.ttlAt)
    found = { size: record.class, version: (ttl >>> 16) & 0xff, dnssecOk: (ttl & 0x80_00) !== 0 }
  }
  return found
}

/** The position of a record in a message. */
export interface RecordAt {
  readonly start: number
  readonly name: string
  readonly type: number
  readonly class: number
  readonly ttlAt: number
  readonly ttl: number
  readonly dataAt: number
  readonly end: number
}

function readRecord(bytes: Uint8Array, start: number): RecordAt | undefined {
  const owner = readName(bytes, start)
  if (owner === undefined || owner.end + 10 > bytes.length) return undefined
  const { name, end: at } = owner
  const end = at + 10 + uint16(bytes, at + 8)
  if (end > bytes.length) return undefined
  const [type, of, ttl] = [uint16(bytes, at), uint16(bytes, at + 2), uint32(bytes, at + 4)]
  return { start, name, type, class: of, ttlAt: at + 4, ttl, dataAt: at + 10, end }
}

/** A complete upstream response. */
export interface Message {
  readonly bytes: Uint8Array
  readonly id: number
  readonly flags: number
  readonly name: string
  readonly type: number
  readonly class: number
  readonly questionEnd: number
  readonly answers: readonly RecordAt[]
  readonly authority: readonly RecordAt[]
  readonly additional: readonly RecordAt[]
}

/** Undefined: malformed, or without exactly one question. */
export function readMessage(bytes: Uint8Array): Message | undefined {
  if (bytes.length < HEADER_BYTES || uint16(bytes, 4) !== 1) return undefined
  const question = readName(bytes, HEADER_BYTES, false)
  if (question === undefined || question.end + 4 > bytes.length) return undefined
  const questionEnd = question.end + 4
  let at = questionEnd
  const sections: RecordAt[][] = []
  for (const countAt of [6, 8, 10]) {
    const section: RecordAt[] = []
    // A record has at least 11 bytes, so an impossible count ends at the end of the message.
    for (let left = uint16(bytes, countAt); left > 0; left--) {
      const record = readRecord(bytes, at)
      if (record === undefined) return undefined
      section.push(record)
      at = record.end
    }
    sections.push(section)
  }
  const [answers = [], authority = [], additional = []] = sections
  const [type, of] = [uint16(bytes, question.end), uint16(bytes, question.end + 2)]
  const head = { id: uint16(bytes, 0), flags: uint16(bytes, 2), name: question.name, type, class: of }
  return { bytes, ...head, questionEnd, answers, authority, additional }
}

export const pointerTo = (at: number): number | undefined => (at <= MAX_POINTER ? (POINTER << 8) | at : undefined)

export const rcodeOf = (flags: number): number => flags & 0xf
