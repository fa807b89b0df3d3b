import assert from 'node:assert/strict'
import { describe, it } from 'node:test'

import { ConfigMaps } from '#apis/core/v1.ts'
import { createVirtualClock } from '#lib/clock.ts'
import type { HttpResponse } from '#lib/http/response.ts'
import { createSeededRandom } from '#lib/random.ts'

import { ApiClient } from './api-client.ts'
import { follow } from './follow.ts'

/** An answer of lines, or of one document. */
function answer(...lines: readonly object[]): HttpResponse {
  const bytes = Buffer.from(lines.map((line) => `${JSON.stringify(line)}\n`).join(''))
  const body = (async function* (): AsyncGenerator<Buffer, void> {
    yield await Promise.resolve(bytes)
  })()
  return { status: 200, headers: {}, body, bytes: () => Promise.resolve(bytes), discard: () => undefined } as never
}

describe('follow', () => {
  it('lists where the store of the server cannot send what is there as events, which the stream says', async () => {
    const clock = createVirtualClock()
    const stop = new AbortController()
    const asked: string[] = []
    const metadata = { name: 'a', namespace: 'b', resourceVersion: '7' }
    const transport = {
      request({ url }: { readonly url: string | URL }): Promise<HttpResponse> {
        const { searchParams } = new URL(url)
        const [isWatch, streams] = [searchParams.has('watch'), searchParams.has('sendInitialEvents')]
        asked.push(isWatch ? (streams ? 'stream' : 'watch') : 'list')
        const message = 'the required storage feature RequestWatchProgress is disabled'
        if (streams) return Promise.resolve(answer({ type: 'ERROR', object: { kind: 'Status', code: 500, message } }))
        if (isWatch) stop.abort()
        // As upstream's lists of metadata have no items.
        if (asked.length === 2) return Promise.resolve(answer({ metadata: { continue: 'more' }, items: null }))
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
    await clock.advance(60_000)
    await following
    assert.deepEqual(asked, ['stream', 'list', 'list', 'watch'])
    assert.deepEqual(seen, [[['a'], '8']])
  })
})
