import assert from 'node:assert/strict'
import { describe, it } from 'node:test'

import { createVirtualClock, type VirtualClock } from '#lib/clock.ts'
import type { HttpRequest } from '#lib/http/client.ts'
import type { HttpResponse } from '#lib/http/response.ts'

import { ApiClient } from '../api-client.ts'
import { SeriesRecorder, type SeriesRecorderOptions } from './event-series.ts'

interface RecorderUnderTest {
  readonly recorder: SeriesRecorder
  readonly clock: VirtualClock
  /** Method and note, or count, of each request in the order in which they were sent. */
  readonly sent: string[]
  /** Answers the oldest waiting request. */
  readonly answer: () => Promise<void>
}

function start(options: Partial<SeriesRecorderOptions> = {}): RecorderUnderTest {
  const clock = createVirtualClock()
  const sent: string[] = []
  const waiting: (() => void)[] = []
  const transport = {
    request({ method = '', body }: HttpRequest): Promise<HttpResponse> {
      const { note, series } = JSON.parse(body as string) as { note?: string; series?: { count: number } }
      sent.push(`${method} ${note ?? series?.count}`)
      const response = { status: 200, headers: {}, bytes: () => Promise.resolve(Buffer.from('{}')) }
      return new Promise((resolve) => waiting.push(() => resolve(response as never)))
    },
  }
  const client = new ApiClient({ transport, clock, userAgent: 'test' })
  const recorder = new SeriesRecorder({ client, controller: 'c', instance: 'c-1', ...options })
  const answer = async (): Promise<void> => {
    waiting.shift()?.()
    await clock.advance(0)
  }
  return { recorder, clock, sent, answer }
}

const about = (name: string): { kind: string; name: string } => ({ kind: 'Pod', name })
const saying = (note: string): Parameters<SeriesRecorder['record']>[1] => ({
  type: 'Normal',
  reason: 'Scheduled',
  action: 'Binding',
  note,
})

describe('SeriesRecorder', () => {
  it('writes a few events concurrently, and those of one series in order', async () => {
    const { recorder, clock, sent, answer } = start()
    for (const name of ['a', 'a', 'b', 'c', 'd', 'e']) recorder.record(about(name), saying(name))
    await clock.advance(0)
    assert.deepEqual(sent, ['POST a', 'POST b', 'POST c'], 'the second of a waits for the first')
    await answer()
    assert.deepEqual(sent.slice(3), ['PATCH 2', 'POST d'])
    const flushed = recorder.flush()
    for (let left = 5; left > 0; left--) await answer()
    await flushed
    assert.deepEqual(sent.slice(5), ['POST e'])
    await recorder.end()
  })

  it('sends events after more important requests, with a maximum delay', async () => {
    const busy = Promise.withResolvers<void>()
    let whenIdle: Promise<void> | undefined = busy.promise
    const { recorder, clock, sent } = start({ whenIdle: () => whenIdle })
    recorder.record(about('a'), saying('a'))
    await clock.advance(4999)
    assert.deepEqual(sent, [])
    recorder.record(about('b'), saying('b'))
    await clock.advance(1)
    assert.deepEqual(sent, ['POST a'])
    whenIdle = undefined
    busy.resolve()
    await clock.advance(0)
    assert.deepEqual(sent, ['POST a', 'POST b'])
  })

  it('delays the exit of a program only briefly', async () => {
    const { recorder, clock, sent, answer } = start()
    for (const name of ['a', 'b', 'c', 'd', 'e']) recorder.record(about(name), saying(name))
    const ended = recorder.end()
    await clock.advance(2000)
    for (let left = 4; left > 0; left--) await answer()
    await ended
    assert.deepEqual(sent, ['POST a', 'POST b', 'POST c', 'POST d'])
  })
})
