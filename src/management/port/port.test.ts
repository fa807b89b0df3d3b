import assert from 'node:assert/strict'
import { after, before, describe, it } from 'node:test'

import { realClock } from '#lib/clock.ts'
import { createHttpClient } from '#lib/http/client.ts'
import { createHttpServer } from '#lib/http/server.ts'
import { createLog } from '#lib/log/log.ts'
import { createSeededRandom } from '#lib/random.ts'
import { unauthorizedError } from '#meta/status-errors.ts'

import type { Person } from '../person.ts'
import { type AuditEvent, createPort } from './port.ts'
import type { Route } from './route.ts'

const person = (changes: { mustChangePassword?: boolean; readOnly?: boolean; cluster?: string } = {}): Person => ({
  hasCookie: false,
  user: {
    metadata: { name: 'u-jane' },
    spec: { username: 'jane', mustChangePassword: changes.mustChangePassword ?? false },
  },
  token: {
    metadata: { name: 't-1' },
    spec: {
      user: 'u-jane',
      type: 'api',
      hash: '',
      expiresAt: '',
      readOnly: changes.readOnly ?? false,
      ...(changes.cluster !== undefined && { cluster: changes.cluster }),
    },
  },
})

const PEOPLE = new Map([
  ['good', person()],
  ['new', person({ mustChangePassword: true })],
  ['reader', person({ readOnly: true })],
  ['bound', person({ cluster: 'c-1' })],
])

const routes: readonly Route[] = [
  { method: 'GET', path: '/open', access: 'anyone', serve: ({ person: found }) => ({ status: 200, body: { found } }) },
  { method: 'GET', path: '/own/:name', access: 'person', serve: ({ params }) => ({ status: 200, body: params }) },
  {
    method: 'POST',
    path: '/own/:name',
    access: 'person',
    serve: async (call) => ({ status: 201, body: await call.readBody() }),
  },
  { method: 'POST', path: '/password', access: 'person', allowsInitialPassword: true, serve: () => ({ status: 200 }) },
  {
    method: '*',
    path: '/pass/:cluster/*',
    access: 'person',
    allowsClusterToken: true,
    serve: ({ rest, params }) => ({ status: 200, body: { rest, ...params } }),
  },
  { method: 'GET', path: '/secret/:token', access: 'agent', serve: () => ({ status: 200 }) },
  {
    method: 'GET',
    path: '/broken',
    access: 'anyone',
    serve: () => {
      throw new Error('the disk is on fire')
    },
  },
]

describe('createPort', () => {
  const audit: AuditEvent[] = []
  let logged = ''
  const stream = { write: (text: string, done: () => void) => ((logged += text), done()) }
  const server = createHttpServer({
    clock: realClock,
    serve: createPort({
      routes,
      authenticate: ({ headers }) => {
        const token = headers.authorization?.replace('Bearer ', '')
        if (token === undefined) return Promise.resolve(undefined)
        const found = PEOPLE.get(token)
        return found === undefined ? Promise.reject(unauthorizedError('Unauthorized')) : Promise.resolve(found)
      },
      addressOf: ({ peer }) => peer.address,
      audit: (event) => audit.push(event),
      random: createSeededRandom(1),
      log: createLog({ clock: realClock, stream, errorStream: stream }).logger,
    }),
  })
  const client = createHttpClient({ clock: realClock })
  let url = ''
  before(async () => {
    const bound = await server.listen({ host: '127.0.0.1', port: 0 })
    url = 'port' in bound ? `http://127.0.0.1:${bound.port}` : ''
  })
  after(async () => {
    client.close()
    await server.drain(100)
  })

  async function send(line: string, token?: string, body?: string): Promise<{ status: number; text: string }> {
    const [method = '', path = ''] = line.split(' ')
    const headers = token === undefined ? {} : { authorization: `Bearer ${token}` }
    const answer = await client.request({ method, url, path, headers, ...(body !== undefined && { body }) })
    return { status: answer.status, text: await answer.text(1 << 20) }
  }

  const rows: readonly (readonly [line: string, token: string | undefined, status: number])[] = [
    ['GET /open', undefined, 200],
    ['GET /open', 'wrong', 200],
    ['POST /open', undefined, 405],
    ['GET /own/a', undefined, 401],
    ['GET /own/a', 'wrong', 401],
    ['GET /own/a', 'good', 200],
    ['GET /own/', 'good', 404],
    ['GET /own', 'good', 404],
    ['GET /own/a/b', 'good', 404],
    ['DELETE /own/a', 'good', 405],
    ['GET /own/a', 'new', 403],
    ['POST /password', 'new', 200],
    ['GET /own/a', 'reader', 200],
    ['POST /own/a', 'reader', 403],
    ['PUT /pass/c-1/api', 'reader', 403],
    ['PUT /pass/c-1/api', 'good', 200],
    ['PUT /pass/c-1/api', undefined, 401],
    ['PUT /pass/c-1/api', 'bound', 200],
    ['GET /pass/c-2/api', 'bound', 403],
    ['GET /own/c-1', 'bound', 403],
    ['GET /pass/../own/a', 'good', 400],
    ['GET /pass/%2e%2e/own/a', 'good', 400],
    ['GET //own/a', 'good', 400],
    ['GET /none', undefined, 404],
    ['GET /broken', undefined, 500],
  ]
  for (const [line, token, status] of rows)
    it(`answers ${line} with ${status} ${token === undefined ? 'without credentials' : `to "${token}"`}`, async () => {
      assert.equal((await send(line, token)).status, status)
    })

  it('passes the rest of an open path unchanged', async () => {
    const { text } = await send('GET /pass/c-1/api/v1/pods?a=%2F&watch=1', 'good')
    assert.deepEqual(JSON.parse(text), { rest: '/api/v1/pods?a=%2F&watch=1', cluster: 'c-1' })
  })

  it('refuses bodies that are no JSON object, and large ones', async () => {
    for (const body of ['[]', '"a"', '{', 'null']) assert.equal((await send('POST /own/a', 'good', body)).status, 400)
    assert.equal((await send('POST /own/a', 'good', `{"a":"${'x'.repeat(70_000)}"}`)).status, 413)
  })

  it('logs internal errors and keeps stack traces out of the answer', async () => {
    const { text } = await send('GET /broken')
    assert.doesNotMatch(text, /errors\.ts|at async/)
    assert.match(logged, /the disk is on fire/)
  })

  it('records each request, and no secrets of paths', async () => {
    audit.length = 0
    await send('GET /own/a?token=secret', 'good')
    await send('GET /secret/abc')
    await send('GET /own/a', 'wrong')
    const found = audit.map(({ path, user, status }) => [path, user, status])
    assert.deepEqual(found, [
      ['/own/a', 'u-jane', 200],
      ['/secret/:token', undefined, 200],
      ['/own/a', undefined, 401],
    ])
  })
})
