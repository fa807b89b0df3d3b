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
  ['valid', person()],
  ['first-password', person({ mustChangePassword: true })],
  ['read-only', person({ readOnly: true })],
  ['only-for-c-1', person({ cluster: 'c-1' })],
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

describe('port of the management server', () => {
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

  const rows: readonly (readonly [line: string, token: string, status: number])[] = [
    ['GET /open', 'none', 200],
    ['GET /open', 'wrong', 200],
    ['POST /open', 'none', 405],
    ['GET /own/a', 'none', 401],
    ['GET /own/a', 'wrong', 401],
    ['GET /own/a', 'valid', 200],
    ['GET /own/', 'valid', 404],
    ['GET /own', 'valid', 404],
    ['GET /own/a/b', 'valid', 404],
    ['DELETE /own/a', 'valid', 405],
    ['GET /own/a', 'first-password', 403],
    ['POST /password', 'first-password', 200],
    ['GET /own/a', 'read-only', 200],
    ['POST /own/a', 'read-only', 403],
    ['PUT /pass/c-1/api', 'read-only', 403],
    ['PUT /pass/c-1/api', 'valid', 200],
    ['PUT /pass/c-1/api', 'none', 401],
    ['PUT /pass/c-1/api', 'only-for-c-1', 200],
    ['GET /pass/c-2/api', 'only-for-c-1', 403],
    ['GET /own/c-1', 'only-for-c-1', 403],
    ['GET /pass/../own/a', 'valid', 400],
    ['GET /pass/%2e%2e/own/a', 'valid', 400],
    ['GET //own/a', 'valid', 400],
    ['GET /none', 'none', 404],
    ['GET /broken', 'none', 500],
  ]
  for (const [line, token, status] of rows)
    it(`responds with ${status} to ${line} with the token "${token}"`, async () => {
      assert.equal((await send(line, token === 'none' ? undefined : token)).status, status)
    })

  it('passes the wildcard part of a path to its handler unchanged', async () => {
    const { text } = await send('GET /pass/c-1/api/v1/pods?a=%2F&watch=1', 'valid')
    assert.deepEqual(JSON.parse(text), { rest: '/api/v1/pods?a=%2F&watch=1', cluster: 'c-1' })
  })

  it('refuses bodies that are no JSON object, and large ones', async () => {
    for (const body of ['[]', '"a"', '{', 'null']) assert.equal((await send('POST /own/a', 'valid', body)).status, 400)
    assert.equal((await send('POST /own/a', 'valid', `{"a":"${'x'.repeat(70_000)}"}`)).status, 413)
  })

  it('logs internal errors, and omits stack traces from the response', async () => {
    const { text } = await send('GET /broken')
    assert.doesNotMatch(text, /errors\.ts|at async/)
    assert.match(logged, /the disk is on fire/)
  })

  it('writes each request to the audit log, without secrets in paths', async () => {
    audit.length = 0
    await send('GET /own/a?token=secret', 'valid')
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
