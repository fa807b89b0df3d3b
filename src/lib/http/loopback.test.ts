import assert from 'node:assert/strict'
import { describe, it } from 'node:test'

import { createVirtualClock, realClock } from '../clock.ts'
import type { HttpRequest } from './client.ts'
import { type Exchange, type Growing, type ResponseWriter, shareFrame } from './exchange.ts'
import { createLoopbackClient, LoopbackExchange } from './loopback.ts'
import type { HttpResponse } from './response.ts'

function ask(
  serve: (exchange: Exchange) => void | Promise<void>,
  request: Partial<HttpRequest> = {},
): Promise<HttpResponse> {
  const client = createLoopbackClient({ clock: realClock, identity: 'me', serve: async (exchange) => serve(exchange) })
  return client.request({ url: '/', ...request })
}

describe('an HTTP request of the process to itself', () => {
  it('arrives like others, with its user', async () => {
    let seen: LoopbackExchange | undefined
    const answer = await ask(
      (exchange) => {
        seen = exchange as LoopbackExchange
        exchange.respond(200, ['X-Mine', 'é', 'Vary', 'a', 'Vary', 'b'], 'é')
      },
      { url: 'https://here/a/b?c=d', headers: { accept: ['a', 'b'] } },
    )
    assert.ok(seen instanceof LoopbackExchange)
    assert.deepEqual([seen.method, seen.path, seen.authority, seen.identity], ['GET', '/a/b?c=d', 'here', 'me'])
    assert.deepEqual([seen.headers.accept, seen.rawHeaders], ['a, b', ['accept', 'a', 'accept', 'b']])
    assert.deepEqual([answer.status, answer.headers['vary'], answer.headers['content-length']], [200, 'a, b', '1'])
    assert.match(String(answer.headers.date), / GMT$/)
    assert.deepEqual([...(await answer.bytes(10))], [0xe9])
  })

  it('sends its body, which may exceed the limit', async () => {
    const echo = async (exchange: Exchange): Promise<void> => exchange.respond(201, [], await exchange.readBody(4))
    async function* pieces(): AsyncGenerator<Buffer> {
      yield Buffer.from('ab')
      yield Buffer.from('cd')
    }
    for (const body of ['abcd', Buffer.from('abcd'), pieces()]) {
      assert.equal(await (await ask(echo, { method: 'POST', body })).text(9), 'abcd')
    }
    const refused = async (exchange: Exchange): Promise<void> => {
      await assert.rejects(exchange.readBody(3), { code: 'too-large' })
      exchange.respond(413, [])
    }
    assert.equal((await ask(refused, { method: 'POST', body: 'abcd' })).status, 413)
  })

  it('expects 100-continue before a large body, and does not send the body if it is refused', async () => {
    let calls = 0
    const growing = (refusal?: Error): Growing => ({
      freeBytes: 3,
      mayGrow: () => {
        calls++
        return refusal === undefined ? Promise.resolve() : Promise.reject(refusal)
      },
    })
    const answer = await ask(
      async (exchange) => {
        await assert.rejects(exchange.readBody(9, growing(new Error('full'))), { message: 'full' })
        exchange.respond(200, [], await exchange.readBody(9, growing()))
      },
      { method: 'POST', body: 'abcd' },
    )
    assert.deepEqual([await answer.text(9), calls], ['abcd', 2])
    await ask(async (exchange) => exchange.respond(200, [], await exchange.readBody(9, growing())), {
      method: 'POST',
      body: 'abc',
    })
    assert.equal(calls, 2)
  })

  it('fails if the response is larger than the caller accepts', async () => {
    const answer = await ask((exchange) => exchange.respond(200, [], 'abcd'))
    await assert.rejects(answer.bytes(3), { code: 'too-large' })
    assert.equal(await answer.text(4), 'abcd')
  })

  it('leaves no timer after a response or an early abort', async () => {
    const clock = createVirtualClock()
    const serve = async (exchange: Exchange): Promise<void> => exchange.respond(200, [])
    const { request } = createLoopbackClient({ clock, identity: '', serve })
    await request({ url: '/', timeoutMs: 1000 })
    assert.equal(clock.pending, 0)
    await assert.rejects(request({ url: '/', timeoutMs: 1000, signal: AbortSignal.abort() }), { code: 'aborted' })
    assert.equal(clock.pending, 0)
  })

  it('gets no body with method HEAD', async () => {
    const answer = await ask((exchange) => exchange.respond(200, [], 'body'), { method: 'HEAD' })
    assert.deepEqual([answer.headers['content-length'], await answer.text(9)], ['4', ''])
  })

  it('gets 500 if the handler throws or returns nothing, or an aborted response if that has begun', async () => {
    assert.equal((await ask(() => Promise.reject(new Error('no')))).status, 500)
    assert.equal((await ask(() => undefined)).status, 500)
    const half = await ask((exchange) => {
      exchange.stream(200, []).write(Buffer.from('half'))
      throw new Error('no')
    })
    await assert.rejects(half.text(9), { code: 'broken' })
    const failing = await ask((exchange) =>
      exchange.respondPieces(200, [], {
        pieces: (function* () {
          yield Buffer.alloc(40 << 10)
          throw new Error('no')
        })(),
      }),
    )
    await assert.rejects(failing.text(1 << 20), { code: 'broken' })
  })
})

describe('a streamed response of the process to itself', () => {
  const endless = (): {
    readonly serve: (exchange: Exchange) => Promise<void>
    readonly writer: Promise<ResponseWriter>
  } => {
    const begun = Promise.withResolvers<ResponseWriter>()
    const serve = async (exchange: Exchange): Promise<void> => {
      const writer = exchange.stream(200, [])
      begun.resolve(writer)
      await new Promise<void>((resolve) => writer.onClose(resolve))
    }
    return { serve, writer: begun.promise }
  }

  it('is produced no faster than the caller reads it', async () => {
    const { serve, writer: begun } = endless()
    const answer = await ask(serve)
    const writer = await begun
    const frame = shareFrame(Buffer.alloc(16 << 10))
    let written = 0
    while (writer.writeFrame(frame)) written++
    assert.ok(written < 20, `${written} frames are waiting`)
    let isDrained = false
    const room = writer.drained().then(() => (isDrained = true))
    await new Promise((resolve) => setImmediate(resolve))
    assert.equal(isDrained, false)
    const reader = answer.body[Symbol.asyncIterator]()
    for (let size = 0; size <= written * (16 << 10);) size += ((await reader.next()).value as Buffer).length
    await room
    writer.end()
    assert.equal((await reader.next()).done, true)
    assert.equal(writer.isClosed, true)
  })

  for (const [how, leave] of [
    [
      'leaves the loop',
      async (answer: HttpResponse): Promise<void> => {
        for await (const _ of answer.body) break
      },
    ],
    ['discards it', (answer: HttpResponse): void => answer.discard()],
  ] as const) {
    it(`ends when the caller ${how}`, async () => {
      const { serve, writer } = endless()
      const gone = Promise.withResolvers<void>()
      const answer = await ask((exchange) => {
        exchange.signal.addEventListener('abort', () => gone.resolve())
        return serve(exchange)
      })
      ;(await writer).write(Buffer.alloc(1 << 20))
      const room = (await writer).drained()
      await leave(answer)
      await Promise.all([gone.promise, room])
      assert.equal((await writer).isClosed, true)
    })
  }

  it('is aborted by signal or timeout, before or during the response', async () => {
    const control = new AbortController()
    const silent = Promise.withResolvers<void>()
    const signals: AbortSignal[] = []
    const never = (exchange: Exchange): Promise<void> => {
      signals.push(exchange.signal)
      return silent.promise
    }
    await assert.rejects(ask(never, { signal: AbortSignal.abort() }), { code: 'aborted' })
    assert.equal(signals.pop()?.aborted, true)
    const early = assert.rejects(ask(never, { signal: control.signal }), { code: 'aborted' })
    const { serve } = endless()
    const late = await ask(serve, { signal: control.signal })
    control.abort()
    await early
    await assert.rejects(late.text(9), { code: 'aborted' })

    const clock = createVirtualClock()
    const client = createLoopbackClient({ clock, identity: '', serve: never })
    const limited = assert.rejects(client.request({ url: '/', timeoutMs: 5000 }), { code: 'timeout' })
    await clock.advance(5000)
    await limited
    await new Promise((resolve) => setImmediate(resolve))
    assert.deepEqual(
      signals.map(({ aborted }) => aborted),
      [true, true],
    )
    silent.resolve()
  })
})
