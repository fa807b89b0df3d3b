/**
 * Tests kube-apiserver as a program inside the test process: it starts with typical flags, serves over TLS, and stops
 * as after SIGTERM.
 */
import assert from 'node:assert/strict'
import { existsSync, mkdtempSync, readdirSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs'
import { readFile } from 'node:fs/promises'
import { type AddressInfo, createServer } from 'node:net'
import { hostname, tmpdir } from 'node:os'
import { join, resolve } from 'node:path'
import { Writable } from 'node:stream'
import { after, before, describe, it } from 'node:test'

import { identityOf } from '#apiserver/bootstrap/identity-lease.ts'
import { apiserver } from '#cmd/apiserver.ts'
import { FEATURE_GATES } from '#component/flags/gates.ts'
import { type Clock, realClock } from '#lib/clock.ts'
import { createHttpClient, type HttpClient } from '#lib/http/client.ts'
import type { Exchange } from '#lib/http/exchange.ts'
import { createHttpServer } from '#lib/http/server.ts'
import { discoveryDocument, toKeySet, verifyingKey } from '#lib/jwt/key.ts'
import { createSigner } from '#lib/jwt/token.ts'
import { secureRandom } from '#lib/random.ts'
import { createAuthority } from '#lib/x509/authority.ts'
import { createKey, keyToPem } from '#lib/x509/key.ts'

const tools = { clock: realClock, random: secureRandom }

/** Files are looked at every 5 s; here a hundred times as often. */
const hasty: Clock = {
  ...realClock,
  after: (delayMs, task, options) => realClock.after(delayMs === 5000 ? 50 : delayMs, task, options),
}

interface Ran {
  readonly code: number
  readonly err: string
}

interface Started {
  readonly url: string
  /** Stops it as a signal would. */
  stop(): Promise<Ran>
}

function run(dir: string, args: readonly string[], signal: AbortSignal, told: (text: string) => void): Promise<number> {
  const sink = (take: (text: string) => void): Writable =>
    new Writable({
      write(chunk: Buffer, _encoding, done) {
        take(chunk.toString())
        done()
      },
    })
  const context = {
    path: ['kube-apiserver'],
    args,
    env: {},
    cwd: dir,
    stdin: () => process.stdin,
    stdout: sink(() => undefined),
    stderr: sink(told),
    clock: hasty,
    random: secureRandom,
    readFile: (path: string) => readFile(resolve(dir, path), 'utf8'),
  }
  return apiserver.run(context, signal)
}

async function start(dir: string, args: readonly string[]): Promise<Started> {
  const controller = new AbortController()
  const ready = Promise.withResolvers<string>()
  let err = ''
  const ended = run(dir, args, controller.signal, (text) => {
    err += text
    const port = /Serving securely on 127\.0\.0\.1:(\d+)/.exec(err)?.[1]
    if (port !== undefined) ready.resolve(`https://127.0.0.1:${port}`)
  })
  ended.then(
    (code) => ready.reject(new Error(`Ended with ${code}: ${err}`)),
    (error: unknown) => ready.reject(error as Error),
  )
  const url = await ready.promise
  return {
    url,
    async stop() {
      controller.abort(new Error('SIGTERM'))
      return { code: await ended, err }
    },
  }
}

/** Runs it to its end, which comes soon: were it to start after all, it would be stopped at once. */
async function refused(dir: string, args: readonly string[]): Promise<Ran> {
  const controller = new AbortController()
  let err = ''
  const code = await run(dir, args, controller.signal, (text) => {
    err += text
    if (err.includes('Serving securely')) controller.abort(new Error('It should not have started'))
  })
  return { code, err }
}

/** The flags envtest gives, but for the store. */
const ENVTEST = [
  '--datastore=memory',
  '--bind-address=127.0.0.1',
  '--cert-dir=certs',
  '--secure-port=0',
  '--service-cluster-ip-range=10.0.0.0/24',
  '--allow-privileged=true',
  '--disable-admission-plugins=ServiceAccount',
  '--authorization-mode=RBAC',
  '--service-account-signing-key-file=sa.key',
  '--service-account-key-file=sa.pub',
  '--service-account-issuer=https://127.0.0.1/',
  '--client-ca-file=ca.crt',
]

const clients = createAuthority({ commonName: 'clients' }, tools)

function makeDir(): string {
  const dir = mkdtempSync(join(tmpdir(), 'hyperkube-apiserver-'))
  const key = createKey('ecdsa-p256')
  writeFileSync(join(dir, 'sa.key'), keyToPem(key), { mode: 0o600 })
  writeFileSync(join(dir, 'sa.pub'), keyToPem(key))
  writeFileSync(join(dir, 'ca.crt'), clients.certificatePem)
  writeFileSync(join(dir, 'tokens.csv'), 'sesame,ali,1,"system:masters"\n', { mode: 0o600 })
  return dir
}

function clientFor(ca: string, commonName: string, organizations: readonly string[] = []): HttpClient {
  if (commonName === '') return createHttpClient({ clock: realClock, tls: { ca } })
  const { certificatePem, keyPem } = clients.issue({ commonName, organizations, purpose: 'client' })
  return createHttpClient({ clock: realClock, tls: { ca, certificate: certificatePem, key: keyPem } })
}

interface Got {
  readonly status: number
  readonly text: string
  readonly headers: Readonly<Record<string, unknown>>
}

async function call(
  client: HttpClient,
  url: string,
  options: { method?: string; body?: unknown; headers?: Record<string, string> } = {},
): Promise<Got> {
  const { method = 'GET', body, headers = {} } = options
  const response = await client.request({
    url,
    method,
    headers: { ...(body !== undefined && { 'content-type': 'application/json' }), ...headers },
    ...(body !== undefined && { body: JSON.stringify(body) }),
    timeoutMs: 60_000,
  })
  return { status: response.status, text: await response.text(1 << 24), headers: response.headers }
}

const configMap = (name: string): object => ({ metadata: { name }, data: { a: 'b' } })
const MAPS = '/api/v1/namespaces/default/configmaps'

describe('kube-apiserver', () => {
  const dir = makeDir()
  let server: Started
  let ca: string
  let admin: HttpClient
  let jane: HttpClient
  let nobody: HttpClient

  before(async () => {
    server = await start(dir, [
      ...ENVTEST,
      '--token-auth-file=tokens.csv',
      '--external-hostname=127.0.0.1',
      '--cors-allowed-origins=//localhost(:|$)',
      '--strict-transport-security-directives=max-age=60,includeSubDomains',
      '--runtime-config=policy/v1=false,apps/v1/controllerrevisions=false,authorization.k8s.io/v1beta1=true',
      '--feature-gates=AllAlpha=false,kube:WatchList=true',
      '--profiling=false',
      '--v=2',
    ])
    ca = readFileSync(join(dir, 'certs', 'apiserver.crt'), 'utf8')
    admin = clientFor(ca, 'admin', ['system:masters'])
    jane = clientFor(ca, 'jane')
    nobody = clientFor(ca, '')
  })

  after(async () => {
    for (const client of [admin, jane, nobody]) client.close()
    const { code } = await server.stop()
    assert.equal(code, 0)
    rmSync(dir, { recursive: true, force: true })
  })

  it('creates a self-signed certificate that only its owner can read', () => {
    for (const file of ['apiserver.crt', 'apiserver.key']) {
      assert.equal(statSync(join(dir, 'certs', file)).mode & 0o777, 0o600)
    }
  })

  it('authenticates and authorizes client certificates', async () => {
    const created = await call(admin, server.url + MAPS, { method: 'POST', body: configMap('one') })
    assert.equal(created.status, 201, created.text)
    const forbidden = await call(jane, `${server.url}${MAPS}/one`)
    assert.equal(forbidden.status, 403)
    assert.match(forbidden.text, /configmaps \\"one\\" is forbidden: User \\"jane\\" cannot get resource/)
  })

  it('allows anonymous users only health and version', async () => {
    assert.equal((await call(nobody, `${server.url}/readyz`)).text, 'ok')
    assert.match((await call(nobody, `${server.url}/version`)).text, /"gitVersion": "v1\.36/)
    const got = await call(nobody, server.url + MAPS)
    assert.equal(got.status, 403)
    assert.match(got.text, /User \\"system:anonymous\\"/)
  })

  it('accepts static tokens and refuses unknown ones', async () => {
    const url = `${server.url}/api/v1/namespaces`
    assert.equal((await call(nobody, url, { headers: { authorization: 'Bearer sesame' } })).status, 200)
    assert.equal((await call(nobody, url, { headers: { authorization: 'Bearer guess' } })).status, 401)
  })

  it('allows impersonation only to authorized users', async () => {
    const url = `${server.url}${MAPS}`
    const asJane = await call(admin, url, { headers: { 'impersonate-user': 'jane' } })
    assert.match(asJane.text, /User \\"jane\\" cannot list resource/)
    const asAdmin = await call(jane, url, {
      headers: { 'impersonate-user': 'admin', 'impersonate-group': 'system:masters' },
    })
    assert.equal(asAdmin.status, 403)
    assert.match(asAdmin.text, /cannot impersonate/)
  })

  it('issues service account tokens that it accepts, and publishes the keys to verify them', async () => {
    const accounts = `${server.url}/api/v1/namespaces/default/serviceaccounts`
    await call(admin, accounts, { method: 'POST', body: { metadata: { name: 'robot' } } })
    const issued = await call(admin, `${accounts}/robot/token`, { method: 'POST', body: { spec: {} } })
    assert.equal(issued.status, 201, issued.text)
    const { token } = (JSON.parse(issued.text) as { status: { token: string } }).status
    const got = await call(nobody, server.url + MAPS, { headers: { authorization: `Bearer ${token}` } })
    assert.match(got.text, /User \\"system:serviceaccount:default:robot\\" cannot list/)
    const found = await call(admin, `${server.url}/.well-known/openid-configuration`)
    const { issuer, jwks_uri: keys } = JSON.parse(found.text) as Record<string, string>
    assert.equal(issuer, 'https://127.0.0.1/')
    assert.equal(keys, `${server.url}/openid/v1/jwks`)
    assert.match((await call(admin, keys)).text, /"keys":\[\{"use":"sig","kty":"EC"/)
  })

  it('publishes its identity Lease and its address', async () => {
    const leases = await call(admin, `${server.url}/apis/coordination.k8s.io/v1/namespaces/kube-system/leases`)
    assert.ok(leases.text.includes(`"name":"${identityOf(hostname())}"`), leases.text)
    const { port } = new URL(server.url)
    assert.match((await call(admin, `${server.url}/api`)).text, new RegExp(`"serverAddress":"[^"]+:${port}"`))
  })

  it('serves only the versions that --runtime-config enables', async () => {
    assert.equal((await call(admin, `${server.url}/apis/apps/v1/deployments`)).status, 200)
    assert.equal((await call(admin, `${server.url}/apis/policy/v1/poddisruptionbudgets`)).status, 404)
    assert.equal((await call(admin, `${server.url}/apis/apps/v1/controllerrevisions`)).status, 404)
  })

  it('allows configured CORS origins, and adds fixed headers to every response', async () => {
    const asked = { method: 'OPTIONS', headers: { origin: 'http://localhost:8080' } }
    const got = await call(nobody, server.url + MAPS, asked)
    assert.equal(got.status, 204)
    assert.equal(got.headers['access-control-allow-origin'], 'http://localhost:8080')
    const other = await call(nobody, `${server.url}/version`, { headers: { origin: 'http://elsewhere' } })
    assert.equal(other.headers['access-control-allow-origin'], undefined)
    assert.equal(other.headers['strict-transport-security'], 'max-age=60; includeSubDomains')
  })

  it("has upstream's metrics", async () => {
    const { status, text } = await call(admin, `${server.url}/metrics`)
    assert.equal(status, 200)
    for (const line of [
      /^apiserver_request_total\{code="201",component="apiserver",dry_run="",group="",resource="configmaps",scope="(?:namespace|resource)",subresource="",verb="POST",version="v1"\} \d+$/m,
      /^apiserver_request_duration_seconds_bucket\{.*verb="LIST".*le="0\.005"\} \d+$/m,
      /^apiserver_current_inflight_requests\{request_kind="mutating"\} 0$/m,
      /^apiserver_storage_objects\{resource="namespaces"\} 4$/m,
      /^process_resident_memory_bytes \S+$/m,
      /^kubernetes_build_info\{.*git_version="v1\.36/m,
      /^kubernetes_feature_enabled\{name="WatchList",stage="BETA"\} 1$/m,
      /^apiserver_admission_step_admission_duration_seconds_count\{operation="CREATE",rejected="false",type="validate"\} [1-9]/m,
      /^apiserver_authorization_decisions_total\{.*\} [1-9]/m,
      /^apiserver_client_certificate_expiration_seconds_count [1-9]/m,
      /^apiserver_flowcontrol_dispatched_requests_total\{flow_schema="exempt",priority_level="exempt"\} [1-9]/m,
      /^apiserver_storage_size_bytes\{storage_cluster_id="etcd-0"\} \d/m,
      /^apiserver_watch_cache_events_dispatched_total\{group="",resource="configmaps"\} [1-9]/m,
      /^authentication_attempts\{result="success"\} [1-9]/m,
      /^etcd_request_duration_seconds_count\{group="",operation="create",resource="configmaps"\} [1-9]/m,
    ]) {
      assert.match(text, line)
    }
    assert.equal((await call(nobody, `${server.url}/metrics`)).status, 403)
  })

  it('resets metrics on request, and serves each health check', async () => {
    const reset = await call(admin, `${server.url}/metrics`, { method: 'DELETE' })
    assert.deepEqual([reset.status, reset.text], [200, 'metrics reset\n'])
    assert.doesNotMatch((await call(admin, `${server.url}/metrics`)).text, /verb="POST"/)
    assert.match(
      (await call(admin, `${server.url}/readyz?verbose`)).text,
      /^\[\+\]poststarthook\/rbac\/bootstrap-roles ok$/m,
    )
    const slis = (await call(admin, `${server.url}/metrics/slis`)).text
    assert.match(slis, /^kubernetes_healthcheck\{name="etcd-readiness",type="readyz"\} 1$/m)
  })

  it('serves pages with its version and its flags', async () => {
    assert.match((await call(admin, `${server.url}/statusz`)).text, /^\nkube-apiserver statusz\n/)
    const headers = { accept: 'application/json;as=Flagz;v=v1beta1;g=config.k8s.io' }
    const { flags } = JSON.parse((await call(admin, `${server.url}/flagz`, { headers })).text) as {
      flags: Record<string, string>
    }
    assert.deepEqual([flags['bind-address'], flags['event-ttl']], ['127.0.0.1', '1h0m0s'])
    assert.equal((await call(nobody, `${server.url}/flagz`)).status, 403)
    // Started with --profiling=false.
    assert.equal((await call(admin, `${server.url}/debug/pprof/heap`)).status, 404)
  })

  it('reloads its certificate when the files change', async () => {
    const authority = createAuthority({ commonName: 'next' }, tools)
    const { certificatePem, keyPem } = authority.issue({
      commonName: 'x',
      names: { ips: ['127.0.0.1'] },
      purpose: 'server',
    })
    writeFileSync(join(dir, 'certs', 'apiserver.key'), keyPem)
    writeFileSync(join(dir, 'certs', 'apiserver.crt'), certificatePem)
    for (let tries = 100; ; tries--) {
      const next = clientFor(authority.certificatePem, '')
      const got = await call(next, `${server.url}/livez`).catch((error: unknown) => error as Error)
      next.close()
      if (!(got instanceof Error)) return assert.equal(got.text, 'ok')
      if (tries === 0) throw got
      await new Promise((done) => void realClock.after(50, () => done(undefined)))
    }
  })
})

describe('kube-apiserver with configuration files', () => {
  const ENCRYPTION = `
apiVersion: apiserver.config.k8s.io/v1
kind: EncryptionConfiguration
resources:
  - resources: [secrets]
    providers:
      - aesgcm: { keys: [{ name: one, secret: ${Buffer.alloc(32, 7).toString('base64')} }] }
      - identity: {}
`

  it('trusts its front proxies, selects certificates by SNI, and encrypts Secrets', async () => {
    const dir = makeDir()
    const proxies = createAuthority({ commonName: 'proxies' }, tools)
    const servers = createAuthority({ commonName: 'servers' }, tools)
    const write = (name: string, issued: { certificatePem: string; keyPem: string }): void => {
      writeFileSync(join(dir, `${name}.crt`), issued.certificatePem)
      writeFileSync(join(dir, `${name}.key`), issued.keyPem, { mode: 0o600 })
    }
    write('main', servers.issue({ commonName: 'main', names: { ips: ['127.0.0.1'] }, purpose: 'server' }))
    write('named', servers.issue({ commonName: 'named', names: { dns: ['a.example.com'] }, purpose: 'server' }))
    writeFileSync(join(dir, 'proxy-ca.crt'), proxies.certificatePem)
    writeFileSync(join(dir, 'encryption.yaml'), ENCRYPTION)
    const args = ENVTEST.filter((flag) => !flag.startsWith('--datastore') && !flag.startsWith('--cert-dir'))
    const server = await start(dir, [
      ...args,
      '--datastore=sqlite:state.db',
      '--tls-cert-file=main.crt',
      '--tls-private-key-file=main.key',
      '--tls-sni-cert-key=named.crt,named.key',
      '--tls-min-version=VersionTLS13',
      '--requestheader-client-ca-file=proxy-ca.crt',
      '--requestheader-allowed-names=front',
      '--requestheader-username-headers=X-Remote-User',
      '--requestheader-group-headers=X-Remote-Group',
      '--encryption-provider-config=encryption.yaml',
      '--advertise-address=192.0.2.7',
      '--anonymous-auth=false',
    ])
    const shown = proxies.issue({ commonName: 'front', purpose: 'client' })
    const tls = { ca: servers.certificatePem, certificate: shown.certificatePem, key: shown.keyPem }
    const proxy = createHttpClient({ clock: realClock, tls })
    const named = createHttpClient({ clock: realClock, tls: { ...tls, serverName: 'a.example.com' } })
    const nobody = clientFor(servers.certificatePem, '')
    try {
      const headers = { 'x-remote-user': 'ada', 'x-remote-group': 'system:masters' }
      const secret = { metadata: { name: 's' }, stringData: { word: 'open sesame, please' } }
      const url = `${server.url}/api/v1/namespaces/default/secrets`
      const created = await call(proxy, url, { method: 'POST', body: secret, headers })
      assert.equal(created.status, 201, created.text)
      assert.equal((await call(named, `${url}/s`, { headers })).status, 200)
      assert.equal((await call(nobody, url, { headers })).status, 401)
      const service = `${server.url}/api/v1/namespaces/default`
      assert.match((await call(proxy, `${service}/services/kubernetes`, { headers })).text, /"clusterIP":"10\.0\.0\.1"/)
      const config = `${server.url}/api/v1/namespaces/kube-system/configmaps/extension-apiserver-authentication`
      assert.match((await call(proxy, config, { headers })).text, /"requestheader-allowed-names":"\[\\"front\\"\]"/)
      assert.match((await call(proxy, `${service}/endpoints/kubernetes`, { headers })).text, /"ip":"192\.0\.2\.7"/)
    } finally {
      for (const client of [proxy, named, nobody]) client.close()
      await server.stop()
    }
    const stored = ['state.db', 'state.db-wal'].map((file) => join(dir, file)).filter((file) => existsSync(file))
    for (const file of stored) {
      const bytes = readFileSync(file)
      assert.ok(!bytes.includes(Buffer.from('open sesame, please').toString('base64')))
    }
    assert.ok(stored.some((file) => readFileSync(file).includes('k8s:enc:aesgcm:v1:one:')))
    rmSync(dir, { recursive: true, force: true })
  })
})

/** Answers reviews as a webhook does, and says who its users are as an OpenID provider does. */
async function startOthers(
  dir: string,
): Promise<{ readonly url: string; token(name: string): string; stop(): Promise<void> }> {
  const authority = createAuthority({ commonName: 'others' }, tools)
  const { certificatePem, keyPem } = authority.issue({
    commonName: 'o',
    names: { ips: ['127.0.0.1'] },
    purpose: 'server',
  })
  const key = createKey('ecdsa-p256')
  let url = ''
  const answer = async (exchange: Exchange): Promise<object> => {
    if (exchange.path === '/keys') return toKeySet([verifyingKey(key)])
    if (exchange.method === 'GET') return discoveryDocument(url, `${url}/keys`, [verifyingKey(key)])
    const { kind, spec } = JSON.parse((await exchange.readBody(1 << 20)).toString()) as ReviewBody
    const status =
      kind === 'TokenReview'
        ? { authenticated: spec.token === 'hook', user: { username: 'hooked' } }
        : { allowed: spec.user === 'hooked' || spec.user === 'oidc:olga' }
    return { kind, status }
  }
  const others = createHttpServer({
    clock: realClock,
    tls: { certificate: certificatePem, key: keyPem },
    serve: async (exchange) =>
      exchange.respond(200, ['Content-Type', 'application/json'], JSON.stringify(await answer(exchange))),
  })
  const bound = await others.listen({ host: '127.0.0.1', port: 0 })
  url = `https://127.0.0.1:${'port' in bound ? bound.port : 0}`
  writeFileSync(join(dir, 'others.crt'), authority.certificatePem)
  const config = {
    clusters: [{ name: 'c', cluster: { server: `${url}/review`, 'certificate-authority': 'others.crt' } }],
    contexts: [{ name: 'w', context: { cluster: 'c' } }],
    'current-context': 'w',
  }
  writeFileSync(join(dir, 'hook.yaml'), JSON.stringify(config))
  const seconds = Math.floor(realClock.now() / 1000)
  const token = (sub: string): string =>
    createSigner(key).sign({ iss: url, aud: 'us', sub, iat: seconds, exp: seconds + 600 })
  return { url, token, stop: () => others.drain(100) }
}

interface ReviewBody {
  readonly kind: string
  readonly spec: { readonly token?: string; readonly user?: string }
}

describe('kube-apiserver with external authentication', () => {
  it('accepts tokens of a webhook and of an OpenID provider', async () => {
    const dir = makeDir()
    const others = await startOthers(dir)
    after(() => others.stop())
    const server = await start(dir, [
      ...ENVTEST.filter((flag) => !flag.startsWith('--authorization-mode')),
      '--authorization-mode=Webhook',
      '--authorization-webhook-config-file=hook.yaml',
      '--authorization-webhook-version=v1',
      '--authentication-token-webhook-config-file=hook.yaml',
      `--oidc-issuer-url=${others.url}`,
      '--oidc-client-id=us',
      '--oidc-ca-file=others.crt',
      '--oidc-username-prefix=oidc:',
      '--oidc-signing-algs=ES256',
    ])
    const client = clientFor(readFileSync(join(dir, 'certs', 'apiserver.crt'), 'utf8'), '')
    const status = async (token: string): Promise<number> =>
      (await call(client, server.url + MAPS, { headers: { authorization: `Bearer ${token}` } })).status
    try {
      assert.equal(await status('hook'), 200)
      assert.equal(await status('other'), 401)
      assert.equal(await status(others.token('olga')), 200)
      assert.equal(await status(others.token('otto')), 403)
    } finally {
      client.close()
      await server.stop()
      rmSync(dir, { recursive: true, force: true })
    }
  })
})

describe('feature gates of kube-apiserver', () => {
  it('are declared if the sources read them', () => {
    const root = join(import.meta.dirname, '..', '..', 'src')
    const files = readdirSync(root, { recursive: true, encoding: 'utf8' }).filter(
      (file) => file.endsWith('.ts') && !file.endsWith('.test.ts'),
    )
    const asked = files.flatMap((file) =>
      [...readFileSync(join(root, file), 'utf8').matchAll(/isEnabled\('(\w+)'\)|\bgate: '(\w+)'|GATE = '(\w+)'/g)].map(
        ([, call, field, name]) => call ?? field ?? name ?? '',
      ),
    )
    assert.ok(asked.length > 20)
    assert.deepEqual(
      [...new Set(asked)].filter((gate) => !Object.hasOwn(FEATURE_GATES, gate)),
      [],
    )
  })
})

describe('kube-apiserver on SIGTERM', () => {
  it('ends watches cleanly, finishes requests, closes its store, and exits with 0', async () => {
    const dir = makeDir()
    const args = ENVTEST.filter((flag) => !flag.startsWith('--datastore'))
    const server = await start(dir, [...args, '--datastore=sqlite:state.db'])
    const ca = readFileSync(join(dir, 'certs', 'apiserver.crt'), 'utf8')
    const admin = clientFor(ca, 'admin', ['system:masters'])
    await call(admin, server.url + MAPS, { method: 'POST', body: configMap('kept') })
    const watch = await admin.request({ url: `${server.url}${MAPS}?watch=1&resourceVersion=0` })
    assert.equal(watch.status, 200)
    const seen = watch.text(1 << 20)
    const { code, err } = await server.stop()
    assert.equal(code, 0, err)
    assert.match(await seen, /"type":"ADDED".*"name":"kept"/)
    admin.close()
    const again = await start(dir, [...args, '--datastore=sqlite:state.db'])
    const client = clientFor(ca, 'admin', ['system:masters'])
    assert.equal((await call(client, `${again.url}${MAPS}/kept`)).status, 200)
    client.close()
    await again.stop()
    rmSync(dir, { recursive: true, force: true })
  })
})

describe('kube-apiserver with invalid flags', () => {
  const dir = makeDir()
  after(() => rmSync(dir, { recursive: true, force: true }))

  it('reports that its port is in use, and closes its store', async () => {
    const taken = createServer()
    await new Promise<void>((done) => void taken.listen(0, '127.0.0.1', done))
    const { port } = taken.address() as AddressInfo
    const { code, err } = await refused(dir, [...ENVTEST, `--secure-port=${port}`])
    assert.match(
      err,
      new RegExp(`^Error: failed to create listener: failed to listen on 127\\.0\\.0\\.1:${port}: .*EADDRINUSE`),
    )
    assert.equal(code, 1)
    taken.close()
  })

  for (const [name, args, text] of [
    ['a missing store', [], /--etcd-servers must be specified/],
    ['an unknown flag', ['--zork'], /^Error: unknown flag: --zork\nRun 'kube-apiserver --help' for usage\.\n$/],
    ['an unsupported flag', [...ENVTEST, '--goaway-chance=0.01'], /^Error: --goaway-chance=0\.01 is not supported: /],
    [
      'an unknown audit log mode',
      [...ENVTEST, '--audit-log-path=-', '--audit-log-mode=zork'],
      /^Error: invalid audit log mode zork, allowed modes are "batch,blocking,blocking-strict"\n$/,
    ],
    ['a port without TLS', [...ENVTEST, '--insecure-port=8080'], /--insecure-port=8080 is not supported/],
    ['an unknown gate', [...ENVTEST, '--feature-gates=Zork=true'], /unrecognized feature gate: Zork/],
    ['an unknown group', [...ENVTEST, '--runtime-config=zork/v1=true'], /unknown api groups zork\/v1/],
    [
      'an unknown plugin',
      [...ENVTEST, '--enable-admission-plugins=Zork'],
      /enable-admission-plugins plugin "Zork" is unknown/,
    ],
    ['a missing file', [...ENVTEST, '--client-ca-file=nowhere'], /^Error: Cannot use "nowhere": ENOENT/],
    ['an invalid key file', [...ENVTEST, '--service-account-signing-key-file=ca.crt'], /private key/],
    ['an invalid store location', [...ENVTEST, '--datastore=zork'], /^Error: Cannot open the datastore "zork"/],
    [
      'an invalid token file',
      [...ENVTEST, '--token-auth-file=ca.crt'],
      /^Error: --token-auth-file: Token file must have/,
    ],
  ] as const) {
    it(`reports ${name}, and exits with 1`, async () => {
      const { code, err } = await refused(dir, args)
      assert.match(err, text)
      assert.equal(code, 1)
    })
  }
})
