/**
 * Tests users, tokens and log-in of the management server on a real control plane, with real password hashes and an
 * identity provider behind TLS.
 */
import assert from 'node:assert/strict'
import { argon2Sync } from 'node:crypto'
import { after, before, describe, it } from 'node:test'

import { CustomResourceDefinitions } from '#apis/apiextensions/v1.ts'
import { Namespaces, Secrets } from '#apis/core/v1.ts'
import { ApiClient } from '#client/api-client.ts'
import { eventually } from '#kits/lib/eventually.ts'
import { sendTo, type TestAnswer, TestBrowser } from '#kits/management/exchange.ts'
import { FakeProvider } from '#kits/management/fake-provider.ts'
import { ADMINISTRATOR, addRoles, isAdministratorIn, permissionsIn } from '#kits/management/people.ts'
import { realClock } from '#lib/clock.ts'
import { createHttpServer, type HttpServer } from '#lib/http/server.ts'
import { secureRandom } from '#lib/random.ts'
import { createAuthority } from '#lib/x509/authority.ts'
import { AuthProviders } from '#management/kinds/auth-provider.ts'
import { MANAGEMENT_KINDS } from '#management/kinds/index.ts'
import { Tokens } from '#management/kinds/token.ts'
import { MANAGEMENT_NAMESPACE, ManagementObjects } from '#management/objects.ts'
import type { Derive } from '#management/people/passwords.ts'
import { createPeople, type People } from '#management/people/people.ts'
import { type ControlPlane, errorLog, startControlPlane } from '#testing/control-plane.ts'

const GOOD = 'correct horse battery'
const MASTER = { name: 'management', uid: '', groups: ['system:masters'], extra: {} }

let plane: ControlPlane
let objects: ManagementObjects
let people: People
let admin: TestBrowser
const end = new AbortController()

before(async () => {
  plane = await startControlPlane()
  const transport = plane.running.server.clientAs(MASTER)
  const client = new ApiClient({ transport, clock: realClock, userAgent: 'management' })
  for (const { definition } of MANAGEMENT_KINDS) await client.create(CustomResourceDefinitions, definition)
  for (const { definition } of MANAGEMENT_KINDS) await established(client, definition.metadata.name ?? '')
  await client.create(Namespaces, { metadata: { name: MANAGEMENT_NAMESPACE } })
  const log = errorLog(() => end.signal.aborted)
  objects = new ManagementObjects({ client, clock: realClock, random: secureRandom, log, signal: end.signal })
  await objects.synced()
  await addRoles(objects)
  people = start()
})

after(async () => {
  await people.close()
  end.abort()
  await plane.stop()
})

function start(derive?: Derive): People {
  return createPeople({
    objects,
    isAdministrator: isAdministratorIn(objects),
    permissions: permissionsIn(objects),
    administratorRole: ADMINISTRATOR,
    serverUrl: () => 'https://hk.example.com',
    ...(derive !== undefined && { passwordHash: { derive } }),
  })
}

async function established(client: ApiClient, name: string): Promise<void> {
  await eventually(
    () => client.get(CustomResourceDefinitions, { name }),
    ({ status }) =>
      status?.conditions?.some(({ type, status }) => type === 'Established' && status === 'True') ?? false,
  )
}

const get = (path: string, token: string): Promise<TestAnswer> =>
  sendTo(people, { path, headers: { authorization: `Bearer ${token}` } })

describe('users on a real control plane', () => {
  it('begin with a first administrator, who sets a password once, with a code', async () => {
    const first = await people.issueFirstLogin()
    admin = new TestBrowser(people)
    const set = (code: unknown): Promise<TestAnswer> =>
      admin.send('POST', '/v3-public/first-login', { code, password: GOOD })
    assert.equal((await admin.send('GET', '/v3/users')).status, 401)
    assert.equal((await set('another')).status, 401)
    const answers = await Promise.all([set(first?.code), set(first?.code)])
    assert.deepEqual(new Set(answers.map(({ status }) => status)), new Set([200, 401]))
    assert.equal(await people.issueFirstLogin(), undefined)
    assert.equal((await admin.send('GET', '/v3/users')).status, 200)
  })

  it('can use a user, token or session in the request after its creation', async () => {
    for (let n = 0; n < 10; n++) {
      const username = `user-${n}`
      const user = await admin.send('POST', '/v3/users', { username, password: GOOD, mustChangePassword: false })
      assert.equal(user.status, 201, user.text)
      const browser = new TestBrowser(people, `10.0.2.${n}`)
      assert.equal((await browser.logIn(username, GOOD)).status, 200)
      const token = String((await browser.send('POST', '/v3/tokens', { description: 'CI' })).body['token'])
      assert.equal((await get('/v3/me', token)).status, 200)
      const path = `/v3/users/${String(user.body['name'])}`
      const changed =
        n % 2 === 0 ? await admin.send('DELETE', path) : await admin.send('PATCH', path, { disabled: true })
      assert.ok(changed.status < 300, changed.text)
      assert.equal((await get('/v3/me', token)).status, 401)
      assert.equal((await browser.send('GET', '/v3/me')).status, 401)
    }
  })

  it('get 429 after too many log-in attempts, of which at most two are hashed at once', async () => {
    let [running, most, computed] = [0, 0, 0]
    const derive: Derive = async ({ password, salt, lengthBytes: tagLength }) => {
      most = Math.max(most, ++running)
      computed++
      await new Promise((resolve) => setImmediate(resolve))
      running--
      return argon2Sync('argon2id', { message: password, nonce: salt, parallelism: 1, tagLength, memory: 8, passes: 1 })
    }
    await using attacked = { people: start(derive), [Symbol.asyncDispose]: () => attacked.people.close() }
    const tries = Array.from({ length: 10_000 }, (_, n) =>
      sendTo(attacked.people, {
        method: 'POST',
        path: '/v3-public/login',
        body: { username: n % 2 === 0 ? 'admin' : `user-${n % 50}`, password: `wrong password ${n}` },
        address: `10.${n % 3}.0.1`,
      }),
    )
    const statuses = (await Promise.all(tries)).map(({ status }) => status)
    assert.deepEqual(
      [...new Set(statuses)].sort((a, b) => a - b),
      [401, 429],
    )
    assert.equal(most, 2)
    assert.ok(computed < 100, `${computed}`)
    assert.equal(statuses.filter((status) => status === 401).length, computed)
  })

  it('have the time of the last use in the status of a token', async () => {
    const other = start()
    const { body } = await admin.send('POST', '/v3/tokens', { ttlSeconds: 60 })
    const headers = { authorization: `Bearer ${String(body['token'])}` }
    assert.equal((await sendTo(other, { path: '/v3/me', headers, address: '10.9.9.9' })).status, 200)
    await other.close()
    await eventually(
      () => objects.get(Tokens, String(body['name']))?.status?.lastAddress,
      (address) => address === '10.9.9.9',
    )
  })

  it('have no secrets in any object', async () => {
    const { body } = await admin.send('POST', '/v3/tokens', {})
    const secret = String(body['token']).slice(-43)
    for (const { kind } of MANAGEMENT_KINDS) assert.ok(!JSON.stringify(objects.list(kind)).includes(secret))
  })
})

describe('OpenID provider behind TLS', () => {
  let server: HttpServer
  let provider: FakeProvider

  before(async () => {
    const authority = createAuthority({ commonName: 'idp' }, { clock: realClock, random: secureRandom })
    const issued = authority.issue({
      commonName: 'idp',
      names: { dns: ['localhost'], ips: ['127.0.0.1'] },
      purpose: 'server',
    })
    let issuer = ''
    server = createHttpServer({
      clock: realClock,
      tls: { certificate: issued.certificatePem, key: issued.keyPem },
      serve: async (exchange) => {
        const { method, path, headers } = exchange
        const sent = (await exchange.readBody(1 << 16)).toString()
        const authorization = headers.authorization ?? ''
        const { status, body } = provider.answer({ method, url: issuer + path, headers: { authorization }, body: sent })
        const text = typeof body === 'string' ? body : JSON.stringify(body)
        exchange.respond(status, ['Content-Type', 'application/json'], Buffer.from(text))
      },
    })
    const bound = await server.listen({ host: '127.0.0.1', port: 0 })
    issuer = `https://127.0.0.1:${'port' in bound ? bound.port : 0}`
    provider = new FakeProvider({ clock: realClock, issuer, clientId: 'hk', clientSecret: 's' })
    const metadata = { name: 'idp', namespace: MANAGEMENT_NAMESPACE }
    await objects.client.create(Secrets, { metadata, data: { clientSecret: Buffer.from('s').toString('base64') } })
    const spec = { type: 'oidc', issuer, clientID: 'hk', clientSecretName: 'idp', createsUsers: true } as const
    const certificateAuthority = authority.certificatePem
    await objects.create(AuthProviders, { metadata: { name: 'idp' }, spec: { ...spec, certificateAuthority } })
    await objects.create(AuthProviders, { metadata: { name: 'untrusted' }, spec })
  })
  after(() => server.drain(0))

  it('logs people in', async () => {
    const browser = new TestBrowser(people)
    const begun = await browser.send('GET', '/v3-public/oidc/idp/login?returnTo=/clusters')
    assert.equal(begun.status, 303, begun.text)
    const claims = { sub: 'jane-1', preferred_username: 'Jane', groups: ['devs'] }
    const query = provider.authorize(begun.values('Location')[0] ?? '', claims)
    const done = await browser.send('GET', `/v3-public/oidc/idp/callback?${query.toString()}`)
    assert.equal(done.status, 200, done.text)
    const { body } = await browser.send('GET', '/v3/me')
    assert.deepEqual(body['groups'], ['idp:devs'])
  })

  it('is refused if its certificate is not trusted', async () => {
    const answer = await sendTo(people, { path: '/v3-public/oidc/untrusted/login' })
    assert.equal(answer.status, 503)
  })
})
