import assert from 'node:assert/strict'
import { connect as connectNet } from 'node:net'
import type { Duplex } from 'node:stream'
import { after, describe, it } from 'node:test'

import { createVirtualClock, realClock } from '../clock.ts'
import { secureRandom } from '../random.ts'
import { createAuthority } from '../x509/authority.ts'
import type { Exchange } from './exchange.ts'
import { createHttpServer } from './server.ts'
import type { ConnectOptions, WebSocketConnection } from './websocket.ts'
import { acceptWebSocket, connectWebSocket, offeredProtocols, WebSocketError } from './websocket.ts'

const authority = createAuthority({ commonName: 'ca' }, { clock: realClock, random: secureRandom })
const serving = authority.issue({ commonName: 's', names: { ips: ['127.0.0.1'] }, purpose: 'server' })
const ca = authority.certificatePem

const cleanups: (() => unknown)[] = []
after(async () => {
  for (const cleanup of cleanups.reverse()) await cleanup()
})

async function start(serve: (exchange: Exchange) => void | Promise<void>, isPlain = false): Promise<number> {
  const tls = { certificate: serving.certificatePem, key: serving.keyPem }
  const server = createHttpServer({
    serve,
    clock: realClock,
    upgrades: ['websocket'],
    ...(isPlain ? {} : { tls }),
  })
  cleanups.push(() => server.drain(0))
  const bound = await server.listen({ host: '127.0.0.1', port: 0 })
  assert.ok('port' in bound)
  return bound.port
}

const connect = (port: number, options: Partial<ConnectOptions> = {}): Promise<WebSocketConnection> =>
  connectWebSocket({ url: `wss://127.0.0.1:${port}/exec?a=b`, tls: { ca }, clock: realClock, ...options })

async function echo(exchange: Exchange): Promise<void> {
  const socket = await acceptWebSocket(exchange, { clock: realClock })
  for await (const { data, isBinary } of socket) await socket.send(isBinary ? data : data.toString())
}

async function turns(count: number): Promise<void> {
  for (let turn = 0; turn < count; turn++) await new Promise((resolve) => setImmediate(resolve))
}

async function until(done: () => boolean): Promise<void> {
  for (let turn = 0; turn < 100_000 && !done(); turn++) await turns(1)
  assert.ok(done(), 'did not happen')
}

const next = async (socket: WebSocketConnection): Promise<{ data: Buffer; isBinary: boolean }> =>
  (await socket[Symbol.asyncIterator]().next()).value as { data: Buffer; isBinary: boolean }

const failsWith = (code: string, message?: RegExp) => (error: unknown) => {
  assert.ok(error instanceof WebSocketError, String(error))
  assert.equal(error.code, code, error.message)
  if (message !== undefined) assert.match(error.message, message)
  return true
}

describe('WebSocket', () => {
  it('transfers binary and text messages, small and large, over TLS', async () => {
    const socket = await connect(await start(echo))
    await socket.send(Buffer.from([1, 0, 255]))
    assert.deepEqual(await next(socket), { data: Buffer.from([1, 0, 255]), isBinary: true })
    await socket.send('grüezi')
    assert.deepEqual(await next(socket), { data: Buffer.from('grüezi'), isBinary: false })
    await socket.send(Buffer.alloc(0))
    assert.equal((await next(socket)).data.length, 0)
    const large = Buffer.alloc(3 << 20, 7)
    await socket.send(large)
    assert.ok((await next(socket)).data.equals(large))
    await socket.close()
    assert.equal((await socket.closed).code, 1000)
  })

  it('uses the subprotocol that the server selects', async () => {
    let offered: string[] = []
    const port = await start(async (exchange) => {
      offered = offeredProtocols(exchange)
      await acceptWebSocket(exchange, {
        clock: realClock,
        choose: (names) => names.find((name) => name !== 'v6.channel.k8s.io'),
      })
    })
    const socket = await connect(port, { protocols: ['v6.channel.k8s.io', 'v5.channel.k8s.io', 'v4.channel.k8s.io'] })
    assert.equal(socket.protocol, 'v5.channel.k8s.io')
    assert.deepEqual(offered, ['v6.channel.k8s.io', 'v5.channel.k8s.io', 'v4.channel.k8s.io'])
    const none = await connect(await start(echo))
    assert.equal(none.protocol, '')
    socket.destroy()
    none.destroy()
  })

  it('can be refused by the server with any HTTP response', async () => {
    const port = await start((exchange) => exchange.respond(403, [], 'no'))
    const error = await connect(port).catch((one: unknown) => one)
    assert.ok(error instanceof WebSocketError)
    assert.deepEqual([error.code, error.status], ['refused', 403])
    const redirecting = await start((exchange) => exchange.respond(302, ['Location', 'wss://127.0.0.1:1/']))
    await assert.rejects(connect(redirecting), failsWith('refused', /302/))
    await assert.rejects(connect(await start(echo), { tls: {} }), failsWith('refused', /certificate/))
    await assert.rejects(connect(1), failsWith('refused'))
  })

  it('fails to open after an invalid handshake response', async () => {
    let refusal: unknown
    const port = await start(async (exchange) => {
      await acceptWebSocket(exchange, { clock: realClock }).catch((error: unknown) => {
        refusal = error
      })
    }, true)
    const answer = await new Promise<string>((resolve) => {
      const socket = connectNet(port, '127.0.0.1')
      let got = ''
      socket.on('data', (piece) => {
        got += piece.toString()
      })
      socket.on('close', () => resolve(got))
      socket.write('GET / HTTP/1.1\r\nHost: x\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n')
    })
    assert.match(answer, /^HTTP\/1\.1 400 /)
    await until(() => refusal !== undefined)
    assert.ok(failsWith('refused')(refusal))
  })

  it('applies backpressure while nothing is read', async () => {
    let received = 0
    let release = (): void => undefined
    const gate = new Promise<void>((resolve) => {
      release = resolve
    })
    const port = await start(async (exchange) => {
      const socket = await acceptWebSocket(exchange, { clock: realClock })
      await gate
      for await (const { data } of socket) received += data.length
    })
    const socket = await connect(port)
    const piece = Buffer.alloc(256 << 10)
    let sent = 0
    const total = 400
    const sending = (async () => {
      for (; sent < total; sent++) await socket.send(piece)
    })()
    await turns(300)
    assert.ok(sent < total * 0.8, `${sent} were sent`)
    release()
    await sending
    await socket.close()
    await until(() => received === total * piece.length)
  })

  it('closes with code 1009 if a message is too large', async () => {
    const port = await start(async (exchange) => {
      const socket = await acceptWebSocket(exchange, { clock: realClock, maxPayloadBytes: 1000 })
      await socket.closed
    })
    const socket = await connect(port)
    await socket.send(Buffer.alloc(1001))
    assert.equal((await socket.closed).code, 1009)
    await assert.rejects(next(socket), failsWith('broken', /1009/))
    await assert.rejects(socket.send('x'), failsWith('broken'))
  })

  it('distinguishes a clean close from a lost connection', async () => {
    const port = await start(async (exchange) => {
      const socket = await acceptWebSocket(exchange, { clock: realClock })
      if (exchange.path.includes('bye')) await socket.close(4000, 'enough')
      else socket.destroy()
    })
    const polite = await connect(port, { url: `wss://127.0.0.1:${port}/bye` })
    assert.deepEqual(await polite.closed, { code: 4000, reason: 'enough' })
    const lost = await connect(port)
    assert.equal((await lost.closed).code, 1006)
    await assert.rejects(next(lost), failsWith('broken'))
  })

  it('closes if the peer does not answer pings or the close frame', async () => {
    const clock = createVirtualClock()
    let pings: Promise<{ code: number }> | undefined
    const port = await start(async (exchange) => {
      pings = (await acceptWebSocket(exchange, { clock, pingIntervalMs: 10_000 })).closed
    }, true)
    const socket = connectNet(port, '127.0.0.1')
    socket.on('error', () => undefined)
    socket.write(
      'GET / HTTP/1.1\r\nHost: x\r\nConnection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n',
    )
    socket.resume()
    await until(() => pings !== undefined)
    await clock.advance(10_000)
    await turns(20)
    await clock.advance(10_000)
    assert.equal((await pings!).code, 1006)

    let closing: Promise<void> | undefined
    const deaf = await start(async (exchange) => {
      closing = (await acceptWebSocket(exchange, { clock })).close()
    }, true)
    const mute = connectNet(deaf, '127.0.0.1')
    mute.on('error', () => undefined)
    mute.write(
      'GET / HTTP/1.1\r\nHost: x\r\nConnection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n',
    )
    mute.resume()
    await until(() => closing !== undefined)
    await clock.advance(5000)
    await closing
    socket.destroy()
    mute.destroy()
  })

  it('answers pings, but not those of a peer that does not read', async () => {
    let near: Duplex | undefined
    const port = await start(async (exchange) => {
      const upgrade = exchange.upgrade.bind(exchange)
      exchange.upgrade = () => {
        const upgraded = upgrade()
        near = upgraded.socket
        return upgraded
      }
      await echo(exchange)
    }, true)
    const peer = connectNet(port, '127.0.0.1')
    cleanups.push(() => peer.destroy())
    const key = Buffer.alloc(16).toString('base64')
    peer.write(`GET / HTTP/1.1\r\nHost: x\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n`)
    peer.write(`Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: ${key}\r\n\r\n`)
    const ping = Buffer.concat([Buffer.from([0x89, 0xfd, 0, 0, 0, 0]), Buffer.alloc(125, 'p')])
    let got = Buffer.alloc(0)
    const gather = (bytes: Buffer): void => void (got = Buffer.concat([got, bytes]))
    peer.on('data', gather)
    peer.write(ping)
    await until(() => got.includes(Buffer.concat([Buffer.from([0x8a, 125]), Buffer.alloc(125, 'p')])))
    peer.off('data', gather).pause()
    const flood = Buffer.concat(Array.from({ length: 1000 }, () => ping))
    let most = 0
    for (let round = 0; round < 200; round++) {
      if (!peer.write(flood)) await turns(20)
      most = Math.max(most, near?.writableLength ?? 0)
    }
    assert.ok(most < 1 << 20, `${most} bytes of answers waited`)
  })

  it('stays open while the peer answers pings', async () => {
    const clock = createVirtualClock()
    let isClosed = false
    const port = await start(async (exchange) => {
      const socket = await acceptWebSocket(exchange, { clock, pingIntervalMs: 10_000 })
      void socket.closed.then(() => {
        isClosed = true
        return undefined
      })
      for await (const { data } of socket) await socket.send(data)
    })
    const socket = await connect(port)
    for (let round = 0; round < 5; round++) {
      await clock.advance(10_000)
      // The first echo comes after the ping, the second after its answer.
      for (let echoes = 0; echoes < 2; echoes++) {
        await socket.send('x')
        await next(socket)
      }
    }
    assert.equal(isClosed, false)
    socket.destroy()
  })

  it('accepts a server that chooses no subprotocol only if that is optional', async () => {
    const port = await start(echo)
    await assert.rejects(connect(port, { protocols: ['a', 'b'] }), failsWith('refused'))
    const socket = await connect(port, { protocols: ['a', 'b'], isProtocolOptional: true })
    assert.equal(socket.protocol, '')
    socket.destroy()
  })

  it('calls back when the socket has accepted a message', async () => {
    const socket = await connect(await start(echo))
    await new Promise<void>((resolve) => void socket.send('x', resolve))
    socket.destroy()
  })

  it('counts all received data as a sign of life, and ends after the limit of silence', async () => {
    const clock = createVirtualClock()
    const signs: string[] = []
    const port = await start(async (exchange) => {
      const socket = await acceptWebSocket(exchange, { clock, pingIntervalMs: 10_000, silenceLimitMs: 25_000 })
      void socket.closed.then(({ code }) => signs.push(`closed ${code}`))
      for await (const { data } of socket) signs.push(data.toString())
    }, true)
    const peer = connectNet(port, '127.0.0.1')
    cleanups.push(() => peer.destroy())
    const key = Buffer.alloc(16).toString('base64')
    peer.write('GET / HTTP/1.1\r\nHost: x\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n')
    peer.write(`Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: ${key}\r\n\r\n`)
    peer.resume()
    await until(() => clock.pending > 0)
    // It answers no pings, and sends the parts of a message.
    peer.write(Buffer.from([0x82, 0x85, 0, 0, 0, 0]))
    for (const part of ['h', 'e', 'l', 'l', 'o']) {
      await clock.advance(20_000)
      peer.write(part)
      await turns(50)
    }
    await until(() => signs.length > 0)
    await clock.advance(24_000)
    await turns(20)
    assert.deepEqual(signs, ['hello'])
    await clock.advance(2000)
    await until(() => signs.length > 1)
    assert.deepEqual(signs, ['hello', 'closed 1006'])
  })

  it('rejects at once if the signal is aborted already', async () => {
    const port = await start(echo)
    await assert.rejects(connect(port, { signal: AbortSignal.abort() }), failsWith('aborted'))
  })

  it('aborts connecting by timeout and by signal', async () => {
    const port = await start(() => undefined)
    const clock = createVirtualClock()
    const late = assert.rejects(connect(port, { clock, timeoutMs: 3000 }), failsWith('timeout'))
    await until(() => clock.pending === 1)
    await clock.advance(3000)
    await late
    const control = new AbortController()
    const left = assert.rejects(connect(port, { signal: control.signal }), failsWith('aborted'))
    await turns(20)
    control.abort()
    await left
  })
})
