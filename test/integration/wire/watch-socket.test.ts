/** Tests watch by WebSocket: the same events as over HTTP, one message each, as in upstream. */
import assert from 'node:assert/strict'
import { after, before, describe, it } from 'node:test'

import { type RawData, WebSocket } from 'ws'

import { fieldsOf, openEnvelope, PATCHES, PROTOBUF, startWire, TABLE, type Json, type Wire } from './server.ts'

let wire: Wire
before(async () => {
  wire = await startWire()
})
after(() => wire.stop())

const ORIGIN = 'https://dashboard.example'

interface Asking {
  readonly protocols?: readonly string[]
  readonly origin?: string
  readonly headers?: Readonly<Record<string, string>>
}

interface Message {
  readonly bytes: Buffer
  readonly isBinary: boolean
}

interface Watching {
  readonly raw: WebSocket
  readonly messages: Message[]
  /** When so many messages have come. */
  have(count: number): Promise<void>
  readonly closed: Promise<number>
}

const ADMIN = { authorization: 'Bearer admin-token' }

/** The status of the answer when it is a refusal. */
function open(
  path: string,
  { protocols = [], origin = ORIGIN, headers = ADMIN }: Asking = {},
): Promise<Watching | number> {
  const raw = new WebSocket(`${wire.url.replace('https', 'wss')}${path}`, [...protocols], {
    rejectUnauthorized: false,
    headers: origin === '' ? headers : { ...headers, origin },
  })
  const messages: Message[] = []
  let wake = (): void => undefined
  raw.on('message', (bytes: RawData, isBinary) => {
    messages.push({ bytes: bytes as Buffer, isBinary })
    wake()
  })
  const closed = new Promise<number>((resolve) => void raw.on('close', resolve))
  after(() => raw.terminate())
  const have = async (count: number): Promise<void> => {
    while (messages.length < count) await new Promise<void>((resolve) => (wake = resolve))
  }
  return new Promise((resolve, reject) => {
    raw.on('error', reject)
    raw.on('unexpected-response', (_request, answer) => resolve(answer.statusCode ?? 0))
    raw.on('open', () => resolve({ raw, messages, have, closed }))
  })
}

async function watch(path: string, asking?: Asking): Promise<Watching> {
  const opened = await open(path, asking)
  assert.ok(typeof opened !== 'number', 'the handshake was refused')
  return opened
}

async function maps(...names: readonly string[]): Promise<string> {
  const path = `/api/v1/namespaces/${await wire.namespace()}/configmaps`
  for (const name of names) await wire.must('POST', path, { metadata: { name, labels: { color: 'red' } } })
  return path
}

const jsonOf = ({ bytes }: Message): Json => JSON.parse(bytes.toString())
const summary = (message: Message): string => {
  const { type, object } = jsonOf(message)
  return `${type} ${object.metadata.name ?? ''}`
}

/** Without revisions of bookmarks and ages, which go on. */
const timeless = (text: string): string => text.replaceAll(/(?<="resourceVersion":")\d+|(?<=")\d+s(?=")/g, '')

describe('watch by WebSocket', { concurrency: 8 }, () => {
  it('sends each event as a text message, and closes cleanly at its timeout', async () => {
    const path = await maps('a', 'b')
    const watching = await watch(`${path}?watch=true&timeoutSeconds=2`)
    await watching.have(2)
    await wire.must('PATCH', `${path}/a`, { data: { key: 'grüezi' } }, { headers: PATCHES.merge })
    await wire.must('DELETE', `${path}/b`)
    await watching.have(4)
    assert.deepEqual(watching.messages.map(summary), ['ADDED a', 'ADDED b', 'MODIFIED a', 'DELETED b'])
    for (const { bytes, isBinary } of watching.messages) {
      assert.equal(isBinary, false)
      assert.match(bytes.toString(), /^\{"type":"[A-Z]+","object":\{.*\}\}\n$/)
    }
    assert.deepEqual(jsonOf(watching.messages[2]!).object.data, { key: 'grüezi' })
    assert.equal(await watching.closed, 1000)
  })

  it('supports selectors, bookmarks, tables and errors as over HTTP', async () => {
    const path = await maps('a', 'b', 'c')
    await wire.must('PATCH', `${path}/b`, { metadata: { labels: { color: 'blue' } } }, { headers: PATCHES.merge })
    const initial = 'sendInitialEvents=true&resourceVersionMatch=NotOlderThan&allowWatchBookmarks=true'
    for (const [query, accept] of [
      [`labelSelector=color%3Dred&${initial}`, 'application/json'],
      ['fieldSelector=metadata.name%3Db', 'application/json'],
      [initial, TABLE],
      ['resourceVersion=1', 'application/json'],
    ] as const) {
      const target = `${path}?watch=1&timeoutSeconds=1&${query}`
      const plain = await wire.request('GET', target, { headers: { accept } })
      const watching = await watch(target, { headers: { ...ADMIN, accept } })
      assert.equal(await watching.closed, 1000)
      const lines = watching.messages.map(({ bytes }) => bytes.toString())
      assert.ok(lines.length > 0)
      assert.equal(timeless(lines.join('')), timeless(plain.text))
    }
  })

  it('sends protobuf as binary messages without a length prefix', async () => {
    const path = await maps('a')
    const watching = await watch(`${path}?watch=1`, { headers: { ...ADMIN, accept: PROTOBUF } })
    await watching.have(1)
    const [message] = watching.messages
    assert.equal(message?.isBinary, true)
    const event = fieldsOf(message.bytes)
    assert.equal(String(event.get(1)?.[0]), 'ADDED')
    assert.equal(openEnvelope(fieldsOf(event.get(2)?.[0] as Buffer).get(1)?.[0] as Buffer).kind, 'ConfigMap')
    watching.raw.close()
  })

  it('accepts any single subprotocol, with or without a token', async () => {
    const path = await maps('a')
    const one = await watch(`${path}?watch=1`, { protocols: ['base64.binary.k8s.io'] })
    assert.equal(one.raw.protocol, 'base64.binary.k8s.io')
    await one.have(1)
    assert.equal(summary(one.messages[0]!), 'ADDED a')
    const token = `base64url.bearer.authorization.k8s.io.${Buffer.from('admin-token').toString('base64url')}`
    const browser = await watch(`${path}?watch=1`, { protocols: ['v1', token], headers: {} })
    assert.equal(browser.raw.protocol, 'v1')
    await browser.have(1)
  })

  it('refuses clients without an origin or with several subprotocols, and requests that plain watches refuse', async () => {
    const path = await maps('a')
    for (const [query, asking, status] of [
      ['', { origin: '' }, 403],
      ['', { origin: 'null' }, 403],
      ['', { protocols: ['a', 'b'] }, 400],
      ['&timeoutSeconds=x', {}, 400],
      ['&labelSelector=%3D%3D', {}, 400],
      ['', { headers: { authorization: 'Bearer jane-token' } }, 403],
      ['', { headers: { ...ADMIN, accept: 'application/yaml' } }, 406],
    ] as const) {
      assert.equal(await open(`${path}?watch=1${query}`, asking), status, `${query} ${JSON.stringify(asking)}`)
    }
  })

  it('loses no events while a client does not read, and serves others meanwhile', async () => {
    const path = await maps('a')
    const watching = await watch(`${path}?watch=1`)
    await watching.have(1)
    watching.raw.pause()
    const rounds = 60
    for (let round = 0; round < rounds; round++) {
      const data = { round: String(round), filler: 'x'.repeat(200_000) }
      await wire.must('PATCH', `${path}/a`, { data }, { headers: PATCHES.merge })
    }
    watching.raw.resume()
    await watching.have(1 + rounds)
    const seen = watching.messages.slice(1).map((message) => jsonOf(message).object.data.round)
    assert.deepEqual(
      seen,
      Array.from({ length: rounds }, (_, round) => String(round)),
    )
    watching.raw.send('ignored')
    await wire.must('DELETE', `${path}/a`)
    await watching.have(2 + rounds)
    watching.raw.close()
    assert.equal(await watching.closed, 1005)
  })
})
