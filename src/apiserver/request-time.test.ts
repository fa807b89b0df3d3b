import assert from 'node:assert/strict'
import { describe, it } from 'node:test'

import { type VirtualClock, createVirtualClock } from '#lib/clock.ts'
import type { Exchange } from '#lib/http/exchange.ts'
import { createSeededRandom } from '#lib/random.ts'

import { Representation } from './answers/representation.ts'
import type { Answer } from './call.ts'
import { allowAll } from './filters/access.ts'
import { ByteMemo } from './registry/byte-memo.ts'
import { BUILT_IN } from './registry/shapes.ts'
import { createApiServer } from './server.ts'

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
  return createApiServer({ clock, random, authenticate, authorize, dispatch, knowsGroup, routes, encoder })
}

interface Heard {
  status: number
  broken: boolean
}

/** An exchange whose client takes no pieces: sending them ends when the exchange is broken off. */
function exchangeOf(path: string): { exchange: Exchange; heard: Heard } {
  const heard: Heard = { status: 0, broken: false }
  const gone = Promise.withResolvers<void>()
  const exchange = {
    method: 'GET',
    path,
    headers: {},
    rawHeaders: [],
    respond: (code: number) => void (heard.status = code),
    respondPieces(code: number) {
      heard.status = code
      return gone.promise
    },
    fail() {
      heard.broken = true
      gone.resolve()
    },
  }
  return { exchange: exchange as unknown as Exchange, heard }
}

const never = (): Promise<Answer> => Promise.withResolvers<Answer>().promise

describe('the time a request may take', () => {
  it('is a minute, or what the client asked for when that is less; then it is 504', async () => {
    for (const [query, limitMs] of [
      ['', 60_000],
      ['?timeout=5s', 5000],
      ['?timeout=2h', 60_000],
    ] as const) {
      const clock = createVirtualClock()
      const { exchange, heard } = exchangeOf(`/api/v1/pods${query}`)
      const serving = serverOf(clock, never)(exchange)
      await clock.advance(limitMs - 1)
      assert.equal(heard.status, 0)
      await clock.advance(1)
      await serving
      assert.equal(heard.status, 504)
    }
  })

  it('goes for sending a large answer too: who does not read it is cut off', async () => {
    const clock = createVirtualClock()
    const { exchange, heard } = exchangeOf('/api/v1/pods')
    const answer = { status: 200, contentType: 'application/json', body: [Buffer.from('[]')], length: 2 }
    const serving = serverOf(clock, () => Promise.resolve(answer))(exchange)
    await clock.advance(59_999)
    assert.deepEqual(heard, { status: 200, broken: false })
    await clock.advance(1)
    await serving
    assert.deepEqual(heard, { status: 200, broken: true })
  })
})
