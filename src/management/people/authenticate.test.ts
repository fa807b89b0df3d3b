import assert from 'node:assert/strict'
import { after, before, describe, it } from 'node:test'

import { testExchange, type TestRequest } from '#kits/management/exchange.ts'
import { startObjects, type TestObjects } from '#kits/management/objects.ts'
import { StatusError } from '#meta/status.ts'

import { Users as UserKind } from '../kinds/user.ts'
import type { Person } from '../person.ts'
import { identify } from './authenticate.ts'
import { Tokens } from './tokens.ts'

const PROTOCOL = 'base64url.bearer.authorization.k8s.io.'
const encoded = (text: string): string => Buffer.from(text).toString('base64url')
const basic = (text: string): string => `Basic ${Buffer.from(text).toString('base64')}`

const isUnauthorized = (error: unknown): boolean =>
  error instanceof StatusError && error.status.code === 401 && error.message === 'Unauthorized'

describe('authentication at the management server', () => {
  let started: TestObjects
  let tokens: Tokens
  let api = ''
  let session = ''

  before(async () => {
    started = await startObjects()
    await started.objects.create(UserKind, { metadata: { name: 'u-jane' }, spec: { username: 'jane' } })
    tokens = new Tokens(started.objects)
    const plan = { user: 'u-jane', lifetimeMs: 3_600_000 }
    api = (await tokens.create({ ...plan, type: 'api' })).text
    session = (await tokens.create({ ...plan, type: 'session' })).text
  })
  after(async () => {
    await tokens.close()
    started[Symbol.dispose]()
  })

  const ask = (request: TestRequest): Person | undefined => identify(tokens, testExchange(request), '10.0.0.1')
  const withHeaders = (headers: Record<string, string>, more: TestRequest = {}): Person | undefined =>
    ask({ ...more, headers })

  it('yields undefined without credentials', () => {
    assert.equal(ask({}), undefined)
    assert.equal(withHeaders({ cookie: 'theme=dark; hk=1' }), undefined)
    assert.equal(withHeaders({ 'sec-websocket-protocol': 'v5.channel.k8s.io' }), undefined)
  })

  it('accepts a token in the Authorization header, a WebSocket subprotocol or a cookie', () => {
    const accepted: readonly (readonly [Record<string, string>, boolean])[] = [
      [{ authorization: `Bearer ${api}` }, false],
      [{ authorization: `bearer  ${api} ` }, false],
      [{ authorization: basic(`jane:${api}`) }, false],
      [{ authorization: basic(`:${api}`) }, false],
      [{ 'sec-websocket-protocol': `v5.channel.k8s.io, ${PROTOCOL}${encoded(api)}` }, false],
      [{ cookie: `theme=dark; __Host-hk=${session}; x=y` }, true],
    ]
    for (const [headers, hasCookie] of accepted) {
      const person = withHeaders(headers)
      assert.deepEqual([person?.user.metadata.name, person?.hasCookie], ['u-jane', hasCookie], JSON.stringify(headers))
    }
  })

  it('refuses wrong or several credentials with 401', () => {
    const refused: readonly Record<string, string>[] = [
      { authorization: '' },
      { authorization: 'Bearer' },
      { authorization: `Bearer ${api}x` },
      { authorization: `Bearer ${api} x` },
      { authorization: api },
      { authorization: `Bearer ${session}` },
      { authorization: `Token ${api}` },
      { authorization: basic(api.slice(4)) },
      { authorization: basic(`jane:password`) },
      { authorization: 'Bearer eyJhbGciOiJub25lIn0.e30.' },
      { authorization: 'Bearer wrong', cookie: `__Host-hk=${session}` },
      { authorization: `Bearer ${api}`, cookie: `__Host-hk=${session}` },
      { authorization: `Bearer ${api}`, cookie: '__Host-hk=' },
      { authorization: `Bearer ${api}`, 'sec-websocket-protocol': `x, ${PROTOCOL}${encoded(api)}` },
      { 'sec-websocket-protocol': `${PROTOCOL}${encoded(api)}, ${PROTOCOL}${encoded(api)}` },
      { 'sec-websocket-protocol': `x, ${PROTOCOL}` },
      { 'sec-websocket-protocol': `x, ${PROTOCOL}${encoded(session)}` },
      { cookie: `__Host-hk=${api}` },
      { cookie: `__Host-hk=${session}; __Host-hk=${session}` },
      { cookie: '__Host-hk=' },
      { cookie: `__Host-hk="${session}"` },
    ]
    for (const headers of refused) {
      assert.throws(() => withHeaders(headers), isUnauthorized, JSON.stringify(headers))
    }
  })

  it('refuses two Authorization headers', () => {
    const authorization = `Bearer ${api}`
    const rawHeaders = ['Authorization', authorization, 'AUTHORIZATION', authorization]
    assert.throws(() => ask({ headers: { authorization }, rawHeaders }), /Unauthorized/)
  })

  it('refuses a cookie in a write from another site, and accepts it from pages of this server', () => {
    const cookie = `__Host-hk=${session}`
    assert.throws(
      () => withHeaders({ cookie, 'sec-fetch-site': 'cross-site' }, { method: 'POST' }),
      /page of this server/,
    )
    assert.throws(() => withHeaders({ cookie }, { method: 'DELETE' }), /page of this server/)
    assert.throws(
      () => withHeaders({ cookie, origin: 'https://evil.example' }, { upgradeProtocol: 'websocket' }),
      /page of this server/,
    )
    assert.ok(withHeaders({ cookie, 'sec-fetch-site': 'same-origin', 'x-hk': '1' }, { method: 'POST' }))
    assert.ok(withHeaders({ cookie, origin: 'https://hk.example.com' }, { upgradeProtocol: 'websocket' }))
    assert.ok(withHeaders({ authorization: `Bearer ${api}` }, { method: 'POST' }))
  })

  it('sends no request to the API server', () => {
    const count = started.api.requests.length
    for (let n = 0; n < 1000; n++) withHeaders({ authorization: `Bearer ${api}` })
    assert.equal(started.api.requests.length, count)
  })
})
