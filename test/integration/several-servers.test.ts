/**
 * Tests several API servers on one etcd: concurrent start on an empty store, shared node ports, and the endpoints of
 * the service `kubernetes`. A stopped server is removed from these.
 */
import assert from 'node:assert/strict'
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { readFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join, resolve } from 'node:path'
import { after, before, describe, it } from 'node:test'

import { createEndpointLeases } from '#apiserver/bootstrap/endpoint-leases.ts'
import { apiserver } from '#cmd/apiserver.ts'
import { Collector } from '#kits/cmd/run-program.ts'
import { type Clock, realClock, sleep } from '#lib/clock.ts'
import { createHttpClient, type HttpClient } from '#lib/http/client.ts'
import { secureRandom } from '#lib/random.ts'
import { createKey, keyToPem } from '#lib/x509/key.ts'
import { createAtRest } from '#storage/encryption/at-rest.ts'
import { NO_ENCRYPTION } from '#storage/encryption/config.ts'
import { startCluster, type TestCluster, whyNoEtcd } from '#storage/etcd/etcd-cluster.fixture.ts'
import { openBackend } from '#storage/index.ts'

/** Endpoints are looked at every 10 s; here forty times as often. */
const hasty: Clock = {
  ...realClock,
  after: (delayMs, task, options) => realClock.after(delayMs === 10_000 ? 250 : delayMs, task, options),
}

const tools = { clock: hasty, random: secureRandom }
const dir = mkdtempSync(join(tmpdir(), 'hyperkube-servers-'))
const clients: HttpClient[] = []

interface Server {
  /** With everything allowed. */
  call(method: string, path: string, body?: unknown): Promise<Answer>
  /** As a signal would; returns what it wrote to its log. */
  stop(): Promise<string>
}

interface Answer {
  readonly status: number
  readonly body: Record<string, unknown>
}

function argsOf(cluster: TestCluster, name: string, ip: string): string[] {
  return [
    `--etcd-servers=${cluster.urls.join(',')}`,
    `--advertise-address=${ip}`,
    `--cert-dir=${name}`,
    '--bind-address=127.0.0.1',
    '--secure-port=0',
    '--service-cluster-ip-range=10.0.0.0/24',
    '--authorization-mode=RBAC',
    '--token-auth-file=tokens.csv',
    '--disable-admission-plugins=ServiceAccount',
    '--service-account-signing-key-file=sa.key',
    '--service-account-key-file=sa.key',
    '--service-account-issuer=https://127.0.0.1/',
  ]
}

/** One inside this process. */
async function start(cluster: TestCluster, name: string, ip: string): Promise<Server> {
  const control = new AbortController()
  const [stdout, stderr] = [new Collector(), new Collector()]
  const ended = apiserver.run(
    {
      path: ['kube-apiserver'],
      args: argsOf(cluster, name, ip),
      env: {},
      cwd: dir,
      stdin: () => process.stdin,
      stdout,
      stderr,
      ...tools,
      readFile: (path) => readFile(resolve(dir, path), 'utf8'),
    },
    control.signal,
  )
  const port = await Promise.race([
    portIn(() => stderr.text),
    ended.then((code) => assert.fail(`${code}: ${stderr.text}`)),
  ])
  return {
    call: callerOf(name, port),
    async stop() {
      control.abort(new Error('SIGTERM'))
      assert.equal(await ended, 0)
      return stderr.text
    },
  }
}

async function portIn(log: () => string): Promise<string> {
  for (;;) {
    const port = /Serving securely on 127\.0\.0\.1:(\d+)/.exec(log())?.[1]
    if (port !== undefined) return port
    await sleep(realClock, 10)
  }
}

function callerOf(name: string, port: string): Server['call'] {
  const ca = readFileSync(join(dir, name, 'apiserver.crt'), 'utf8')
  const client = createHttpClient({ clock: realClock, tls: { ca } })
  clients.push(client)
  return async (method, path, body) => {
    const response = await client.request({
      url: `https://127.0.0.1:${port}${path}`,
      method,
      headers: { authorization: 'Bearer sesame', ...(body !== undefined && { 'content-type': 'application/json' }) },
      ...(body !== undefined && { body: JSON.stringify(body) }),
      timeoutMs: 10_000,
    })
    return { status: response.status, body: JSON.parse(await response.text(1 << 24)) as Answer['body'] }
  }
}

interface Listed {
  readonly metadata: { readonly name: string; readonly uid: string }
}

async function list(server: Server, path: string): Promise<Listed[]> {
  return (await server.call('GET', path)).body['items'] as Listed[]
}

/**
 * The addresses in the Endpoints, which equal those in the slice. A failed request counts as no result, not as an
 * empty list.
 */
async function endpoints(server: Server): Promise<string[]> {
  const { status, body } = await server.call('GET', '/api/v1/namespaces/default/endpoints/kubernetes')
  assert.equal(status, 200, JSON.stringify(body))
  const subsets = (body['subsets'] ?? []) as { addresses: { ip: string }[] }[]
  return subsets.flatMap(({ addresses }) => addresses.map(({ ip }) => ip))
}

async function sliced(server: Server): Promise<string[]> {
  const { body } = await server.call('GET', '/apis/discovery.k8s.io/v1/namespaces/default/endpointslices/kubernetes')
  const slice = body['endpoints'] as { addresses: string[] }[]
  return slice.flatMap(({ addresses }) => addresses)
}

async function until(what: string, isSo: () => Promise<boolean>, limitMs = 20_000): Promise<void> {
  for (const deadline = realClock.elapsed() + limitMs; !(await isSo()); await sleep(realClock, 50)) {
    assert.ok(realClock.elapsed() < deadline, `Not within ${limitMs} ms: ${what}`)
  }
}

function service(name: string, nodePort?: number): object {
  const port = { port: 80, ...(nodePort !== undefined && { nodePort }) }
  return { kind: 'Service', apiVersion: 'v1', metadata: { name }, spec: { type: 'NodePort', ports: [port] } }
}

const SERVICES = '/api/v1/namespaces/default/services'

const nodePortOf = ({ body }: Answer): number | undefined =>
  (body['spec'] as { ports: { nodePort?: number }[] } | undefined)?.ports[0]?.nodePort

describe('several API servers on one etcd', { skip: whyNoEtcd() ?? false }, () => {
  let cluster: TestCluster
  let [a, b]: Server[] = []

  before(async () => {
    writeFileSync(join(dir, 'sa.key'), keyToPem(createKey('ecdsa-p256')), { mode: 0o600 })
    writeFileSync(join(dir, 'tokens.csv'), 'sesame,admin,1,"system:masters"\n', { mode: 0o600 })
    cluster = await startCluster()
    ;[a, b] = await Promise.all([start(cluster, 'a', '192.0.2.1'), start(cluster, 'b', '192.0.2.2')])
  })

  after(async () => {
    for (const client of clients) client.close()
    await cluster.stop()
    rmSync(dir, { recursive: true, force: true })
  })

  it('start together on an empty store: both ready, one set of objects, both in the endpoints', async () => {
    for (const path of [
      '/api/v1/namespaces',
      SERVICES,
      '/apis/networking.k8s.io/v1/ipaddresses',
      '/apis/networking.k8s.io/v1/servicecidrs',
      '/apis/scheduling.k8s.io/v1/priorityclasses',
      '/apis/flowcontrol.apiserver.k8s.io/v1/flowschemas',
      '/apis/rbac.authorization.k8s.io/v1/clusterroles',
      '/apis/apiregistration.k8s.io/v1/apiservices',
    ]) {
      const [seenByA, seenByB] = await Promise.all([list(a!, path), list(b!, path)])
      assert.ok(seenByA.length > 0, path)
      assert.deepEqual(
        seenByA.map(({ metadata }) => metadata.uid),
        seenByB.map(({ metadata }) => metadata.uid),
        path,
      )
    }
    assert.deepEqual(await endpoints(a!), ['192.0.2.1', '192.0.2.2'])
    assert.deepEqual(await endpoints(b!), ['192.0.2.1', '192.0.2.2'])
  })

  it('never allocate the same node port twice', async () => {
    const answers = await Promise.all(
      Array.from({ length: 60 }, (_, n) => (n % 2 === 0 ? a! : b!).call('POST', SERVICES, service(`drawn-${n}`))),
    )
    assert.deepEqual([...new Set(answers.map(({ status }) => status))], [201])
    assert.equal(new Set(answers.map(nodePortOf)).size, 60)
  })

  it('allocate a requested node port to one of several concurrent requests', async () => {
    const answers = await Promise.all(
      [a!, b!].map((server, n) => server.call('POST', SERVICES, service(`asked-${n}`, 30_050))),
    )
    assert.deepEqual(
      answers.map(({ status }) => status).toSorted((x, y) => x - y),
      [201, 422],
    )
    const refused = answers.find(({ status }) => status === 422)
    assert.match(
      refused?.body['message'] as string,
      /spec\.ports\[0\]\.nodePort: Invalid value: 30050: provided port is already allocated/,
    )
    const given = answers.findIndex(({ status }) => status === 201)
    // Given back through one server, it can be had through the other at once.
    const [giver, taker] = given === 0 ? [b!, a!] : [a!, b!]
    assert.equal((await giver.call('DELETE', `${SERVICES}/asked-${given}`)).status, 200)
    assert.equal((await taker.call('POST', SERVICES, service('again', 30_050))).status, 201)
  })

  it('remove themselves from the endpoints when they stop, and rebuild all port allocations when they start', async () => {
    const log = await a!.stop()
    assert.doesNotMatch(log, /^E/m)
    assert.ok(!(await endpoints(b!)).includes('192.0.2.1'))
    a = await start(cluster, 'a', '192.0.2.1')
    assert.ok((await endpoints(b!)).includes('192.0.2.1'))
    const refused = await a.call('POST', SERVICES, service('late', 30_050))
    assert.equal(refused.status, 422)
    const used = nodePortOf(await b!.call('GET', `${SERVICES}/drawn-7`))
    assert.equal((await a.call('POST', SERVICES, service('late', used))).status, 422)
  })

  it('add a server with a lease to the endpoints, and remove it when the lease expires', async () => {
    const backend = await openBackend(cluster.urls.join(','), tools)
    const leases = createEndpointLeases(backend, createAtRest(NO_ENCRYPTION, secureRandom))
    await leases.renew('192.0.2.3')
    await until('the third is there', async () => (await endpoints(a!)).includes('192.0.2.3'))
    // As etcd does when a lease is not renewed.
    await leases.release()
    await until('the third is gone', async () => !(await endpoints(a!)).includes('192.0.2.3'))
    // Both servers write both objects, in their own time: what counts is where they end.
    await until('the others are left', async () => (await endpoints(b!)).join() === '192.0.2.1,192.0.2.2')
    await until('the others are left in the slice', async () => (await sliced(b!)).join() === '192.0.2.1,192.0.2.2')
    await backend.close()
  })

  it('leave no endpoints when the last one stops', async () => {
    assert.doesNotMatch(await a!.stop(), /^E/m)
    assert.deepEqual(await endpoints(b!), ['192.0.2.2'])
    assert.doesNotMatch(await b!.stop(), /^E/m)
  })
})
