/** Tests the routes of the web console at the management server. */
import assert from 'node:assert/strict'
import { after, before, describe, it } from 'node:test'

import { realClock } from '#lib/clock.ts'
import { createHttpClient } from '#lib/http/client.ts'
import { AuthProviders } from '#management/kinds/auth-provider.ts'
import { Users } from '#management/kinds/user.ts'

import { MAIN } from '../console/bed.ts'
import { type Answer, type ManagementBed, PASSWORD, startManagementBed } from './bed.ts'

describe('web console of the management server', () => {
  let bed: ManagementBed
  before(async () => {
    bed = await startManagementBed()
  })
  after(() => bed[Symbol.asyncDispose]())

  async function logIn(username: string): Promise<Readonly<Record<string, string>>> {
    const login = await bed.request('POST', '/v3-public/login', { body: { username, password: PASSWORD } })
    const [cookie = ''] = String([login.headers['set-cookie']].flat()[0]).split(';')
    return { cookie }
  }

  const session = (headers: Readonly<Record<string, string>> = {}): Promise<Answer> =>
    bed.request('GET', '/ui/session', { headers })

  it('shows the ways to log in to people without a session', async () => {
    const { status, body, headers } = await session()
    assert.deepEqual([status, headers['cache-control']], [200, 'no-store'])
    const providers = [{ name: 'local', type: 'local', displayName: 'Local' }]
    assert.deepEqual(body, { mode: 'many-clusters', version: '0.0.0', user: null, providers })
    const spec = { type: 'oidc', displayName: 'Corp', issuer: 'https://idp.example', clientID: 'hk' } as const
    await bed.running.objects.create(AuthProviders, { metadata: { name: 'corp' }, spec })
    assert.deepEqual((await session()).body['providers'].at(-1), { name: 'corp', type: 'oidc', displayName: 'Corp' })
  })

  it('shows the user of the session', async () => {
    const { body } = await session(await logIn('admin'))
    assert.equal(body['providers'], undefined)
    const { name, ...user } = body['user']
    assert.match(name, /^u-/)
    assert.deepEqual(user, {
      username: 'admin',
      displayName: body['user'].displayName,
      isAdministrator: true,
      mustChangePassword: false,
      groups: [],
      rights: ['manage users', 'manage members', 'manage roles', 'add clusters', 'add clustertemplates'],
    })
  })

  it('shows users who must change their password first', async () => {
    const body = { username: 'new', password: PASSWORD }
    assert.equal((await bed.request('POST', '/v3/users', { token: bed.administrator, body })).status, 201)
    const { user } = (await session(await logIn('new'))).body as { user: Record<string, unknown> }
    assert.deepEqual(user['rights'], [])
    assert.deepEqual([user['username'], user['mustChangePassword'], user['isAdministrator']], ['new', true, false])
  })

  it('shows no user for credentials that are wrong, ended or of a disabled user', async () => {
    const { name } = await bed.createUser('leaving')
    const headers = await logIn('leaving')
    const gone = await logIn('admin')
    const own = { 'x-hk': '1', 'sec-fetch-site': 'same-origin' }
    assert.equal((await bed.request('POST', '/v3/logout', { headers: { ...gone, ...own } })).status, 204)
    assert.equal((await session(headers)).body['user'].username, 'leaving')
    await bed.running.objects.change(Users, name, (user) => ({ ...user, spec: { ...user.spec, disabled: true } }))
    const all = [headers, gone, { cookie: '__Host-hk=wrong' }, { authorization: 'Bearer wrong' }]
    for (const one of all) assert.equal((await session(one)).body['user'], null)
    assert.equal((await bed.request('POST', '/ui/session', {})).status, 405)
  })

  it('serves its page without credentials, from the root too', async () => {
    const root = await bed.request('GET', '/')
    assert.deepEqual([root.status, root.headers['location']], [302, '/ui/'])
    for (const path of ['/ui', '/ui/', '/ui/clusters/c-1/pods?x=1']) {
      const page = await bed.request('GET', path)
      if (path === '/ui') assert.equal(page.status, 302)
      else assert.match(page.text, /main-1\.js/)
    }
    const page = await bed.request('GET', '/ui/')
    assert.match(
      String(page.headers['content-security-policy']),
      /script-src 'self'; style-src 'self' 'nonce-[\w-]{22}'/,
    )
  })

  it('serves files over HTTP/2', async () => {
    const http = createHttpClient({ clock: realClock, tls: { ca: bed.ca } })
    try {
      const answer = await http.request({ url: bed.url, path: '/ui/assets/main-1.js' })
      assert.deepEqual([answer.version, answer.status, await answer.text(1 << 20)], ['2', 200, MAIN])
      const head = await http.request({ method: 'HEAD', url: bed.url, path: '/ui/' })
      assert.deepEqual([head.status, await head.text(1 << 20)], [200, ''])
    } finally {
      http.close()
    }
  })

  it('serves no other files and methods', async () => {
    const rows: readonly (readonly [method: string, path: string, status: number])[] = [
      ['GET', '/ui/assets/unknown.js', 404],
      ['GET', '/ui/assets/secret.sh', 404],
      ['GET', '/ui/assets/../index.html', 400],
      ['GET', '/ui/assets/%2e%2e/index.html', 400],
      ['GET', '/ui/assets//main-1.js', 400],
      ['POST', '/ui/', 405],
      ['DELETE', '/ui/assets/main-1.js', 405],
      ['PUT', '/', 405],
      ['GET', '/uix', 404],
    ]
    const found: unknown[] = []
    for (const [method, path] of rows) found.push([method, path, (await bed.request(method, path)).status])
    assert.deepEqual(found, rows)
  })
})
