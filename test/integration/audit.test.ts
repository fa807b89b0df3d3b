/**
 * Tests the audit log of kube-apiserver end to end, and its configuration files: those of RKE and of local-up-cluster.
 */
import assert from 'node:assert/strict'
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { readFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join, resolve } from 'node:path'
import { Writable } from 'node:stream'
import { after, before, describe, it } from 'node:test'

import { apiserver } from '#cmd/apiserver.ts'
import { type Clock, realClock } from '#lib/clock.ts'
import { createHttpClient, type HttpClient } from '#lib/http/client.ts'
import { secureRandom } from '#lib/random.ts'
import { createKey, keyToPem } from '#lib/x509/key.ts'
import { type ControlPlane, startControlPlane } from '#testing/control-plane.ts'

type JsonMap = Record<string, unknown>

const silent = (told: (text: string) => void = () => undefined): Writable =>
  new Writable({
    write(chunk: Buffer, _encoding, done) {
      told(chunk.toString())
      done()
    },
  })

function eventsIn(file: string): JsonMap[] {
  const lines = readFileSync(file, 'utf8').split('\n').slice(0, -1)
  return lines.map((line) => JSON.parse(line) as JsonMap)
}

interface Asked {
  readonly method?: string
  readonly body?: unknown
  readonly token?: string
  readonly headers?: Readonly<Record<string, string>>
}

async function ask(client: HttpClient, url: string, { method = 'GET', body, token = '', headers = {} }: Asked = {}) {
  const response = await client.request({
    url,
    method,
    headers: {
      ...(token !== '' && { authorization: `Bearer ${token}` }),
      ...(body !== undefined && { 'content-type': 'application/json' }),
      ...headers,
    },
    ...(body !== undefined && { body: JSON.stringify(body) }),
    timeoutMs: 10_000,
  })
  return { status: response.status, headers: response.headers, text: await response.text(1 << 24) }
}

const pod = (name: string, securityContext?: object): object => ({
  metadata: { name },
  spec: { automountServiceAccountToken: false, containers: [{ name: 'c', image: 'i', securityContext }] },
})
const MAPS = '/api/v1/namespaces/default/configmaps'
const TOKENS = 'sesame,ali,1,"system:masters"\nopen,jane,2,"dev"\n'

describe('audit log of kube-apiserver', () => {
  const dir = mkdtempSync(join(tmpdir(), 'hyperkube-audit-'))
  const file = join(dir, 'audit.log')
  const client = createHttpClient({ clock: realClock, tls: { insecure: true } })
  const closing = new AsyncDisposableStack()
  let plane: ControlPlane
  let url = ''

  before(async () => {
    const rules = [
      { level: 'None', nonResourceURLs: ['/readyz'] },
      { level: 'Metadata', resources: [{ resources: ['secrets'] }] },
      { level: 'RequestResponse', omitManagedFields: true },
    ]
    closing.defer(() => rmSync(dir, { recursive: true, force: true }))
    plane = closing.use(
      await startControlPlane({
        settings: {
          'audit-policy-file': 'policy.yaml',
          'audit-log-path': file,
          'audit-log-maxsize': 0,
          'authorization-mode': ['RBAC'],
        },
        files: new Map([
          ['policy.yaml', JSON.stringify({ apiVersion: 'audit.k8s.io/v1', kind: 'Policy', rules })],
          ['tokens.csv', TOKENS],
        ]),
      }),
    )
    ;({ url } = plane)
    closing.defer(() => client.close())
  })
  after(() => closing.disposeAsync())

  /** The events of one request, which is made under a name of its own. */
  async function eventsOf(name: string, path: string, asked: Asked = {}): Promise<JsonMap[]> {
    const { headers } = await ask(client, url + path, {
      token: 'sesame',
      ...asked,
      headers: { ...asked.headers, 'audit-id': name },
    })
    assert.equal(headers['audit-id'], name)
    return eventsIn(file).filter(({ auditID }) => auditID === name)
  }

  it('contains every write before the client gets the response', async () => {
    const body = { metadata: { name: 'one', labels: { b: '2', a: '1' } }, data: { k: 'é<&>' } }
    const [received, complete, ...rest] = await eventsOf('create', MAPS, { method: 'POST', body })
    assert.deepEqual([received?.['stage'], complete?.['stage'], rest], ['RequestReceived', 'ResponseComplete', []])
    assert.deepEqual(received?.['objectRef'], { resource: 'configmaps', namespace: 'default', apiVersion: 'v1' })
    const { requestReceivedTimestamp, stageTimestamp, responseObject, userAgent: _agent, ...whole } = complete ?? {}
    assert.deepEqual(whole, {
      kind: 'Event',
      apiVersion: 'audit.k8s.io/v1',
      level: 'RequestResponse',
      auditID: 'create',
      stage: 'ResponseComplete',
      requestURI: MAPS,
      verb: 'create',
      user: { username: 'ali', uid: '1', groups: ['system:masters', 'system:authenticated'] },
      sourceIPs: ['127.0.0.1'],
      objectRef: { resource: 'configmaps', namespace: 'default', name: 'one', apiVersion: 'v1' },
      responseStatus: { metadata: {}, code: 201 },
      requestObject: {
        kind: 'ConfigMap',
        apiVersion: 'v1',
        metadata: { name: 'one', labels: { a: '1', b: '2' } },
        data: body.data,
      },
      annotations: { 'authorization.k8s.io/decision': 'allow', 'authorization.k8s.io/reason': '' },
    })
    assert.match(`${String(requestReceivedTimestamp)} ${String(stageTimestamp)}`, /^\S+\.\d{6}Z \S+\.\d{6}Z$/)
    const { metadata, data } = responseObject as { metadata: JsonMap; data: unknown }
    assert.deepEqual([metadata['namespace'], metadata['managedFields'], data], ['default', undefined, body.data])
  })

  it('contains request and response of every verb', async () => {
    const patch = {
      method: 'PATCH',
      headers: { 'content-type': 'application/merge-patch+json' },
      body: { data: { n: '1' } },
    }
    const table: readonly (readonly [string, string, Asked, string, number, string])[] = [
      ['get', `${MAPS}/one`, {}, 'get', 200, 'ConfigMap'],
      ['list', MAPS, {}, 'list', 200, 'ConfigMapList'],
      ['patch', `${MAPS}/one`, patch, 'patch', 200, 'ConfigMap'],
      ['missing', `${MAPS}/none`, {}, 'get', 404, 'Status'],
      ['delete', `${MAPS}/one`, { method: 'DELETE', body: { gracePeriodSeconds: 0 } }, 'delete', 200, 'Status'],
      ['discovery', '/apis/apps/v1', {}, 'get', 200, 'APIResourceList'],
    ]
    for (const [name, path, asked, verb, code, kind] of table) {
      const event = (await eventsOf(name, path, asked)).at(-1)
      const { responseStatus, responseObject } = event as { responseStatus: JsonMap; responseObject: JsonMap }
      assert.deepEqual([event?.['verb'], responseStatus['code'], responseObject['kind']], [verb, code, kind], name)
    }
    const requests = eventsIn(file).filter(({ stage }) => stage === 'ResponseComplete')
    const sent = (name: string): unknown => requests.find(({ auditID }) => auditID === name)?.['requestObject']
    assert.deepEqual(sent('patch'), { data: { n: '1' } })
    assert.deepEqual(sent('delete'), {
      kind: 'DeleteOptions',
      apiVersion: 'meta.k8s.io/__internal',
      gracePeriodSeconds: 0,
    })
  })

  it('has the three stages of a watch', async () => {
    const events = await eventsOf('watch', `${MAPS}?watch=true&timeoutSeconds=1`)
    assert.deepEqual(events.map(({ stage }) => stage).slice(0, 2), ['RequestReceived', 'ResponseStarted'])
    for (let tries = 0; tries < 50 && eventsIn(file).filter(({ auditID }) => auditID === 'watch').length < 3; tries++) {
      await new Promise((done) => realClock.after(20, () => done(undefined)))
    }
    assert.equal(
      eventsIn(file)
        .filter(({ auditID }) => auditID === 'watch')
        .at(-1)?.['stage'],
      'ResponseComplete',
    )
  })

  it('contains forbidden, anonymous and impersonated users', async () => {
    const last = async (name: string, asked: Asked): Promise<JsonMap> =>
      (await eventsOf(name, `${MAPS}/one`, asked)).at(-1) ?? {}
    const forbidden = await last('forbidden', { token: 'open' })
    const decision = { 'authorization.k8s.io/decision': 'forbid', 'authorization.k8s.io/reason': '' }
    assert.deepEqual([(forbidden['user'] as JsonMap)['username'], forbidden['annotations']], ['jane', decision])
    const nobody = await last('nobody', { token: 'wrong' })
    assert.deepEqual([nobody['stage'], nobody['user'], nobody['annotations']], ['ResponseStarted', {}, undefined])
    const other = await last('other', { headers: { 'impersonate-user': 'bob', 'impersonate-group': 'g' } })
    assert.deepEqual(other['impersonatedUser'], { username: 'bob', groups: ['g', 'system:authenticated'] })
  })

  it('contains no Secrets and no credentials', async () => {
    const body = { metadata: { name: 's' }, stringData: { password: 'hunter2' } }
    const events = await eventsOf('secret', '/api/v1/namespaces/default/secrets', { method: 'POST', body })
    assert.deepEqual(
      events.map(({ level }) => level),
      ['Metadata', 'Metadata'],
    )
    const text = readFileSync(file, 'utf8')
    for (const secret of ['hunter2', 'sesame', Buffer.from('hunter2').toString('base64')]) {
      assert.ok(!text.includes(secret), secret)
    }
  })

  it('contains annotations of admission plugins', async () => {
    const labels = { 'pod-security.kubernetes.io/audit': 'baseline' }
    await ask(client, `${url}/api/v1/namespaces`, {
      token: 'sesame',
      method: 'POST',
      body: { metadata: { name: 'ps', labels } },
    })
    await ask(client, `${url}/api/v1/namespaces/ps/serviceaccounts`, {
      token: 'sesame',
      method: 'POST',
      body: { metadata: { name: 'default' } },
    })
    const event = (
      await eventsOf('pod', '/api/v1/namespaces/ps/pods', { method: 'POST', body: pod('p', { privileged: true }) })
    ).at(-1)
    const annotations = event?.['annotations'] as JsonMap
    assert.equal(annotations['pod-security.kubernetes.io/enforce-policy'], 'privileged:latest')
    assert.match(
      String(annotations['pod-security.kubernetes.io/audit-violations']),
      /^would violate PodSecurity "baseline:latest"/,
    )
    const token = await eventsOf('token', '/api/v1/namespaces/ps/serviceaccounts/default/token', {
      method: 'POST',
      body: { spec: { audiences: [] } },
    })
    const { annotations: noted = {} } = token.at(-1) as { annotations?: JsonMap }
    const issued = noted['authentication.kubernetes.io/issued-credential-id']
    assert.match(String(issued), /^JTI=[0-9a-f-]{36}$/)
  })

  it('omits events that the policy excludes, and counts the others', async () => {
    assert.deepEqual(await eventsOf('ready', '/readyz'), [])
    const { text } = await ask(client, `${url}/metrics`, { token: 'sesame' })
    assert.match(text, /apiserver_audit_level_total\{level="RequestResponse"} \d+/)
    assert.match(text, /apiserver_audit_level_total\{level="None"} 1\n/)
    assert.match(text, /apiserver_audit_event_total \d+/)
  })
})

/** Files are looked at every 5 s; here a hundred times as often. */
const hasty: Clock = {
  ...realClock,
  after: (delayMs, task, options) => realClock.after(delayMs === 5000 ? 50 : delayMs, task, options),
}

const AUTHORIZERS = (...authorizers: object[]): string =>
  JSON.stringify({ apiVersion: 'apiserver.config.k8s.io/v1', kind: 'AuthorizationConfiguration', authorizers })

/** The files of RKE. */
const FILES: Readonly<Record<string, string>> = {
  'tokens.csv': TOKENS,
  'audit-policy.yaml': '{"apiVersion":"audit.k8s.io/v1","kind":"Policy","rules":[{"level":"Metadata"}]}',
  'admission.yaml': `apiVersion: apiserver.config.k8s.io/v1
kind: AdmissionConfiguration
plugins:
- name: EventRateLimit
  path: limits.yaml
- name: PodSecurity
  configuration:
    apiVersion: pod-security.admission.config.k8s.io/v1
    kind: PodSecurityConfiguration
    defaults: {enforce: baseline}
    exemptions: {namespaces: [kube-system]}
`,
  'limits.yaml': `apiVersion: eventratelimit.admission.k8s.io/v1alpha1
kind: Configuration
limits: [{type: User, qps: 1, burst: 2}]
`,
  'authorization.yaml': AUTHORIZERS({ type: 'RBAC', name: 'rbac' }),
  'authentication.yaml': JSON.stringify({
    apiVersion: 'apiserver.config.k8s.io/v1',
    kind: 'AuthenticationConfiguration',
    anonymous: { enabled: true, conditions: [{ path: '/livez' }] },
  }),
}

const FLAGS = [
  '--datastore=memory',
  '--bind-address=127.0.0.1',
  '--secure-port=0',
  '--insecure-port=0',
  '--cert-dir=certs',
  '--profiling=false',
  '--storage-backend=etcd3',
  '--allow-privileged=true',
  '--etcd-prefix=/registry',
  '--service-account-lookup=true',
  '--service-cluster-ip-range=10.0.0.0/24',
  '--service-account-issuer=rke',
  '--service-account-signing-key-file=sa.key',
  '--api-audiences=unknown',
  '--token-auth-file=tokens.csv',
  '--authorization-config=authorization.yaml',
  '--authentication-config=authentication.yaml',
  '--runtime-config=authorization.k8s.io/v1beta1=true',
  '--enable-admission-plugins=NodeRestriction,EventRateLimit',
  '--disable-admission-plugins=ServiceAccount',
  '--admission-control-config-file=admission.yaml',
  '--audit-policy-file=audit-policy.yaml',
  '--audit-log-path=log/audit-log.json',
  '--audit-log-format=json',
  '--audit-log-maxage=30',
  '--audit-log-maxbackup=10',
  '--audit-log-maxsize=100',
  '--egress-selector-config-file=',
]

describe('kube-apiserver with the files of RKE and local-up-cluster', () => {
  const dir = mkdtempSync(join(tmpdir(), 'hyperkube-files-'))
  const stopping = new AbortController()
  let client: HttpClient
  let url = ''
  let ended: Promise<number>
  let told = ''

  before(async () => {
    for (const [name, text] of Object.entries(FILES)) writeFileSync(join(dir, name), text)
    writeFileSync(join(dir, 'sa.key'), keyToPem(createKey('ecdsa-p256')), { mode: 0o600 })
    const ready = Promise.withResolvers<string>()
    ended = apiserver.run(
      {
        path: ['kube-apiserver'],
        args: FLAGS,
        env: {},
        cwd: dir,
        stdin: () => process.stdin,
        stdout: silent(),
        stderr: silent((text) => {
          told += text
          const port = /Serving securely on 127\.0\.0\.1:(\d+)/.exec(told)?.[1]
          if (port !== undefined) ready.resolve(port)
        }),
        clock: hasty,
        random: secureRandom,
        readFile: (path) => readFile(resolve(dir, path), 'utf8'),
      },
      stopping.signal,
    )
    ended.then(() => ready.reject(new Error(told)), ready.reject)
    url = `https://127.0.0.1:${await ready.promise}`
    client = createHttpClient({ clock: realClock, tls: { ca: readFileSync(join(dir, 'certs/apiserver.crt'), 'utf8') } })
  })
  after(async () => {
    client.close()
    stopping.abort(new Error('SIGTERM'))
    await ended
    rmSync(dir, { recursive: true, force: true })
  })

  const status = async (path: string, asked: Asked = {}): Promise<number> =>
    (await ask(client, url + path, asked)).status

  it('writes its audit log, rotated and readable by its owner only', async () => {
    await ask(client, `${url}${MAPS}`, { token: 'sesame', headers: { 'audit-id': 'logged' } })
    const stages = eventsIn(join(dir, 'log/audit-log.json')).filter(({ auditID }) => auditID === 'logged')
    assert.deepEqual(
      stages.map(({ level, stage }) => `${String(level)} ${String(stage)}`),
      ['Metadata RequestReceived', 'Metadata ResponseComplete'],
    )
    assert.match((await ask(client, `${url}/metrics`, { token: 'sesame' })).text, /apiserver_audit_event_total [1-9]/)
  })

  it('allows anonymous requests only to the paths in the configuration', async () => {
    assert.deepEqual([await status('/livez'), await status('/version'), await status(MAPS)], [200, 401, 401])
  })

  it('enforces the default pod security level in the configuration', async () => {
    const create = (namespace: string): Promise<number> =>
      status(`/api/v1/namespaces/${namespace}/pods`, {
        token: 'sesame',
        method: 'POST',
        body: pod('p', { privileged: true }),
      })
    assert.deepEqual([await create('default'), await create('kube-system')], [403, 201])
  })

  it('limits events as in the configuration', async () => {
    const event = (name: string): Promise<number> =>
      status('/api/v1/namespaces/default/events', {
        token: 'sesame',
        method: 'POST',
        body: { metadata: { name }, involvedObject: { kind: 'Pod', namespace: 'default', name: 'p' } },
      })
    assert.deepEqual([await event('a'), await event('b'), await event('c')], [201, 201, 429])
  })

  it('reloads the authorization file, and keeps the old one if the new one is invalid', async () => {
    const until = async (wanted: number): Promise<void> => {
      for (let tries = 0; tries < 100 && (await status(MAPS, { token: 'open' })) !== wanted; tries++) {
        await new Promise((done) => realClock.after(20, () => done(undefined)))
      }
      assert.equal(await status(MAPS, { token: 'open' }), wanted)
    }
    await until(403)
    writeFileSync(join(dir, 'authorization.yaml'), AUTHORIZERS({ type: 'AlwaysAllow', name: 'all' }))
    await until(200)
    writeFileSync(join(dir, 'authorization.yaml'), AUTHORIZERS({ type: 'Foo', name: 'foo' }))
    for (let tries = 0; tries < 100 && !told.includes('Unsupported value'); tries++) {
      await new Promise((done) => realClock.after(20, () => done(undefined)))
    }
    assert.match(
      told,
      /Failed to reload changed file; keeping its previous content.*authorizers\[0\]\.type: Unsupported value/s,
    )
    await until(200)
  })
})
