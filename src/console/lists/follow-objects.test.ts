/** Tests that whole objects are listed and followed, and that a filter reads all pages. */
import assert from 'node:assert/strict'
import { describe, it } from 'node:test'

import { RequestError } from '../api/request.ts'
import { followObjects, type ObjectListener } from './follow-objects.ts'

/** Plays answers in their order, then ends. Returns what the listener saw, and the queries. */
async function play(
  answers: readonly (object | readonly object[])[],
  keep?: (object: { metadata: { name?: string } }) => boolean,
): Promise<{ seen: string[]; queries: string[] }> {
  const seen: string[] = []
  const queries: string[] = []
  const stop = new AbortController()
  const left = [...answers]
  const listener: ObjectListener = {
    replaced: (objects, isWhole) =>
      seen.push(`all ${objects.map(({ kind, metadata }) => `${kind} ${metadata.name}`).join()} ${isWhole}`),
    changed: ({ metadata }) => seen.push(`changed ${metadata.name}`),
    deleted: ({ metadata }) => seen.push(`deleted ${metadata.name}`),
    live: () => seen.push('live'),
    lost: ({ message }) => seen.push(`lost ${message}`),
  }
  const next = (path: string): object | readonly object[] | undefined => {
    const answer = left.shift()
    if (answer === undefined) stop.abort()
    else queries.push(path)
    return answer
  }
  const fetcher = (path: string): Promise<Response> => {
    const answer = next(path)
    if (answer === undefined) return Promise.reject(new TypeError('network'))
    return Promise.resolve(new Response(JSON.stringify(answer)))
  }
  async function* messages(path: string): AsyncGenerator<string> {
    const answer = next(path)
    if (answer === undefined) throw new RequestError({ code: 0, message: 'network' })
    if (!Array.isArray(answer)) throw new RequestError({ code: 410, message: 'refused' })
    for (const one of answer as readonly object[]) yield JSON.stringify(one)
  }
  const tools = { fetch: fetcher, messages, sleep: () => Promise.resolve(), random: () => 0 }
  await followObjects({ path: '/pods?fieldSelector=x', keep }, listener, tools, stop.signal)
  return { seen, queries }
}

const list = (names: readonly string[], metadata: object): object => ({
  kind: 'PodList',
  apiVersion: 'v1',
  metadata,
  items: names.map((name) => ({ metadata: { name } })),
})
const event = (type: string, name: string, version: string): object => ({
  type,
  object: { metadata: { name, resourceVersion: version } },
})

describe('followObjects()', () => {
  it('names the kind of listed objects and follows changes', async () => {
    const { seen, queries } = await play([
      list(['a'], { resourceVersion: '5' }),
      [event('MODIFIED', 'a', '6'), event('DELETED', 'a', '7')],
    ])
    assert.deepEqual(seen, ['all Pod a true', 'live', 'changed a', 'deleted a', 'live'])
    assert.match(queries[1] ?? '', /fieldSelector=x&watch=1.*resourceVersion=5$/)
  })

  it('says that there are more objects than a page', async () => {
    const { seen } = await play([list(['a'], { resourceVersion: '5', continue: 'more' })])
    assert.equal(seen[0], 'all Pod a false')
  })

  it('reads all pages for a filter, and drops changes that it does not keep', async () => {
    const { seen } = await play(
      [list(['a', 'x'], { continue: 'more' }), list(['ab'], { resourceVersion: '9' }), [event('ADDED', 'x', '10')]],
      ({ metadata }) => metadata.name?.startsWith('a') === true,
    )
    assert.deepEqual(seen, ['all Pod a,Pod ab true', 'live', 'live'])
  })

  it('pauses before it lists again when the server refuses every watch', async () => {
    const listed = list(['a'], { resourceVersion: '5' })
    const { seen } = await play([listed, {}, listed, {}, listed, {}, listed, []])
    const lost = seen.filter((line) => line === 'lost refused')
    assert.equal(lost.length, 1)
    assert.equal(seen.indexOf('lost refused'), 6)
  })
})
