/** Tests log-in with an LDAP server over real connections: TLS, StartTLS, and misbehaving servers. */
import assert from 'node:assert/strict'
import { after, before, beforeEach, describe, it } from 'node:test'

import { Secrets } from '#apis/core/v1.ts'
import { sendTo, type TestAnswer } from '#kits/management/exchange.ts'
import { type DirectoryEntry, type FakeLdap, startFakeLdap } from '#kits/management/fake-ldap.ts'
import { startObjects, type TestObjects } from '#kits/management/objects.ts'
import { ADMINISTRATOR, addRoles, isAdministratorIn, permissionsIn } from '#kits/management/people.ts'
import { createVirtualClock, realClock, sleep } from '#lib/clock.ts'
import { secureRandom } from '#lib/random.ts'
import { createAuthority } from '#lib/x509/authority.ts'
import { AuthProviders, type LdapSettings } from '#management/kinds/auth-provider.ts'
import { Users } from '#management/kinds/user.ts'
import { MANAGEMENT_NAMESPACE } from '#management/objects.ts'
import { openLdap } from '#management/people/ldap/connection.ts'
import { createPeople, type People } from '#management/people/people.ts'

import { eventually } from './bed.ts'

const BASE = 'dc=example,dc=org'
const person = (uid: string, cn: string): DirectoryEntry => ({
  dn: `uid=${uid},ou=people,${BASE}`,
  password: `password of ${uid}`,
  attributes: { objectClass: ['person'], uid: [uid], cn: [cn], entryUUID: [`uuid-${uid}`] },
})
const group = (cn: string, ...members: readonly string[]): DirectoryEntry => ({
  dn: `cn=${cn},ou=groups,${BASE}`,
  attributes: { objectClass: ['groupOfNames'], cn: [cn], member: members.map((name) => `${name},${BASE}`) },
})
const ENTRIES: readonly DirectoryEntry[] = [
  { dn: `cn=service,${BASE}`, password: 'secret', attributes: {} },
  person('jane', 'Jane Doe'),
  person('jürgen', 'Jürgen'),
  person('o(brien)*', "O'Brien"),
  group('devs', 'uid=jane,ou=people'),
  group('staff', 'cn=devs,ou=groups'),
]
const SETTINGS: Omit<LdapSettings, 'url'> = {
  bindDN: `cn=service,${BASE}`,
  bindSecretName: 'ldap',
  users: { searchBase: `ou=people,${BASE}` },
  groups: { searchBase: `ou=groups,${BASE}` },
}

describe('LDAP provider of the management server', () => {
  let ldap: FakeLdap
  let started: TestObjects
  let people: People
  let authorityText = ''

  before(async () => {
    const authority = createAuthority({ commonName: 'ldap' }, { clock: realClock, random: secureRandom })
    const names = { dns: ['localhost'], ips: ['127.0.0.1'] }
    const issued = authority.issue({ commonName: 'ldap', names, purpose: 'server' })
    ldap = await startFakeLdap({ certificate: issued.certificatePem, key: issued.keyPem, entries: ENTRIES })
    started = await startObjects()
    const { objects } = started
    await addRoles(objects)
    people = createPeople({
      objects,
      isAdministrator: isAdministratorIn(objects),
      permissions: permissionsIn(objects),
      administratorRole: ADMINISTRATOR,
      serverUrl: () => 'https://hk.example.com',
      openLdap: (address) => openLdap(realClock, address),
    })
    const metadata = { name: 'ldap', namespace: MANAGEMENT_NAMESPACE }
    await objects.client.create(Secrets, { metadata, data: { password: Buffer.from('secret').toString('base64') } })
    const settings = { ...SETTINGS, url: `ldap://127.0.0.1:${ldap.port}` }
    const certificateAuthority = authority.certificatePem
    authorityText = certificateAuthority
    const spec = { type: 'ldap', ldap: settings, createsUsers: true } as const
    await objects.create(AuthProviders, { metadata: { name: 'corp' }, spec: { ...spec, certificateAuthority } })
    await objects.create(AuthProviders, { metadata: { name: 'untrusted' }, spec })
    const disabled = { ...spec, certificateAuthority, disabled: true }
    await objects.create(AuthProviders, { metadata: { name: 'disabled' }, spec: disabled })
    const closed = { ...spec, certificateAuthority, createsUsers: false }
    await objects.create(AuthProviders, { metadata: { name: 'closed' }, spec: closed })
  })
  after(async () => {
    await people.close()
    started[Symbol.dispose]()
    await ldap[Symbol.asyncDispose]()
  })
  beforeEach(() => {
    ldap.misbehaviour = 'none'
    ldap.binds.length = 0
    ldap.connections = 0
  })

  let calls = 0
  const logIn = (username: string, password: string, more: object = {}): Promise<TestAnswer> => {
    const body = { provider: 'corp', username, password, responseType: 'token', ...more }
    // Failures of one address slow the next log-in down.
    return sendTo(people, { method: 'POST', path: '/v3-public/login', body, address: `10.1.0.${++calls}` })
  }

  it('logs users in with the permissions of their groups', async () => {
    const answer = await logIn('jane', 'password of jane')
    assert.equal(answer.status, 200, answer.text)
    const headers = { authorization: `Bearer ${String(answer.body['token'])}` }
    const { body } = await sendTo(people, { path: '/v3/me', headers })
    assert.deepEqual(body['groups'], ['corp:devs', 'corp:staff'])
    assert.equal((await logIn('jane', 'password of jane')).status, 200)
    const found = started.objects.list(Users).filter(({ spec }) => spec.identities?.[0]?.subject === 'uuid-jane')
    assert.deepEqual(
      found.map(({ spec }) => [spec.username, spec.displayName]),
      [['jane', 'Jane Doe']],
    )
    assert.ok(ldap.binds.every(({ isEncrypted }) => isEncrypted))
  })

  it('logs in users whose names contain special characters', async () => {
    for (const name of ['jürgen', 'o(brien)*']) {
      const answer = await logIn(name, `password of ${name}`)
      assert.equal(answer.status, 200, answer.text)
    }
  })

  it('refuses wrong and empty passwords, unknown usernames, and filters as usernames', async () => {
    const tries = [
      ['jane', 'wrong'],
      ['jane', ''],
      ['nobody', 'password of jane'],
      ['*', 'password of jane'],
      ['jane)(uid=*', 'password of jane'],
      ['jane*', 'password of jane'],
    ] as const
    for (const [name, password] of tries) assert.equal((await logIn(name, password)).status, 401, name)
    assert.ok(ldap.binds.every(({ password }) => password !== ''))
  })

  it('refuses accounts without a User, disabled and unknown providers, and new passwords', async () => {
    const password = 'password of jane'
    assert.equal((await logIn('o(brien)*', 'password of o(brien)*', { provider: 'closed' })).status, 403)
    assert.equal((await logIn('jane', password, { provider: 'disabled' })).status, 404)
    assert.equal((await logIn('jane', password, { provider: 'none' })).status, 404)
    assert.equal((await logIn('jane', password, { newPassword: 'another password' })).status, 400)
  })

  it('refuses disabled users', async () => {
    const { objects } = started
    const { body } = await logIn('jürgen', 'password of jürgen')
    const { name } = body['user'] as { readonly name: string }
    await objects.change(Users, name, (user) => ({ ...user, spec: { ...user.spec, disabled: true } }))
    assert.equal((await logIn('jürgen', 'password of jürgen')).status, 403)
  })

  it('delays log-ins after failed attempts for each username', async () => {
    const statuses: number[] = []
    for (let n = 0; n < 8; n++) {
      const body = { provider: 'corp', username: 'jane', password: `guess ${n}` }
      statuses.push(
        (await sendTo(people, { method: 'POST', path: '/v3-public/login', body, address: '10.9.0.1' })).status,
      )
    }
    assert.deepEqual([...new Set(statuses)], [401, 429])
  })

  it('receives no password without trusted TLS', async () => {
    for (const misbehaviour of ['refuses-tls', 'adds-bytes-before-tls'] as const) {
      ldap.misbehaviour = misbehaviour
      assert.equal((await logIn('jane', 'password of jane')).status, 503, misbehaviour)
    }
    ldap.misbehaviour = 'none'
    assert.equal((await logIn('jane', 'password of jane', { provider: 'untrusted' })).status, 503)
    assert.deepEqual(ldap.binds, [])
  })

  it('is not reconnected after it closes the connection', async () => {
    ldap.misbehaviour = 'closes-after-tls'
    assert.equal((await logIn('jane', 'password of jane')).status, 503)
    assert.deepEqual([ldap.connections, ldap.binds.length], [1, 0])
    ldap.misbehaviour = 'closes-after-bind'
    assert.equal((await logIn('jane', 'password of jane')).status, 503)
    assert.deepEqual([ldap.connections, ldap.binds.length], [2, 1])
  })

  it('is not connected to again, without TLS, for a later request', async () => {
    ldap.misbehaviour = 'closes-after-bind'
    const address = { url: `ldap://127.0.0.1:${ldap.port}`, certificateAuthority: authorityText }
    const connection = await openLdap(realClock, address)
    assert.equal(await connection.bind(`cn=service,${BASE}`, 'secret'), true)
    await eventually('the connection is closed', () => ldap.open.size === 0)
    await sleep(realClock, 50)
    const search = { base: BASE, filter: '(uid=jane)', attributes: ['uid'], maxEntries: 1 }
    await assert.rejects(connection.search(search), /The connection has ended/)
    await assert.rejects(connection.bind(`cn=service,${BASE}`, 'secret'), /The connection has ended/)
    assert.equal(ldap.connections, 1)
    connection.close()
  })

  it('fails the log-in if it does not respond', async () => {
    ldap.misbehaviour = 'is-silent'
    const clock = createVirtualClock()
    const opening = openLdap(clock, { url: `ldap://127.0.0.1:${ldap.port}`, certificateAuthority: undefined })
    const ended = assert.rejects(opening, /no connection within 10 s/)
    await eventually('the connection is open', () => ldap.connections === 1)
    await clock.advance(10_000)
    await ended
  })

  it('is not followed when it refers to another server', async () => {
    ldap.misbehaviour = 'refers'
    assert.equal((await logIn('jane', 'password of jane')).status, 200)
    assert.equal((await logIn('nobody', 'password of jane')).status, 401)
  })
})
