/** An OpenID provider with a page of its own, and an LDAP server, as identity providers of a management server. */
import { Secrets } from '#apis/core/v1.ts'
import { type DirectoryEntry, startFakeLdap } from '#kits/management/fake-ldap.ts'
import { FakeProvider } from '#kits/management/fake-provider.ts'
import { realClock } from '#lib/clock.ts'
import type { Exchange } from '#lib/http/exchange.ts'
import { createHttpServer } from '#lib/http/server.ts'
import { secureRandom } from '#lib/random.ts'
import { createAuthority } from '#lib/x509/authority.ts'
import { AuthProviders } from '#management/kinds/auth-provider.ts'
import { MANAGEMENT_NAMESPACE } from '#management/objects.ts'

import type { ManagementBed } from '../management/bed.ts'

const BASE = 'dc=example,dc=org'
const ENTRIES: readonly DirectoryEntry[] = [
  { dn: `cn=service,${BASE}`, password: 'secret', attributes: {} },
  {
    dn: `uid=jürgen,ou=people,${BASE}`,
    password: 'password of jürgen',
    attributes: { objectClass: ['person'], uid: ['jürgen'], cn: ['Jürgen Groß'], entryUUID: ['uuid-jürgen'] },
  },
  {
    dn: `cn=devs,ou=groups,${BASE}`,
    attributes: { objectClass: ['groupOfNames'], cn: ['devs'], member: [`uid=jürgen,ou=people,${BASE}`] },
  },
]

/** Adds the providers `corp` (LDAP: jürgen, group devs) and `idp` (OpenID: mary, group staff). */
export async function addIdentityProviders({ running }: ManagementBed, closing: AsyncDisposableStack): Promise<void> {
  const authority = createAuthority({ commonName: 'providers' }, { clock: realClock, random: secureRandom })
  const names = { dns: ['localhost'], ips: ['127.0.0.1'] }
  const { certificatePem: certificate, keyPem: key } = authority.issue({ commonName: 'idp', names, purpose: 'server' })
  const ldap = closing.use(await startFakeLdap({ certificate, key, entries: ENTRIES }))
  const issuer = await startOpenId({ certificate, key }, closing)
  const { objects } = running
  const secret = (name: string, data: string, value: string): Promise<unknown> => {
    const metadata = { name, namespace: MANAGEMENT_NAMESPACE }
    return objects.client.create(Secrets, { metadata, data: { [data]: Buffer.from(value).toString('base64') } })
  }
  await secret('ldap', 'password', 'secret')
  await secret('idp', 'clientSecret', CLIENT.clientSecret)
  const common = { certificateAuthority: authority.certificatePem, createsUsers: true }
  await objects.create(AuthProviders, {
    metadata: { name: 'corp' },
    spec: {
      ...common,
      type: 'ldap',
      displayName: 'Directory',
      ldap: {
        url: `ldap://127.0.0.1:${ldap.port}`,
        bindDN: `cn=service,${BASE}`,
        bindSecretName: 'ldap',
        users: { searchBase: `ou=people,${BASE}` },
        groups: { searchBase: `ou=groups,${BASE}` },
      },
    },
  })
  await objects.create(AuthProviders, {
    metadata: { name: 'idp' },
    spec: { ...common, type: 'oidc', displayName: 'Corp', issuer, clientID: CLIENT.clientId, clientSecretName: 'idp' },
  })
}

const CLIENT = { clientId: 'hk', clientSecret: 's' }

/** At another site than the server, so that browsers apply their rules about cookies. */
async function startOpenId(
  tls: { readonly certificate: string; readonly key: string },
  closing: AsyncDisposableStack,
): Promise<string> {
  let provider: FakeProvider | undefined
  let issuer = ''
  const server = createHttpServer({
    clock: realClock,
    tls,
    serve: (exchange) => (provider === undefined ? undefined : answer(exchange, provider, issuer)),
  })
  const bound = await server.listen({ host: '127.0.0.1', port: 0 })
  closing.defer(() => server.drain(0))
  issuer = `https://localhost:${'port' in bound ? bound.port : 0}`
  provider = new FakeProvider({ clock: realClock, issuer, ...CLIENT })
  return issuer
}

/** The log-in page asks who it is, and sends the browser back. */
async function answer(exchange: Exchange, provider: FakeProvider, issuer: string): Promise<void> {
  const { method, path, headers } = exchange
  const { pathname } = new URL(path, issuer)
  if (pathname === '/authorize' && method === 'GET') {
    const page = '<!doctype html><title>Corp</title><form method="post"><button>I am Mary</button></form>'
    return exchange.respond(200, ['Content-Type', 'text/html'], Buffer.from(page))
  }
  if (pathname === '/authorize') {
    const claims = { sub: 'mary-1', preferred_username: 'Mary', groups: ['staff'] }
    const query = provider.authorize(issuer + path, claims)
    const back = new URL(path, issuer).searchParams.get('redirect_uri') ?? ''
    return exchange.respond(303, ['Location', `${back}?${query.toString()}`])
  }
  const sent = (await exchange.readBody(1 << 16)).toString()
  const authorization = headers.authorization ?? ''
  const { status, body } = provider.answer({ method, url: issuer + path, headers: { authorization }, body: sent })
  const text = typeof body === 'string' ? body : JSON.stringify(body)
  exchange.respond(status, ['Content-Type', 'application/json'], Buffer.from(text))
}
