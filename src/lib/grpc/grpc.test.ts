import assert from 'node:assert/strict'
import { mkdtempSync, rmSync, statSync } from 'node:fs'
import type { Http2Server, IncomingHttpHeaders, ServerHttp2Session, ServerHttp2Stream } from 'node:http2'
import { createServer as createHttp2Server } from 'node:http2'
import type { AddressInfo } from 'node:net'
import { createServer as createNetServer } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, describe, it } from 'node:test'

import * as fc from 'fast-check'

import type { VirtualClock } from '../clock.ts'
import { createVirtualClock, realClock } from '../clock.ts'
import { defineMessage } from '../protobuf/message.ts'
import { secureRandom } from '../random.ts'
import { withScope } from '../tracing/active.ts'
import type { Span } from '../tracing/span.ts'
import { createTracer } from '../tracing/tracer.ts'
import { createAuthority } from '../x509/authority.ts'
import type { GrpcClient, GrpcClientOptions } from './client.ts'
import { createGrpcClient } from './client.ts'
import { Deframer, encodeFrame } from './frame.ts'
import { defineMethod, encodeTimeout, parseTimeout } from './method.ts'
import type { GrpcServer, GrpcServerOptions, Handler } from './server.ts'
import { createGrpcServer, handleBidi, handleServerStream, handleUnary } from './server.ts'
import { decodeMessage, encodeMessage, GrpcError, hasStatus, readStatus } from './status.ts'

const Text = defineMessage({ text: [1, 'string'], count: [2, 'int32'], data: [3, 'bytes'] })
const Echo = defineMethod('/test.Echo/Echo', Text, Text)
const Count = defineMethod('/test.Echo/Count', Text, Text)
const Chat = defineMethod('/test.Echo/Chat', Text, Text)
const Missing = defineMethod('/test.Echo/Missing', Text, Text)
const Foreign = defineMethod('/test.Other/Echo', Text, Text)

const directory = mkdtempSync(join(tmpdir(), 'hyperkube-grpc-'))
const cleanups: (() => unknown)[] = []
after(async () => {
  for (const cleanup of cleanups.reverse()) await cleanup()
  rmSync(directory, { recursive: true })
})

let sockets = 0
const newPath = (): string => join(directory, `${++sockets}.sock`)

const echo: Handler = handleUnary(Echo, (request) => request)

async function startServer(
  handlers: readonly Handler[],
  options: Partial<GrpcServerOptions> = {},
): Promise<{ server: GrpcServer; path: string }> {
  const server = createGrpcServer({ handlers, clock: realClock, ...options })
  cleanups.push(() => server.stop(0))
  const path = newPath()
  await server.listen({ path })
  return { server, path }
}

function startClient(path: string, options: Partial<GrpcClientOptions> = {}): GrpcClient {
  const client = createGrpcClient({ targets: [{ path }], clock: realClock, random: secureRandom, ...options })
  cleanups.push(() => client.close())
  return client
}

async function startPair(handlers: readonly Handler[], options: Partial<GrpcClientOptions> = {}): Promise<GrpcClient> {
  return startClient((await startServer(handlers)).path, options)
}

/** A server that is not ours, to answer in ways ours never would. */
async function startForeign(onServer: (server: Http2Server) => void): Promise<string> {
  const server = createHttp2Server()
  const sessions = new Set<ServerHttp2Session>()
  server.on('session', (session) => sessions.add(session))
  onServer(server)
  const path = newPath()
  await new Promise<void>((resolve) => server.listen(path, resolve))
  cleanups.push(() => {
    server.close()
    for (const session of sessions) session.destroy()
  })
  return path
}

/** A server that sends its settings and then nothing any more, not even answers to pings. */
async function startMute(): Promise<string> {
  const emptySettings = Buffer.from('000000040000000000', 'hex')
  const mute = createNetServer((socket) =>
    socket
      .on('error', () => undefined)
      .resume()
      .write(emptySettings),
  )
  const path = newPath()
  await new Promise<void>((resolve) => mute.listen(path, resolve))
  cleanups.push(() => mute.close())
  return path
}

/** Lets real I/O happen until `done` says so. */
async function until(done: () => boolean): Promise<void> {
  for (let turn = 0; turn < 100_000 && !done(); turn++) await new Promise((resolve) => setImmediate(resolve))
  assert.ok(done(), 'did not happen')
}

const failsWith = (code: string, message?: RegExp) => (error: unknown) => {
  assert.ok(error instanceof GrpcError, String(error))
  assert.equal(error.code, code, error.message)
  if (message !== undefined) assert.match(error.message, message)
  return true
}

describe('gRPC unary calls', () => {
  it('return a response and metadata, with messages larger than a flow-control window', async () => {
    const client = await startPair([
      handleUnary(Echo, (request, context) => {
        context.trailers.set('seen', String(context.metadata.get('who')))
        context.trailers.set('raw-bin', context.metadata.get('raw-bin') ?? '')
        return request
      }),
    ])
    const seen = new Map<string, string | Buffer>()
    const data = Buffer.alloc(12 << 20, 7)
    const answer = await client.unary(
      Echo,
      { text: 'grüezi', count: -5, data },
      {
        metadata: new Map<string, string | Buffer>([
          ['who', 'me'],
          ['raw-bin', Buffer.from([0, 255])],
        ]),
        onMetadata: (metadata) => metadata.forEach((value, name) => seen.set(name, value)),
      },
    )
    assert.equal(answer.text, 'grüezi')
    assert.equal(answer.count, -5)
    assert.ok(answer.data.equals(data))
    assert.equal(seen.get('seen'), 'me')
    assert.deepEqual(seen.get('raw-bin'), Buffer.from([0, 255]))
    assert.equal(client.state, 'ready')
  })

  it('create a child span within a span, and propagate its trace context', async () => {
    let seen: unknown
    const { path } = await startServer([
      handleUnary(Echo, (request, context) => {
        seen = context.metadata.get('traceparent')
        return request
      }),
    ])
    const client = startClient(path)
    const taken: Span[] = []
    const take = (span: Span): void => void taken.push(span)
    const tracer = createTracer({ clock: realClock, random: secureRandom, samplingRatePerMillion: 1_000_000, take })
    const span = tracer.begin('whole', {}, { remote: undefined, isStranger: false })
    await withScope({ span }, () => client.unary(Echo, { text: 'x' }))
    const [call] = taken
    assert.ok(call !== undefined)
    assert.deepEqual([call.name, call.kind, call.parent], ['test.Echo/Echo', 'client', span.context])
    assert.deepEqual(
      call.events.map(({ attributes }) => [attributes['rpc.message.type'], attributes['rpc.message.compressed_size']]),
      [
        ['SENT', 3],
        ['RECEIVED', 3],
      ],
    )
    assert.equal(seen, call.headers()['traceparent'])
  })

  it('share one connection', async () => {
    const client = await startPair([echo])
    const answers = await Promise.all(Array.from({ length: 500 }, (_, count) => client.unary(Echo, { count })))
    assert.deepEqual(
      answers.map(({ count }) => count),
      Array.from({ length: 500 }, (_, count) => count),
    )
  })

  it('fail with the status that a handler throws, and as UNKNOWN for any other error', async () => {
    const failures: unknown[] = []
    const handler = handleUnary(Echo, ({ text }) => {
      throw text === 'status' ? new GrpcError('notFound', '100 % wëg\n') : new TypeError('bug')
    })
    const { path } = await startServer([handler], { onError: (error) => failures.push(error) })
    const client = startClient(path)
    await assert.rejects(client.unary(Echo, { text: 'status' }), { code: 'notFound', message: '100 % wëg\n' })
    await assert.rejects(client.unary(Echo, {}), { code: 'unknown', message: 'bug' })
    assert.equal(failures.length, 1)
    const error = await client.unary(Echo, { text: 'status' }).catch((one: unknown) => one)
    assert.ok(hasStatus(error, 'notFound') && !hasStatus(error, 'unknown'))
  })

  it('fail as UNIMPLEMENTED for unknown methods and services', async () => {
    const client = await startPair([echo])
    await assert.rejects(
      client.unary(Missing, {}),
      failsWith('unimplemented', /unknown method Missing for service test\.Echo/),
    )
    await assert.rejects(client.unary(Foreign, {}), failsWith('unimplemented', /unknown service test\.Other/))
  })

  it('respect limits for the size of messages in client and server', async () => {
    const large = handleUnary(Echo, () => ({ data: Buffer.alloc(2000) }))
    const { path } = await startServer([large], { maxReceiveBytes: 1000 })
    const client = startClient(path, { maxReceiveBytes: 1000 })
    await assert.rejects(
      client.unary(Echo, { data: Buffer.alloc(2000) }),
      failsWith('resourceExhausted', /2003 vs\. 1000/),
    )
    await assert.rejects(client.unary(Echo, {}), failsWith('resourceExhausted', /2003 vs\. 1000/))
  })

  it('end at their deadline in client and server', async () => {
    const reasons: unknown[] = []
    let begun = false
    const clock = createVirtualClock()
    const { path } = await startServer(
      [
        handleUnary(Echo, (_, { signal }) => {
          begun = true
          return new Promise((_resolve, reject) => {
            signal.addEventListener('abort', () => {
              reasons.push(signal.reason)
              reject(new Error('aborted'))
            })
          })
        }),
      ],
      { clock },
    )
    const client = startClient(path, { clock })
    const call = client.unary(Echo, {}, { timeoutMs: 5000 })
    const seen = assert.rejects(call, failsWith('deadlineExceeded'))
    await until(() => begun)
    await clock.advance(5001)
    await seen
    await until(() => reasons.length === 1)
    assert.ok(hasStatus(reasons[0], 'deadlineExceeded') || hasStatus(reasons[0], 'cancelled'))
  })

  it('end when the caller cancels them, and their handler is aborted', async () => {
    const control = new AbortController()
    let reason: unknown
    const client = await startPair([
      handleUnary(Echo, (_, { signal }) => {
        control.abort(new Error('enough'))
        return new Promise((resolve) => {
          signal.addEventListener('abort', () => {
            reason = signal.reason
            resolve({})
          })
        })
      }),
    ])
    const error = await client.unary(Echo, {}, { signal: control.signal }).catch((one: unknown) => one)
    assert.ok(error instanceof GrpcError)
    assert.equal(error.code, 'cancelled')
    assert.match(String(error.cause), /enough/)
    await until(() => reason !== undefined)
    await assert.rejects(client.unary(Echo, {}, { signal: control.signal }), failsWith('cancelled'))
  })

  it('fail with a clear error for responses that are not gRPC, compressed, truncated, repeated or missing', async () => {
    const answers: Record<string, [Record<string, string | number>, Buffer[], Record<string, string>]> = {
      html: [{ ':status': 502, 'content-type': 'text/html' }, [], {}],
      json: [{ ':status': 200, 'content-type': 'application/json' }, [], {}],
      gzip: [{ ':status': 200, 'content-type': 'application/grpc', 'grpc-encoding': 'gzip' }, [], {}],
      flag: [{ ':status': 200, 'content-type': 'application/grpc' }, [Buffer.from('0100000000', 'hex')], {}],
      cut: [
        { ':status': 200, 'content-type': 'application/grpc' },
        [Buffer.from('00000000', 'hex')],
        { 'grpc-status': '0' },
      ],
      twice: [
        { ':status': 200, 'content-type': 'application/grpc' },
        [encodeFrame(Buffer.alloc(0)), encodeFrame(Buffer.alloc(0))],
        { 'grpc-status': '0' },
      ],
      none: [{ ':status': 200, 'content-type': 'application/grpc' }, [], { 'grpc-status': '0' }],
      junk: [
        { ':status': 200, 'content-type': 'application/grpc' },
        [encodeFrame(Buffer.from('ff', 'hex'))],
        { 'grpc-status': '0' },
      ],
      odd: [
        { ':status': 200, 'content-type': 'application/grpc' },
        [],
        { 'grpc-status': '77', 'grpc-message': 'a%zzb%C3%BC' },
      ],
    }
    const path = await startForeign((server) => {
      server.on('stream', (stream: ServerHttp2Stream, headers: IncomingHttpHeaders) => {
        const [head, pieces, trailers] = answers[String(headers['which'])]!
        stream.respond(head, { waitForTrailers: true })
        stream.on('wantTrailers', () => stream.sendTrailers(trailers))
        for (const piece of pieces) stream.write(piece)
        stream.end()
        stream.on('error', () => undefined)
      })
    })
    const client = startClient(path)
    const expected: [string, string, RegExp?][] = [
      ['html', 'unavailable', /502.*text\/html/],
      ['json', 'unknown', /application\/json/],
      ['gzip', 'unimplemented', /"gzip" is not supported/],
      ['flag', 'internal', /compressed/],
      ['cut', 'internal', /cut off/],
      ['twice', 'internal', /more than one/],
      ['none', 'internal', /no answer/],
      ['junk', 'internal', /Cannot decode/],
      ['odd', 'unknown', /^a%zzbü$/],
    ]
    for (const [which, code, message] of expected) {
      await assert.rejects(client.unary(Echo, {}, { metadata: new Map([['which', which]]) }), failsWith(code, message))
    }
  })
})

describe('gRPC streams', () => {
  it('deliver responses in order, no faster than the client reads them', async () => {
    let sent = 0
    const data = Buffer.alloc(64 << 10)
    const client = await startPair([
      handleServerStream(Count, async function* ({ count }) {
        for (; sent < count; sent++) yield { count: sent, data }
      }),
    ])
    const total = 400
    let seen = 0
    for await (const { count } of client.serverStream(Count, { count: total })) {
      assert.equal(count, seen++)
      if (seen === 1) await until(() => sent > 10)
      if (seen === 1) for (let turn = 0; turn < 300; turn++) await new Promise((resolve) => setImmediate(resolve))
      // 25 MB are on their way; far from all of them fit into windows and queues.
      if (seen === 1) assert.ok(sent < total / 2, `the server sent ${sent}`)
    }
    assert.equal(seen, total)
  })

  it('deliver all responses before the error status', async () => {
    const client = await startPair([
      handleServerStream(Count, async function* () {
        yield { count: 1 }
        throw new GrpcError('outOfRange', 'compacted')
      }),
    ])
    const seen: number[] = []
    await assert.rejects(
      async () => {
        for await (const { count } of client.serverStream(Count, {})) seen.push(count)
      },
      failsWith('outOfRange', /compacted/),
    )
    assert.deepEqual(seen, [1])
  })

  it('are cancelled when the reader leaves, and the handler cleans up', async () => {
    let cleaned = false
    const client = await startPair([
      handleServerStream(Count, async function* (_, { signal }) {
        try {
          for (let count = 0; ; count++) {
            yield { count }
            if (count > 5) await new Promise((resolve) => signal.addEventListener('abort', resolve))
          }
        } finally {
          cleaned = true
        }
      }),
    ])
    for await (const { count } of client.serverStream(Count, {})) if (count === 3) break
    await until(() => cleaned)
  })

  it('of both directions are independent of each other', async () => {
    const client = await startPair([
      handleBidi(Chat, async function* (requests) {
        yield { text: 'hello' }
        for await (const { text } of requests) yield { text: text.toUpperCase() }
        yield { text: 'bye' }
      }),
    ])
    const call = client.bidi(Chat)
    const next = async (): Promise<string | undefined> =>
      ((await call.responses.next()).value as { text: string })?.text
    assert.equal(await next(), 'hello')
    await call.send({ text: 'a' })
    assert.equal(await next(), 'A')
    await call.send({ text: 'b' })
    call.end()
    assert.equal(await next(), 'B')
    assert.equal(await next(), 'bye')
    assert.equal((await call.responses.next()).done, true)
    await assert.rejects(call.send({}), failsWith('cancelled', /over/))
  })

  it('of requests wait while the server does not read', async () => {
    let release = (): void => undefined
    const gate = new Promise<void>((resolve) => {
      release = resolve
    })
    const client = await startPair([
      handleBidi(Chat, async function* (requests) {
        let count = 0
        for await (const _ of requests) {
          if (count++ === 0) await gate
        }
        yield { count }
      }),
    ])
    const call = client.bidi(Chat)
    const data = Buffer.alloc(64 << 10)
    let sent = 0
    const sending = (async () => {
      for (; sent < 300; sent++) await call.send({ data })
      call.end()
    })()
    await until(() => sent > 5)
    for (let turn = 0; turn < 300; turn++) await new Promise((resolve) => setImmediate(resolve))
    assert.ok(sent < 150, `sent ${sent}`)
    release()
    await sending
    assert.equal(((await call.responses.next()).value as { count: number }).count, 300)
  })

  it('can be cancelled by signal or by leaving the loop, also before there is a connection', async () => {
    const client = await startPair([
      handleBidi(Chat, async function* (requests) {
        for await (const request of requests) yield request
      }),
    ])
    const call = client.bidi(Chat)
    await call.send({ text: 'x' })
    call.cancel()
    await assert.rejects(async () => {
      for await (const _ of call.responses) continue
    }, failsWith('cancelled'))
    await assert.rejects(call.send({}), failsWith('cancelled'))
    const lost = startClient(newPath()).bidi(Chat, { waitForReady: true })
    const reading = assert.rejects(lost.responses.next(), failsWith('cancelled'))
    lost.cancel()
    await reading
  })

  it('fail and are cancelled when a response cannot be decoded', async () => {
    let cleaned = false
    const Strict = defineMethod('/test.Echo/Count', Text, {
      encode: (value: string) => Buffer.from(value),
      decode(bytes): string {
        throw new Error(`no ${bytes.length}`)
      },
    })
    const client = await startPair([
      handleServerStream(Count, async function* (_, { signal }) {
        signal.addEventListener('abort', () => {
          cleaned = true
        })
        yield { text: 'x' }
        await new Promise((resolve) => signal.addEventListener('abort', resolve))
      }),
    ])
    await assert.rejects(client.serverStream(Strict, {}).next(), failsWith('internal', /Cannot decode/))
    await until(() => cleaned)
  })
})

describe('gRPC client connection', () => {
  it('makes calls fail during backoff unless they wait, and reconnects by itself', async () => {
    const clock = createVirtualClock()
    const path = newPath()
    const client = startClient(path, { clock })
    assert.equal(client.state, 'idle')
    await assert.rejects(client.unary(Echo, {}), failsWith('unavailable', /ENOENT/))
    assert.equal(client.state, 'failed')
    await assert.rejects(client.unary(Echo, {}), failsWith('unavailable', /Cannot connect to/))
    const patient = client.unary(Echo, { text: 'later' }, { waitForReady: true })
    assert.equal(client.state, 'connecting')
    const server = createGrpcServer({ handlers: [echo], clock: realClock })
    cleanups.push(() => server.stop(0))
    await server.listen({ path })
    await clock.advance(1500)
    assert.equal((await patient).text, 'later')
    assert.equal(client.state, 'ready')
  })

  it('waits no longer than the deadline of the call', async () => {
    const clock = createVirtualClock()
    const client = startClient(newPath(), { clock })
    await assert.rejects(client.unary(Echo, {}), failsWith('unavailable'))
    const call = assert.rejects(
      client.unary(Echo, {}, { waitForReady: true, timeoutMs: 100 }),
      failsWith('deadlineExceeded'),
    )
    await clock.advance(101)
    await call
  })

  it('tries all target addresses before it fails', async () => {
    const { path } = await startServer([echo])
    const client = createGrpcClient({
      targets: [{ path: newPath() }, { path }],
      clock: realClock,
      random: secureRandom,
    })
    cleanups.push(() => client.close())
    assert.equal((await client.unary(Echo, { text: 'second' })).text, 'second')
  })

  it('reconnects after the server has stopped, and open calls fail', async () => {
    const { server, path } = await startServer([
      echo,
      handleServerStream(Count, async function* () {
        yield {}
        await new Promise(() => undefined)
      }),
    ])
    const client = startClient(path)
    const stream = client.serverStream(Count, {})
    await stream.next()
    await server.stop(0)
    await assert.rejects(stream.next(), failsWith('unavailable'))
    const again = createGrpcServer({ handlers: [echo], clock: realClock })
    cleanups.push(() => again.stop(0))
    await again.listen({ path })
    assert.equal((await client.unary(Echo, { text: 'new' })).text, 'new')
  })

  it('closes when the server is silent: on connect by timeout, later by pings', async () => {
    const clock = createVirtualClock()
    const silent = createNetServer((socket) => socket.on('error', () => undefined).resume())
    const path = newPath()
    await new Promise<void>((resolve) => silent.listen(path, resolve))
    cleanups.push(() => silent.close())
    const client = startClient(path, { clock, connectTimeoutMs: 3000 })
    const call = assert.rejects(client.unary(Echo, {}), failsWith('unavailable', /No answer within 3000 ms/))
    await until(() => clock.pending === 1)
    await clock.advance(3000)
    await call
    client.close()

    const pings = createVirtualClock()
    const foreign = await startMute()
    const watched = startClient(foreign, { clock: pings, keepalive: { intervalMs: 10_000, timeoutMs: 5000 } })
    const lost = assert.rejects(watched.unary(Echo, {}), failsWith('unavailable', /lost/))
    await until(() => pings.pending > 0 && watched.state === 'ready')
    await passTime(pings, 20)
    await lost
  })

  it('retries a refused call once', async () => {
    let refused = 0
    const path = await startForeign((server) => {
      server.on('stream', (stream: ServerHttp2Stream) => {
        stream.on('error', () => undefined)
        refused++
        if (refused % 3 !== 2) return stream.close(7)
        stream.respond({ ':status': 200, 'content-type': 'application/grpc' }, { waitForTrailers: true })
        stream.on('wantTrailers', () => stream.sendTrailers({ 'grpc-status': '0' }))
        stream.end(encodeFrame(Text.encode({ text: 'second try' })))
      })
    })
    const client = startClient(path)
    assert.equal((await client.unary(Echo, {})).text, 'second try')
    await assert.rejects(client.unary(Echo, {}), failsWith('unavailable', /reset/))
    assert.equal(refused, 4)
  })

  it('refuses every call after it was closed', async () => {
    const client = await startPair([echo])
    await client.connect()
    client.close()
    client.close()
    assert.equal(client.state, 'closed')
    await assert.rejects(client.unary(Echo, {}), failsWith('unavailable', /closed/))
  })

  it('works over TCP with TLS, and without a client certificate only if the server allows that', async () => {
    const authority = createAuthority({ commonName: 'ca' }, { clock: realClock, random: secureRandom })
    const serving = authority.issue({
      commonName: 's',
      names: { ips: ['127.0.0.1'], dns: ['etcd.local'] },
      purpose: 'server',
    })
    const mine = authority.issue({ commonName: 'c', purpose: 'client' })
    const ca = authority.certificatePem
    const server = createGrpcServer({
      handlers: [echo],
      clock: realClock,
      tls: { certificate: serving.certificatePem, key: serving.keyPem, clientCa: ca },
    })
    cleanups.push(() => server.stop(0))
    const { port } = (await server.listen({ host: '127.0.0.1', port: 0 })) as AddressInfo & { host: string }
    const connect = (tls: object): GrpcClient => {
      const client = createGrpcClient({
        targets: [{ host: '127.0.0.1', port, tls }],
        clock: realClock,
        random: secureRandom,
      })
      cleanups.push(() => client.close())
      return client
    }
    const identity = { certificate: mine.certificatePem, key: mine.keyPem }
    assert.equal((await connect({ ca, ...identity }).unary(Echo, { text: 'mtls' })).text, 'mtls')
    assert.equal(
      (await connect({ ca, ...identity, serverName: 'etcd.local' }).unary(Echo, { text: 'sni' })).text,
      'sni',
    )
    await assert.rejects(connect({ ca }).unary(Echo, {}), failsWith('unavailable'))
    await assert.rejects(
      connect({ ca, ...identity, serverName: 'other' }).unary(Echo, {}),
      failsWith('unavailable', /altnames/),
    )
    await assert.rejects(connect(identity).unary(Echo, {}), failsWith('unavailable'))
  })
})

/** Virtual seconds one by one, with real I/O in between. */
async function passTime(clock: VirtualClock, seconds: number): Promise<void> {
  for (let second = 0; second < seconds; second++) {
    await clock.advance(1000)
    for (let turn = 0; turn < 5; turn++) await new Promise((resolve) => setImmediate(resolve))
  }
}

describe('gRPC server', () => {
  it('finishes open calls before it stops, and refuses new ones', async () => {
    let release = (): void => undefined
    let begun = false
    const { server, path } = await startServer([
      handleUnary(Echo, async (request) => {
        begun = true
        await new Promise<void>((resolve) => {
          release = resolve
        })
        return request
      }),
    ])
    const client = startClient(path)
    const call = client.unary(Echo, { text: 'finished' })
    await until(() => begun)
    const stopped = server.stop(60_000)
    await until(() => client.state === 'idle')
    await assert.rejects(client.unary(Echo, {}), failsWith('unavailable'))
    release()
    assert.equal((await call).text, 'finished')
    await stopped
  })

  it('replaces the socket of a dead server, but not that of a running one', async () => {
    const { path } = await startServer([echo])
    const second = createGrpcServer({ handlers: [echo], clock: realClock })
    await assert.rejects(second.listen({ path }), /EADDRINUSE/)
    assert.equal(statSync(path).mode & 0o777, 0o600)
    assert.equal((await startClient(path).unary(Echo, { text: 'alive' })).text, 'alive')
  })

  it('responds to other requests with HTTP errors', async () => {
    const { path } = await startServer([echo])
    const { connect } = await import('node:http2')
    const { connect: connectNet } = await import('node:net')
    const session = connect('http://localhost', { createConnection: () => connectNet(path) })
    const status = (headers: Record<string, string>): Promise<number> =>
      new Promise((resolve) => {
        const stream = session.request(headers)
        stream.on('response', (found) => resolve(found[':status'] ?? 0))
        stream.resume()
        stream.end()
      })
    assert.equal(await status({ ':path': '/', ':method': 'GET' }), 405)
    assert.equal(await status({ ':path': '/', ':method': 'POST', 'content-type': 'text/plain' }), 415)
    session.destroy()
  })
})

describe('gRPC encoding', () => {
  it('joins messages for any split of the bytes', () => {
    fc.assert(
      fc.property(fc.array(fc.uint8Array({ maxLength: 40 })), fc.array(fc.nat({ max: 30 })), (messages, cuts) => {
        let rest: Buffer = Buffer.concat(messages.map(encodeFrame))
        const deframer = new Deframer(100)
        const found: Buffer[] = []
        for (const cut of [...cuts, rest.length]) {
          deframer.push(rest.subarray(0, cut), (message) => found.push(message))
          rest = rest.subarray(cut)
        }
        assert.deepEqual(
          found,
          messages.map((one) => Buffer.from(one)),
        )
        assert.equal(deframer.isInside, false)
      }),
    )
  })

  it('percent-encodes any text in grpc-message, and accepts invalid encoding', () => {
    fc.assert(
      fc.property(fc.string(), fc.string({ unit: 'grapheme' }), (ascii, other) => {
        const text = `${ascii}%\ud800${other}`
        const encoded = encodeMessage(text)
        assert.match(encoded, /^[\x20-\x7e]*$/)
        assert.equal(decodeMessage(encoded), text.toWellFormed())
        decodeMessage(text)
      }),
    )
    assert.equal(encodeMessage('a%b\nü'), 'a%25b%0A%C3%BC')
    assert.equal(readStatus({}), undefined)
    assert.equal(readStatus({ 'grpc-status': '0' }), 'ok')
    assert.equal((readStatus({ 'grpc-status': '-1' }) as GrpcError).code, 'unknown')
  })

  it('formats and parses timeouts', () => {
    const forms: [number, string][] = [
      [0, '0m'],
      [-5, '0m'],
      [1.2, '2m'],
      [99_999_999, '99999999m'],
      [100_000_000, '100000S'],
      [1e12, '16666667M'],
      [1e99, '99999999H'],
    ]
    for (const [ms, text] of forms) assert.equal(encodeTimeout(ms), text)
    assert.equal(parseTimeout('5S'), 5000)
    assert.equal(parseTimeout('3H'), 10_800_000)
    assert.equal(parseTimeout(undefined), undefined)
    for (const text of ['', '5', 'S', '123456789m', '-1m', '1x']) assert.throws(() => parseTimeout(text), GrpcError)
  })
})
