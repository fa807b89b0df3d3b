/** Tests the DNS server on real sockets, with upstream servers that answer, lie or stay silent. */
import assert from 'node:assert/strict'
import { createSocket, type Socket } from 'node:dgram'
import { once } from 'node:events'
import { type AddressInfo, connect, createServer } from 'node:net'
import { test, type TestContext } from 'node:test'

import { Directory } from '#dns/directory.ts'
import { createDnsMeters } from '#dns/dns-meters.ts'
import type { Upstream } from '#dns/forwarder.ts'
import { type QuestionFields, questionOf } from '#dns/question.fixture.ts'
import { Resolver, type ResolverOptions } from '#dns/resolver.ts'
import { listen, type Listening } from '#dns/server.ts'
import { FLAG, type Message, RCODE, rcodeOf, readMessage, readQuery, TYPE, uint16 } from '#dns/wire.ts'
import { realClock } from '#lib/clock.ts'
import type { Logger } from '#lib/log/log.ts'
import { createRegistry } from '#lib/metrics/metrics.ts'
import { createSeededRandom } from '#lib/random.ts'

const LOOPBACK = '127.0.0.1'
const quiet = { info: () => undefined, error: () => undefined } as unknown as Logger

function directoryWith(many = 1): Directory {
  const directory = new Directory()
  directory.setNamespace({ metadata: { name: 'shop' } } as never)
  const metadata = { name: 'db', namespace: 'shop' }
  directory.setService({ metadata, spec: { clusterIP: 'None', clusterIPs: ['None'], ports: [] }, status: {} } as never)
  const alias = { type: 'ExternalName', externalName: 'example.com' }
  directory.setService({ metadata: { ...metadata, name: 'away' }, spec: alias, status: {} } as never)
  const inside = { type: 'ExternalName', externalName: 'db.shop.svc.cluster.local' }
  directory.setService({ metadata: { ...metadata, name: 'inside' }, spec: inside, status: {} } as never)
  directory.setSlice({
    metadata: { name: 'db-1', namespace: 'shop', labels: { 'kubernetes.io/service-name': 'db' } },
    addressType: 'IPv4',
    endpoints: Array.from({ length: many }, (_, nth) => ({ addresses: [`10.0.${nth >> 8}.${nth & 255}`] })),
    ports: [],
  } as never)
  return directory
}

interface Served extends Listening {
  readonly ask: (asked: QuestionFields) => Promise<Message>
  readonly askStream: (questions: readonly QuestionFields[]) => Promise<Message[]>
}

async function serve(t: TestContext, own: Partial<ResolverOptions> = {}): Promise<Served> {
  const resolver = new Resolver({
    clock: realClock,
    random: createSeededRandom(3),
    log: quiet,
    directory: directoryWith(),
    meters: createDnsMeters(createRegistry()),
    domain: 'cluster.local',
    isSynced: () => true,
    upstreams: () => [],
    ...own,
  })
  const listening = await listen({ address: LOOPBACK, port: 0, resolver, clock: realClock, log: quiet })
  t.after(async () => {
    resolver.close()
    await listening.close()
  })
  return {
    ...listening,
    ask: async (asked) => answerTo(await datagram(questionOf(asked), listening.udpPort)),
    askStream: (questions) => stream(questions, listening.tcpPort),
  }
}

function answerTo(bytes: Buffer): Message {
  const message = readMessage(bytes)
  assert.ok(message)
  return message
}

async function datagram(bytes: Uint8Array, port: number): Promise<Buffer> {
  const socket = createSocket('udp4')
  try {
    socket.send(bytes, port, LOOPBACK)
    const [answer] = (await once(socket, 'message')) as [Buffer]
    return answer
  } finally {
    socket.close()
  }
}

/** All of them at once, on one connection. */
async function stream(questions: readonly QuestionFields[], port: number): Promise<Message[]> {
  const socket = connect({ host: LOOPBACK, port })
  const sent = questions.map((asked) => {
    const question = questionOf(asked)
    return Buffer.concat([Buffer.from([question.length >> 8, question.length & 255]), question])
  })
  socket.write(Buffer.concat(sent))
  let received = Buffer.alloc(0)
  const answers: Message[] = []
  for await (const chunk of socket as AsyncIterable<Buffer>) {
    received = Buffer.concat([received, chunk])
    while (received.length >= 2 && received.length >= 2 + uint16(received, 0)) {
      answers.push(answerTo(received.subarray(2, 2 + uint16(received, 0))))
      received = received.subarray(2 + uint16(received, 0))
    }
    if (answers.length === questions.length) break
  }
  return answers
}

const addressesOf = ({ bytes, answers }: Message): string[] =>
  answers.filter(({ type }) => type === TYPE.A).map(({ dataAt, end }) => bytes.subarray(dataAt, end).join('.'))

/** Starts a fake upstream server. It counts queries and responds with `answer`. */
async function other(
  t: TestContext,
  answer: (question: Buffer, nth: number) => Buffer | undefined,
): Promise<Upstream & { asked: number }> {
  const socket: Socket = createSocket('udp4')
  const server = { address: LOOPBACK, port: 0, asked: 0 }
  socket.on('message', (bytes, from) => {
    const reply = answer(bytes, ++server.asked)
    if (reply !== undefined) socket.send(reply, from.port, from.address)
  })
  socket.bind(0, LOOPBACK)
  await once(socket, 'listening')
  t.after(() => socket.close())
  return Object.assign(server, { port: socket.address().port })
}

/** The answer that `example.com` has an address. */
function addressed(question: Buffer, address: readonly number[] = [192, 0, 2, 1], flags = 0x81_80): Buffer {
  const query = readQuery(question)
  assert.ok('question' in query)
  const head = Buffer.alloc(12)
  for (const [nth, word] of [query.id, flags, 1, 1, 0, 0].entries()) head.writeUInt16BE(word, 2 * nth)
  return Buffer.concat([head, query.question, Buffer.from([0xc0, 12, 0, 1, 0, 1, 0, 0, 0, 60, 0, 4, ...address])])
}

const EXAMPLE: QuestionFields = { name: 'example.com', type: TYPE.A }

test('the DNS server answers for cluster names over UDP, and with large answers over TCP', async (t) => {
  const { ask, askStream } = await serve(t, { directory: directoryWith(300) })
  const asked = { name: 'DB.shop.svc.cluster.local', type: TYPE.A, edns: 4096 }
  const cut = await ask(asked)
  assert.ok(cut.bytes.length <= 1232 && cut.answers.length > 50)
  assert.equal(cut.flags & FLAG.truncated, FLAG.truncated)
  assert.equal(Buffer.from(cut.bytes.subarray(13, 15)).toString(), 'DB')
  const whole = await askStream([asked, { ...asked, id: 8 }])
  assert.deepEqual(
    whole.map(({ answers }) => answers.length),
    [300, 300],
  )
})

test('the DNS server returns NXDOMAIN with SOA for missing names, but not before the first sync', async (t) => {
  let isSynced = false
  const { ask } = await serve(t, { isSynced: () => isSynced })
  const nowhere = { name: 'no.shop.svc.cluster.local', type: TYPE.A }
  assert.equal(rcodeOf((await ask(nowhere)).flags), RCODE.serverFailure)
  assert.deepEqual(addressesOf(await ask({ ...nowhere, name: 'db.shop.svc.cluster.local' })), ['10.0.0.0'])
  isSynced = true
  const denied = await ask(nowhere)
  assert.equal(rcodeOf(denied.flags), RCODE.nameError)
  assert.deepEqual(
    denied.authority.map(({ name, type, ttl }) => [name, type, ttl]),
    [['cluster.local', TYPE.SOA, 30]],
  )
  const empty = await ask({ ...nowhere, name: 'db.shop.svc.cluster.local', type: TYPE.AAAA })
  assert.deepEqual([rcodeOf(empty.flags), empty.authority.length], [RCODE.success, 1])
  const soa = await ask({ name: 'cluster.local', type: TYPE.SOA })
  assert.deepEqual(
    soa.answers.map(({ type }) => type),
    [TYPE.SOA],
  )
})

test('the DNS server refuses or ignores unsupported queries', async (t) => {
  const { ask, udpPort } = await serve(t)
  assert.equal(rcodeOf((await ask({ ...EXAMPLE, class: 3 })).flags), RCODE.refused)
  assert.equal(rcodeOf((await ask(EXAMPLE)).flags), RCODE.serverFailure)
  const newer = questionOf({ ...EXAMPLE, edns: 1232 })
  newer[newer.length - 5] = 1
  const unknown = answerTo(await datagram(newer, udpPort))
  const [opt] = unknown.additional
  assert.deepEqual([rcodeOf(unknown.flags), opt && opt.ttl >>> 24], [0, 1])
  const update = questionOf(EXAMPLE)
  update[2] = 0x28
  assert.equal(rcodeOf(uint16(await datagram(update, udpPort), 2)), RCODE.notImplemented)
  // The server ignores a response without a query, and answers the next query first.
  const socket = createSocket('udp4')
  t.after(() => socket.close())
  const answer = questionOf(EXAMPLE)
  answer[2] = 0x80
  for (const bytes of [answer, Buffer.alloc(5), questionOf({ ...EXAMPLE, id: 42 })])
    socket.send(bytes, udpPort, LOOPBACK)
  const [first] = (await once(socket, 'message')) as [Buffer]
  assert.equal(uint16(first, 0), 42)
})

test('the DNS server forwards equal queries once, and caches answers until they expire', async (t) => {
  const server = await other(t, (question) => addressed(question))
  const { ask } = await serve(t, { upstreams: () => [server] })
  const many = await Promise.all(Array.from({ length: 20 }, (_, id) => ask({ ...EXAMPLE, name: 'Example.COM', id })))
  assert.deepEqual(
    many.map(({ id }) => id),
    Array.from({ length: 20 }, (_, id) => id),
  )
  for (const message of many) assert.deepEqual(addressesOf(message), ['192.0.2.1'])
  await ask({ ...EXAMPLE, edns: 1232 })
  assert.equal(server.asked, 1)
})

test('the DNS server skips a silent upstream, ignores forged answers, and tries the next upstream on SERVFAIL', async (t) => {
  const silent = await other(t, () => undefined)
  const failing = await other(t, (question) => addressed(question, [0, 0, 0, 0], 0x81_82))
  const liar = await other(t, (question) => {
    const wrong = addressed(question, [6, 6, 6, 6])
    wrong.writeUInt16BE(uint16(question, 0) ^ 1, 0)
    return wrong
  })
  const honest = await other(t, (question) => addressed(question))
  for (const first of [silent, failing, liar]) {
    const { ask } = await serve(t, { upstreams: () => [first, honest] })
    for (const name of ['a.example.com', 'b.example.com', 'c.example.com'])
      assert.deepEqual(addressesOf(await ask({ ...EXAMPLE, name })), ['192.0.2.1'])
  }
})

test('the DNS server repeats a query without EDNS for an old upstream', async (t) => {
  const server = await other(t, (question) => {
    const query = readQuery(question)
    if (!('edns' in query) || query.edns === undefined) return addressed(question)
    const error = Buffer.concat([question.subarray(0, 12), query.question])
    error.writeUInt16BE(0x80_01, 2)
    error.writeUInt16BE(0, 10)
    return error
  })
  const { ask } = await serve(t, { upstreams: () => [server] })
  assert.deepEqual(addressesOf(await ask(EXAMPLE)), ['192.0.2.1'])
})

test('the DNS server follows a CNAME to its target, in the cluster or upstream', async (t) => {
  const server = await other(t, (question) => addressed(question))
  const { ask } = await serve(t, { upstreams: () => [server] })
  const away = await ask({ name: 'away.shop.svc.cluster.local', type: TYPE.A })
  assert.deepEqual(
    away.answers.map(({ name, type }) => [name, type]),
    [
      ['away.shop.svc.cluster.local', TYPE.CNAME],
      ['example.com', TYPE.A],
    ],
  )
  const inside = await ask({ name: 'inside.shop.svc.cluster.local', type: TYPE.A })
  assert.deepEqual(addressesOf(inside), ['10.0.0.0'])
  assert.equal(server.asked, 1)
})

test('the DNS server forwards names of a stub domain to its servers', async (t) => {
  const corporate = await other(t, (question) => addressed(question, [10, 9, 8, 7]))
  const deeper = await other(t, (question) => addressed(question, [10, 9, 8, 6]))
  const world = await other(t, (question) => addressed(question))
  const stubDomains = new Map([
    ['corp', [corporate]],
    ['deep.corp', [deeper]],
  ])
  const { ask } = await serve(t, { upstreams: () => [world], stubDomains })
  const answers: string[][] = []
  for (const name of ['a.corp', 'a.deep.corp', 'acorp']) answers.push(addressesOf(await ask({ name, type: TYPE.A })))
  assert.deepEqual(answers, [['10.9.8.7'], ['10.9.8.6'], ['192.0.2.1']])
})

test('the DNS server forwards a TCP query over TCP', async (t) => {
  const server = createServer((socket) => {
    socket.on('data', (chunk: Buffer) => {
      const answer = addressed(chunk.subarray(2))
      socket.write(Buffer.concat([Buffer.from([answer.length >> 8, answer.length & 255]), answer]))
    })
    socket.on('error', () => undefined)
  })
  server.listen(0, LOOPBACK)
  await once(server, 'listening')
  t.after(() => server.close())
  const { port } = server.address() as AddressInfo
  const { askStream } = await serve(t, { upstreams: () => [{ address: LOOPBACK, port }] })
  const [answer] = await askStream([EXAMPLE])
  assert.deepEqual(answer && addressesOf(answer), ['192.0.2.1'])
})

test('the DNS server closes a TCP connection that sends no DNS', async (t) => {
  const { tcpPort } = await serve(t)
  for (const bytes of [Buffer.from([0, 1, 0]), Buffer.from([0, 12, 0, 7, 0x80, 0, 0, 0, 0, 0, 0, 0, 0, 0])]) {
    const socket = connect({ host: LOOPBACK, port: tcpPort })
    socket.on('error', () => undefined)
    socket.write(bytes)
    socket.resume()
    await once(socket, 'close')
  }
})

test('a node-local DNS cache has no cluster names, and caches the answers of cluster DNS', async (t) => {
  const cluster = await other(t, (question) => addressed(question))
  const { ask } = await serve(t, { isCacheOnly: true, stubDomains: new Map([['cluster.local', [cluster]]]) })
  const question = { name: 'db.shop.svc.cluster.local', type: TYPE.A }
  assert.deepEqual(addressesOf(await ask(question)), ['192.0.2.1'])
  assert.deepEqual(addressesOf(await ask(question)), ['192.0.2.1'])
  assert.equal(cluster.asked, 1)
})
