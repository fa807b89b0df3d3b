import assert from 'node:assert/strict'
import { describe, it } from 'node:test'

import type { Secret } from '#apis/core/v1.ts'
import { createVirtualClock } from '#lib/clock.ts'
import type { Exchange } from '#lib/http/exchange.ts'
import { discoveryDocument, toKeySet, verifyingKey } from '#lib/jwt/key.ts'
import { createSigner } from '#lib/jwt/token.ts'
import { createKey } from '#lib/x509/key.ts'
import { StatusError } from '#meta/status.ts'
import { timeOf } from '#meta/time.ts'
import { compileClaimMapping, compileClaimRule, compileUserRule } from '#model/expressions/claims.ts'
import type { CompiledExpression } from '#model/expressions/compile.ts'

import { CredentialError, type TokenAuthenticator, type TokenIdentity } from '../authenticator.ts'
import type { LiveObjects } from '../live-objects.ts'
import { createBootstrapTokenAuthenticator } from './bootstrap-token.ts'
import { authenticatorsFor, createAuthenticator } from './index.ts'
import { createOidcAuthenticator, type OidcOptions } from './oidc.ts'
import { createStaticTokenAuthenticator } from './static-token.ts'
import { createWebhookTokenAuthenticator } from './webhook.ts'

const apiAudiences = ['api']
const joe = { name: 'joe', uid: '', groups: [], extra: {} }

describe('static tokens', () => {
  const csv = 'secret1,jane,7,"dev,ops"\r\nsecret2,joe,8\n\n,skipped,9\nsecret3,"a ""b""",10,solo\nsecret1,late,1\n'
  const authenticate = createStaticTokenAuthenticator(csv, { apiAudiences })
  const user = async (token: string) => (await authenticate(token, []))?.user

  it('parse the token file', async () => {
    assert.deepEqual(await user('secret1'), { name: 'late', uid: '1', groups: [], extra: {} })
    assert.deepEqual((await user('secret2'))?.name, 'joe')
    assert.deepEqual(await user('secret3'), { name: 'a "b"', uid: '10', groups: ['solo'], extra: {} })
    // As in Go's CSV reader: a quoted value may span lines, and a space is part of the value.
    const odd = createStaticTokenAuthenticator('t, jane,7,"dev,\nops"\n', { apiAudiences })
    assert.deepEqual((await odd('t', []))?.user, { name: ' jane', uid: '7', groups: ['dev', '\nops'], extra: {} })
    for (const token of ['', 'secret', 'secret11', '__proto__']) assert.equal(await user(token), undefined)
  })

  it("authenticate for the API server's audiences", async () => {
    assert.deepEqual((await authenticate('secret2', ['api', 'x']))?.audiences, ['api'])
    assert.equal(await authenticate('secret2', ['vault']), undefined)
  })

  it('are refused if the token file is malformed', () => {
    assert.throws(
      () => createStaticTokenAuthenticator('a,b', { apiAudiences }),
      /at least 3 columns.*found 2 in line 1/,
    )
    const broken = 't,u,i\n\na,b,"c'
    const expected = { message: 'parse error on line 3, column 7: extraneous or missing " in quoted-field' }
    assert.throws(() => createStaticTokenAuthenticator(broken, { apiAudiences }), expected)
  })
})

describe('authentication by bootstrap token', () => {
  const clock = createVirtualClock()
  const encode = (data: Record<string, string>): Record<string, string> =>
    Object.fromEntries(Object.entries(data).map(([key, value]) => [key, Buffer.from(value).toString('base64')]))
  const good = {
    'token-id': 'abcdef',
    'token-secret': '0123456789abcdef',
    'usage-bootstrap-authentication': 'true',
    'auth-extra-groups': 'system:bootstrappers:worker,system:bootstrappers:kubeadm:default',
  }
  async function check(data: Record<string, string>, rest: Partial<Secret> = {}, token = 'abcdef.0123456789abcdef') {
    const secret = {
      metadata: { name: 'bootstrap-token-abcdef' },
      type: 'bootstrap.kubernetes.io/token',
      data: encode(data),
      ...rest,
    }
    const objects = {
      peek: (_kind: unknown, namespace: string, name: string) =>
        namespace === 'kube-system' && name === secret.metadata.name ? { object: secret } : undefined,
      get: () => Promise.resolve(undefined),
    }
    return (await createBootstrapTokenAuthenticator({ clock, objects, apiAudiences })(token, []))?.user
  }

  it('yields a bootstrap user', async () => {
    assert.deepEqual(await check(good), {
      name: 'system:bootstrap:abcdef',
      uid: '',
      groups: ['system:bootstrappers', 'system:bootstrappers:kubeadm:default', 'system:bootstrappers:worker'],
      extra: {},
    })
    assert.ok(await check({ ...good, expiration: timeOf(clock.now() + 1000) }))
  })

  const table: [string, Record<string, string>, Partial<Secret>?, string?][] = [
    ['another secret', good, {}, 'abcdef.0123456789abcdee'],
    ['another format', good, {}, 'ABCDEF.0123456789abcdef'],
    ['another type', good, { type: 'Opaque' }],
    [
      'a secret that is being deleted',
      good,
      { metadata: { name: 'bootstrap-token-abcdef', deletionTimestamp: timeOf(0) } },
    ],
    ["an id that differs from the Secret's name", { ...good, 'token-id': 'xxxxxx' }],
    ['no permission for authentication', { ...good, 'usage-bootstrap-authentication': 'yes' }],
    ['an expiration in the past', { ...good, expiration: timeOf(clock.now() - 1000) }],
    ['an invalid time', { ...good, expiration: 'tomorrow' }],
    ['a group without the bootstrap prefix', { ...good, 'auth-extra-groups': 'system:masters' }],
    ['a group after a line break', { ...good, 'auth-extra-groups': 'system:bootstrappers:a\nsystem:masters' }],
  ]
  for (const [what, data, rest, token] of table) {
    it(`yields no user for a token with ${what}`, async () => assert.equal(await check(data, rest, token), undefined))
  }
})

describe('authentication by OpenID token', () => {
  const issuerUrl = 'https://login.example'
  const key = createKey('rsa-2048')
  const signer = createSigner(key)
  const keys = [verifyingKey(key)]
  function createWorld(more: Partial<OidcOptions> = {}) {
    const clock = createVirtualClock()
    const fetched: string[] = []
    const documents = new Map<string, unknown>([
      [`${issuerUrl}/.well-known/openid-configuration`, discoveryDocument(issuerUrl, `${issuerUrl}/keys`, keys)],
      [`${issuerUrl}/keys`, toKeySet(keys)],
    ])
    const fetchJson = (url: string): Promise<unknown> => {
      fetched.push(url)
      return documents.has(url) ? Promise.resolve(documents.get(url)) : Promise.reject(new Error('away'))
    }
    const authenticate = createOidcAuthenticator({
      clock,
      fetchJson,
      issuerUrl,
      clientId: 'kube',
      apiAudiences,
      ...more,
    })
    const claims = {
      iss: issuerUrl,
      aud: 'kube',
      sub: 'joe',
      exp: clock.now() / 1000 + 600,
      groups: ['dev'],
      email: 'j@x',
    }
    const user = async (token: string) => (await authenticate(token, []))?.user
    return { clock, fetched, documents, claims, user }
  }

  it('supports several audiences, a literal prefix, a UID and a separate discovery URL', async () => {
    const discoveryUrl = 'https://inside.example/discovery'
    const { user, claims, documents, fetched } = createWorld({
      discoveryUrl,
      audiences: ['a', 'kube'],
      literalPrefix: '-',
      uidClaim: 'oid',
    })
    documents.set(discoveryUrl, discoveryDocument(issuerUrl, `${issuerUrl}/keys`, keys))
    const found = await user(signer.sign({ ...claims, oid: 'u-1' }))
    assert.deepEqual([found?.name, found?.uid], ['-joe', 'u-1'])
    assert.deepEqual(fetched, [discoveryUrl, `${issuerUrl}/keys`])
    await assert.rejects(user(signer.sign(claims)), /parse uid claim "oid": claim not present/)
    await assert.rejects(user(signer.sign({ ...claims, oid: 7 })), /parse uid claim "oid": not a string/)
  })

  it('maps the configured claims to a user', async () => {
    const { user, claims, fetched } = createWorld({ groupsClaim: 'groups', groupsPrefix: 'oidc:' })
    const token = signer.sign({ ...claims, jti: 'x' })
    const found = await user(token)
    assert.deepEqual([found?.name, found?.groups], [`${issuerUrl}#joe`, ['oidc:dev']])
    assert.deepEqual(found?.extra, { 'authentication.kubernetes.io/credential-id': ['JTI=x'] })
    await user(token)
    assert.equal(fetched.length, 2)
    const mail = createWorld({ usernameClaim: 'email' })
    assert.equal((await mail.user(signer.sign(mail.claims)))?.name, 'j@x')
    const bare = createWorld({ usernamePrefix: '-', groupsClaim: 'groups' })
    assert.deepEqual((await bare.user(signer.sign({ ...bare.claims, groups: 'solo' })))?.groups, ['solo'])
  })

  const compiled = (expression: ReturnType<typeof compileClaimRule>): CompiledExpression => {
    if (expression.fault !== undefined) assert.fail(expression.fault.detail)
    return expression
  }
  const mapping = (source: string): CompiledExpression => compiled(compileClaimMapping(source))

  it('maps claims to a user by CEL expressions', async () => {
    const { user, claims } = createWorld({
      expressions: {
        username: mapping("claims.sub + '@' + claims.tenant__dot__id.name"),
        groups: mapping("claims.groups.map(g, 'x:' + g)"),
        uid: mapping('string(claims.n)'),
        extra: [
          { key: 'example.com/level', expression: mapping("claims.n > 1.5 ? 'high' : ''") },
          { key: 'example.com/none', expression: mapping("claims.?zork.orValue('')") },
        ],
        claimRules: [{ expression: compiled(compileClaimRule('claims.n < 10.0')), message: 'too many' }],
        userRules: [
          { expression: compiled(compileUserRule("!user.username.startsWith('system:')")), message: 'not yours' },
        ],
      },
    })
    const more = { 'tenant.id': { name: 't' }, n: 2 }
    const found = await user(signer.sign({ ...claims, ...more }))
    assert.deepEqual(found, { name: 'joe@t', groups: ['x:dev'], uid: '2', extra: { 'example.com/level': ['high'] } })
    await assert.rejects(user(signer.sign({ ...claims, ...more, n: 20 })), {
      message:
        "oidc: error evaluating claim validation expression: validation expression 'claims.n < 10.0' failed: too many",
    })
    await assert.rejects(user(signer.sign({ ...claims, ...more, sub: 'system:x' })), {
      message:
        "oidc: error evaluating user info validation rule: validation expression '!user.username.startsWith('system:')' failed: not yours",
    })
    await assert.rejects(user(signer.sign(claims)), {
      message:
        "oidc: error evaluating username claim expression: expression 'claims.sub + '@' + claims.tenant__dot__id.name' resulted in error: no such key: tenant__dot__id",
    })
  })

  it('rejects a token if an expression does not yield a string', async () => {
    const table: readonly (readonly [string, Partial<OidcOptions>['expressions'], string])[] = [
      [
        'a number',
        { username: mapping('1') },
        'oidc: error evaluating username claim expression: username claim expression must return a string',
      ],
      ['nothing', { username: mapping("''") }, 'oidc: empty username via CEL expression is not allowed'],
      [
        'a list of numbers',
        { groups: mapping('[1]') },
        'oidc: error evaluating group claim expression: expression must return a string or a list of strings',
      ],
      [
        'a boolean',
        { uid: mapping('true') },
        'oidc: error evaluating uid claim expression: uid claim expression must return a string',
      ],
      [
        'a map',
        { extra: [{ key: 'k', expression: mapping('{}') }] },
        'oidc: error evaluating extra claim expression: {}: expression must return a string or a list of strings',
      ],
    ]
    for (const [what, expressions, message] of table) {
      const { user, claims } = createWorld({ expressions: expressions ?? {} })
      await assert.rejects(user(signer.sign(claims)), { message }, what)
    }
  })

  const refused: [string, Partial<OidcOptions>, object, RegExp][] = [
    ['for another client ID', {}, { aud: 'other' }, /Token is for/],
    ['that is expired', {}, { exp: 1 }, /expired/],
    ['without an exp claim', {}, { exp: undefined }, /never expires/],
    ['without a user name', {}, { sub: undefined }, /parse username claims "sub"/],
    ['with an empty user name', {}, { sub: '' }, /parse username claims "sub"/],
    ['with an unverified email', { usernameClaim: 'email' }, { email_verified: false }, /email not verified/],
    ['without a required claim', { requiredClaims: { hd: 'x' } }, {}, /required claim hd not present/],
    ['with another value of a required claim', { requiredClaims: { hd: 'x' } }, { hd: 'y' }, /Got = y, want = x/],
    ['with invalid groups', { groupsClaim: 'groups' }, { groups: [1] }, /parse groups claim/],
    [
      'that is signed with an algorithm that is not allowed',
      { signingAlgs: ['ES256'] },
      {},
      /unsupported algorithm "RS256"/,
    ],
  ]
  for (const [what, options, changed, text] of refused) {
    it(`rejects a token ${what}`, async () => {
      const { user, claims } = createWorld(options)
      await assert.rejects(user(signer.sign({ ...claims, ...changed })), text)
    })
  }

  it('ignores a token of an issuer that is not configured', async () => {
    const { user, claims } = createWorld()
    assert.equal(await user(signer.sign({ ...claims, iss: 'https://x' })), undefined)
    assert.equal(await user('opaque'), undefined)
  })

  it("fetches the provider's keys again for a token with an unknown key, at a limited rate", async () => {
    const { user, claims, fetched, clock, documents } = createWorld()
    await user(signer.sign(claims))
    const next = createKey('rsa-2048')
    const token = createSigner(next).sign(claims)
    await clock.advance(10_000)
    await assert.rejects(user(token), /not signed by any key/)
    await assert.rejects(user(token), /not signed by any key/)
    assert.equal(fetched.length, 4)
    documents.set(`${issuerUrl}/keys`, toKeySet([...keys, verifyingKey(next)]))
    await clock.advance(10_000)
    assert.ok(await user(token))
  })

  it('rejects a token while the provider is unreachable or names another issuer', async () => {
    const { user, claims, documents, clock } = createWorld()
    documents.clear()
    await assert.rejects(user(signer.sign(claims)), /away/)
    const other = discoveryDocument('https://evil', `${issuerUrl}/keys`, keys)
    documents.set(`${issuerUrl}/.well-known/openid-configuration`, other)
    await clock.advance(10_000)
    await assert.rejects(user(signer.sign(claims)), /calls itself/)
  })

  it('requires an https issuer URL and a client ID', () => {
    assert.throws(() => createWorld({ issuerUrl: 'http://x' }), /https/)
    assert.throws(() => createWorld({ clientId: '' }), /client-id/)
  })
})

describe('authentication by token webhook', () => {
  it('sends one review while the answer is cached, also for concurrent requests', async () => {
    const clock = createVirtualClock()
    let reviewCount = 0
    const status = { authenticated: true, user: { username: 'joe', groups: ['a', 7], extra: { k: ['v'] } } }
    const send = () => (reviewCount++, Promise.resolve(status))
    const authenticate = createWebhookTokenAuthenticator({ clock, send, apiAudiences })
    const all = await Promise.all([1, 2, 3].map(async () => authenticate('t', ['api'])))
    assert.deepEqual(all[2], { user: { name: 'joe', uid: '', groups: ['a'], extra: { k: ['v'] } }, audiences: ['api'] })
    assert.equal(reviewCount, 1)
    await authenticate('other', ['api'])
    await clock.advance(120_001)
    await authenticate('t', ['api'])
    assert.equal(reviewCount, 3)
  })

  it('restricts a token to the audiences in the answer, or to those of the API server if the answer has none', async () => {
    const answering = (status: Record<string, unknown>) =>
      createWebhookTokenAuthenticator({
        clock: createVirtualClock(),
        send: () => Promise.resolve(status),
        apiAudiences,
      })
    const yes = { authenticated: true, user: { username: 'joe' } }
    assert.equal(await answering(yes)('t', ['vault']), undefined)
    assert.deepEqual((await answering({ ...yes, audiences: ['vault'] })('t', ['vault']))?.audiences, ['vault'])
    assert.equal(await answering({ authenticated: false })('t', []), undefined)
    assert.equal(await answering({ authenticated: 'true' })('t', []), undefined)
    await assert.rejects(async () => answering({ error: 'revoked' })('t', []), { message: 'revoked' })
  })
})

describe('combination of authenticators', () => {
  const identity: TokenIdentity = { user: joe, audiences: [] }
  const knows =
    (good: string, later = false): TokenAuthenticator =>
    (token) => {
      const found = token === good ? identity : undefined
      return later ? Promise.resolve(found) : found
    }
  const angry: TokenAuthenticator = () => {
    throw new CredentialError('wrong')
  }
  const exchange = (headers: Record<string, string>, upgradeProtocol?: string): Exchange =>
    ({ headers, rawHeaders: [], peer: {}, upgradeProtocol }) as unknown as Exchange
  const bearer = (token: string): Exchange => exchange({ authorization: `Bearer ${token}` })

  it('passes each token to the authenticator of its issuer, and authenticators can be replaced', async () => {
    const clock = createVirtualClock()
    const issuer = (issuerUrl: string) => ({
      fetchJson: (url: string) =>
        Promise.resolve(
          url.endsWith('keys') ? toKeySet(issuerKeys) : discoveryDocument(issuerUrl, `${issuerUrl}/keys`, issuerKeys),
        ),
      issuerUrl,
      clientId: 'kube',
      literalPrefix: '',
    })
    const issuerKey = createKey('rsa-2048')
    const issuerKeys = [verifyingKey(issuerKey)]
    const token = (iss: string) =>
      createSigner(issuerKey).sign({ iss, aud: 'kube', sub: iss, exp: clock.now() / 1000 + 600 })
    let apply: (next: readonly ReturnType<typeof issuer>[]) => void = () => undefined
    const parts = authenticatorsFor({
      clock,
      objects: {} as LiveObjects,
      apiAudiences,
      jwt: {
        first: [issuer('https://a'), issuer('https://b')],
        follow: (listener) => void (apply = listener),
      },
    })
    const { authenticate } = createAuthenticator(parts)
    const nameOf = async (iss: string) => (await authenticate(bearer(token(iss))))?.name
    assert.deepEqual([await nameOf('https://a'), await nameOf('https://b')], ['https://a', 'https://b'])
    apply([issuer('https://c')])
    assert.equal(await nameOf('https://c'), 'https://c')
    await assert.rejects(nameOf('https://a'), { message: 'Unauthorized' })
  })

  it('accepts a request if one authenticator succeeds and others fail', async () => {
    const { authenticate } = createAuthenticator({
      requests: [],
      tokens: [angry, knows('a', true), knows('b')],
      apiAudiences,
    })
    for (const token of ['a', 'b']) {
      assert.deepEqual((await authenticate(bearer(token)))?.groups, ['system:authenticated'])
    }
    await assert.rejects(
      async () => authenticate(bearer('c')),
      (error: StatusError) => {
        assert.deepEqual([error.status.code, error.message, error.status.details], [401, 'Unauthorized', undefined])
        return true
      },
    )
  })

  it('rejects a bad certificate only if nothing else authenticates the client', async () => {
    const refuse = (): never => {
      throw new CredentialError('expired')
    }
    const refusals: string[] = []
    const { authenticate } = createAuthenticator({
      requests: [refuse],
      tokens: [knows('a')],
      apiAudiences,
      onRefusal: (why) => refusals.push(why),
    })
    assert.equal((await authenticate(bearer('a')))?.name, 'joe')
    assert.throws(() => authenticate(exchange({})), StatusError)
    assert.deepEqual(refusals, ['expired'])
  })

  it('treats requests without credentials, or with another scheme, as anonymous', () => {
    const { authenticate } = createAuthenticator({ requests: [], tokens: [knows('a')], apiAudiences })
    for (const authorization of ['', 'Basic x', 'Bearer', 'Bearer ', 'Bearer  a']) {
      assert.equal(authenticate(exchange({ authorization })), undefined, authorization)
    }
  })

  it('finds the bearer token of a WebSocket among its subprotocols', async () => {
    const { authenticate } = createAuthenticator({ requests: [], tokens: [knows('a')], apiAudiences })
    const offer = (token: string) => `base64url.bearer.authorization.k8s.io.${Buffer.from(token).toString('base64url')}`
    const ask = async (protocols: string, upgrade = 'websocket') =>
      (await authenticate(exchange({ 'sec-websocket-protocol': protocols }, upgrade)))?.name
    assert.equal(await ask(`${offer('a')}, v5.channel.k8s.io`), 'joe')
    await assert.rejects(ask(`${offer('b')}, v5.channel.k8s.io`), StatusError)
    assert.equal(await ask(offer('a')), undefined)
    assert.equal(await ask(`${offer('a')}, x`, 'h2c'), undefined)
  })

  it('contains the configured authenticators in order', () => {
    const given = {
      clock: createVirtualClock(),
      objects: { peek: () => undefined, get: () => Promise.resolve(undefined) },
      apiAudiences,
    }
    const none = authenticatorsFor(given)
    assert.deepEqual([none.requests.length, none.tokens.length], [0, 0])
    const all = authenticatorsFor({
      ...given,
      requestHeader: { authorities: () => [], allowedNames: [], usernameHeaders: ['X-Remote-User'] },
      clientCert: { authorities: () => [] },
      staticTokens: 'a,b,c',
      serviceAccounts: { issuers: ['i'], keys: () => [] },
      bootstrapTokens: true,
      oidc: { fetchJson: () => Promise.resolve({}), issuerUrl: 'https://x', clientId: 'y' },
      webhook: { send: () => Promise.resolve({}) },
    })
    assert.deepEqual([all.requests.length, all.tokens.length], [2, 5])
    const [first] = all.tokens
    assert.equal((first!('a', []) as TokenIdentity).user.name, 'b')
  })

  it('returns the errors of authenticators in a TokenReview', async () => {
    const { authenticateToken } = createAuthenticator({ requests: [], tokens: [angry, knows('a')], apiAudiences })
    assert.equal((await authenticateToken('a', [])).user.name, 'joe')
    await assert.rejects(authenticateToken('b', []), { name: 'CredentialError', message: 'wrong' })
    const plain = createAuthenticator({ requests: [], tokens: [], apiAudiences })
    await assert.rejects(plain.authenticateToken('b', []), { message: 'invalid bearer token' })
  })
})
