import assert from 'node:assert/strict'
import { describe, it } from 'node:test'

import { sendTo, TestBrowser, type TestAnswer, type TestRequest } from '#kits/management/exchange.ts'
import { startPeople, type TestPeople } from '#kits/management/people.ts'

import { Tokens as TokenKind } from '../kinds/token.ts'
import { Users as UserKind } from '../kinds/user.ts'

const GOOD = 'correct horse battery'
const OTHER = 'another good password'

interface Started extends TestPeople {
  /** Logged in as an administrator. */
  readonly admin: TestBrowser
}

async function start(): Promise<Started> {
  const started = await startPeople()
  const admin = new TestBrowser(started.people)
  await admin.logIn('admin', started.firstPassword)
  await admin.send('POST', '/v3/me/password', { current: started.firstPassword, password: GOOD })
  return { ...started, admin }
}

async function addUser({ admin }: Started, username: string): Promise<string> {
  const answer = await admin.send('POST', '/v3/users', { username, password: GOOD, mustChangePassword: false })
  assert.equal(answer.status, 201, answer.text)
  return String(answer.body['name'])
}

async function browserOf(started: Started, username: string): Promise<TestBrowser> {
  const browser = new TestBrowser(started.people)
  assert.equal((await browser.logIn(username, GOOD)).status, 200)
  return browser
}

function sendWith(started: Started, token: unknown, request: TestRequest): Promise<TestAnswer> {
  return sendTo(started.people, { ...request, headers: { authorization: `Bearer ${String(token)}` } })
}

const itemsOf = ({ body }: TestAnswer): Record<string, unknown>[] => body['items'] as Record<string, unknown>[]

describe('POST /v3-public/login', () => {
  it('starts a session with a cookie, and reports whether the password must change', async () => {
    await using started = await startPeople()
    const browser = new TestBrowser(started.people)
    const answer = await browser.logIn('ADMIN', started.firstPassword)
    assert.deepEqual([answer.status, answer.body['mustChangePassword']], [200, true])
    assert.deepEqual(answer.values('Cache-Control'), ['no-store'])
    assert.equal((await browser.send('GET', '/v3/me')).status, 200)
    assert.equal((await browser.send('GET', '/v3/users')).status, 403)
    const changed = await browser.send('POST', '/v3/me/password', { current: started.firstPassword, password: GOOD })
    assert.equal(changed.status, 200)
    assert.equal((await browser.send('GET', '/v3/users')).status, 200)
  })

  it('returns a token instead of a cookie', async () => {
    await using started = await start()
    const body = { username: 'admin', password: GOOD, responseType: 'token', description: 'CI', ttlSeconds: 60 }
    const answer = await sendTo(started.people, { method: 'POST', path: '/v3-public/login', body })
    assert.deepEqual([answer.status, answer.values('Set-Cookie')], [200, []])
    const me = await sendWith(started, answer.body['token'], { path: '/v3/me' })
    const token = me.body['token'] as Record<string, unknown>
    assert.deepEqual([token['type'], token['description'], token['expiresAt']], ['api', 'CI', '2026-01-01T00:01:00Z'])
    await started.clock.advance(60_000)
    assert.equal((await sendWith(started, answer.body['token'], { path: '/v3/me' })).status, 401)
  })

  it('returns no token for an initial password', async () => {
    await using started = await startPeople()
    const body = { username: 'admin', password: started.firstPassword, responseType: 'token' }
    const answer = await sendTo(started.people, { method: 'POST', path: '/v3-public/login', body })
    assert.equal(answer.status, 403)
    assert.deepEqual(started.objects.list(TokenKind), [])
  })

  it('responds equally to a wrong password, an unknown user, a disabled user and a user without a password', async () => {
    await using started = await start()
    const name = await addUser(started, 'jane')
    await started.admin.send('PATCH', `/v3/users/${name}`, { disabled: true })
    await started.admin.send('POST', '/v3/users', { username: 'empty' })
    const answers = []
    for (const [username, password] of [
      ['admin', 'a wrong password'],
      ['nobody', GOOD],
      ['jane', GOOD],
      ['empty', GOOD],
      ['', ''],
    ]) {
      const body = { username, password }
      answers.push(await sendTo(started.people, { method: 'POST', path: '/v3-public/login', body }))
    }
    assert.equal(new Set(answers.map(({ status, text }) => `${status} ${text}`)).size, 1)
    assert.equal(answers[0]?.status, 401)
  })

  it('refuses 10,000 tries in a minute with 429 and Retry-After, and the right password later is accepted', async () => {
    await using started = await start()
    const statuses = new Map<number, number>()
    let retry: string[] = []
    for (let n = 0; n < 10_000; n++) {
      const body = { username: 'admin', password: `wrong password ${n}` }
      const answer = await sendTo(started.people, {
        method: 'POST',
        path: '/v3-public/login',
        body,
        address: '10.6.6.6',
      })
      statuses.set(answer.status, (statuses.get(answer.status) ?? 0) + 1)
      if (answer.status === 429) retry = answer.values('Retry-After')
      if (n % 200 === 0) await started.clock.advance(1000)
    }
    assert.deepEqual([...statuses.keys()], [401, 429])
    assert.ok((statuses.get(401) ?? 0) < 20, `${statuses.get(401)}`)
    assert.ok(Number(retry[0]) > 0)
    const elsewhere = new TestBrowser(started.people, '10.0.0.9')
    assert.equal((await elsewhere.logIn('admin', GOOD)).status, 200)
  })

  it('starts a new session at each log-in, and ends the previous one of the browser', async () => {
    await using started = await start()
    await addUser(started, 'jane')
    const browser = await browserOf(started, 'jane')
    const first = browser.cookie
    await browser.logIn('jane', GOOD)
    assert.notEqual(browser.cookie, first)
    assert.equal((await sendTo(started.people, { path: '/v3/me', headers: { cookie: first } })).status, 401)
    browser.set('__Host-hk', 'hk_t-planted_xxxx')
    assert.equal((await browser.logIn('jane', GOOD)).status, 200)
    assert.equal((await browser.send('GET', '/v3/me')).status, 200)
  })

  it('leaves no session that began with the old password during a password change', async () => {
    await using started = await start()
    const name = await addUser(started, 'jane')
    const browsers = Array.from({ length: 5 }, (_, n) => new TestBrowser(started.people, `10.0.3.${n}`))
    const logIns = browsers.map((browser) => browser.logIn('jane', GOOD))
    await started.admin.send('PATCH', `/v3/users/${name}`, { password: OTHER })
    await Promise.all(logIns)
    for (const browser of browsers) assert.equal((await browser.send('GET', '/v3/me')).status, 401)
  })

  it('refuses other sites, unknown fields, wrong types and large bodies', async () => {
    await using started = await start()
    const path = '/v3-public/login'
    const good = { username: 'admin', password: GOOD }
    const send = (body: object, headers: Record<string, string> = {}): Promise<TestAnswer> =>
      sendTo(started.people, { method: 'POST', path, body, headers })
    assert.equal((await send(good, { 'sec-fetch-site': 'cross-site' })).status, 403)
    assert.equal((await send(good, { origin: 'https://evil.example' })).status, 403)
    assert.equal((await send(good, { 'content-length': '65537' })).status, 413)
    for (const wrong of [
      {},
      { username: 'admin' },
      { username: 7, password: GOOD },
      { username: ['admin'], password: GOOD },
      { ...good, admin: true },
      { ...good, responseType: 'jwt' },
      { ...good, ttlSeconds: 60 },
      { ...good, responseType: 'token', ttlSeconds: 0 },
      { ...good, responseType: 'token', ttlSeconds: 1.5 },
      { ...good, responseType: 'token', ttlSeconds: '60' },
      { ...good, responseType: 'token', ttlSeconds: 91 * 86_400 },
      { username: 'admin', password: 'x'.repeat(1025) },
      JSON.parse('{"username":"admin","password":"x","__proto__":{}}'),
    ]) {
      assert.equal((await send(wrong as object)).status, 400, JSON.stringify(wrong).slice(0, 100))
    }
    assert.equal((await send(good)).status, 200)
  })
})

describe('routes /v3/me and /v3/logout', () => {
  it('shows the user, the groups and the token, without hashes', async () => {
    await using started = await start()
    const answer = await started.admin.send('GET', '/v3/me')
    assert.deepEqual(Object.keys(answer.body), ['user', 'groups', 'isAdministrator', 'token'])
    assert.ok(!/hash|argon2|[0-9a-f]{64}/.test(answer.text), answer.text)
  })

  it('changes the password, ends all sessions and starts a new one for this browser', async () => {
    await using started = await start()
    await addUser(started, 'jane')
    const [one, two] = [await browserOf(started, 'jane'), await browserOf(started, 'jane')]
    const before = one.cookie
    const answer = await one.send('POST', '/v3/me/password', { current: GOOD, password: OTHER })
    assert.equal(answer.status, 200)
    assert.notEqual(one.cookie, before)
    assert.deepEqual([(await one.send('GET', '/v3/me')).status, (await two.send('GET', '/v3/me')).status], [200, 401])
    assert.equal((await sendTo(started.people, { path: '/v3/me', headers: { cookie: before } })).status, 401)
    assert.equal((await new TestBrowser(started.people).logIn('jane', GOOD)).status, 401)
    assert.equal((await new TestBrowser(started.people).logIn('jane', OTHER)).status, 200)
  })

  it('refuses a wrong current password, the same password and a short one', async () => {
    await using started = await start()
    const send = (current: string, password: string): Promise<TestAnswer> =>
      started.admin.send('POST', '/v3/me/password', { current, password })
    assert.equal((await send('wrong password', OTHER)).status, 403)
    assert.equal((await send(GOOD, GOOD)).status, 400)
    assert.equal((await send(GOOD, 'short')).status, 400)
    let last = 403
    for (let n = 0; n < 20; n++) last = (await send(`wrong password ${n}`, OTHER)).status
    assert.equal(last, 429)
  })

  it('ends all sessions of the user on log-out from everywhere, but no API tokens', async () => {
    await using started = await start()
    await addUser(started, 'jane')
    const [one, two] = [await browserOf(started, 'jane'), await browserOf(started, 'jane')]
    const token = (await one.send('POST', '/v3/tokens', {})).body['token']
    assert.equal((await one.send('POST', '/v3/logout', { everywhere: true })).status, 204)
    assert.equal((await two.send('GET', '/v3/me')).status, 401)
    assert.equal((await sendWith(started, token, { path: '/v3/me' })).status, 200)
    assert.equal((await started.admin.send('GET', '/v3/me')).status, 200)
    const { body } = await started.admin.send('POST', '/v3/tokens', { readOnly: true })
    const request = { method: 'POST', path: '/v3/logout', body: { everywhere: true } }
    assert.equal((await sendWith(started, body['token'], request)).status, 403)
    assert.equal((await started.admin.send('GET', '/v3/me')).status, 200)
  })

  it('deletes the cookie on log-out, and refuses it afterwards', async () => {
    await using started = await start()
    const { cookie } = started.admin
    const answer = await started.admin.send('POST', '/v3/logout')
    assert.deepEqual([answer.status, started.admin.cookie], [204, ''])
    assert.equal((await sendTo(started.people, { path: '/v3/me', headers: { cookie } })).status, 401)
  })
})

describe('route /v3/tokens', () => {
  it('creates, lists and deletes tokens of the caller', async () => {
    await using started = await start()
    const created = await started.admin.send('POST', '/v3/tokens', { description: 'CI', readOnly: true })
    assert.equal(created.status, 201)
    assert.match(String(created.body['token']), /^hk_/)
    assert.equal(created.body['expiresAt'], '2026-04-01T00:00:00Z')
    const items = itemsOf(await started.admin.send('GET', '/v3/tokens'))
    assert.deepEqual(
      items.map(({ type, isCurrent, token }) => [type, isCurrent, token]),
      [
        ['session', true, undefined],
        ['api', false, undefined],
      ],
    )
    const path = `/v3/tokens/${String(created.body['name'])}`
    assert.equal((await started.admin.send('DELETE', path)).status, 204)
    assert.equal((await sendWith(started, created.body['token'], { path: '/v3/me' })).status, 401)
    assert.equal((await started.admin.send('DELETE', path)).status, 404)
  })

  it('allows only administrators to delete tokens of other users', async () => {
    await using started = await start()
    await addUser(started, 'jane')
    await addUser(started, 'joe')
    const [jane, joe] = [await browserOf(started, 'jane'), await browserOf(started, 'joe')]
    const { body } = await jane.send('POST', '/v3/tokens', {})
    const path = `/v3/tokens/${String(body['name'])}`
    assert.equal((await joe.send('DELETE', path)).status, 404)
    assert.equal((await sendWith(started, body['token'], { path: '/v3/me' })).status, 200)
    assert.equal((await started.admin.send('DELETE', path)).status, 204)
    assert.equal((await sendWith(started, body['token'], { path: '/v3/me' })).status, 401)
  })

  it('gives a new token no rights that the token of the request lacks', async () => {
    await using started = await start()
    const create = async (body: object): Promise<unknown> =>
      (await started.admin.send('POST', '/v3/tokens', body)).body['token']
    const post = { method: 'POST', path: '/v3/tokens', body: {} }
    const readOnly = await create({ readOnly: true })
    const bound = await create({ cluster: 'c-1' })
    const short = await create({ ttlSeconds: 600 })
    assert.equal((await sendWith(started, readOnly, post)).status, 403)
    assert.equal((await sendWith(started, readOnly, { path: '/v3/tokens' })).status, 200)
    assert.equal(
      (await sendWith(started, readOnly, { method: 'POST', path: '/v3/users', body: { username: 'x' } })).status,
      403,
    )
    for (const request of [post, { path: '/v3/tokens' }, { path: '/v3/users' }]) {
      assert.equal((await sendWith(started, bound, request)).status, 403)
    }
    const made = await sendWith(started, short, { ...post, body: { ttlSeconds: 86_400 } })
    assert.deepEqual([made.status, made.body['expiresAt']], [201, '2026-01-01T00:10:00Z'])
    assert.equal((await started.admin.send('POST', '/v3/tokens', { ttlSeconds: 91 * 86_400 })).status, 400)
    assert.equal((await started.admin.send('POST', '/v3/tokens', { user: 'u-jane' })).status, 400)
  })
})

describe('route /v3/users', () => {
  it('is for administrators only', async () => {
    await using started = await start()
    const name = await addUser(started, 'jane')
    const jane = await browserOf(started, 'jane')
    const requests: readonly (readonly [string, string, object?])[] = [
      ['GET', '/v3/users'],
      ['POST', '/v3/users', { username: 'eve' }],
      ['PATCH', `/v3/users/${name}`, { displayName: 'x' }],
      ['DELETE', `/v3/users/${name}`],
    ]
    for (const [method, path, body] of requests) assert.equal((await jane.send(method, path, body)).status, 403)
    assert.equal(started.objects.list(UserKind).length, 2)
  })

  it('creates, lists, changes and deletes users', async () => {
    await using started = await start()
    const name = await addUser(started, 'jane')
    const users = itemsOf(await started.admin.send('GET', '/v3/users'))
    assert.deepEqual(
      users.map(({ username }) => username),
      ['admin', 'jane'],
    )
    const changed = await started.admin.send('PATCH', `/v3/users/${name}`, { displayName: 'Jane', password: OTHER })
    assert.deepEqual([changed.body['displayName'], changed.body['mustChangePassword']], ['Jane', true])
    assert.ok(!/hash|argon2/.test(changed.text + JSON.stringify(users)))
    assert.equal((await started.admin.send('DELETE', `/v3/users/${name}`)).status, 204)
    assert.equal((await started.admin.send('DELETE', `/v3/users/${name}`)).status, 404)
    assert.equal((await started.admin.send('PATCH', `/v3/users/${name}`, {})).status, 404)
    assert.equal((await started.admin.send('POST', '/v3/users', { username: 'ADMIN' })).status, 409)
    assert.equal((await started.admin.send('POST', '/v3/users', { username: 'x', admin: true })).status, 400)
  })

  it('ends sessions and tokens of a user who is disabled', async () => {
    await using started = await start()
    const name = await addUser(started, 'jane')
    const jane = await browserOf(started, 'jane')
    const { body } = await jane.send('POST', '/v3/tokens', {})
    assert.equal((await started.admin.send('PATCH', `/v3/users/${name}`, { disabled: true })).status, 200)
    assert.equal((await jane.send('GET', '/v3/me')).status, 401)
    assert.equal((await sendWith(started, body['token'], { path: '/v3/me' })).status, 401)
    assert.ok(started.objects.list(TokenKind).every(({ spec }) => spec.user !== name))
    await started.admin.send('PATCH', `/v3/users/${name}`, { disabled: false })
    assert.equal((await jane.send('GET', '/v3/me')).status, 401)
    assert.equal((await jane.logIn('jane', GOOD)).status, 200)
  })

  it('refuses administrators who delete or disable themselves, or reset their own password', async () => {
    await using started = await start()
    const { body } = await started.admin.send('GET', '/v3/me')
    const path = `/v3/users/${String((body['user'] as Record<string, unknown>)['name'])}`
    assert.equal((await started.admin.send('DELETE', path)).status, 403)
    assert.equal((await started.admin.send('PATCH', path, { disabled: true })).status, 403)
    assert.equal((await started.admin.send('PATCH', path, { password: OTHER })).status, 403)
    assert.equal((await started.admin.send('PATCH', path, { displayName: 'Root' })).status, 200)
  })
})

describe('routes for people', () => {
  it('require credentials except below /v3-public and on the page /first-login', async () => {
    await using started = await startPeople()
    for (const { path, access, allowsInitialPassword } of started.people.routes) {
      const isPublic = path.startsWith('/v3-public/') || path === '/first-login'
      assert.equal(access, isPublic ? 'anyone' : 'person', path)
      assert.equal(allowsInitialPassword === true, /^\/v3\/(me|me\/password|logout)$/.test(path), path)
    }
  })
})
