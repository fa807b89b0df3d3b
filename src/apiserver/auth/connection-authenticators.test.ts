import assert from 'node:assert/strict'
import { X509Certificate } from 'node:crypto'
import { describe, it } from 'node:test'

import { createClientCertAuthenticator } from '#auth/authenticators/client-cert.ts'
import { authenticatorsFor, createAuthenticator } from '#auth/authenticators/index.ts'
import { createRequestHeaderAuthenticator, findRequestHeaderRisk } from '#auth/authenticators/request-header.ts'
import type { LiveObjects } from '#auth/live-objects.ts'
import { requestHeaders } from '#component/forwarding/headers.ts'
import { createVirtualClock, type VirtualClock } from '#lib/clock.ts'
import type { Exchange } from '#lib/http/exchange.ts'
import { createSeededRandom } from '#lib/random.ts'
import { type Certificate, signCertificate, type Signer } from '#lib/x509/certificate.ts'
import { createKey } from '#lib/x509/key.ts'
import { type Name, nameOf } from '#lib/x509/name.ts'
import type { Usage } from '#lib/x509/usage.ts'

const random = createSeededRandom(1)
const clock0 = createVirtualClock()
const DAY = 86_400_000

interface CertificateTemplate {
  readonly subject?: Name
  readonly usages?: readonly Usage[]
  readonly fromMs?: number
  readonly untilMs?: number
  readonly isAuthority?: boolean
}

function issue(by: Signer | undefined, template: CertificateTemplate): Signer & { certificate: Certificate } {
  const key = createKey()
  const now = clock0.now()
  const certificate = signCertificate(
    {
      subject: template.subject ?? nameOf({ commonName: 'x' }),
      key,
      notBeforeMs: template.fromMs ?? now - DAY,
      notAfterMs: template.untilMs ?? now + DAY,
      usages: [...(template.usages ?? ['client auth'])],
      ...(template.isAuthority === true ? { authority: {}, usages: ['cert sign'] } : {}),
    },
    by ?? { key },
    random,
  )
  return { key, certificate }
}

const authority = (name: string): Signer & { certificate: Certificate } =>
  issue(undefined, { subject: nameOf({ commonName: name }), isAuthority: true, untilMs: clock0.now() + 100 * DAY })

function exchangeWith(chain: readonly Certificate[], rawHeaders: readonly string[] = [], isTrusted = true): Exchange {
  const [leaf] = chain
  const peer = {
    address: '127.0.0.1',
    port: 1,
    isEncrypted: true,
    serverName: undefined,
    isTrusted,
    certificate: leaf === undefined ? undefined : new X509Certificate(leaf.der),
    chain: () => chain.map(({ der }) => der),
  }
  return { peer, rawHeaders, headers: {} } as unknown as Exchange
}

const clients = authority('clients')
const proxies = authority('proxies')
const roots = [clients.certificate]

function ask(chain: readonly Certificate[], clock: VirtualClock = clock0): string | undefined {
  return createClientCertAuthenticator({ clock, authorities: () => roots })(exchangeWith(chain))?.name
}

describe('authentication by client certificate', () => {
  it('yields user name, groups and a fingerprint of the certificate', () => {
    const { certificate } = issue(clients, { subject: nameOf({ commonName: 'jane', organizations: ['dev', 'ops'] }) })
    const user = createClientCertAuthenticator({ clock: clock0, authorities: () => roots })(exchangeWith([certificate]))
    assert.equal(user?.name, 'jane')
    assert.deepEqual(user.groups, ['dev', 'ops', 'system:authenticated'])
    assert.match(user.extra['authentication.kubernetes.io/credential-id']?.[0] ?? '', /^X509SHA256=[0-9a-f]{64}$/)
  })

  it('yields the UID in the certificate, unless the feature is disabled', () => {
    const jane = nameOf({ commonName: 'jane' })
    const attributes = [...jane.attributes, { oid: '1.3.6.1.4.1.57683.2', value: 'u-1' }]
    const { certificate } = issue(clients, { subject: { ...jane, attributes } })
    const uidOf = (settings: object): string | undefined =>
      createClientCertAuthenticator({ clock: clock0, authorities: () => roots, ...settings })(
        exchangeWith([certificate]),
      )?.uid
    assert.deepEqual([uidOf({}), uidOf({ readsUid: false })], ['u-1', ''])
  })

  const intermediate = issue(clients, { subject: nameOf({ commonName: 'middle' }), isAuthority: true })
  const table: [title: string, chain: () => Certificate[], expected: string | RegExp | undefined][] = [
    ['yields no user without a client certificate', () => [], undefined],
    ['yields the user of a certificate signed by the authority', () => [issue(clients, {}).certificate], 'x'],
    [
      'yields the user of a certificate signed by an intermediate CA that was sent',
      () => [issue(intermediate, {}).certificate, intermediate.certificate],
      'x',
    ],
    [
      'rejects a certificate signed by an intermediate CA that was not sent',
      () => [issue(intermediate, {}).certificate],
      /unknown authority/,
    ],
    [
      'yields no user for a certificate without a common name',
      () => [issue(clients, { subject: nameOf({ commonName: '', organizations: ['system:masters'] }) }).certificate],
      undefined,
    ],
    ['rejects a certificate signed by another authority', () => [issue(proxies, {}).certificate], /unknown authority/],
    [
      'rejects a certificate signed by another authority of the same name',
      () => [issue(authority('clients'), {}).certificate],
      /not signed by|unknown authority/,
    ],
    [
      'rejects a self-signed certificate',
      () => [issue(undefined, { subject: nameOf({ commonName: 'root' }) }).certificate],
      /unknown authority/,
    ],
    [
      'rejects a certificate signed by another client',
      () => {
        const middle = issue(clients, {})
        return [issue(middle, {}).certificate, middle.certificate]
      },
      /may not sign/,
    ],
    [
      'rejects a certificate for servers only',
      () => [issue(clients, { usages: ['server auth'] }).certificate],
      /not for "client auth"/,
    ],
    [
      'rejects an expired certificate',
      () => [issue(clients, { fromMs: clock0.now() - 2 * DAY, untilMs: clock0.now() - 1 }).certificate],
      /expired/,
    ],
    [
      'rejects a certificate that is not yet valid',
      () => [issue(clients, { fromMs: clock0.now() + 1000 }).certificate],
      /not valid before/,
    ],
  ]
  for (const [title, chain, expected] of table) {
    it(title, () => {
      if (expected instanceof RegExp) assert.throws(() => ask(chain()), expected)
      else assert.equal(ask(chain()), expected)
    })
  }

  it('verifies once per connection, and again when the certificate expires or authorities change', async () => {
    const clock = createVirtualClock(clock0.now())
    const { certificate } = issue(clients, { untilMs: clock.now() + 60_000 })
    let trusted: readonly Certificate[] = roots
    const authenticate = createClientCertAuthenticator({ clock, authorities: () => trusted })
    const exchange = exchangeWith([certificate])
    const first = authenticate(exchange)
    assert.equal(authenticate(exchange), first)
    trusted = [proxies.certificate]
    assert.throws(() => authenticate(exchange), /unknown authority/)
    trusted = roots
    assert.equal(authenticate(exchange)?.name, 'x')
    await clock.advance(61_000)
    assert.throws(() => authenticate(exchange), /expired/)
  })
})

describe('authentication by a client certificate that TLS rejected', () => {
  const { certificate } = issue(clients, {})

  it('fails for every request of the connection', async () => {
    const clock = createVirtualClock(clock0.now())
    const authenticate = createClientCertAuthenticator({ clock, authorities: () => roots })
    const exchange = exchangeWith([certificate], [], false)
    assert.throws(() => authenticate(exchange), /OpenSSL does not find it signed/)
    await clock.advance(60_000)
    assert.throws(() => authenticate(exchange), /OpenSSL does not find it signed/)
  })

  it('succeeds once the authority of the certificate is trusted, even after the handshake', () => {
    let trusted: readonly Certificate[] = [proxies.certificate]
    const authenticate = createClientCertAuthenticator({ clock: clock0, authorities: () => trusted })
    const exchange = exchangeWith([certificate], [], false)
    assert.throws(() => authenticate(exchange), /unknown authority/)
    trusted = roots
    assert.equal(authenticate(exchange)?.name, 'x')
  })
})

describe('authentication by request headers', () => {
  const proxy = issue(proxies, { subject: nameOf({ commonName: 'front-proxy' }) }).certificate
  const other = issue(proxies, { subject: nameOf({ commonName: 'other' }) }).certificate
  const jane = issue(clients, { subject: nameOf({ commonName: 'front-proxy' }) }).certificate
  const headers = [
    'X-Remote-User',
    'joe',
    'X-Remote-Group',
    'a',
    'x-remote-group',
    'b',
    'X-Remote-Extra-Acme.com%2fTeam',
    't',
    'X-Remote-Uid',
    '7',
  ]
  const authenticate = createRequestHeaderAuthenticator({
    clock: clock0,
    authorities: () => [proxies.certificate],
    allowedNames: ['front-proxy'],
    usernameHeaders: ['X-Remote-User'],
    uidHeaders: ['X-Remote-Uid'],
    groupHeaders: ['X-Remote-Group'],
    extraHeaderPrefixes: ['X-Remote-Extra-'],
  })

  it('accepts X-Remote headers from the front proxy', () => {
    assert.deepEqual(authenticate(exchangeWith([proxy], headers)), {
      name: 'joe',
      uid: '7',
      groups: ['a', 'b'],
      extra: { 'acme.com/team': ['t'] },
    })
    assert.equal(authenticate(exchangeWith([proxy])), undefined)
  })

  it('rejects X-Remote headers from other peers', () => {
    assert.equal(authenticate(exchangeWith([], headers)), undefined)
    assert.throws(() => authenticate(exchangeWith([other], headers)), /cn=other is not in the allowed list/)
    assert.throws(() => authenticate(exchangeWith([jane], headers)), /unknown authority/)
  })

  it('removes X-Remote headers of every client, under any configured name', async () => {
    const own = {
      'x-acme-user': 'joe',
      'x-acme-uid': '7',
      'x-acme-group': 'system:masters',
      'acme-extra-team': 't',
      accept: '*/*',
    }
    const { authenticate: ask } = createAuthenticator(
      authenticatorsFor({
        clock: clock0,
        objects: {} as LiveObjects,
        apiAudiences: [],
        requestHeader: {
          authorities: () => [proxies.certificate],
          allowedNames: [],
          usernameHeaders: ['X-Acme-User'],
          uidHeaders: ['X-Acme-Uid'],
          groupHeaders: ['X-Acme-Group'],
          extraHeaderPrefixes: ['Acme-Extra-'],
        },
      }),
    )
    for (const chain of [[proxy], []]) {
      const exchange = { ...exchangeWith(chain, Object.entries(own).flat()), headers: { ...own } }
      const user = await ask(exchange)
      assert.equal(user?.name, chain.length === 0 ? undefined : 'joe')
      assert.deepEqual(requestHeaders({ ...exchange, authority: '' }), {
        accept: '*/*',
        'x-forwarded-for': '127.0.0.1',
      })
    }
  })

  it('requires a CA that differs from the client CA', () => {
    assert.match(findRequestHeaderRisk(roots, roots, []) ?? '', /allowed-names/)
    assert.equal(findRequestHeaderRisk(roots, roots, ['front-proxy']), undefined)
    assert.equal(findRequestHeaderRisk([proxies.certificate], roots, []), undefined)
  })
})
