import assert from 'node:assert/strict'
import { describe, it } from 'node:test'

import { ConfigMaps } from '#apis/core/v1.ts'
import { createVirtualClock, sleep } from '#lib/clock.ts'
import type { HttpResponse } from '#lib/http/response.ts'
import { createSeededRandom } from '#lib/random.ts'

import { ApiClient } from './api-client.ts'
import { follow } from './reflector.ts'

/** A response of JSON lines, or of one document. */
function answer(...lines: readonly object[]): HttpResponse {
  const bytes = Buffer.from(lines.map((line) => `${JSON.stringify(line)}\n`).join(''))
  const body = (async function* (): AsyncGenerator<Buffer, void> {
    yield await Promise.resolve(bytes)
  })()
  return { status: 200, headers: {}, body, bytes: () => Promise.resolve(bytes), discard: () => undefined } as never
}

describe('follow() of the reflector', () => {
  it('uses list requests if the server cannot stream the initial list', async () => {
    const clock = createVirtualClock()
    const stop = new AbortController()
    const requests: string[] = []
    const metadata = { name: 'a', namespace: 'b', resourceVersion: '7' }
    const transport = {
      request({ url }: { readonly url: string | URL }): Promise<HttpResponse> {
        const { searchParams } = new URL(url)
        const [isWatch, streams] = [searchParams.has('watch'), searchParams.has('sendInitialEvents')]
        requests.push(isWatch ? (streams ? 'stream' : 'watch') : 'list')
        const message = 'the required storage feature RequestWatchProgress is disabled'
        if (streams) return Promise.resolve(answer({ type: 'ERROR', object: { kind: 'Status', code: 500, message } }))
        if (isWatch) stop.abort()
        // Upstream's empty lists of metadata have no items.
        if (requests.length === 2) return Promise.resolve(answer({ metadata: { continue: 'more' }, items: null }))
        return Promise.resolve(
          isWatch ? answer() : answer({ metadata: { resourceVersion: '8' }, items: [{ metadata }] }),
        )
      },
    }
    const client = new ApiClient({ transport, clock, userAgent: 'test' })
    const seen: unknown[] = []
    const following = follow(
      { client, kind: ConfigMaps, random: createSeededRandom(1), signal: stop.signal },
      {
        replace: (objects, version) => seen.push([objects.map((object) => object.metadata.name), version]),
        change: (event) => seen.push(event),
        failed: (error) => seen.push(error),
      },
    )
    await clock.advance(0)
    await following
    assert.deepEqual(requests, ['stream', 'list', 'list', 'watch'])
    assert.deepEqual(seen, [[['a'], '8']])
  })

  /** The times of watch requests in milliseconds, against a server with these answers. */
  const watchTimes = async (answers: (at: number) => HttpResponse, forMs: number): Promise<number[]> => {
    const clock = createVirtualClock()
    const stop = new AbortController()
    const times: number[] = []
    const transport = { request: () => Promise.resolve(answers(times.push(clock.elapsed()) - 1)) }
    const client = new ApiClient({ transport, clock, userAgent: 'test' })
    const following = follow(
      { client, kind: ConfigMaps, random: createSeededRandom(1), signal: stop.signal },
      { replace: () => undefined, change: () => undefined, failed: () => undefined },
    )
    await clock.advance(forMs)
    stop.abort()
    await following
    return times
  }
  const bookmark = (resourceVersion: string): object => {
    const annotations = { 'k8s.io/initial-events-end': 'true' }
    return { type: 'BOOKMARK', object: { kind: 'ConfigMap', metadata: { resourceVersion, annotations } } }
  }

  it('backs off while watches end at once without events', async () => {
    const times = await watchTimes(() => answer(), 60_000)
    const waits = times.slice(1).map((time, at) => time - (times[at] ?? 0))
    assert.ok(waits.length >= 4 && waits.length <= 8, times.join(' '))
    for (const [at, wait] of waits.entries()) {
      const shortest = Math.min(800 * 2 ** at, 30_000)
      assert.ok(wait >= shortest && wait <= 2 * shortest, times.join(' '))
    }
  })

  it('resets the backoff after a watch that lasted, regardless of earlier failures', async () => {
    const clock = createVirtualClock()
    const stop = new AbortController()
    const times: number[] = []
    // The server is down for five seconds, then up for fifteen.
    const isAway = (): boolean => clock.elapsed() % 20_000 < 5000
    const connections = async function* (): AsyncGenerator<Buffer, void> {
      yield Buffer.from(`${JSON.stringify(bookmark('1'))}\n`)
      await sleep(clock, 20_000 - (clock.elapsed() % 20_000))
      throw new Error('the connection was lost')
    }
    const request = async (): Promise<HttpResponse> => {
      times.push(clock.elapsed())
      if (isAway()) throw new Error('connection refused')
      return { ...answer(), body: connections() }
    }
    const following = follow(
      {
        client: new ApiClient({ transport: { request }, clock, userAgent: 'test' }),
        kind: ConfigMaps,
        random: createSeededRandom(1),
        signal: stop.signal,
      },
      { replace: () => undefined, change: () => undefined, failed: () => undefined },
    )
    await clock.advance(120_000)
    stop.abort()
    await clock.advance(20_000)
    await following
    const found = times.filter((time) => time % 20_000 >= 5000).map((time) => time % 20_000)
    assert.equal(found.length, 6, times.join(' '))
    for (const time of found) assert.ok(time <= 13_000, times.join(' '))
  })

  it('reconnects without backoff after a watch that delivered events', async () => {
    const times = await watchTimes((at) => (at < 5 ? answer(bookmark(`${at + 1}`)) : answer()), 0)
    assert.deepEqual(times, [0, 0, 0, 0, 0, 0])
  })
})
