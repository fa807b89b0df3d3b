/** Tests who may do what at the console of one cluster, over real connections. */
import assert from 'node:assert/strict'
import { describe, it } from 'node:test'

import { eventually } from '#kits/lib/eventually.ts'
import { createVirtualClock, realClock } from '#lib/clock.ts'

import { logInTo, ownPage, sendBytes, sendTo, startConsoleBed } from './bed.ts'

const NAMESPACES = '/k8s/clusters/local/api/v1/namespaces'

function upgradeOf(port: number, headers: Readonly<Record<string, string>>, path = NAMESPACES): string {
  const lines = Object.entries({
    host: `127.0.0.1:${port}`,
    connection: 'Upgrade',
    upgrade: 'websocket',
    'sec-websocket-version': '13',
    'sec-websocket-key': 'AAAAAAAAAAAAAAAAAAAAAA==',
    ...headers,
  })
  return `GET ${path} HTTP/1.1\r\n${lines.map(([name, value]) => `${name}: ${value}\r\n`).join('')}\r\n`
}

/** The status of a handshake. */
async function upgradeStatus(port: number, headers: Readonly<Record<string, string>>, path?: string): Promise<number> {
  const answer = await sendBytes(port, upgradeOf(port, headers, path), '\r\n\r\n')
  return Number(/^HTTP\/1\.1 (\d+)/.exec(answer)?.[1])
}

describe('log-in to the console of one cluster', () => {
  it('works once by a link, and makes a new link', async () => {
    await using bed = await startConsoleBed()
    const [link = ''] = bed.links
    assert.match(link, /^http:\/\/127\.0\.0\.1:\d+\/ui\/login\?code=[\w-]{43}$/)
    const { pathname, search } = new URL(link)
    const first = await bed.send('GET', pathname + search)
    assert.deepEqual([first.status, first.headers['location']], [302, '/ui/'])
    assert.match(
      String(first.headers['set-cookie']),
      new RegExp(`^hk-console-${bed.port}=[\\w-]{43}; Path=/; Max-Age=57600; HttpOnly; SameSite=Strict$`),
    )
    const second = await bed.send('GET', pathname + search)
    assert.deepEqual([second.status, second.headers['set-cookie']], [401, undefined])
    assert.match(second.text, /hyperkube status/)
    assert.equal(bed.links.length, 2)
    assert.ok((await logInTo(bed.port, bed.links[1] ?? '')).length > 40)
  })

  it('leads a browser that is logged in to the page, also by a used link', async () => {
    await using bed = await startConsoleBed()
    const [link = ''] = bed.links
    const cookie = await logInTo(bed.port, link)
    const { pathname, search } = new URL(link)
    const again = await bed.send('GET', pathname + search, { headers: { cookie } })
    assert.deepEqual([again.status, again.headers['location'], again.headers['set-cookie']], [302, '/ui/', undefined])
  })

  it('needs a user who opens the link: the code stays valid otherwise', async () => {
    await using bed = await startConsoleBed()
    const { pathname, search } = new URL(bed.links[0] ?? '')
    const target = pathname + search
    const rows: readonly (readonly [what: string, status: number, method: string, headers: Record<string, string>])[] =
      [
        ['HEAD', 405, 'HEAD', {}],
        ['POST', 405, 'POST', ownPage(bed.port)],
        ['a prefetch', 503, 'GET', { 'sec-purpose': 'prefetch;prerender' }],
        ['an image of another site', 403, 'GET', { 'sec-fetch-site': 'cross-site', 'sec-fetch-dest': 'image' }],
        ['a frame of another port', 403, 'GET', { 'sec-fetch-site': 'same-site', 'sec-fetch-dest': 'iframe' }],
        ['a foreign Host', 421, 'GET', { host: `evil.example:${bed.port}` }],
      ]
    for (const [what, status, method, headers] of rows)
      assert.equal((await bed.send(method, target, { headers })).status, status, what)
    const click = { 'sec-fetch-site': 'cross-site', 'sec-fetch-dest': 'document' }
    assert.equal((await bed.send('GET', target, { headers: click })).status, 302)
  })

  it('gives one of two requests at the same time a session', async () => {
    await using bed = await startConsoleBed()
    const { pathname, search } = new URL(bed.links[0] ?? '')
    const both = await Promise.all([1, 2].map(() => bed.send('GET', pathname + search)))
    assert.deepEqual(
      both.map(({ status }) => status).toSorted((one, other) => one - other),
      [302, 401],
    )
  })

  it('refuses wrong codes, and many of them with 429', async () => {
    await using bed = await startConsoleBed()
    const statuses: number[] = []
    for (let n = 0; n < 25; n++) statuses.push((await bed.send('GET', `/ui/login?code=guess-${n}`)).status)
    assert.deepEqual(new Set(statuses), new Set([401, 429]))
    assert.equal((await bed.send('GET', '/ui/login')).status, 429)
    assert.equal((await bed.send('GET', '/ui/login')).headers['retry-after'], '10')
  })

  it('ends with POST /ui/logout of the page', async () => {
    await using bed = await startConsoleBed()
    const cookie = await bed.logIn()
    const logOut = async (headers: Record<string, string>): Promise<number> =>
      (await bed.send('POST', '/ui/logout', { headers })).status
    assert.equal(await logOut(ownPage(bed.port)), 401)
    assert.equal(await logOut({ cookie }), 403)
    assert.equal(await logOut({ ...ownPage(bed.port), cookie, 'sec-fetch-site': 'same-site' }), 403)
    assert.equal((await bed.send('GET', '/ui/logout', { headers: { cookie } })).status, 405)
    assert.equal((await bed.send('GET', NAMESPACES, { headers: { cookie } })).status, 200)
    const done = await bed.send('POST', '/ui/logout', { headers: { ...ownPage(bed.port), cookie } })
    assert.equal(done.status, 204)
    assert.match(String(done.headers['set-cookie']), /=; Path=\/; Max-Age=0;/)
    assert.equal((await bed.send('GET', NAMESPACES, { headers: { cookie } })).status, 401)
  })
})

describe('GET /ui/session of one cluster', () => {
  it('names the cluster, and the user after log-in', async () => {
    await using bed = await startConsoleBed()
    const nobody = JSON.parse((await bed.send('GET', '/ui/session')).text) as Record<string, unknown>
    const clusters = [{ name: 'local', displayName: 'A cluster' }]
    assert.deepEqual(nobody, { mode: 'one-cluster', version: '1.2.3', user: null, clusters })
    const cookie = await bed.logIn()
    const answer = await bed.send('GET', '/ui/session', { headers: { cookie } })
    assert.equal(answer.headers['cache-control'], 'no-store')
    const { user } = JSON.parse(answer.text) as { user: Record<string, unknown> }
    assert.deepEqual(Object.keys(user).toSorted(), [
      'displayName',
      'groups',
      'isAdministrator',
      'mustChangePassword',
      'name',
      'username',
    ])
    assert.equal((await bed.send('POST', '/ui/session', { headers: { cookie } })).status, 405)
  })
})

describe('API of the cluster through the console of one cluster', () => {
  it('accepts requests of its page only', async () => {
    await using bed = await startConsoleBed()
    const { port } = bed
    const cookie = await bed.logIn()
    const own = { ...ownPage(port), cookie }
    const other = `hk-console-${port}=${'A'.repeat(43)}`
    const rows: readonly (readonly [what: string, status: number, method: string, headers: Record<string, string>])[] =
      [
        ['no cookie', 401, 'GET', {}],
        ['a wrong cookie', 401, 'GET', { cookie: other }],
        ['an empty cookie', 401, 'GET', { cookie: `hk-console-${port}=` }],
        ['the cookie of another port', 401, 'GET', { cookie: cookie.replace(String(port), '1') }],
        ['a token', 401, 'GET', { authorization: `Bearer ${cookie.split('=')[1]}` }],
        ['the cookie', 200, 'GET', { cookie }],
        ['the cookie beside a wrong one', 200, 'GET', { cookie: `${other}; ${cookie}` }],
        ['a read of the page', 200, 'GET', own],
        ['a read from the address bar', 200, 'GET', { cookie, 'sec-fetch-site': 'none', 'sec-fetch-dest': 'document' }],
        ['a read of a page of another port', 403, 'GET', { cookie, 'sec-fetch-site': 'same-site' }],
        ['a read of another site', 403, 'GET', { cookie, 'sec-fetch-site': 'cross-site' }],
        ['a read with a foreign Origin', 403, 'GET', { cookie, origin: 'http://127.0.0.1:3000' }],
        ['a script', 403, 'GET', { ...own, 'sec-fetch-dest': 'script' }],
        ['a frame', 403, 'GET', { ...own, 'sec-fetch-dest': 'iframe' }],
        ['a write of the page', 200, 'POST', own],
        ['a write without X-HK', 403, 'POST', { ...own, 'x-hk': '' }],
        ['a write of a page of another port', 403, 'POST', { ...own, 'sec-fetch-site': 'same-site' }],
        [
          'a write with the Origin of another port',
          403,
          'PUT',
          { cookie, 'x-hk': '1', origin: 'http://127.0.0.1:3000' },
        ],
        ['a write with the Origin null', 403, 'PATCH', { cookie, 'x-hk': '1', origin: 'null' }],
        ['a write over https', 403, 'DELETE', { cookie, 'x-hk': '1', origin: `https://127.0.0.1:${port}` }],
        ['a write without Origin and Sec-Fetch-Site', 403, 'DELETE', { cookie, 'x-hk': '1' }],
        ['a foreign Host', 421, 'GET', { ...own, host: `evil.example:${port}` }],
        ['the Host of another port', 421, 'GET', { ...own, host: '127.0.0.1:1' }],
        ['the Host without a port', 421, 'GET', { ...own, host: '127.0.0.1' }],
        [
          'a write with the Host localhost',
          200,
          'POST',
          { ...own, host: `localhost:${port}`, origin: `http://localhost:${port}` },
        ],
        ['TRACE', 403, 'TRACE', own],
      ]
    const found: unknown[] = []
    for (const [what, , method, headers] of rows) {
      const before = bed.api.requests.length
      const { status } = await bed.send(method, NAMESPACES, { headers })
      found.push([what, status, bed.api.requests.length > before])
    }
    assert.deepEqual(
      found,
      rows.map(([what, status]) => [what, status === 403 && what === 'TRACE' ? 405 : status, status === 200]),
    )
  })

  it('accepts WebSockets and SPDY of its own origin only', async () => {
    await using bed = await startConsoleBed()
    const cookie = await bed.logIn()
    const origin = `http://127.0.0.1:${bed.port}`
    const rows: readonly (readonly [what: string, status: number, headers: Record<string, string>, path?: string])[] = [
      ['its origin', 101, { cookie, origin }],
      [
        'its origin and Sec-Fetch-Site',
        101,
        { cookie, origin, 'sec-fetch-site': 'same-origin', 'sec-fetch-dest': 'websocket' },
      ],
      ['SPDY', 101, { cookie, origin, upgrade: 'SPDY/3.1' }],
      ['no cookie', 401, { origin }],
      ['no Origin', 403, { cookie }],
      ['X-HK instead of Origin', 403, { cookie, 'x-hk': '1' }],
      ['the origin of another port', 403, { cookie, origin: 'http://127.0.0.1:3000' }],
      ['the origin null', 403, { cookie, origin: 'null' }],
      ['another scheme', 403, { cookie, origin: origin.replace('http', 'https') }],
      ['another name of this machine', 403, { cookie, origin: `http://localhost:${bed.port}` }],
      ['a page of the same site', 403, { cookie, origin, 'sec-fetch-site': 'same-site' }],
      ['a foreign Host', 421, { cookie, origin, host: 'evil.example' }],
      ['a path of the page', 400, { cookie, origin }, '/ui/'],
      ['the session', 400, { cookie, origin }, '/ui/session'],
    ]
    const found: unknown[] = []
    for (const [what, , headers, path] of rows) found.push([what, await upgradeStatus(bed.port, headers, path)])
    assert.deepEqual(
      found,
      rows.map(([what, status]) => [what, status]),
    )
  })

  it('refuses paths that can be read in more than one way, and other clusters', async () => {
    await using bed = await startConsoleBed()
    const headers = { ...ownPage(bed.port), cookie: await bed.logIn() }
    const rows: readonly (readonly [path: string, status: number])[] = [
      ['/k8s/clusters/local/../other', 400],
      ['/k8s/clusters/local/api/%2e%2e/x', 400],
      ['/k8s/clusters/local/api%2f..%2fx', 400],
      ['/k8s/clusters/local//api', 400],
      ['/k8s/clusters/local/api%2f%2fx', 400],
      ['/k8s/clusters/local/api%5c..%5cx', 400],
      ['/k8s/clusters/local/%252e%252e/x', 400],
      ['/k8s/clusters/%6cocal/api', 404],
      ['/k8s/clusters/localx/api', 404],
      ['/k8s/clusters/other/api', 404],
      ['/k8s/clusters/local', 404],
      ['/k8s', 404],
      ['/api/v1/pods', 404],
    ]
    const found: unknown[] = []
    for (const [path] of rows) found.push([path, (await bed.send('GET', path, { headers })).status])
    assert.deepEqual(found, rows)
    assert.equal(bed.api.requests.length, 0)
  })

  it('gets no cookies, no credentials and no claimed identity', async () => {
    await using bed = await startConsoleBed({ base: '/base/path' })
    const cookie = await bed.logIn()
    const claims = {
      authorization: 'Bearer secret-1',
      'proxy-authorization': 'Basic secret-2',
      'impersonate-user': 'secret-3',
      'impersonate-group': 'secret-4',
      'impersonate-extra-a': 'secret-5',
      'x-remote-user': 'secret-6',
      'x-remote-group': 'secret-7',
      impersonate_user: 'secret-8',
      'x-forwarded-for': 'secret-9',
      'x-forwarded-user': 'secret-10',
      forwarded: 'for=secret-11',
      'x-real-ip': 'secret-12',
      referer: 'http://secret-13/',
      'sec-websocket-protocol': 'base64url.bearer.authorization.k8s.io.c2VjcmV0LTE0',
      connection: 'close, x-named',
      'x-named': 'secret-15',
    }
    const headers = { ...ownPage(bed.port), ...claims, cookie }
    const answer = await bed.send('POST', `${NAMESPACES}?x=%2F`, { headers, body: '{"a":1}' })
    assert.equal(answer.status, 200)
    const echo = JSON.parse(answer.text) as { url: string; body: string; rawHeaders: string[] }
    assert.deepEqual([echo.url, echo.body], ['/base/path/api/v1/namespaces?x=%2F', '{"a":1}'])
    assert.doesNotMatch(answer.text, /secret|c2VjcmV0|hk-console/i)
    assert.ok(!echo.rawHeaders.some((name) => /^(?:cookie|x-hk|sec-fetch-.*)$/i.test(name)))
    const origin = `http://127.0.0.1:${bed.port}`
    await upgradeStatus(bed.port, { ...claims, cookie, origin, connection: 'Upgrade, x-named' })
    const upgraded = JSON.stringify(bed.api.requests.at(-1)?.rawHeaders)
    assert.doesNotMatch(upgraded, /secret|c2VjcmV0|hk-console/i)
  })

  it('cannot set cookies or run scripts in the page, and redirects within the cluster only', async () => {
    await using bed = await startConsoleBed({ base: '/base' })
    const headers = { ...ownPage(bed.port), cookie: await bed.logIn() }
    const locations: (string | undefined)[] = []
    for (const location of ['/base/api/v1/x?y=1', '/other/x', 'http://evil.example/', '//evil.example/', 'pods']) {
      bed.api.answer = (_request, response) => {
        const set = { location, 'set-cookie': 'a=1', 'access-control-allow-origin': '*', 'clear-site-data': '"*"' }
        response.writeHead(302, { ...set, 'content-type': 'text/html', refresh: '0;url=/x' }).end('<script>')
      }
      const answer = await bed.send('GET', NAMESPACES, { headers })
      locations.push(answer.headers['location'] as string | undefined)
      for (const name of ['set-cookie', 'access-control-allow-origin', 'clear-site-data', 'refresh'])
        assert.equal(answer.headers[name], undefined, name)
      assert.equal(answer.headers['content-security-policy'], "default-src 'none'; sandbox")
      assert.equal(answer.headers['x-content-type-options'], 'nosniff')
    }
    const inside = '/k8s/clusters/local/api/v1'
    assert.deepEqual(locations, [`${inside}/x?y=1`, undefined, undefined, undefined, `${inside}/pods`])
    const handshake = await sendBytes(bed.port, upgradeOf(bed.port, { ...headers, connection: 'Upgrade' }), '\r\n\r\n')
    assert.match(handshake, /^HTTP\/1\.1 101 /)
    assert.doesNotMatch(handshake, /set-cookie/i)
  })

  it('is 503 with the reason when the API server does not answer', async () => {
    const target = {
      client: {
        request: () => Promise.reject(new Error('nobody listens')),
        upgrade: () => Promise.reject(new Error('nobody listens')),
      },
      server: 'https://127.0.0.1:1',
    }
    await using bed = await startConsoleBed({ target })
    const headers = { ...ownPage(bed.port), cookie: await bed.logIn() }
    const answer = await bed.send('GET', NAMESPACES, { headers })
    assert.equal(answer.status, 503)
    assert.match(answer.text, /the API server cannot be reached: nobody listens/)
    assert.equal(await upgradeStatus(bed.port, { ...headers, connection: 'Upgrade' }), 503)
  })
})

describe('session of the console of one cluster', () => {
  it('ends open watches and WebSockets at log-out', async () => {
    await using bed = await startConsoleBed()
    const headers = { ...ownPage(bed.port), cookie: await bed.logIn() }
    bed.api.answer = (_request, response) => void response.writeHead(200).write('first\n')
    const watch = bed.send('GET', `${NAMESPACES}?watch=1`, { headers }).then(
      () => 'complete',
      () => 'broken off',
    )
    const socket = sendBytes(bed.port, upgradeOf(bed.port, { ...headers, connection: 'Upgrade' }))
    await eventually(
      () => bed.api.requests.length,
      (count) => count === 2,
    )
    assert.equal((await bed.send('POST', '/ui/logout', { headers })).status, 204)
    assert.equal(await watch, 'broken off')
    assert.match(await socket, /^HTTP\/1\.1 101 /)
  })

  it('expires an hour after its last request', async () => {
    // Time stands still but for what the test advances.
    const virtual = createVirtualClock()
    const clock = { ...realClock, now: () => virtual.now() }
    await using bed = await startConsoleBed({ clock })
    const headers = { cookie: await bed.logIn() }
    await virtual.advance(3_599_000)
    assert.equal((await bed.send('GET', NAMESPACES, { headers })).status, 200)
    await virtual.advance(3_600_000)
    assert.equal((await bed.send('GET', NAMESPACES, { headers })).status, 401)
    assert.equal((JSON.parse((await bed.send('GET', '/ui/session', { headers })).text) as { user: unknown }).user, null)
  })
})

describe('port of the console of one cluster', () => {
  it('is another one if the wanted one is in use', async () => {
    await using first = await startConsoleBed()
    await using second = await startConsoleBed({ port: first.port })
    assert.notEqual(second.port, first.port)
    const cookie = await first.logIn()
    assert.equal((await sendTo(second.port, 'GET', NAMESPACES, { headers: { cookie } })).status, 401)
  })

  it('closes while a client sends nothing, and while a response is under way', async () => {
    const bed = await startConsoleBed()
    const headers = { cookie: await bed.logIn() }
    bed.api.answer = (_request, response) => void response.writeHead(200).write('first\n')
    const silent = sendBytes(bed.port, '').catch(() => '')
    const watch = bed.send('GET', `${NAMESPACES}?watch=1`, { headers }).catch(() => undefined)
    await eventually(
      () => bed.api.requests.length,
      (count) => count === 1,
    )
    await bed[Symbol.asyncDispose]()
    await Promise.all([silent, watch])
    await assert.rejects(sendTo(bed.port, 'GET', '/ui/'), /ECONNREFUSED/)
  })
})
