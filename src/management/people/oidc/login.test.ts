import assert from 'node:assert/strict'
import { describe, it } from 'node:test'

import { Secrets } from '#apis/core/v1.ts'
import { sendTo, type TestAnswer, TestBrowser } from '#kits/management/exchange.ts'
import { FakeProvider, forgedToken, signedWithPublicKey } from '#kits/management/fake-provider.ts'
import { startPeople, type TestPeople } from '#kits/management/people.ts'
import { type Claims, createSigner } from '#lib/jwt/token.ts'
import { createKey } from '#lib/x509/key.ts'

import { AuthProviders, type OidcProviderSpec } from '../../kinds/auth-provider.ts'
import { Users as UserKind } from '../../kinds/user.ts'
import { MANAGEMENT_NAMESPACE } from '../../objects.ts'

const ISSUER = 'https://idp.example.com'
const CLIENT = 'hk'
const SECRET = 'client-secret'

interface Started extends TestPeople {
  readonly provider: FakeProvider
  readonly browser: TestBrowser
}

async function start(spec: Partial<OidcProviderSpec> = {}): Promise<Started> {
  let provider: FakeProvider | undefined
  const started = await startPeople(() => (provider as FakeProvider).client)
  const { objects, clock } = started
  provider = new FakeProvider({ clock, issuer: ISSUER, clientId: CLIENT, clientSecret: SECRET })
  const data = { clientSecret: Buffer.from(SECRET).toString('base64') }
  await objects.client.create(Secrets, { metadata: { name: 'idp', namespace: MANAGEMENT_NAMESPACE }, data })
  const usual = { type: 'oidc', issuer: ISSUER, clientID: CLIENT, clientSecretName: 'idp', createsUsers: true } as const
  await objects.create(AuthProviders, { metadata: { name: 'idp' }, spec: { ...usual, displayName: 'Work', ...spec } })
  return { ...started, provider, browser: new TestBrowser(started.people) }
}

async function begin({ browser }: Started, returnTo = '/clusters'): Promise<string> {
  const answer = await browser.send('GET', `/v3-public/oidc/idp/login?returnTo=${encodeURIComponent(returnTo)}`)
  assert.equal(answer.status, 303, answer.text)
  return answer.values('Location')[0] ?? ''
}

function finish(browser: TestBrowser, query: URLSearchParams): Promise<TestAnswer> {
  return browser.send('GET', `/v3-public/oidc/idp/callback?${query.toString()}`)
}

async function logIn(started: Started, claims?: Claims): Promise<TestAnswer> {
  return finish(started.browser, started.provider.authorize(await begin(started), claims))
}

/** A log-in that must fail without a session. */
async function refused(started: Started, status = 401): Promise<void> {
  const answer = await logIn(started)
  assert.equal(answer.status, status, answer.text)
  assert.deepEqual(answer.values('Set-Cookie'), [])
  assert.equal((await started.browser.send('GET', '/v3/me')).status, 401)
  assert.equal(started.objects.list(UserKind).length, 1)
}

describe('OpenID log-in', () => {
  it('sends the browser to the provider with PKCE, state and nonce', async () => {
    await using started = await start()
    const answer = await started.browser.send('GET', '/v3-public/oidc/idp/login?returnTo=/a')
    const url = new URL(answer.values('Location')[0] ?? '')
    const { state, nonce, code_challenge: challenge, ...others } = Object.fromEntries(url.searchParams)
    for (const random of [state, nonce, challenge]) assert.match(random ?? '', /^[\w-]{43}$/)
    assert.equal(url.origin + url.pathname, `${ISSUER}/authorize`)
    assert.deepEqual(others, {
      response_type: 'code',
      client_id: CLIENT,
      redirect_uri: 'https://hk.example.com/v3-public/oidc/idp/callback',
      scope: 'openid profile email',
      code_challenge_method: 'S256',
    })
    const [cookie = ''] = answer.values('Set-Cookie')
    assert.match(cookie, /^__Host-hk-login=[\w-]+; Path=\/; Max-Age=600; Secure; HttpOnly; SameSite=Lax$/)
    assert.ok(!cookie.includes(state ?? ''))
  })

  it('creates the user with its groups, starts a session and goes on to the page', async () => {
    await using started = await start()
    const claims = { sub: 'jane-1', preferred_username: 'Jane Doe!', name: 'Jane', groups: ['devs', 'ops', 7] }
    const answer = await logIn(started, claims)
    assert.equal(answer.status, 200, answer.text)
    assert.match(answer.text, /<meta http-equiv="refresh" content="0;url=\/clusters">/)
    const { body } = await started.browser.send('GET', '/v3/me')
    assert.deepEqual(body['groups'], ['idp:devs', 'idp:ops'])
    const user = body['user'] as Record<string, unknown>
    assert.deepEqual(
      [user['username'], user['displayName'], user['identities']],
      ['jane-doe', 'Jane', [{ provider: 'idp', subject: 'jane-1' }]],
    )
    assert.ok(!started.browser.cookie.includes('login'))
  })

  it('finds the user by subject even if the provider changed its username, and replaces its groups', async () => {
    await using started = await start()
    await logIn(started, { sub: 'jane-1', preferred_username: 'jane', groups: 'devs' })
    await logIn(started, { sub: 'jane-1', preferred_username: 'admin', groups: ['ops'] })
    assert.deepEqual(
      started.objects.list(UserKind).map(({ spec, status }) => [spec.username, status?.groups]),
      [
        ['admin', undefined],
        ['jane', ['idp:ops']],
      ],
    )
  })

  it('gives a user whose name is taken a suffix and never that account', async () => {
    await using started = await start()
    await logIn(started, { sub: '1', preferred_username: 'admin' })
    await logIn(started, { sub: '2', preferred_username: 'ADMIN' })
    await logIn(started, { sub: '3' })
    assert.deepEqual(
      started.objects.list(UserKind).map(({ spec }) => spec.username),
      ['admin', 'admin-2', 'admin-3', 'user'],
    )
    const { body } = await started.browser.send('GET', '/v3/me')
    assert.equal(body['isAdministrator'], false)
  })

  it('creates one user for two log-ins at the same time', async () => {
    await using started = await start()
    const browsers = [new TestBrowser(started.people), new TestBrowser(started.people)]
    const queries: URLSearchParams[] = []
    for (const browser of browsers) queries.push(started.provider.authorize(await begin({ ...started, browser })))
    const answers = await Promise.all(
      browsers.map((browser, n) => finish(browser, queries[n] ?? new URLSearchParams())),
    )
    assert.deepEqual(
      answers.map(({ status }) => status),
      [200, 200],
    )
    assert.equal(started.objects.list(UserKind).length, 2)
  })

  it('refuses unknown identities if the provider creates no users, and disabled users', async () => {
    await using started = await start({ createsUsers: false })
    await refused(started, 403)
    const spec = { username: 'jane', disabled: true, identities: [{ provider: 'idp', subject: 'jane-1' }] }
    await started.objects.create(UserKind, { metadata: { name: 'u-jane' }, spec })
    const answer = await logIn(started)
    assert.deepEqual([answer.status, answer.values('Set-Cookie')], [403, []])
  })

  it('reads the claims that the provider is configured for', async () => {
    await using started = await start({ claims: { username: 'email', groups: 'roles' }, scopes: ['email'] })
    assert.equal(new URL(await begin(started)).searchParams.get('scope'), 'openid email')
    await logIn(started, { sub: '1', email: 'jane@example.com', groups: ['no'], roles: ['yes'] })
    const user = started.objects.list(UserKind).at(-1)
    assert.deepEqual([user?.spec.username, user?.status?.groups], ['jane@example.com', ['idp:yes']])
  })

  it('fetches the discovery document and the keys once', async () => {
    await using started = await start()
    for (let n = 0; n < 3; n++) await logIn(started)
    assert.deepEqual(
      [...new Set(started.provider.requests)].map(
        (line) => `${line} ${started.provider.requests.filter((other) => other === line).length}`,
      ),
      ['GET /.well-known/openid-configuration 1', 'POST /token 3', 'GET /keys 1'],
    )
  })

  it('uses changed settings at once, and reads everything again after an hour', async () => {
    await using started = await start()
    await logIn(started)
    await started.objects.change(AuthProviders, 'idp', (idp) => ({ ...idp, spec: { ...idp.spec, scopes: ['groups'] } }))
    assert.equal(new URL(await begin(started)).searchParams.get('scope'), 'openid groups')
    await started.clock.advance(3_600_000)
    assert.equal((await logIn(started)).status, 200)
    const discoveries = started.provider.requests.filter((line) => line.includes('openid-configuration'))
    assert.equal(discoveries.length, 3)
  })

  it('is unusable without its client secret, and usable when that is there', async () => {
    await using started = await start({ clientSecretName: 'missing' })
    assert.equal((await started.browser.send('GET', '/v3-public/oidc/idp/login')).status, 503)
    const data = { clientSecret: Buffer.from(SECRET).toString('base64') }
    await started.objects.client.create(Secrets, {
      metadata: { name: 'missing', namespace: MANAGEMENT_NAMESPACE },
      data,
    })
    assert.equal((await logIn(started)).status, 200)
  })

  it('lists names and display names only', async () => {
    await using started = await start()
    const { body } = await sendTo(started.people, { path: '/v3-public/providers' })
    assert.deepEqual(body['items'], [
      { name: 'local', type: 'local', displayName: 'Local' },
      { name: 'idp', type: 'oidc', displayName: 'Work' },
    ])
  })

  it('does not know providers that are disabled', async () => {
    await using started = await start({ disabled: true })
    assert.equal((await started.browser.send('GET', '/v3-public/oidc/idp/login')).status, 404)
    assert.equal((await started.browser.send('GET', '/v3-public/oidc/other/login')).status, 404)
  })
})

describe('OpenID log-in under attack', () => {
  const otherKey = createKey('ecdsa-p256')
  const p384 = createKey('ecdsa-p384')
  type Attack = (provider: FakeProvider) => void
  const change =
    (changed: Claims): Attack =>
    (provider) => {
      provider.claims = (claims) => ({ ...claims, ...changed })
    }
  const now = Date.UTC(2026, 0, 1) / 1000
  const attacks: readonly (readonly [string, Attack])[] = [
    ['another nonce', change({ nonce: 'x'.repeat(43) })],
    ['no nonce', change({ nonce: undefined })],
    ['a list as nonce', change({ nonce: ['x'] })],
    ['another audience', change({ aud: 'other' })],
    ['no audience', change({ aud: undefined })],
    ['two audiences without azp', change({ aud: [CLIENT, 'other'] })],
    ['two audiences and another azp', change({ aud: [CLIENT, 'other'], azp: 'other' })],
    ['another azp', change({ azp: 'other' })],
    ['another issuer', change({ iss: 'https://evil.example' })],
    ['an additional slash after the issuer', change({ iss: `${ISSUER}/` })],
    ['an exp claim in the past', change({ exp: now - 61 })],
    ['no exp claim', change({ exp: undefined })],
    ['no iat claim', change({ iat: undefined })],
    ['an iat claim in the future', change({ iat: now + 61 })],
    ['the hash of another access token', change({ at_hash: 'AAAAAAAAAAAAAAAAAAAAAA' })],
    ['no subject', change({ sub: undefined })],
    ['an empty subject', change({ sub: '' })],
    ['a number as subject', change({ sub: 7 })],
    ['a very long subject', change({ sub: 'x'.repeat(254) })],
    ['the algorithm none', (provider) => (provider.sign = (claims) => forgedToken({ alg: 'none' }, claims, () => ''))],
    [
      'the algorithm none and a signature',
      (provider) => (provider.sign = (claims) => forgedToken({ alg: 'none' }, claims, () => 'eA')),
    ],
    [
      'an HS256 signature by the public key',
      (provider) => (provider.sign = (claims) => signedWithPublicKey(provider.key, claims)),
    ],
    ['a signature of another key', (provider) => (provider.sign = (claims) => createSigner(otherKey).sign(claims))],
    ['an algorithm that is not accepted', (provider) => (provider.sign = (claims) => createSigner(p384).sign(claims))],
    [
      'no signature',
      (provider) =>
        (provider.sign = (claims) =>
          createSigner(provider.key)
            .sign(claims)
            .replace(/\.[^.]*$/, '.')),
    ],
    ['an invalid format', (provider) => (provider.sign = () => 'token')],
  ]
  for (const [what, attack] of attacks) {
    it(`refuses an ID token with ${what}`, async () => {
      await using started = await start()
      attack(started.provider)
      await refused(started)
    })
  }

  it('accepts an ID token for two audiences whose azp is this client, and clocks that differ by a minute', async () => {
    await using started = await start()
    change({ aud: ['other', CLIENT], azp: CLIENT, iat: now + 59 })(started.provider)
    assert.equal((await logIn(started)).status, 200)
  })

  const broken: readonly (readonly [string, Attack])[] = [
    [
      'names another issuer',
      (provider) => (provider.document = (found) => ({ ...found, issuer: 'https://evil.example' })),
    ],
    ['names no issuer', (provider) => (provider.document = (found) => ({ ...found, issuer: undefined }))],
    [
      'names an endpoint with scheme http',
      (provider) => (provider.document = (found) => ({ ...found, token_endpoint: 'http://idp.example.com/token' })),
    ],
    [
      'names an endpoint with scheme javascript',
      (provider) => (provider.document = (found) => ({ ...found, authorization_endpoint: 'javascript:alert(1)' })),
    ],
    ['has 2 MiB', (provider) => (provider.document = (found) => ({ ...found, padding: 'x'.repeat(2 << 20) }))],
    ['is null', (provider) => (provider.document = () => null)],
  ]
  for (const [what, attack] of broken) {
    it(`responds with 503 if the discovery document ${what}`, async () => {
      await using started = await start()
      attack(started.provider)
      const answer = await started.browser.send('GET', '/v3-public/oidc/idp/login')
      assert.deepEqual([answer.status, answer.values('Set-Cookie')], [503, []])
    })
  }

  it('fails for a token response of 2 MiB, and for one without an ID token', async () => {
    await using started = await start()
    started.provider.tokens = (answer) => ({ ...answer, padding: 'x'.repeat(2 << 20) })
    await refused(started, 503)
    started.provider.tokens = () => ({ access_token: 'x' })
    await refused(started, 503)
  })

  it('is refused: a callback without cookie, or with that of another browser', async () => {
    await using started = await start()
    const query = started.provider.authorize(await begin(started))
    const victim = new TestBrowser(started.people)
    assert.equal((await finish(victim, query)).status, 401)
    await begin({ ...started, browser: victim })
    assert.equal((await finish(victim, query)).status, 401)
    assert.ok(!started.provider.requests.includes('POST /token'))
    assert.equal((await finish(started.browser, query)).status, 200)
  })

  it('is refused: a changed, repeated or planted cookie', async () => {
    await using started = await start()
    const query = started.provider.authorize(await begin(started))
    const good = started.browser.cookie.replace('__Host-hk-login=', '')
    const changed = good.slice(0, 30) + (good[30] === 'A' ? 'B' : 'A') + good.slice(31)
    for (const value of ['x', '', changed, good.slice(0, -4), `${good}; __Host-hk-login=${good}`, 'A'.repeat(5000)]) {
      const browser = new TestBrowser(started.people)
      browser.set('__Host-hk-login', value)
      assert.equal((await finish(browser, query)).status, 401)
    }
    assert.equal((await finish(started.browser, query)).status, 200)
  })

  it('is refused: a state that was used before', async () => {
    await using started = await start()
    const location = await begin(started)
    const { cookie } = started.browser
    assert.equal((await finish(started.browser, started.provider.authorize(location))).status, 200)
    const thief = new TestBrowser(started.people)
    thief.set('__Host-hk-login', cookie.replace('__Host-hk-login=', ''))
    assert.equal((await finish(thief, started.provider.authorize(location))).status, 401)
  })

  it('is refused: another state, several states, no code, an error, another issuer', async () => {
    await using started = await start()
    const edits: readonly ((query: URLSearchParams) => void)[] = [
      (query) => query.set('state', 'x'.repeat(43)),
      (query) => query.delete('state'),
      (query) => query.append('state', query.get('state') ?? ''),
      (query) => query.delete('code'),
      (query) => query.append('code', 'x'),
      (query) => query.set('error', 'access_denied'),
      (query) => query.set('iss', 'https://evil.example'),
    ]
    for (const edit of edits) {
      const query = started.provider.authorize(await begin(started))
      edit(query)
      assert.equal((await finish(started.browser, query)).status, 401, String(query))
    }
    assert.ok(!started.provider.requests.includes('POST /token'))
  })

  it('is refused: the callback of another provider', async () => {
    await using started = await start()
    const { spec } = started.objects.get(AuthProviders, 'idp') as { spec: OidcProviderSpec }
    await started.objects.create(AuthProviders, { metadata: { name: 'other' }, spec })
    const query = started.provider.authorize(await begin(started))
    assert.equal((await started.browser.send('GET', `/v3-public/oidc/other/callback?${query.toString()}`)).status, 401)
  })

  it('is refused: a log-in that took more than ten minutes', async () => {
    await using started = await start()
    const query = started.provider.authorize(await begin(started))
    await started.clock.advance(600_000)
    assert.equal((await finish(started.browser, query)).status, 401)
  })

  it('is refused: a return to another server', async () => {
    await using started = await start()
    for (const returnTo of ['//evil.example', 'https://evil.example', '/\\evil.example', 'javascript:alert(1)']) {
      const path = `/v3-public/oidc/idp/login?returnTo=${encodeURIComponent(returnTo)}`
      assert.equal((await started.browser.send('GET', path)).status, 400)
    }
    const quoted = await finish(started.browser, started.provider.authorize(await begin(started, `/a?"'&<b>`)))
    assert.ok(!/<b>|"'/.test(quoted.text), quoted.text)
  })

  it('does not keep a session that was planted in the browser', async () => {
    await using started = await start()
    await logIn(started, { sub: 'attacker' })
    const planted = started.browser.cookie
    await logIn(started)
    assert.notEqual(started.browser.cookie, planted)
    const answer = await sendTo(started.people, { path: '/v3/me', headers: { cookie: planted } })
    assert.equal(answer.status, 401)
  })
})
