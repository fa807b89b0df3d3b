import assert from 'node:assert/strict'
import { describe, it } from 'node:test'

import { allowAll } from '#auth/access.ts'
import type { Answer } from '#component/requests/call.ts'
import { createRequestServer } from '#component/requests/request-server.ts'
import { type VirtualClock, createVirtualClock } from '#lib/clock.ts'
import type { Exchange } from '#lib/http/exchange.ts'
import { createSeededRandom } from '#lib/random.ts'

import { ByteMemo } from './registry/byte-memo.ts'
import { Representation } from './registry/representation.ts'
import { BUILT_IN } from './registry/shapes.ts'

const status = { group: '', version: 'v1', kind: 'Status' } as ConstructorParameters<typeof Representation>[0]['kind']
const encoder = new Representation({
  kind: status,
  stored: status,
  shapes: BUILT_IN,
  memos: new ByteMemo(0),
})

function serverOf(clock: VirtualClock, dispatch: () => Promise<Answer>): (exchange: Exchange) => Promise<void> {
  const random = createSeededRandom(1)
  const user = { name: 'u', uid: '', groups: [], extra: {} }
  const [authenticate, authorize, knowsGroup, routes] = [() => user, allowAll, () => true, () => undefined]
  return createRequestServer({ clock, random, authenticate, authorize, dispatch, knowsGroup, routes, encoder })
}

interface SentResponse {
  status: number
  broken: boolean
}

/** An exchange whose client reads nothing: sending ends when the exchange is aborted. */
function exchangeOf(path: string): { exchange: Exchange; response: SentResponse } {
  const response: SentResponse = { status: 0, broken: false }
  const gone = Promise.withResolvers<void>()
  const exchange = {
    method: 'GET',
    path,
    headers: {},
    rawHeaders: [],
    respond: (code: number) => void (response.status = code),
    respondPieces(code: number) {
      response.status = code
      return gone.promise
    },
    fail() {
      response.broken = true
      gone.resolve()
    },
  }
  return { exchange: exchange as unknown as Exchange, response }
}

const never = (): Promise<Answer> => Promise.withResolvers<Answer>().promise

describe('request timeout', () => {
  it("is a minute, or the client's timeout if that is less, and leads to 504", async () => {
    for (const [query, limitMs] of [
      ['', 60_000],
      ['?timeout=5s', 5000],
      ['?timeout=2h', 60_000],
    ] as const) {
      const clock = createVirtualClock()
      const { exchange, response } = exchangeOf(`/api/v1/pods${query}`)
      const serving = serverOf(clock, never)(exchange)
      await clock.advance(limitMs - 1)
      assert.equal(response.status, 0)
      await clock.advance(1)
      await serving
      assert.equal(response.status, 504)
    }
  })

  it('includes sending a large response, so that a client that does not read is disconnected', async () => {
    const clock = createVirtualClock()
    const { exchange, response } = exchangeOf('/api/v1/pods')
    const answer = { status: 200, contentType: 'application/json', body: [Buffer.from('[]')], length: 2 }
    const serving = serverOf(clock, () => Promise.resolve(answer))(exchange)
    await clock.advance(59_999)
    assert.deepEqual(response, { status: 200, broken: false })
    await clock.advance(1)
    await serving
    assert.deepEqual(response, { status: 200, broken: true })
  })
})
