import assert from 'node:assert/strict'
import { test } from 'node:test'

import { type ResourceRecord, sizeFor, TCP_BYTES, UDP_BYTES, writeAnswer, writeRefusal } from './message.ts'
import { queryOf } from './question.fixture.ts'
import { FLAG, readMessage, readName, RCODE, TYPE } from './wire.ts'

const addresses = (many: number): ResourceRecord[] =>
  Array.from({ length: many }, (_, nth) => ({
    name: 'web.shop.svc.cluster.local',
    type: TYPE.A,
    ttl: 30,
    data: { address: `10.1.${nth >> 8}.${nth & 255}` },
  }))

test('a DNS answer repeats the question as written, and compresses owner names', () => {
  const query = queryOf({ name: 'Web.Shop.svc.cluster.local', type: TYPE.A, edns: 4096 })
  const bytes = writeAnswer(query, { rcode: 0, authoritative: true, answers: addresses(2) }, UDP_BYTES, true)
  const message = readMessage(bytes)
  assert.ok(message)
  assert.equal(bytes.subarray(12, 21).toString('latin1'), '\x03Web\x04Shop')
  assert.deepEqual(
    message.answers.map(({ name, ttl, dataAt, end }) => [name, ttl, bytes.subarray(dataAt, end).join('.')]),
    [
      ['web.shop.svc.cluster.local', 30, '10.1.0.0'],
      ['web.shop.svc.cluster.local', 30, '10.1.0.1'],
    ],
  )
  assert.equal(message.flags, FLAG.response | FLAG.authoritative | FLAG.recursionDesired | FLAG.recursionAvailable)
  assert.deepEqual(
    message.additional.map(({ type, class: size }) => [type, size]),
    [[TYPE.OPT, UDP_BYTES]],
  )
  assert.deepEqual([...bytes.subarray(message.questionEnd, message.questionEnd + 2)], [0xc0, 12])
})

test('a DNS answer omits records that do not fit, and sets TC if answers are missing', () => {
  const plain = queryOf({ name: 'web.shop.svc.cluster.local', type: TYPE.A })
  const cut = writeAnswer(plain, { rcode: 0, authoritative: true, answers: addresses(100) }, sizeFor(plain), false)
  const message = readMessage(cut)
  assert.ok(cut.length <= 512)
  assert.equal(message?.answers.length, 29)
  assert.equal((message?.flags ?? 0) & FLAG.truncated, FLAG.truncated)
  const extra = { rcode: 0, authoritative: true, answers: addresses(20), additional: addresses(80) }
  const less = readMessage(writeAnswer(plain, extra, 512, false))
  assert.deepEqual([less?.answers.length, (less?.flags ?? 0) & FLAG.truncated], [20, 0])
  const whole = writeAnswer(plain, { rcode: 0, authoritative: true, answers: addresses(4000) }, TCP_BYTES, false)
  assert.equal(readMessage(whole)?.answers.length, 4000)
  const most = writeAnswer(plain, { rcode: 0, authoritative: true, answers: addresses(5000) }, TCP_BYTES, false)
  assert.ok(most.length <= TCP_BYTES && (readMessage(most)?.flags ?? 0) & FLAG.truncated)
})

test('DNS records of all types round-trip', () => {
  const query = queryOf({ name: '_http._tcp.web.shop.svc.cluster.local', type: TYPE.SRV })
  const soa = {
    primary: 'ns.dns.cluster.local',
    mailbox: 'hostmaster.cluster.local',
    serial: 5,
    refresh: 7200,
    retry: 1800,
    expire: 86_400,
    minimum: 30,
  }
  const host = 'a.web.shop.svc.cluster.local'
  const bytes = writeAnswer(
    query,
    {
      rcode: RCODE.nameError,
      authoritative: true,
      answers: [
        { name: query.name, type: TYPE.SRV, ttl: 30, data: { priority: 0, weight: 50, port: 80, host } },
        { name: query.name, type: TYPE.CNAME, ttl: 30, data: { target: host } },
        { name: query.name, type: TYPE.TXT, ttl: 30, data: { text: '1.1.0' } },
        { name: host, type: TYPE.AAAA, ttl: 30, data: { address: 'fd00::a:1' } },
      ],
      authority: [{ name: 'cluster.local', type: TYPE.SOA, ttl: 30, data: { soa } }],
    },
    TCP_BYTES,
    false,
  )
  const message = readMessage(bytes)
  assert.ok(message)
  const [srv, cname, text, address] = message.answers
  assert.ok(srv && cname && text && address)
  assert.deepEqual([...bytes.subarray(srv.dataAt, srv.dataAt + 6)], [0, 0, 0, 50, 0, 80])
  // Written in full, and not compressed.
  assert.deepEqual(readName(bytes, srv.dataAt + 6, false), { name: host, end: srv.end })
  assert.equal(readName(bytes, cname.dataAt)?.name, host)
  assert.equal(bytes.subarray(text.dataAt, text.end).toString('latin1'), '\x051.1.0')
  assert.equal(address.name, host)
  assert.equal(bytes.subarray(address.dataAt, address.end).toString('hex'), 'fd0000000000000000000000000a0001')
  const [start] = message.authority
  assert.ok(start)
  assert.equal(start.name, 'cluster.local')
  const primary = readName(bytes, start.dataAt)
  assert.equal(primary?.name, soa.primary)
  assert.equal(readName(bytes, primary?.end ?? 0)?.name, soa.mailbox)
  assert.equal(bytes.readUInt32BE(start.end - 20), 5)
})

test('a DNS response has at most the size that the client accepts, within the limits of UDP', () => {
  assert.deepEqual(
    [undefined, 0, 512, 1000, 65_535].map((edns) =>
      sizeFor(queryOf({ name: 'a', type: 1, ...(edns !== undefined && { edns }) })),
    ),
    [512, 512, 512, 1000, UDP_BYTES],
  )
})

test('a DNS response with code REFUSED consists of the header only', () => {
  assert.equal(
    writeRefusal({ id: 7, flags: 0x29_00, refusal: RCODE.notImplemented }).toString('hex'),
    '0007a9040000000000000000',
  )
})
