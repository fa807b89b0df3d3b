/** Tests lists and watches against an API server that misbehaves. */
import assert from 'node:assert/strict'
import { describe, it } from 'node:test'

import { RequestError } from '../api/request.ts'
import { follow, type Listener } from './follow.ts'

interface Reply {
  readonly status?: number
  readonly body: object | readonly object[]
}

const columnDefinitions = [{ name: 'Name', type: 'string' }]
const tableRow = (name: string, resourceVersion: string): object => ({
  cells: [name],
  object: { metadata: { uid: name, name, resourceVersion } },
})
const page = (names: readonly string[], metadata: object): object => ({
  columnDefinitions,
  metadata,
  rows: names.map((name) => tableRow(name, '1')),
})
const event = (type: string, name: string, version: string): object => ({
  type,
  object: { kind: 'Table', rows: [tableRow(name, version)] },
})

/** Plays replies in their order, then ends. Returns what the listener saw, and the queries that were sent. */
async function play(replies: readonly Reply[]): Promise<{ seen: string[]; queries: string[]; error: unknown }> {
  const seen: string[] = []
  const queries: string[] = []
  const stop = new AbortController()
  const left = [...replies]
  const listener: Listener = {
    columns: (columns) => seen.push(`columns ${columns.map(({ name }) => name).join()}`),
    page: (rows, { isFirst, isLast, remaining }) =>
      seen.push(`page ${rows.map(({ name }) => name).join()} ${isFirst} ${isLast} ${remaining}`),
    changed: ({ name }) => seen.push(`changed ${name}`),
    deleted: (uid) => seen.push(`deleted ${uid}`),
    live: () => seen.push('live'),
    lost: ({ message }, retryMs) => seen.push(`lost ${message} ${retryMs}`),
  }
  const next = (path: string): Reply | undefined => {
    const reply = left.shift()
    if (reply === undefined) stop.abort()
    else queries.push(path.slice(path.indexOf('?') + 1))
    return reply
  }
  const fetcher = (path: string): Promise<Response> => {
    const { status = 200, body } = next(path) ?? {}
    if (body === undefined) return Promise.reject(new TypeError('network'))
    return Promise.resolve(new Response(JSON.stringify(body), { status }))
  }
  async function* messages(path: string): AsyncGenerator<string> {
    const { status = 200, body } = next(path) ?? {}
    if (body === undefined) throw new RequestError({ code: 0, message: 'network' })
    if (status >= 400) throw new RequestError({ ...(body as object), code: status })
    for (const one of body as readonly object[]) yield JSON.stringify(one)
  }
  const tools = { fetch: fetcher, messages, sleep: () => Promise.resolve(), random: () => 0 }
  const error: unknown = await follow({ path: '/pods' }, listener, tools, stop.signal).catch(
    (failed: unknown) => failed,
  )
  return { seen, queries, error }
}

describe('follow()', () => {
  it('lists in pages, then follows the changes from the version of the list', async () => {
    const { seen, queries } = await play([
      { body: page(['a'], { continue: 'next', remainingItemCount: 1 }) },
      { body: page(['b'], { resourceVersion: '5' }) },
      {
        body: [
          event('MODIFIED', 'a', '6'),
          event('DELETED', 'b', '7'),
          { type: 'BOOKMARK', object: { metadata: { resourceVersion: '9' } } },
        ],
      },
      { body: [] },
    ])
    assert.deepEqual(seen, [
      'columns Name',
      'page a true false 1',
      'page b false true 0',
      'live',
      'changed a',
      'deleted b',
      'live',
      'live',
    ])
    assert.match(queries[1] ?? '', /continue=next/)
    assert.match(queries[2] ?? '', /resourceVersion=5$/)
    assert.match(queries[3] ?? '', /resourceVersion=9$/)
  })

  it('lists again when the version is too old, as status or as event', async () => {
    const list = { body: page(['a'], { resourceVersion: '5' }) }
    const { seen } = await play([
      list,
      { status: 410, body: { message: 'too old', code: 410 } },
      list,
      { body: [{ type: 'ERROR', object: { code: 410, message: 'too old' } }] },
      list,
    ])
    assert.equal(seen.filter((line) => line.startsWith('page')).length, 3)
    assert.equal(seen.filter((line) => line.startsWith('lost')).length, 0)
  })

  it('reports a lost connection and goes on from the last version', async () => {
    const { seen, queries } = await play([
      { body: page(['a'], { resourceVersion: '5' }) },
      { status: 503, body: { message: 'the agent is away', details: { retryAfterSeconds: 2 } } },
      { body: [event('ADDED', 'c', '8')] },
    ])
    assert.deepEqual(seen.slice(3), ['lost the agent is away 2000', 'live', 'changed c', 'live'])
    assert.match(queries[2] ?? '', /resourceVersion=5$/)
  })

  it('rejects when the server refuses the list for good', async () => {
    const { error } = await play([{ status: 403, body: { message: 'pods is forbidden', reason: 'Forbidden' } }])
    assert.ok(error instanceof RequestError)
    assert.equal(error.code, 403)
  })

  it('shows objects of a server without Tables by name', async () => {
    const items = [{ metadata: { uid: 'x', name: 'x' } }]
    const { seen } = await play([{ body: { items, metadata: { resourceVersion: '1' } } }])
    assert.deepEqual(seen, ['columns Name,Age', 'page x true true 0', 'live'])
  })
})
