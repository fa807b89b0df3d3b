/**
 * Adapts an upstream response to the client's ID, question and size. Records are not re-encoded, so that unknown types
 * pass unchanged. Pure.
 */
import { optRecord } from './message.ts'
import type { RecordData, ResourceRecord } from './message.ts'
import {
  FLAG,
  HEADER_BYTES,
  type Message,
  nameBytes,
  type Query,
  RCODE,
  rcodeOf,
  readName,
  type RecordAt,
  TYPE,
} from './wire.ts'

/** A query to an upstream server on behalf of a client. */
export interface UpstreamQuery {
  readonly name: string
  readonly type: number
  readonly class: number
  readonly dnssecOk: boolean
  readonly checkingDisabled: boolean
}

export function writeQuestion(id: number, upstreamQuery: UpstreamQuery, hasEdns: boolean): Buffer {
  const name = nameBytes(upstreamQuery.name)
  const bytes = Buffer.alloc(HEADER_BYTES + name.length + 4)
  bytes.writeUInt16BE(id, 0)
  bytes.writeUInt16BE(FLAG.recursionDesired | (upstreamQuery.checkingDisabled ? FLAG.checkingDisabled : 0), 2)
  bytes.writeUInt16BE(1, 4)
  bytes.writeUInt16BE(hasEdns ? 1 : 0, 10)
  bytes.set(name, HEADER_BYTES)
  bytes.writeUInt16BE(upstreamQuery.type, HEADER_BYTES + name.length)
  bytes.writeUInt16BE(upstreamQuery.class, HEADER_BYTES + name.length + 2)
  return hasEdns ? Buffer.concat([bytes, optRecord(upstreamQuery.dnssecOk)]) : bytes
}

/** Whether a message answers exactly this query: a forger must guess every field. */
export function isAnswerTo(message: Message, id: number, { name, type, class: of }: UpstreamQuery): boolean {
  return (
    message.id === id &&
    (message.flags & FLAG.response) !== 0 &&
    message.name === name &&
    message.type === type &&
    message.class === of
  )
}

/** A cacheable response. */
export interface CachedAnswer {
  /** Without OPT records, which are hop-by-hop. */
  readonly message: Message
  readonly rcode: number
  /** Its TTL; 0: not cacheable. */
  readonly seconds: number
}

/** The maximum TTL, as the usual `cache 30`. */
export const MAX_SECONDS = 30
/** The TTL of failures. */
const FAILURE_SECONDS = 5

export function toCachedAnswer(message: Message): CachedAnswer {
  const rcode = rcodeOf(message.flags)
  return { message: withoutEdns(message), rcode, seconds: secondsOf(message, rcode) }
}

function secondsOf({ flags, answers, authority }: Message, rcode: number): number {
  if ((flags & FLAG.truncated) !== 0) return 0
  if (rcode === RCODE.serverFailure) return FAILURE_SECONDS
  if (rcode !== RCODE.success && rcode !== RCODE.nameError) return 0
  // A negative answer has the TTL of its SOA (RFC 2308); without a SOA it is not cached.
  if (answers.length === 0 && !authority.some(({ type }) => type === TYPE.SOA)) return 0
  const ttls = [...answers, ...authority].map(({ ttl }) => ttl)
  return Math.min(MAX_SECONDS, ...ttls)
}

/** OPT is usually last. Otherwise records after it may point across it, and are dropped too. */
function withoutEdns(message: Message): Message {
  const { bytes, additional } = message
  const nth = additional.findIndex(({ type }) => type === TYPE.OPT)
  const opt = additional[nth]
  if (opt === undefined) return message
  const left = additional.slice(0, nth)
  const cut = Buffer.from(bytes.subarray(0, opt.start))
  cut.writeUInt16BE(left.length, 10)
  return { ...message, bytes: cut, additional: left }
}

/** The response for a client, `age` seconds after it was received. */
export function forwardAnswer({ message, seconds }: CachedAnswer, query: Query, age: number, limit: number): Buffer {
  const room = limit - (query.edns === undefined ? 0 : optRecord(false).length)
  const { end, counts, isCut } = fit(message, room)
  const bytes = Buffer.from(message.bytes.subarray(0, end))
  bytes.writeUInt16BE(query.id, 0)
  const repeated = query.flags & (FLAG.recursionDesired | FLAG.checkingDisabled)
  const kept = message.flags & ~(FLAG.recursionDesired | FLAG.checkingDisabled)
  bytes.writeUInt16BE(kept | repeated | FLAG.recursionAvailable | (isCut ? FLAG.truncated : 0), 2)
  for (const [nth, count] of counts.entries()) bytes.writeUInt16BE(count, 6 + 2 * nth)
  // Keeps the client's spelling: some clients verify the case (0x20).
  bytes.set(query.question, HEADER_BYTES)
  for (const { ttlAt, ttl, end: recordEnd } of recordsOf(message)) {
    if (recordEnd > end) break
    bytes.writeUInt32BE(Math.max(0, (seconds > 0 ? Math.min(ttl, MAX_SECONDS) : ttl) - age), ttlAt)
  }
  if (query.edns === undefined) return bytes
  bytes.writeUInt16BE((counts[2] ?? 0) + 1, 10)
  return Buffer.concat([bytes, optRecord(query.edns.dnssecOk)])
}

const recordsOf = ({ answers, authority, additional }: Message): RecordAt[] => [...answers, ...authority, ...additional]

function fit(message: Message, room: number): { end: number; counts: number[]; isCut: boolean } {
  const sections = [message.answers, message.authority, message.additional]
  const counts = sections.map((section) => section.filter(({ end }) => end <= room).length)
  const whole = recordsOf(message).filter(({ end }) => end <= room)
  const end = whole.at(-1)?.end ?? message.questionEnd
  return { end, counts, isCut: (counts[0] ?? 0) < message.answers.length }
}

/** The address and CNAME records of an answer, to append to our CNAME. */
export function addressesIn({ bytes, answers }: Message): ResourceRecord[] {
  const found: ResourceRecord[] = []
  for (const { name, type, ttl, dataAt, end } of answers) {
    const data = dataOf(bytes, type, dataAt, end)
    if (data !== undefined) found.push({ name, type, ttl: Math.min(ttl, MAX_SECONDS), data })
  }
  return found
}

function dataOf(bytes: Uint8Array, type: number, at: number, end: number): RecordData | undefined {
  if (type === TYPE.CNAME) {
    const target = readName(bytes, at)?.name
    return target === undefined ? undefined : { target }
  }
  if (type === TYPE.A && end - at === 4) return { address: bytes.subarray(at, end).join('.') }
  if (type !== TYPE.AAAA || end - at !== 16) return undefined
  const groups = Array.from({ length: 8 }, (_, nth) =>
    (((bytes[at + 2 * nth] ?? 0) << 8) | (bytes[at + 2 * nth + 1] ?? 0)).toString(16),
  )
  return { address: groups.join(':') }
}
