/**
 * Tests log-in to `hyperkube server` with real identity providers: `node test/upstream/identity-providers.ts`. They
 * are Debian's slapd with users and nested groups, and the npm package oidc-provider. Groups of both grant
 * permissions.
 */
import { spawnSync } from 'node:child_process'
import { mkdirSync, mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'

import { realClock, sleep } from '#lib/clock.ts'

import { type CertificateFiles, writeCertificate } from './identity-providers/certificate.ts'
import { CLIENT, startOpenIdProvider } from './identity-providers/openid.ts'
import { BASE, PASSWORDS, SERVICE, startSlapd } from './identity-providers/slapd.ts'
import { Visitor } from './identity-providers/visitor.ts'
import { type ManagementServer, startManagementServer } from './management-server.ts'
import { HYPERKUBE } from './ours.ts'

const problems: string[] = []
let checks = 0

function check(what: string, found: unknown, wanted: unknown): void {
  checks++
  if (JSON.stringify(found) !== JSON.stringify(wanted)) {
    problems.push(`${what}: found ${JSON.stringify(found)}, wanted ${JSON.stringify(wanted)}`)
    process.stdout.write(`NOT OK ${problems.at(-1)}\n`)
  }
}

const folder = mkdtempSync(join(tmpdir(), 'identity-providers-'))
await using closing = new AsyncDisposableStack()
closing.defer(() => rmSync(folder, { recursive: true, force: true }))
const files = writeCertificate(folder)
const server = closing.use(await startManagementServer(join(folder, 'server')))
await judgeSlapd(server, files)
await judgeOpenId(server, files)
process.stdout.write(
  problems.length === 0
    ? `slapd and oidc-provider log users in, and their groups count: ${checks} checks\n`
    : `${problems.length} of ${checks} checks failed\n`,
)
process.exitCode = problems.length === 0 ? 0 : 1

function apply(objects: readonly object[]): void {
  const config = join(folder, 'server', 'data', 'admin.kubeconfig')
  const input = objects.map((object) => JSON.stringify(object)).join('\n---\n')
  const done = spawnSync(HYPERKUBE, ['kubectl', '--kubeconfig', config, 'apply', '-f', '-'], {
    input,
    encoding: 'utf8',
  })
  if (done.status !== 0) throw new Error(`kubectl apply failed: ${done.stderr}`)
}

function secret(name: string, key: string, value: string): object {
  const metadata = { name, namespace: 'hyperkube-management' }
  return { apiVersion: 'v1', kind: 'Secret', metadata, stringData: { [key]: value } }
}

function provider(name: string, spec: object): object {
  return { apiVersion: 'management.hyperkube.io/v1', kind: 'AuthProvider', metadata: { name }, spec }
}

/** The response of the server to a request with this token, or without one. */
async function ask(method: string, path: string, more: { token?: string; body?: object } = {}): Promise<Answered> {
  return server.answer({ method, path, ...more })
}

type Answered = Awaited<ReturnType<ManagementServer['answer']>>

async function judgeSlapd(management: ManagementServer, { authority }: CertificateFiles): Promise<void> {
  const data = join(folder, 'slapd')
  mkdirSync(data)
  await using slapd = await startSlapd(data, files)
  const ldap = {
    bindDN: SERVICE.dn,
    bindSecretName: 'ldap',
    users: { searchBase: `ou=people,${BASE}` },
    groups: { searchBase: `ou=groups,${BASE}` },
  }
  const common = { type: 'ldap', certificateAuthority: authority, createsUsers: true }
  apply([
    secret('ldap', 'password', SERVICE.password),
    secret('wrong', 'password', 'wrong'),
    provider('corp', { ...common, ldap: { ...ldap, url: slapd.plainUrl } }),
    provider('tls', { ...common, ldap: { ...ldap, url: slapd.tlsUrl } }),
    provider('flat', { ...common, ldap: { ...ldap, url: slapd.tlsUrl, groups: { ...ldap.groups, maxDepth: 0 } } }),
    provider('untrusted', { ...common, certificateAuthority: '', ldap: { ...ldap, url: slapd.tlsUrl } }),
    provider('misconfigured', { ...common, ldap: { ...ldap, url: slapd.tlsUrl, bindSecretName: 'wrong' } }),
    provider('blind', { ...common, ldap: { users: ldap.users, url: slapd.tlsUrl } }),
  ])
  await management.request('POST', '/v3/members', { role: 'users-manage', group: 'corp:engineers' })
  await judgeLdapUsers()
  await judgeLdapRefusals()
}

async function logIn(name: string, username: string, password: string): Promise<Answered> {
  const body = { provider: name, username, password, responseType: 'token' }
  for (;;) {
    const answer = await ask('POST', '/v3-public/login', { body })
    if (answer.status !== 404) return answer
    // The server has not seen the new AuthProvider yet.
    await sleep(realClock, 100)
  }
}

/** The groups that the server knows after a log-in, and the answer to a request that needs a right. */
async function groupsOf(name: string, username: string): Promise<readonly [unknown, number]> {
  const answer = await logIn(name, username, PASSWORDS[username] ?? '')
  if (answer.status !== 200) return [answer.text, answer.status]
  const { token } = JSON.parse(answer.text) as { readonly token: string }
  const me = JSON.parse((await ask('GET', '/v3/me', { token })).text) as { readonly groups: readonly string[] }
  return [me.groups.toSorted((a, b) => (a < b ? -1 : 1)), (await ask('GET', '/v3/users', { token })).status]
}

async function judgeLdapUsers(): Promise<void> {
  const all = ['circle', 'devs', 'engineers', 'everybody']
  const named = (name: string, groups: readonly string[]): string[] => groups.map((group) => `${name}:${group}`)
  check('jane with StartTLS', await groupsOf('corp', 'jane'), [named('corp', all), 200])
  check('o(brien)*', await groupsOf('corp', 'o(brien)*'), [named('corp', all), 200])
  check('jürgen', await groupsOf('corp', 'jürgen'), [['corp:others'], 403])
  check('back\\slash', await groupsOf('corp', 'back\\slash'), [[], 403])
  check('jane with TLS', await groupsOf('tls', 'jane'), [named('tls', all), 403])
  check('jane without nested groups', await groupsOf('flat', 'jane'), [['flat:devs'], 403])
}

async function judgeLdapRefusals(): Promise<void> {
  const right = PASSWORDS['jane'] ?? ''
  const rows: readonly (readonly [provider: string, username: string, password: string, status: number])[] = [
    ['corp', 'jane', 'wrong', 401],
    ['corp', 'jane', '', 401],
    ['corp', 'nobody', right, 401],
    ['corp', '*', right, 401],
    ['corp', 'ja*', right, 401],
    ['corp', 'jane)(objectClass=*', right, 401],
    ['corp', 'jane\0', right, 401],
    ['untrusted', 'jane', right, 503],
    ['misconfigured', 'jane', right, 503],
    // slapd shows nothing to anonymous callers, not even the search base.
    ['blind', 'jane', right, 503],
  ]
  for (const [name, username, password, status] of rows)
    check(`${name} ${JSON.stringify(username)}`, (await logIn(name, username, password)).status, status)
}

async function judgeOpenId(management: ManagementServer, { authority }: CertificateFiles): Promise<void> {
  const redirectUri = `${management.url}/v3-public/oidc/idp/callback`
  await using idp = await startOpenIdProvider(redirectUri, files)
  const spec = { type: 'oidc', issuer: idp.issuer, clientID: CLIENT.id, clientSecretName: 'idp', createsUsers: true }
  apply([secret('idp', 'clientSecret', CLIENT.secret), provider('idp', { ...spec, certificateAuthority: authority })])
  await management.request('POST', '/v3/members', { role: 'users-manage', group: 'idp:devs' })
  const mary = await visit(management, authority, 'mary')
  check('mary comes back', [mary.status, mary.text.includes('url=/clusters')], [200, true])
  check('groups of mary', JSON.parse(mary.me).groups, ['idp:devs', 'idp:staff'])
  check('rights of mary', mary.users, 200)
  const peter = await visit(management, authority, 'peter')
  check('groups of peter', JSON.parse(peter.me).groups, [])
  check('rights of peter', peter.users, 403)
  const again = await mary.visitor.get(mary.callback)
  check('the code a second time', again.status, 401)
}

interface OpenIdVisit {
  readonly visitor: Visitor
  readonly status: number
  readonly text: string
  /** The address at which the provider sent the browser back. */
  readonly callback: string
  readonly me: string
  readonly users: number
}

/** Logs in as a person would: the form of the provider, its consent, and back. */
async function visit(management: ManagementServer, authority: string, login: string): Promise<OpenIdVisit> {
  const visitor = new Visitor([authority, management.authority])
  const begin = `${management.url}/v3-public/oidc/idp/login?returnTo=${encodeURIComponent('/clusters')}`
  let page = await visitor.get(begin)
  while (page.status === 404) page = await visitor.get(begin)
  for (let forms = 0; forms < 3 && !page.url.startsWith(management.url); forms++) {
    const action = /<form[^>]*action="([^"]+)"/.exec(page.text)?.[1] ?? page.url
    const prompt = /name="prompt" value="([^"]+)"/.exec(page.text)?.[1] ?? ''
    const fields = { prompt, ...(prompt === 'login' && { login, password: 'any' }) }
    page = await visitor.post(new URL(action, page.url).href, fields)
  }
  const me = await visitor.get(`${management.url}/v3/me`)
  const users = await visitor.get(`${management.url}/v3/users`)
  return { visitor, status: page.status, text: page.text, callback: page.url, me: me.text, users: users.status }
}
