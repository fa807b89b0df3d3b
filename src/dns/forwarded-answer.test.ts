import assert from 'node:assert/strict'
import { test } from 'node:test'

import { createVirtualClock } from '#lib/clock.ts'

import { AnswerCache } from './answer-cache.ts'
import { addressesIn, forwardAnswer, isAnswerTo, toCachedAnswer, writeQuestion } from './forwarded-answer.ts'
import { queryOf, type QuestionFields } from './question.fixture.ts'
import { FLAG, type Message, nameBytes, readMessage, readQuery, TYPE } from './wire.ts'

const ASKING = { name: 'example.com', type: TYPE.A, class: 1, dnssecOk: false, checkingDisabled: false }

interface MessageFields {
  readonly flags?: number
  readonly ttls?: readonly number[]
  readonly soa?: number
  /** Adds a record after OPT. */
  readonly behind?: boolean
}

/** An upstream response with OPT. */
function messageOf({ flags = 0x81_80, ttls = [], soa, behind = false }: MessageFields): Message {
  const question = Buffer.concat([nameBytes('example.com'), Buffer.from([0, 1, 0, 1])])
  const records = ttls.map((ttl, nth) => record(TYPE.A, ttl, Buffer.from([10, 0, 0, nth])))
  const authority = soa === undefined ? [] : [record(TYPE.SOA, soa, Buffer.alloc(22))]
  const opt = Buffer.from([0, 0, 41, 4, 208, 0, 0, 0, 0, 0, 0])
  const extra = behind ? [opt, record(TYPE.A, 60, Buffer.from([1, 2, 3, 4]))] : [opt]
  const head = Buffer.alloc(12)
  for (const [nth, word] of [9, flags, 1, ttls.length, authority.length, extra.length].entries())
    head.writeUInt16BE(word, 2 * nth)
  const message = readMessage(Buffer.concat([head, question, ...records, ...authority, ...extra]))
  assert.ok(message)
  return message
}

function record(type: number, ttl: number, data: Buffer): Buffer {
  const head = Buffer.alloc(12)
  head.writeUInt16BE(0xc0_0c, 0)
  head.writeUInt16BE(type, 2)
  head.writeUInt16BE(1, 4)
  head.writeUInt32BE(ttl, 6)
  head.writeUInt16BE(data.length, 10)
  return Buffer.concat([head, data])
}

const given = (message: Message, fields: Partial<QuestionFields> = {}, age = 0, limit = 512): Message => {
  const passed = readMessage(
    forwardAnswer(
      toCachedAnswer(message),
      queryOf({ name: 'Example.COM', type: TYPE.A, id: 77, ...fields }),
      age,
      limit,
    ),
  )
  assert.ok(passed)
  return passed
}

test('a forwarded DNS query requests recursion, and only a matching response is accepted', () => {
  const query = readQuery(writeQuestion(9, { ...ASKING, dnssecOk: true }, true))
  assert.ok('name' in query)
  assert.deepEqual(
    [query.id, query.name, query.flags, query.edns?.dnssecOk],
    [9, 'example.com', FLAG.recursionDesired, true],
  )
  const message = messageOf({ ttls: [5] })
  assert.equal(isAnswerTo(message, 9, ASKING), true)
  for (const [id, upstreamQuery] of [
    [8, ASKING],
    [9, { ...ASKING, name: 'example.org' }],
    [9, { ...ASKING, type: TYPE.AAAA }],
  ] as const)
    assert.equal(isAnswerTo(message, id, upstreamQuery), false)
  assert.equal(isAnswerTo(messageOf({ flags: 0x01_00 }), 9, ASKING), false)
})

test("a DNS answer is forwarded with the ID and name spelling of the client's query", () => {
  const passed = given(messageOf({ ttls: [300, 10] }), {}, 4)
  assert.equal(passed.id, 77)
  assert.equal(Buffer.from(passed.bytes.subarray(13, 20)).toString('latin1'), 'Example')
  // TTLs are capped at half a minute.
  assert.deepEqual(
    passed.answers.map(({ ttl }) => ttl),
    [26, 6],
  )
  assert.equal(passed.additional.length, 0)
  assert.deepEqual(
    given(messageOf({ ttls: [5] }), { edns: 1232 }).additional.map(({ type }) => type),
    [TYPE.OPT],
  )
  assert.equal(given(messageOf({ ttls: [5], behind: true })).additional.length, 0)
})

test('a truncated DNS answer ends after a complete record', () => {
  const passed = given(messageOf({ ttls: Array.from({ length: 60 }, () => 60) }))
  assert.ok(passed.bytes.length <= 512 && passed.answers.length === 30)
  assert.equal(passed.flags & FLAG.truncated, FLAG.truncated)
})

test('the TTL of a cached DNS answer comes from its records, or from the SOA for a negative answer', () => {
  const seconds = (what: MessageFields): number => toCachedAnswer(messageOf(what)).seconds
  assert.equal(seconds({ ttls: [300, 10] }), 10)
  assert.equal(seconds({ ttls: [300] }), 30)
  assert.equal(seconds({ ttls: [0] }), 0)
  assert.equal(seconds({ flags: 0x81_83, soa: 12 }), 12)
  assert.equal(seconds({ soa: 12 }), 12)
  assert.equal(seconds({}), 0)
  assert.equal(seconds({ flags: 0x81_82 }), 5)
  assert.equal(seconds({ flags: 0x81_85 }), 0)
  assert.equal(seconds({ flags: 0x83_80, ttls: [300] }), 0)
})

test('a DNS answer for an ExternalName contains our CNAME and the upstream addresses', () => {
  assert.deepEqual(addressesIn(messageOf({ ttls: [300] })), [
    { name: 'example.com', type: TYPE.A, ttl: 30, data: { address: '10.0.0.0' } },
  ])
})

test('the DNS cache drops expired entries, and the oldest above its limit', async () => {
  const clock = createVirtualClock()
  const cache = new AnswerCache(clock)
  const kept = toCachedAnswer(messageOf({ ttls: [10] }))
  cache.put('a', kept)
  cache.put('never', toCachedAnswer(messageOf({ ttls: [0] })))
  await clock.advance(9500)
  assert.equal(cache.find('a')?.age, 9)
  assert.equal(cache.find('never'), undefined)
  await clock.advance(500)
  assert.equal(cache.find('a'), undefined)
  for (let nth = 0; nth < 11_000; nth++) cache.put(String(nth), kept)
  assert.equal(cache.size, 9984)
  assert.equal(cache.find('0'), undefined)
  assert.ok(cache.find('10999'))
})
