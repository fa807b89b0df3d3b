import assert from 'node:assert/strict'
import { once } from 'node:events'
import { type Duplex, duplexPair } from 'node:stream'
import { describe, it } from 'node:test'

import { SimulatedWebSocket } from '#kits/lib/simulated-websocket.ts'

import { createVirtualClock } from '../clock.ts'
import type { Exchange, ResponseWriter } from '../http/exchange.ts'
import { HttpError } from '../http/http-error.ts'
import type { HttpResponse } from '../http/response.ts'
import { createRequestClient, type RequestClient } from './request-client.ts'
import { encodeHead, REQUEST_PROTOCOL } from './request-head.ts'
import { createRequestServer, type RequestServer } from './request-server.ts'
import { Tunnel, TUNNEL_PROTOCOL } from './tunnel.ts'

const MEBIBYTE = Buffer.alloc(1 << 20, 'x')
const LIMIT = 1 << 30
const URL = 'http://server'

async function turns(count = 50): Promise<void> {
  for (let turn = 0; turn < count; turn++) await new Promise((resolve) => setImmediate(resolve))
}

interface Bed {
  readonly client: RequestClient
  readonly server: RequestServer
  readonly tunnels: readonly [server: Tunnel, agent: Tunnel]
  readonly errors: unknown[]
  /** Sends a GET and reads the whole response. */
  readonly get: (path: string) => Promise<{ status: number; text: string }>
  /** A stream for bytes of a peer that is not ours. */
  readonly dial: () => Duplex
  readonly advance: (ms: number) => Promise<void>
}

function bed(serve: (exchange: Exchange) => Promise<void> | void): Bed {
  const clock = createVirtualClock()
  const sockets = SimulatedWebSocket.pair({ clock, protocol: TUNNEL_PROTOCOL })
  const errors: unknown[] = []
  const onError = (error: unknown): void => void errors.push(error)
  const server = createRequestServer({ clock, upgrades: ['websocket'], onError, serve: async (one) => serve(one) })
  const own = new Tunnel(sockets[0], { clock })
  const agent = new Tunnel(sockets[1], {
    clock,
    side: 'agent',
    accept: (protocol) => (protocol === REQUEST_PROTOCOL ? (stream) => server.accept(stream) : undefined),
  })
  for (const tunnel of [own, agent]) tunnel.serve().catch(() => undefined)
  const dial = (): Duplex => own.dial(REQUEST_PROTOCOL, 'server')
  const client = createRequestClient(clock, dial)
  return {
    client,
    server,
    tunnels: [own, agent],
    errors,
    dial,
    async get(path) {
      const response = await client.request({ url: URL + path })
      return { status: response.status, text: await response.text(LIMIT) }
    },
    advance: (ms) => clock.advance(ms),
  }
}

const isBroken = (error: unknown): boolean => error instanceof HttpError && error.code === 'broken'

async function* pieces(...all: readonly (Buffer | string)[]): AsyncGenerator<Buffer> {
  for (const piece of all) {
    await turns(1)
    yield Buffer.from(piece)
  }
}

describe('requests in a tunnel', () => {
  it('carry methods, paths, headers and bodies in both directions', async () => {
    const { client, tunnels } = bed(async (exchange) => {
      const body = (await exchange.readBody(LIMIT)).toString()
      const { method, path, headers, rawHeaders, authority } = exchange
      const seen = {
        method,
        path,
        authority,
        body,
        groups: rawHeaders.filter((_, at) => rawHeaders[at - 1] === 'x-group'),
      }
      exchange.respond(
        201,
        ['Content-Type', 'application/json', 'Set-Cookie', 'a', 'Set-Cookie', 'b'],
        JSON.stringify(seen),
      )
      assert.equal(headers['x-group'], 'one, two,three')
    })
    const headers = { host: 'h', 'x-group': ['one', 'two,three'] }
    for (const body of ['text', Buffer.from('text'), pieces('te', 'xt')]) {
      const response = await client.request({ method: 'PATCH', url: URL, path: '/a%2Fb?c=%20', headers, body })
      assert.deepEqual([response.status, response.headers['set-cookie']], [201, ['a', 'b']])
      const seen = { method: 'PATCH', path: '/a%2Fb?c=%20', authority: 'h', body: 'text', groups: ['one', 'two,three'] }
      assert.deepEqual(JSON.parse(await response.text(LIMIT)), seen)
    }
    await turns()
    assert.deepEqual(
      tunnels.map(({ streams }) => streams),
      [0, 0],
    )
  })

  it('end properly without a body: HEAD, 204, 304, and an empty response', async () => {
    const { client, get, tunnels } = bed((exchange) => {
      const status = Number(exchange.path.slice(1))
      exchange.stream(status, status === 200 ? ['content-length', '5'] : ['content-length', '0']).end()
    })
    const head = await client.request({ method: 'HEAD', url: `${URL}/200` })
    assert.deepEqual([head.headers['content-length'], await head.text(LIMIT)], ['5', ''])
    for (const status of [204, 304, 404]) assert.deepEqual(await get(`/${status}`), { status, text: '' })
    await turns()
    assert.deepEqual(
      tunnels.map(({ streams }) => streams),
      [0, 0],
    )
  })

  it('answer 1,000 at the same time, each with its own response', async () => {
    const { get, tunnels } = bed(async (exchange) => {
      await turns(3)
      exchange.respond(200, [], exchange.path.repeat(500))
    })
    const all = await Promise.all(Array.from({ length: 1000 }, (_, at) => get(`/${at}`)))
    for (const [at, { text }] of all.entries()) assert.equal(text, `/${at}`.repeat(500))
    await turns()
    assert.deepEqual(
      tunnels.map(({ streams }) => streams),
      [0, 0],
    )
  })

  it('carry bodies that are larger than the window', async () => {
    const { client } = bed(async (exchange) => {
      const out = exchange.stream(200, [])
      for await (const piece of exchange.body()) if (!out.write(piece)) await out.drained()
      out.end()
    })
    const response = await client.request({
      method: 'POST',
      url: URL,
      body: pieces(...Array.from({ length: 8 }, () => MEBIBYTE)),
    })
    assert.equal((await response.bytes(LIMIT)).length, 8 << 20)
  })
})

describe('a request in a tunnel that does not end well', () => {
  it('aborts the exchange when the client gives up before or during the response', async () => {
    const gone: string[] = []
    const { client } = bed((exchange) => {
      exchange.signal.addEventListener('abort', () => gone.push(exchange.path))
      if (exchange.path !== '/silent') exchange.stream(200, []).write(Buffer.from('x'))
    })
    const control = new AbortController()
    const silent = client.request({ url: `${URL}/silent`, signal: control.signal })
    const begun = await client.request({ url: `${URL}/signal`, signal: control.signal })
    const discarded = await client.request({ url: `${URL}/discard` })
    const left = await client.request({ url: `${URL}/leave` })
    for await (const _ of left.body) break
    discarded.discard()
    await turns()
    assert.deepEqual(gone, ['/leave', '/discard'])
    control.abort()
    await assert.rejects(silent, { name: 'HttpError', code: 'aborted' })
    await assert.rejects(begun.text(LIMIT), { name: 'HttpError', code: 'aborted' })
    await turns()
    assert.deepEqual(gone.slice(2).toSorted(), ['/signal', '/silent'])
  })

  it('ends after its time limit', async () => {
    const { client, advance } = bed(() => undefined)
    const answer = client.request({ url: URL, timeoutMs: 1000 })
    const ended = assert.rejects(answer, { code: 'timeout' })
    await turns()
    await advance(1000)
    await ended
  })

  it('never has a complete response if the server, the agent or the tunnel fails during it', async () => {
    const writers: ResponseWriter[] = []
    for (const headers of [[], ['content-length', '100']]) {
      const { client, tunnels, server, advance, errors } = bed((exchange) => {
        const writer = exchange.stream(200, headers)
        writers.push(writer)
        writer.write(Buffer.from('part'))
        if (exchange.path === '/throw') throw new Error('no')
        if (exchange.path === '/abort') writer.abort()
      })
      for (const path of ['/abort', '/throw'])
        await assert.rejects(async () => (await client.request({ url: URL + path })).text(LIMIT), isBroken, path)
      assert.equal(errors.length, 1)
      const begin = async (): Promise<HttpResponse> => client.request({ url: URL })
      const closing = await begin()
      const closed = server.close(2000)
      await assert.rejects(begin(), /stopping/)
      await advance(2000)
      await closed
      await assert.rejects(closing.text(LIMIT), isBroken)
      const other = bed((exchange) => void exchange.stream(200, headers).write(Buffer.from('part')))
      const cut = await other.client.request({ url: URL })
      void other.tunnels[1].close()
      await assert.rejects(cut.text(LIMIT), isBroken)
      assert.equal(tunnels[0].streams, 0)
    }
    await turns()
    assert.ok(writers.every(({ isClosed }) => isClosed))
  })

  it('rejects a response with another length than announced, before it yields too many bytes', async () => {
    const { client } = bed((exchange) => {
      const out = exchange.stream(200, ['content-length', '4'])
      out.write(Buffer.from(exchange.path.slice(1)))
      out.end()
    })
    for (const path of ['/abc', '/abcde']) {
      const { body } = await client.request({ url: URL + path })
      let got = ''
      const reading = async (): Promise<void> => {
        for await (const piece of body) got += piece.toString()
      }
      await assert.rejects(reading(), isBroken, path)
      assert.ok(got.length <= 4, got)
    }
  })

  it('rejects a request body with another length than announced', async () => {
    const bodies: unknown[] = []
    const { dial, client } = bed(async (exchange) => {
      bodies.push(await exchange.readBody(LIMIT).then(String, (error: Error) => error.message))
      exchange.respond(200, [])
    })
    for (const body of ['abc', 'abcdGET / HTTP/1.1'])
      await client.request({ method: 'PUT', url: URL, headers: { 'content-length': '4' }, body: pieces(body) })
    const stream = dial()
    const none = { method: 'PUT', path: '/', headers: ['content-length', '4'], follows: 'end' } as const
    stream.end(encodeHead(none))
    await assert.rejects(once(stream, 'end'), /announces a body/)
    assert.deepEqual(bodies.length, 2)
    assert.match(String(bodies[0]), /1 bytes fewer/)
    assert.match(String(bodies[1]), /More bytes/)
  })

  it('lets the server answer before it has read the request', async () => {
    const { client, tunnels } = bed((exchange) => exchange.respond(413, [], 'too large'))
    let sent = 0
    async function* endless(): AsyncGenerator<Buffer> {
      for (;;) {
        sent++
        yield MEBIBYTE
      }
    }
    const response = await client.request({ method: 'POST', url: URL, body: endless() })
    assert.deepEqual([response.status, await response.text(LIMIT)], [413, 'too large'])
    await turns()
    const before = sent
    await turns()
    assert.equal(sent, before)
    assert.deepEqual(
      tunnels.map(({ streams }) => streams),
      [0, 0],
    )
  })

  it('stops the writer while the reader is slow, and delays no other request', async () => {
    let written = 0
    const { client, get } = bed(async (exchange) => {
      if (exchange.path === '/quick') return exchange.respond(200, [], 'quick')
      const out = exchange.stream(200, [])
      while (!out.isClosed) {
        written += MEBIBYTE.length
        if (!out.write(MEBIBYTE)) await out.drained()
      }
    })
    const slow = await client.request({ url: `${URL}/slow` })
    await turns(200)
    const before = written
    assert.equal((await get('/quick')).text, 'quick')
    await turns(200)
    assert.equal(written, before)
    assert.ok(written <= 4 << 20, `${written}`)
    slow.discard()
  })

  it('refuses malformed heads', async () => {
    const { dial, tunnels } = bed((exchange) => exchange.respond(200, []))
    for (const bytes of ['GET / HTTP/1.1\r\nHost: a\r\n\r\n', '\0\0\0\u0002{}', '\0\0\0\u0004null']) {
      const stream = dial()
      stream.write(bytes)
      await assert.rejects(once(stream.resume(), 'end'), { name: 'TunnelError', code: 'reset' })
    }
    await turns()
    assert.deepEqual(
      tunnels.map(({ streams }) => streams),
      [0, 0],
    )
  })

  it('says so if the other side serves no requests', async () => {
    const { tunnels } = bed(() => undefined)
    const client = createRequestClient(createVirtualClock(), () => tunnels[0].dial('tcp', 'x:1'))
    await assert.rejects(client.request({ url: URL }), {
      code: 'connect',
      message: /refused the request: .*not allowed/,
    })
    void tunnels[0].close()
    const late = createRequestClient(createVirtualClock(), () => tunnels[0].dial(REQUEST_PROTOCOL, 'x'))
    await assert.rejects(late.request({ url: URL }), isBroken)
  })
})

describe('an upgrade in a tunnel', () => {
  const headers = { connection: 'Upgrade', upgrade: 'websocket' }

  it('carries the bytes of the other protocol after status 101', async () => {
    const { client } = bed((exchange) => {
      assert.equal(exchange.upgradeProtocol, 'websocket')
      const { socket } = exchange.upgrade(['Connection', 'Upgrade', 'Upgrade', 'websocket', 'X-A', 'b'])
      socket.write('first')
      socket.pipe(socket)
    })
    const result = await client.upgrade({ url: URL, headers })
    assert.ok(result.isUpgraded)
    assert.deepEqual([result.headers['x-a'], result.head.length], ['b', 0])
    let got = ''
    result.socket.on('data', (piece: Buffer) => (got += piece.toString()))
    result.socket.write('second')
    await turns()
    result.socket.end('third')
    await once(result.socket, 'end')
    assert.equal(got, 'firstsecondthird')
  })

  it('gets the response of a server that refuses it, or that does not know the protocol', async () => {
    const { client, tunnels } = bed((exchange) => exchange.respond(403, [], String(exchange.upgradeProtocol)))
    for (const upgrade of ['websocket', 'h2c']) {
      const result = await client.upgrade({ url: URL, headers: { ...headers, upgrade } })
      assert.ok(!result.isUpgraded)
      assert.equal(result.response.status, 403)
      assert.equal(await result.response.text(LIMIT), upgrade === 'h2c' ? 'undefined' : 'websocket')
    }
    await turns()
    assert.deepEqual(
      tunnels.map(({ streams }) => streams),
      [0, 0],
    )
  })

  it('is an error in the response to an ordinary request', async () => {
    const [ours, theirs] = duplexPair()
    theirs.write(encodeHead({ status: 101, headers: [] }))
    const client = createRequestClient(createVirtualClock(), () => ours)
    await assert.rejects(client.request({ url: URL }), /switched protocols/)
    assert.ok(ours.destroyed)
  })
})
