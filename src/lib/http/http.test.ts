import assert from 'node:assert/strict'
import { mkdtempSync, rmSync } from 'node:fs'
import { connect as connectHttp2 } from 'node:http2'
import type { Socket } from 'node:net'
import { connect as connectNet, createServer as createNetServer } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, describe, it } from 'node:test'
import { connect as connectTls } from 'node:tls'

import { createVirtualClock, realClock } from '../clock.ts'
import { secureRandom } from '../random.ts'
import { createAuthority } from '../x509/authority.ts'
import { parseCertificate } from '../x509/certificate.ts'
import { verifyChain } from '../x509/chain.ts'
import type { HttpClient, HttpClientOptions } from './client.ts'
import { createHttpClient } from './client.ts'
import type { Exchange } from './exchange.ts'
import { BodyError, headerValues, shareFrame } from './exchange.ts'
import type { HttpErrorCode } from './http-error.ts'
import { HttpError } from './http-error.ts'
import type { HttpServer, HttpServerOptions } from './server.ts'
import { createHttpServer } from './server.ts'

const tools = { clock: realClock, random: secureRandom }
const authority = createAuthority({ commonName: 'ca' }, tools)
const serving = authority.issue({
  commonName: 'server',
  names: { ips: ['127.0.0.1'], dns: ['localhost'] },
  purpose: 'server',
})
const alice = authority.issue({ commonName: 'alice', organizations: ['devs', 'ops'], purpose: 'client' })
const ca = authority.certificatePem
const tls = { certificate: serving.certificatePem, key: serving.keyPem, clientAuthorities: [ca] }

const directory = mkdtempSync(join(tmpdir(), 'hyperkube-http-'))
const cleanups: (() => unknown)[] = []
after(async () => {
  for (const cleanup of cleanups.reverse()) await cleanup()
  rmSync(directory, { recursive: true })
})

interface Running {
  readonly server: HttpServer
  readonly port: number
  readonly url: string
}

async function start(serve: HttpServerOptions['serve'], options: Partial<HttpServerOptions> = {}): Promise<Running> {
  const server = createHttpServer({ serve, clock: realClock, tls, ...options })
  cleanups.push(() => server.drain(0))
  const bound = await server.listen({ host: '127.0.0.1', port: 0 })
  assert.ok('port' in bound)
  return { server, port: bound.port, url: `https://127.0.0.1:${bound.port}` }
}

/** The same without TLS, for tests that write bytes by hand. */
async function startPlain(
  serve: HttpServerOptions['serve'],
  options: Partial<HttpServerOptions> = {},
): Promise<Running> {
  const server = createHttpServer({ serve, clock: realClock, ...options })
  cleanups.push(() => server.drain(0))
  const bound = await server.listen({ host: '127.0.0.1', port: 0 })
  assert.ok('port' in bound)
  return { server, port: bound.port, url: `http://127.0.0.1:${bound.port}` }
}

function makeClient(options: Partial<HttpClientOptions> = {}): HttpClient {
  const client = createHttpClient({ clock: realClock, tls: { ca }, ...options })
  cleanups.push(() => client.close())
  return client
}

const VERSIONS: [string, () => HttpClient][] = [
  ['HTTP/2', () => makeClient()],
  ['HTTP/1.1', () => makeClient({ http1Only: true })],
]

async function until(done: () => boolean): Promise<void> {
  for (let turn = 0; turn < 100_000 && !done(); turn++) await new Promise((resolve) => setImmediate(resolve))
  assert.ok(done(), 'did not happen')
}

async function turns(count: number): Promise<void> {
  for (let turn = 0; turn < count; turn++) await new Promise((resolve) => setImmediate(resolve))
}

const failsWith = (code: HttpErrorCode, message?: RegExp) => (error: unknown) => {
  assert.ok(error instanceof HttpError, String(error))
  assert.equal(error.code, code, error.message)
  if (message !== undefined) assert.match(error.message, message)
  return true
}

/** Sends bytes by hand and answers with everything that comes back until the server closes. */
function rawExchange(port: number, bytes: string): Promise<string> {
  return new Promise((resolve) => {
    const socket = connectNet(port, '127.0.0.1')
    let got = ''
    socket.on('data', (piece) => {
      got += piece.toString('latin1')
    })
    socket.on('error', () => undefined)
    socket.on('close', () => resolve(got))
    socket.write(bytes)
  })
}

for (const [version, newClient] of VERSIONS) {
  describe(`HTTP exchange over ${version}`, () => {
    it('transfers method, path, headers, peer address and bodies in both directions', async () => {
      let seen: Exchange | undefined
      const { url } = await start(async (exchange) => {
        seen = exchange
        const body = await exchange.readBody(1000)
        exchange.respond(
          201,
          ['Content-Type', 'text/plain', 'X-Twice', 'a', 'X-Twice', 'b'],
          `got ${body.toString('latin1')}`,
        )
      })
      const client = newClient()
      const response = await client.request({
        method: 'POST',
        url,
        path: '/api/v1/%2e%2e/x?a=b%20c',
        headers: { 'x-group': ['one, two', 'three'], authorization: 'Bearer t' },
        body: 'hello',
      })
      assert.equal(response.status, 201)
      assert.equal(response.headers['content-type'], 'text/plain')
      assert.equal(response.headers['x-twice'], 'a, b')
      assert.equal(response.headers['content-length'], '9')
      assert.match(response.headers.date ?? '', / GMT$/)
      assert.equal(await response.text(100), 'got hello')
      assert.ok(seen !== undefined)
      assert.equal(seen.version, version.slice(5))
      assert.equal(response.version, seen.version)
      assert.equal(seen.headers['content-length'], '5', 'without it, servers reckon with the largest body they take')
      assert.equal(seen.method, 'POST')
      assert.equal(seen.path, '/api/v1/%2e%2e/x?a=b%20c')
      assert.equal(seen.authority, url.slice(8))
      assert.equal(seen.headers['authorization'], 'Bearer t')
      assert.deepEqual(headerValues(seen, 'x-group'), ['one, two', 'three'])
      assert.equal(seen.peer.address, '127.0.0.1')
      assert.equal(seen.peer.isEncrypted, true)
      assert.equal(seen.peer.certificate, undefined)
      assert.deepEqual(seen.peer.chain(), [])
    })

    it('contains the client certificate, trusted or not', async () => {
      const peers: [string | undefined, boolean, number][] = []
      const { url } = await start((exchange) => {
        const { certificate, isTrusted } = exchange.peer
        peers.push([certificate?.subject, isTrusted, exchange.peer.chain().length])
        if (isTrusted) {
          const leaf = parseCertificate(exchange.peer.chain()[0]!)
          verifyChain(leaf, { roots: [authority.certificate], nowMs: realClock.now(), usage: 'client auth' })
          assert.deepEqual(leaf.subject.organizations, ['devs', 'ops'])
        }
        exchange.respond(200, [])
      })
      const stranger = createAuthority({ commonName: 'other' }, tools).issue({
        commonName: 'mallory',
        purpose: 'client',
      })
      for (const { certificatePem, keyPem } of [alice, stranger]) {
        const http1Only = version === 'HTTP/1.1'
        const client = makeClient({ tls: { ca, certificate: certificatePem, key: keyPem }, http1Only })
        ;(await client.request({ url })).discard()
      }
      assert.match(peers[0]?.[0] ?? '', /CN=alice/)
      assert.equal(peers[0]?.[1], true)
      assert.match(peers[1]?.[0] ?? '', /CN=mallory/)
      assert.equal(peers[1]?.[1], false)
      assert.equal(peers[1]?.[2], 1)
    })

    it('has no response body for HEAD, for 204, and for errors without a body', async () => {
      const { url } = await start((exchange) => {
        if (exchange.path === '/empty') exchange.respond(204, [])
        else exchange.respond(200, [], 'four')
      })
      const client = newClient()
      const head = await client.request({ method: 'HEAD', url })
      assert.equal(head.headers['content-length'], '4')
      assert.equal(await head.text(10), '')
      const empty = await client.request({ url: `${url}/empty` })
      assert.equal(empty.status, 204)
      assert.equal(empty.headers['content-length'], undefined)
      assert.equal(await empty.text(10), '')
      assert.equal(await (await client.request({ url })).text(10), 'four')
    })

    it('rejects request bodies above the limit, with or without Content-Length, and serves further requests', async () => {
      const { url } = await start(async (exchange) => {
        try {
          exchange.respond(200, [], String((await exchange.readBody(1000)).length))
        } catch (error) {
          assert.ok(error instanceof BodyError)
          exchange.respond(413, [], error.code)
        }
      })
      const client = newClient()
      const post = async (body: string | AsyncIterable<Buffer>): Promise<[number, string]> => {
        const response = await client.request({ method: 'POST', url, body })
        return [response.status, await response.text(100)]
      }
      async function* pieces(count: number): AsyncGenerator<Buffer> {
        for (let index = 0; index < count; index++) yield Buffer.alloc(100)
      }
      assert.deepEqual(await post('x'.repeat(1000)), [200, '1000'])
      assert.deepEqual(await post('x'.repeat(1001)), [413, 'too-large'])
      assert.deepEqual(await post(pieces(10)), [200, '1000'])
      assert.deepEqual(await post(pieces(11)), [413, 'too-large'])
      assert.deepEqual(await post(''), [200, '0'])
    })

    it('reserves memory before it reads the rest of a large body, and stops without it', async () => {
      const order: string[] = []
      const { url } = await start(async (exchange) => {
        const mayGrow = async (): Promise<void> => {
          order.push('asked')
          await new Promise(setImmediate)
          if (exchange.path === '/no') throw new Error('no room')
        }
        const body = await exchange.readBody(2000, { freeBytes: 500, mayGrow }).catch((error: Error) => error.message)
        exchange.respond(200, [], String(body.length))
      })
      async function* pieces(count: number): AsyncGenerator<Buffer> {
        for (let index = 0; index < count; index++) yield Buffer.alloc(100)
      }
      const post = async (path: string, count: number): Promise<string> =>
        (await newClient().request({ method: 'POST', url: `${url}${path}`, body: pieces(count) })).text(100)
      assert.equal(await post('/', 5), '500')
      assert.deepEqual(order, [])
      assert.equal(await post('/', 15), '1500')
      assert.deepEqual(order, ['asked'])
      assert.equal(await post('/no', 6), String('no room'.length))
    })

    it('times out while it waits for a request body', async () => {
      const clock = createVirtualClock()
      let code: string | undefined
      const { url } = await start(
        async (exchange) => {
          await exchange.readBody(1000).catch((error: BodyError) => {
            code = error.code
          })
          exchange.respond(408, [])
        },
        { clock },
      )
      async function* stuck(): AsyncGenerator<Buffer> {
        yield Buffer.from('a')
        await new Promise(() => undefined)
      }
      const own = clock.pending
      const answer = newClient().request({ method: 'POST', url, body: stuck() })
      await until(() => clock.pending > own)
      await clock.advance(60_000)
      assert.equal((await answer).status, 408)
      assert.equal(code, 'timeout')
    })

    it('sends a response in chunks no faster than the client reads, with or without a length', async () => {
      let made = 0
      const total = 800
      const { url } = await start(async (exchange) => {
        const body = (function* () {
          for (let piece = 0; piece < total; piece++) {
            made = piece
            yield Buffer.alloc(64 << 10, piece)
          }
        })()
        const lengthBytes = total * (64 << 10)
        await exchange.respondPieces(
          200,
          [],
          exchange.path === '/known' ? { pieces: body, lengthBytes } : { pieces: body },
        )
      })
      const client = newClient()
      for (const path of ['/known', '/unknown']) {
        // The headers of an answer may arrive before its first piece is made.
        made = 0
        const response = await client.request({ url: url + path })
        await turns(200)
        assert.ok(made < total * 0.8, `${made} pieces were made ahead`)
        assert.equal(response.headers['content-length'], path === '/known' ? String(total * (64 << 10)) : undefined)
        let size = 0
        for await (const piece of response.body) size += piece.length
        assert.equal(size, total * (64 << 10))
      }
    })

    it('aborts a response if its source fails or the handler throws', async () => {
      const errors: unknown[] = []
      const { url } = await start(
        async (exchange) => {
          if (exchange.path === '/early') throw new Error('early')
          if (exchange.path === '/late') {
            exchange.stream(200, []).write(Buffer.from('begun'))
            throw new Error('late')
          }
          const pieces = (async function* () {
            yield Buffer.alloc(300 << 10)
            throw new Error('source')
          })()
          await exchange.respondPieces(200, [], { pieces })
        },
        { onError: (error) => errors.push((error as Error).message) },
      )
      const client = newClient()
      const early = await client.request({ url: `${url}/early` })
      assert.equal(early.status, 500)
      assert.equal(await early.text(100), 'Internal Server Error\n')
      for (const path of ['/late', '/source']) {
        await assert.rejects(async () => (await client.request({ url: url + path })).text(1 << 20), failsWith('broken'))
      }
      assert.deepEqual(errors, ['early', 'late', 'source'])
    })

    it('streams frames, shared between clients or not, and ends when the client disconnects', async () => {
      let closes = 0
      let aborted = false
      const frame = shareFrame(Buffer.from('{"type":"ADDED"}\n'))
      const { url } = await start(async (exchange) => {
        const writer = exchange.stream(200, ['Content-Type', 'application/json'])
        writer.onClose(() => closes++)
        exchange.signal.addEventListener('abort', () => {
          aborted = true
        })
        writer.writeFrame(frame)
        writer.write(Buffer.from('plain\n'))
        writer.write(Buffer.alloc(0))
        writer.writeFrame(frame)
        if (exchange.path === '/end') writer.end()
      })
      const client = newClient()
      const whole = await client.request({ url: `${url}/end` })
      const expected = '{"type":"ADDED"}\nplain\n{"type":"ADDED"}\n'
      assert.equal(await whole.text(1000), expected)
      await until(() => closes === 1)
      assert.equal(aborted, false)
      const endless = await client.request({ url: `${url}/watch` })
      let got = ''
      for await (const piece of endless.body) {
        got += piece.toString()
        if (got.length >= expected.length) break
      }
      assert.equal(got, expected)
      await until(() => closes === 2 && aborted)
    })

    it('pauses a stream while the client does not read', async () => {
      let written = 0
      let drained = false
      const { url } = await start(async (exchange) => {
        const writer = exchange.stream(200, [])
        const frame = shareFrame(Buffer.alloc(64 << 10))
        for (; written < 800; written++) if (!writer.writeFrame(frame)) await writer.drained()
        drained = true
        writer.end()
      })
      const response = await newClient().request({ url })
      await turns(200)
      assert.ok(written < 640, `${written} frames were taken`)
      for await (const _ of response.body) continue
      assert.equal(drained, true)
    })

    it('ends on timeout and abort, before and after the head of the response', async () => {
      const { url } = await start((exchange) => {
        if (exchange.path === '/head') exchange.stream(200, [])
      })
      const client = newClient()
      ;(await client.request({ url: `${url}/head` })).discard()
      const clock = createVirtualClock()
      const timed = createHttpClient({ clock, tls: { ca }, http1Only: version === 'HTTP/1.1' })
      cleanups.push(() => timed.close())
      const late = assert.rejects(timed.request({ url, timeoutMs: 5000 }), failsWith('timeout', /longer than 5000 ms/))
      await turns(100)
      await clock.advance(5000)
      await late
      const control = new AbortController()
      const left = assert.rejects(client.request({ url, signal: control.signal }), failsWith('aborted'))
      const begun = await client.request({ url: `${url}/head`, signal: control.signal })
      control.abort(new Error('enough'))
      await left
      await assert.rejects(begun.text(10), failsWith('aborted'))
      await assert.rejects(client.request({ url, signal: control.signal }), failsWith('aborted'))
    })

    it('sends the body of a DELETE, and the next request after it', async () => {
      const { url } = await start(async (exchange) =>
        exchange.respond(200, [], `${exchange.method} ${(await exchange.readBody(100)).toString()}`),
      )
      const client = newClient()
      for (const method of ['DELETE', 'GET', 'POST']) {
        assert.equal(await (await client.request({ method, url, body: 'x' })).text(10), `${method} x`)
        assert.equal(await (await client.request({ method, url })).text(10), `${method} `)
      }
    })

    it('limits the size of a response in the client', async () => {
      const { url } = await start((exchange) => exchange.respond(200, [], 'x'.repeat(1000)))
      await assert.rejects((await newClient().request({ url })).bytes(999), failsWith('too-large'))
    })

    it('finishes running requests before the server stops, and accepts no others', async () => {
      let finish: (() => void) | undefined
      const { server, url } = await start((exchange) => {
        if (exchange.path === '/quick') exchange.respond(200, [], 'quick')
        else finish = () => exchange.respond(200, [], 'finished')
      })
      const client = newClient()
      await (await client.request({ url: `${url}/quick` })).text(100)
      const answer = client.request({ url })
      await until(() => finish !== undefined)
      const drained = server.drain(60_000)
      assert.equal(server.draining.aborted, true)
      await assert.rejects(makeClient().request({ url }), failsWith('connect'))
      finish!()
      assert.equal(await (await answer).text(100), 'finished')
      await drained
      assert.equal(server.connections, 0)
    })

    it('aborts running requests after the grace period of the server', async () => {
      const clock = createVirtualClock()
      let isServed = false
      const { server, url } = await start(
        () => {
          isServed = true
        },
        { clock },
      )
      const answer = assert.rejects(newClient().request({ url, method: 'POST' }), failsWith('broken'))
      await until(() => isServed)
      const drained = server.drain(30_000)
      await clock.advance(30_000)
      await drained
      await answer
    })
  })
}

describe('HTTP server', () => {
  it('presents the certificate for the requested name, and new ones after a reload', async () => {
    const issue = (name: string): { certificate: string; key: string } => {
      const { certificatePem, keyPem } = authority.issue({
        commonName: name,
        names: { dns: [name] },
        purpose: 'server',
      })
      return { certificate: certificatePem, key: keyPem }
    }
    const names = (...list: string[]): { names: string[] } => ({ names: list })
    const sni = [
      { ...issue('a.example'), ...names('a.example') },
      { ...issue('*.wild.example'), ...names('*.wild.example') },
    ]
    const { server, port } = await start((exchange) => exchange.respond(200, []), { tls: { ...tls, sni } })
    const shown = (servername?: string): Promise<string> =>
      new Promise((resolve, reject) => {
        const socket = connectTls({
          host: '127.0.0.1',
          port,
          ca,
          ...(servername === undefined ? {} : { servername }),
          checkServerIdentity: () => undefined,
        })
        socket.on('error', reject)
        socket.on('secureConnect', () => {
          resolve(socket.getPeerX509Certificate()?.subject ?? '')
          socket.destroy()
        })
      })
    assert.equal(await shown(), 'CN=server')
    assert.equal(await shown('A.example'), 'CN=a.example')
    assert.equal(await shown('x.wild.example'), 'CN=*.wild.example')
    assert.equal(await shown('x.y.wild.example'), 'CN=server')
    assert.throws(() => server.reloadTls({ certificate: 'junk', key: 'junk' }))
    assert.equal(await shown('a.example'), 'CN=a.example')
    server.reloadTls({ ...issue('second'), clientAuthorities: [ca] })
    assert.equal(await shown('a.example'), 'CN=second')
  })

  it('prefers AES-128-GCM, and refuses TLS below 1.2', async () => {
    const { port } = await start((exchange) => exchange.respond(200, []))
    const handshake = (options: object): Promise<[string, string | null]> =>
      new Promise((resolve, reject) => {
        const socket = connectTls({ host: '127.0.0.1', port, ca, ...options })
        socket.on('error', reject)
        socket.on('secureConnect', () => {
          resolve([socket.getCipher().name, socket.getProtocol()])
          socket.destroy()
        })
      })
    assert.deepEqual(await handshake({}), ['TLS_AES_128_GCM_SHA256', 'TLSv1.3'])
    assert.deepEqual(await handshake({ maxVersion: 'TLSv1.2' }), ['ECDHE-ECDSA-AES128-GCM-SHA256', 'TLSv1.2'])
    await assert.rejects(handshake({ minVersion: 'TLSv1', maxVersion: 'TLSv1.1', ciphers: 'DEFAULT@SECLEVEL=0' }))
  })

  it('keeps the certificate of a client that resumes its TLS session', async () => {
    const subjects: (string | undefined)[] = []
    const { port } = await start((exchange) => {
      subjects.push(`${exchange.peer.certificate?.subject} ${exchange.peer.isTrusted}`)
      exchange.respond(200, ['Connection', 'close'])
    })
    let session: Buffer | undefined
    const connect = (): Promise<boolean> =>
      new Promise((resolve, reject) => {
        const socket = connectTls({
          host: '127.0.0.1',
          port,
          ca,
          cert: alice.certificatePem,
          key: alice.keyPem,
          ...(session === undefined ? {} : { session }),
        })
        socket.on('session', (ticket) => {
          session = ticket
        })
        socket.on('error', reject)
        let isReused = false
        socket.on('secureConnect', () => {
          isReused = socket.isSessionReused()
          socket.write('GET / HTTP/1.1\r\nHost: x\r\n\r\n')
        })
        socket.on('close', () => resolve(isReused))
        socket.resume()
      })
    assert.equal(await connect(), false)
    assert.equal(await connect(), true)
    assert.match(subjects[1] ?? '', /CN=alice true$/)
  })

  it('closes connections whose request headers are too slow', async () => {
    const { port } = await startPlain((exchange) => exchange.respond(200, []), { limits: { headersTimeoutMs: 50 } })
    const answer = await rawExchange(port, 'GET / HTTP/1.1\r\nHost: x\r\n')
    assert.match(answer, /^HTTP\/1\.1 408 /)
  })

  it('closes connections whose TLS handshake is too slow', async () => {
    const { port } = await start((exchange) => exchange.respond(200, []), { limits: { handshakeTimeoutMs: 50 } })
    assert.equal(await rawExchange(port, ''), '')
  })

  it('closes connections that are idle', async () => {
    const { port, url, server } = await start((exchange) => exchange.respond(200, []), {
      limits: { idleTimeoutMs: 30 },
    })
    ;(await makeClient().request({ url })).discard()
    const socket = connectTls({ host: '127.0.0.1', port, ca })
    socket.write('GET / HTTP/1.1\r\nHost: x\r\n\r\n')
    socket.resume()
    await new Promise((resolve) => socket.on('close', resolve))
    for (let wait = 0; wait < 200 && server.connections > 0; wait++) {
      await new Promise((resolve) => realClock.after(10, () => resolve(undefined)))
    }
    assert.equal(server.connections, 0)
  })

  it('limits the size of request headers', async () => {
    const { url } = await start((exchange) => exchange.respond(200, []), { limits: { maxHeaderBytes: 8192 } })
    const headers = { 'x-large': 'y'.repeat(10_000) }
    assert.equal((await makeClient({ http1Only: true }).request({ url, headers })).status, 431)
    const client = makeClient()
    assert.equal((await client.request({ url, headers: { 'x-large': 'y'.repeat(7000) } })).status, 200)
    await assert.rejects(client.request({ url, headers }), failsWith('broken', /CALM/))
  })

  it('limits connections per address and in total, before the TLS handshake', async () => {
    for (const limits of [{ maxConnections: 2 }, { maxConnectionsPerAddress: 2 }]) {
      const { port, server } = await start((exchange) => exchange.respond(200, []), { limits })
      const sockets: Socket[] = []
      for (let count = 0; count < 2; count++) sockets.push(connectNet(port, '127.0.0.1'))
      await until(() => server.connections === 2)
      assert.equal(await rawExchange(port, 'x'), '')
      for (const socket of sockets) socket.destroy()
      await until(() => server.connections === 0)
    }
  })

  it('closes an HTTP/2 connection that keeps resetting streams', async () => {
    const { url } = await start((exchange) => void exchange.signal, {
      limits: { streamResetBurst: 20, streamResetRate: 1 },
    })
    const session = connectHttp2(url, { ca })
    let code: number | undefined
    session.on('goaway', (goaway) => {
      code = goaway
    })
    session.on('error', () => undefined)
    const closed = new Promise((resolve) => session.on('close', resolve))
    for (let count = 0; count < 500 && !session.destroyed; count++) {
      const stream = session.request({ ':path': '/' })
      stream.on('error', () => undefined)
      stream.close(8)
      await turns(1)
    }
    await closed
    assert.notEqual(code, undefined)
  })

  it('starts no handler for streams that are reset at once', async () => {
    let begun = 0
    const { url, server } = await start((exchange) => void (exchange.signal.aborted || begun++))
    const session = connectHttp2(url, { ca })
    session.on('error', () => undefined)
    await new Promise((resolve) => session.once('remoteSettings', resolve))
    for (let count = 0; count < 100; count++) {
      const stream = session.request({ ':path': '/' })
      stream.on('error', () => undefined)
      stream.close(8)
    }
    await until(() => begun > 0)
    await turns(20)
    assert.ok(begun <= 50, `${begun} of 100 were begun`)
    session.destroy()
    await until(() => server.connections === 0)
  })

  it('disconnects clients that do not read', async () => {
    for (const open of [connectTls, undefined]) {
      const clock = createVirtualClock()
      const large = Buffer.alloc(8 << 20)
      let isOver = false
      const answer = async (exchange: Exchange): Promise<void> => {
        await exchange.respondPieces(200, [], { pieces: [large, large] }).finally(() => (isOver = true))
      }
      const { port, server } = await start(answer, { clock })
      const waitUntil = async (done: () => boolean): Promise<void> => {
        while (!done()) await clock.advance(60_000).then(() => turns(1))
      }
      if (open === undefined) {
        const session = connectHttp2(`https://127.0.0.1:${port}`, { ca })
        session.on('error', () => undefined)
        const stream = session.request({ ':path': '/' })
        const closed = new Promise((resolve) => stream.on('close', resolve))
        stream.on('error', () => undefined)
        await new Promise((resolve) => stream.once('response', resolve))
        await waitUntil(() => isOver)
        stream.resume()
        await closed
        assert.notEqual(stream.rstCode, 0)
        session.destroy()
      } else {
        const socket = open({ port, host: '127.0.0.1', ca, ALPNProtocols: ['http/1.1'] })
        socket.on('error', () => undefined)
        socket.write('GET / HTTP/1.1\r\nhost: x\r\n\r\n')
        await until(() => server.connections === 1)
        socket.pause()
        await new Promise((resolve) => socket.once('secureConnect', resolve))
        await waitUntil(() => server.connections === 0)
        socket.destroy()
      }
    }
  })

  it('answers a request that arrives on an idle connection as draining starts', async () => {
    const socketOf = async (port: number): Promise<Socket> => {
      const socket = connectNet({ port, host: '127.0.0.1' })
      await new Promise((resolve) => socket.once('connect', resolve))
      return socket
    }
    const { port, server } = await startPlain((exchange) => exchange.respond(200, [], 'ok'))
    const socket = await socketOf(port)
    await until(() => server.connections === 1)
    const drained = server.drain(60_000)
    const chunks: Buffer[] = []
    socket.on('data', (chunk: Buffer) => chunks.push(chunk))
    socket.write('GET / HTTP/1.1\r\nhost: x\r\n\r\n')
    await drained
    await until(() => socket.destroyed || socket.readableEnded)
    assert.match(Buffer.concat(chunks).toString(), /^HTTP\/1\.1 200 .*Connection: close.*ok$/s)
  })

  it('allows 100 HTTP/2 streams at once', async () => {
    const { url } = await start((exchange) => exchange.respond(200, []))
    const session = connectHttp2(url, { ca })
    await new Promise<void>((resolve) => {
      session.on('remoteSettings', ({ maxConcurrentStreams }) => {
        assert.equal(maxConcurrentStreams, 100)
        resolve()
      })
    })
    session.destroy()
  })

  it('trusts no client certificate if it has no authorities', async () => {
    const seen: unknown[] = []
    const { certificate, key } = tls
    const { url, server } = await start(
      (exchange) => {
        seen.push(exchange.peer.certificate !== undefined, exchange.peer.isTrusted)
        exchange.respond(200, [])
      },
      { tls: { certificate, key } },
    )
    const client = makeClient({ tls: { ca, certificate: alice.certificatePem, key: alice.keyPem } })
    await (await client.request({ url })).text(10)
    assert.deepEqual(seen, [true, false])
    client.close()
    await Promise.all([server.drain(1000), server.drain(1000)])
  })

  it('rejects smuggled requests', async () => {
    const { port } = await startPlain((exchange) => exchange.respond(200, ['Connection', 'close'], 'served'))
    const bad = [
      'POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 4\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n',
      'GET / HTTP/1.1\r\nHost : x\r\n\r\n',
      'GET / HTTP/1.1\r\nHost: x\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\n',
      'GET / HTTP/1.1\r\nHost: x\nX: y\r\n\r\n',
    ]
    for (const bytes of bad) assert.match(await rawExchange(port, bytes), /^HTTP\/1\.1 400 /, JSON.stringify(bytes))
  })

  it('answers pipelined requests in order, including streams', async () => {
    const { port } = await startPlain(async (exchange) => {
      if (exchange.path === '/b') return exchange.respond(200, ['Connection', 'close'], 'second')
      const writer = exchange.stream(200, [])
      await turns(5)
      writer.writeFrame(shareFrame(Buffer.from('first')))
      writer.end()
    })
    const answer = await rawExchange(port, 'GET /a HTTP/1.1\r\nHost: x\r\n\r\nGET /b HTTP/1.1\r\nHost: x\r\n\r\n')
    assert.match(answer, /5\r\nfirst\r\n0\r\n\r\nHTTP\/1\.1 200[^]*second$/)
  })

  it('asks keep-alive connections to close while it drains', async () => {
    let go: (() => void) | undefined
    const { server, port } = await startPlain((exchange) => {
      go = () => exchange.respond(200, [], 'bye')
    })
    const answer = rawExchange(port, 'GET / HTTP/1.1\r\nHost: x\r\n\r\n')
    await until(() => go !== undefined)
    const drained = server.drain(60_000)
    go!()
    assert.match(await answer, /Connection: close\r\n[^]*bye$/i)
    await drained
  })

  it('listens on a unix socket', async () => {
    const path = join(directory, 'h.sock')
    const server = createHttpServer({
      serve: (exchange) => exchange.respond(200, [], `${exchange.peer.address}|${exchange.authority}`),
      clock: realClock,
    })
    cleanups.push(() => server.drain(0))
    assert.deepEqual(await server.listen({ path }), { path })
    const client = makeClient({ socketPath: path })
    assert.equal(await (await client.request({ url: 'http://local/x' })).text(100), '|local')
  })
})

describe('HTTP upgrades', () => {
  const upgrades = ['echo']

  it('pass on the socket with data that the client sent early', async () => {
    const { url } = await start(
      (exchange) => {
        assert.equal(exchange.upgradeProtocol, 'echo')
        const { socket, head } = exchange.upgrade()
        socket.write('HTTP/1.1 101 Switching Protocols\r\nUpgrade: echo\r\nConnection: Upgrade\r\n\r\n')
        socket.write(head)
        socket.pipe(socket)
      },
      { upgrades },
    )
    const result = await makeClient().upgrade({ url, method: 'POST', headers: { upgrade: 'Echo' } })
    assert.ok(result.isUpgraded)
    result.socket.write('ping')
    let got = result.head.toString()
    for await (const piece of result.socket) {
      got += (piece as Buffer).toString()
      if (got === 'ping') break
    }
    assert.equal(got, 'ping')
  })

  it('close the connection if they are refused', async () => {
    const served: string[] = []
    const { port, url } = await startPlain(
      (exchange) => {
        served.push(exchange.path)
        exchange.respond(403, ['Content-Type', 'text/plain'], 'no')
      },
      { upgrades },
    )
    const result = await makeClient().upgrade({ url, headers: { upgrade: 'echo' } })
    assert.ok(!result.isUpgraded)
    assert.equal(result.response.status, 403)
    assert.equal(await result.response.text(10), 'no')
    const request = 'GET /first HTTP/1.1\r\nHost: x\r\nConnection: Upgrade\r\nUpgrade: echo\r\n\r\n'
    const answer = await rawExchange(port, `${request}GET /second HTTP/1.1\r\nHost: x\r\n\r\n`)
    assert.equal(answer.match(/HTTP\/1\.1/g)?.length, 1)
    assert.match(answer, /Connection: close/i)
    assert.deepEqual(served, ['/', '/first'])
  })

  it('are refused for other protocols', async () => {
    const { url } = await start((exchange) => exchange.respond(200, [], String(exchange.upgradeProtocol)), { upgrades })
    const result = await makeClient().upgrade({ url, headers: { upgrade: 'h2c' } })
    assert.ok(!result.isUpgraded)
    assert.equal(await result.response.text(10), 'undefined')
  })

  it('work over HTTP/2 where allowed, but plain CONNECT does not', async () => {
    const { url } = await start(
      (exchange) => {
        assert.equal(exchange.upgradeProtocol, 'websocket')
        exchange.upgrade().socket.end('hello')
      },
      { extendedConnect: true },
    )
    const session = connectHttp2(url, { ca })
    await new Promise((resolve) => session.once('remoteSettings', resolve))
    const open = (headers: object): Promise<[number, string]> =>
      new Promise((resolve) => {
        const stream = session.request({ ':method': 'CONNECT', ':authority': 'x', ...headers }, { endStream: false })
        let status = 0
        let body = ''
        stream.on('response', (found) => {
          status = found[':status'] ?? 0
        })
        stream.on('data', (piece: Buffer) => {
          body += piece.toString()
        })
        stream.on('end', () => {
          resolve([status, body])
          stream.close()
        })
      })
    assert.deepEqual(await open({ ':protocol': 'websocket', ':scheme': 'https', ':path': '/' }), [200, 'hello'])
    assert.deepEqual(await open({}), [405, ''])
    session.destroy()
  })
})

describe('HTTP client', () => {
  it('opens another connection if all streams of one are in use', async () => {
    const waiting: Exchange[] = []
    const { url, server } = await start((exchange) => void waiting.push(exchange), {
      limits: { maxConcurrentStreams: 3 },
    })
    const client = makeClient()
    const first = client.request({ url })
    await until(() => waiting.length === 1)
    const rest = Array.from({ length: 7 }, () => client.request({ url }))
    await until(() => waiting.length === 8)
    assert.ok(server.connections >= 3)
    for (const exchange of waiting) exchange.respond(200, [])
    for (const answer of [first, ...rest]) assert.equal((await answer).status, 200)
  })

  it('reuses one HTTP/1.1 connection for many requests', async () => {
    const ports = new Set<number>()
    const { url } = await start((exchange) => {
      ports.add(exchange.peer.port)
      exchange.respond(200, [], 'x')
    })
    const client = makeClient({ http1Only: true })
    for (let count = 0; count < 5; count++) assert.equal(await (await client.request({ url })).text(10), 'x')
    assert.equal(ports.size, 1)
  })

  it('detects a server that only supports HTTP/1.1', async () => {
    const { createServer } = await import('node:https')
    const server = createServer({ cert: tls.certificate, key: tls.key }, (_, response) => response.end('old'))
    await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
    cleanups.push(() => server.close())
    const address = server.address()
    assert.ok(typeof address === 'object' && address !== null)
    const client = makeClient()
    const answers = await Promise.all(
      Array.from({ length: 3 }, async () => {
        const response = await client.request({ url: `https://127.0.0.1:${address.port}` })
        return `${response.version} ${await response.text(10)}`
      }),
    )
    assert.deepEqual(answers, ['1.1 old', '1.1 old', '1.1 old'])
  })

  it('retries a request if the server has closed the keep-alive connection', async () => {
    let requests = 0
    const server = createNetServer((socket) => {
      socket.on('error', () => undefined)
      let isFirst = true
      socket.on('data', () => {
        requests++
        // Every connection answers once and then breaks on its second request.
        if (isFirst) socket.write('HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok')
        else socket.resetAndDestroy()
        isFirst = false
      })
    })
    await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
    cleanups.push(() => server.close())
    const address = server.address()
    assert.ok(typeof address === 'object' && address !== null)
    const url = `http://127.0.0.1:${address.port}`
    const client = makeClient()
    for (let count = 0; count < 3; count++) assert.equal(await (await client.request({ url })).text(10), 'ok')
    assert.equal(requests, 5)
    await assert.rejects(client.request({ url, method: 'POST', body: 'x' }), failsWith('broken'))
    assert.equal(requests, 6)
  })

  it('trusts only its authorities, unless verification is disabled', async () => {
    const { url, port } = await start((exchange) => exchange.respond(200, [], 'x'))
    await assert.rejects(makeClient({ tls: {} }).request({ url }), failsWith('connect', /certificate/))
    assert.equal((await makeClient({ tls: { insecure: true } }).request({ url })).status, 200)
    const other = createAuthority({ commonName: 'other' }, tools).certificatePem
    await assert.rejects(makeClient({ tls: { ca: other } }).request({ url }), failsWith('connect'))
    await assert.rejects(
      makeClient({ tls: { ca, serverName: 'elsewhere' } }).request({ url }),
      failsWith('connect', /altnames/),
    )
    // As with Go, and as controller-runtime's envtest has it.
    const itself = makeClient({ tls: { ca: serving.certificatePem } })
    assert.equal((await itself.request({ url })).status, 200, 'a certificate that is listed needs no authority')
    const named = makeClient({ tls: { ca, serverName: 'localhost' } })
    assert.equal((await named.request({ url: `https://127.0.0.1:${port}` })).status, 200)
  })

  it('uses new credentials after a reload', async () => {
    const seen: (string | undefined)[] = []
    const { url } = await start((exchange) => {
      seen.push(exchange.peer.certificate?.subject.replaceAll('\n', ','))
      exchange.respond(200, [])
    })
    for (const http1Only of [false, true]) {
      const client = makeClient({ http1Only })
      await (await client.request({ url })).text(10)
      client.reloadTls({ ca, certificate: alice.certificatePem, key: alice.keyPem })
      await (await client.request({ url })).text(10)
    }
    assert.deepEqual(seen, [undefined, 'O=devs,O=ops,CN=alice', undefined, 'O=devs,O=ops,CN=alice'])
  })

  it('does not follow redirects', async () => {
    const { url } = await start((exchange) => exchange.respond(302, ['Location', '/elsewhere']))
    const response = await makeClient().request({ url })
    assert.equal(response.status, 302)
    response.discard()
  })

  it('fails for a server that does not finish the handshake or does not exist', async () => {
    const clock = createVirtualClock()
    const silent = createNetServer((socket) => socket.on('error', () => undefined).resume())
    await new Promise<void>((resolve) => silent.listen(0, '127.0.0.1', resolve))
    cleanups.push(() => silent.close())
    const address = silent.address()
    assert.ok(typeof address === 'object' && address !== null)
    const client = makeClient({ clock, connectTimeoutMs: 3000 })
    const url = `https://127.0.0.1:${address.port}`
    const answer = assert.rejects(client.request({ url }), failsWith('timeout', /no answer within 3000 ms/))
    await until(() => clock.pending === 1)
    await clock.advance(3000)
    await answer
    await assert.rejects(client.request({ url: 'ftp://x' }), failsWith('connect'))
    client.close()
    await assert.rejects(client.request({ url }), failsWith('aborted'))
    silent.close()
  })

  it('sends a stream as the request body, and fails if the stream fails', async () => {
    const { url } = await start(async (exchange) => {
      let size = 0
      for await (const piece of exchange.body()) size += piece.length
      exchange.respond(200, [], String(size))
    })
    async function* pieces(isBad: boolean): AsyncGenerator<Buffer> {
      for (let count = 0; count < 100; count++) yield Buffer.alloc(10_000)
      if (isBad) throw new Error('disk')
    }
    for (const http1Only of [false, true]) {
      const client = makeClient({ http1Only })
      const response = await client.request({ url, method: 'PUT', body: pieces(false) })
      assert.equal(await response.text(20), '1000000')
      await assert.rejects(client.request({ url, method: 'PUT', body: pieces(true) }), failsWith('broken', /disk/))
    }
  })
})
