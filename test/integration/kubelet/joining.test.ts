/**
 * Tests that the kubelet program joins a cluster with only a bootstrap token. Its runtime is the in-memory one behind a
 * socket.
 */
import assert from 'node:assert/strict'
import { lstat, mkdtemp, readFile, readlink, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { describe, it } from 'node:test'
import { connect } from 'node:tls'

import { type CertificateSigningRequest, CertificateSigningRequests } from '#apis/certificates/v1.ts'
import { type Node, Nodes, Secrets } from '#apis/core/v1.ts'
import { ClusterRoleBindings } from '#apis/rbac/v1.ts'
import { ApiClient } from '#client/api-client.ts'
import { programConfig } from '#client/connection/config.ts'
import { openConnection } from '#client/connection/connection.ts'
import { until } from '#client/until.ts'
import { up } from '#cmd/cluster/up.ts'
import { kubelet } from '#cmd/kubelet/kubelet.ts'
import { certificateApprovingController } from '#controllers/identity/certificates/approving.ts'
import { certificateSigningController } from '#controllers/identity/certificates/signing.ts'
import { controllerSettings } from '#controllers/settings.ts'
import { Collector } from '#kits/cmd/run-program.ts'
import { startControllers } from '#kits/controllers/start.ts'
import { MemoryRuntime } from '#kits/cri/memory-runtime.ts'
import { serveRuntime } from '#kits/cri/server.ts'
import { eventually } from '#kits/lib/eventually.ts'
import { realClock } from '#lib/clock.ts'
import { createGrpcServer } from '#lib/grpc/server.ts'
import { createHttpClient, type HttpRequest } from '#lib/http/client.ts'
import { createSeededRandom, secureRandom } from '#lib/random.ts'
import { type Authority, createAuthority } from '#lib/x509/authority.ts'
import { type ControlPlane, startControlPlane } from '#testing/control-plane.ts'

const TOKEN = 'abcdef.0123456789abcdef'
const PATIENCE_MS = 60_000

interface Bed extends AsyncDisposable {
  readonly plane: ControlPlane
  readonly authority: Authority
  readonly client: ApiClient
  readonly folder: string
  /** Runs until it is disposed and then returns its exit code. */
  start(...args: string[]): Running
  requests(signer: string): Promise<CertificateSigningRequest[]>
}

interface Running extends AsyncDisposable {
  readonly log: () => string
  readonly ended: Promise<number>
}

interface BedOptions {
  /** Whether the bootstrap kubeconfig includes the client CA beside the server CA. */
  readonly hasClientAuthority?: boolean
}

async function startBed({ hasClientAuthority = false }: BedOptions = {}): Promise<Bed> {
  const closing = new AsyncDisposableStack()
  const authority = createAuthority({ commonName: 'joined' }, { clock: realClock, random: secureRandom })
  const files = new Map([
    ['clients.crt', authority.certificatePem],
    ['clients.key', authority.keyPem],
  ])
  const settings = { 'client-ca-file': 'clients.crt', 'enable-bootstrap-token-auth': true }
  const plane = await startControlPlane({ settings, files })
  closing.defer(() => plane.stop())
  const signing = { 'cluster-signing-cert-file': 'clients.crt', 'cluster-signing-key-file': 'clients.key' }
  const controllers = startControllers(
    plane,
    realClock,
    [certificateApprovingController, certificateSigningController],
    {
      settings: controllerSettings(signing),
      readFile: (path) => Promise.resolve(files.get(path) ?? ''),
    },
  )
  closing.defer(() => controllers.stop())
  const { client } = controllers
  await letNodesIn(client)
  const folder = await mkdtemp(join(tmpdir(), 'joining-'))
  closing.defer(() => rm(folder, { recursive: true }))
  await serveMemoryRuntime(folder, closing)
  const ca = `${plane.ca}${hasClientAuthority ? authority.certificatePem : ''}`
  await writeBootstrap({ url: plane.url, ca }, join(folder, 'bootstrap.conf'))
  return {
    plane,
    authority,
    client,
    folder,
    start: (...args) => startProgram(folder, args),
    async requests(signer) {
      const { items } = await client.list(CertificateSigningRequests, {})
      return items.filter(({ spec }) => spec.signerName === signer)
    },
    [Symbol.asyncDispose]: () => closing.disposeAsync(),
  }
}

async function serveMemoryRuntime(folder: string, closing: AsyncDisposableStack): Promise<void> {
  const runtime = new MemoryRuntime({ clock: realClock, random: createSeededRandom(3) })
  const socket = createGrpcServer({ handlers: serveRuntime(runtime), clock: realClock })
  await socket.listen({ path: join(folder, 'runtime.sock') })
  closing.defer(() => socket.stop(0))
}

/** The RBAC objects that kubeadm creates for joining nodes. */
async function letNodesIn(client: ApiClient): Promise<void> {
  const [id, secret] = TOKEN.split('.')
  const data = { 'token-id': id, 'token-secret': secret, 'usage-bootstrap-authentication': 'true' }
  await client.create(Secrets, {
    metadata: { name: `bootstrap-token-${id}`, namespace: 'kube-system' },
    type: 'bootstrap.kubernetes.io/token',
    data: Object.fromEntries(
      Object.entries(data).map(([key, value]) => [key, Buffer.from(value ?? '').toString('base64')]),
    ),
  })
  const roles = { 'system:node-bootstrapper': 'system:bootstrappers' }
  const auto = 'system:certificates.k8s.io:certificatesigningrequests'
  const bindings = {
    ...roles,
    [`${auto}:nodeclient`]: 'system:bootstrappers',
    [`${auto}:selfnodeclient`]: 'system:nodes',
  }
  for (const [at, [role, group]] of Object.entries(bindings).entries()) {
    await client.create(ClusterRoleBindings, {
      metadata: { name: `join-${at}` },
      roleRef: { apiGroup: 'rbac.authorization.k8s.io', kind: 'ClusterRole', name: role },
      subjects: [{ apiGroup: 'rbac.authorization.k8s.io', kind: 'Group', name: group }],
    })
  }
}

async function writeBootstrap({ url: server, ca }: Pick<ControlPlane, 'url' | 'ca'>, file: string): Promise<void> {
  const cluster = { server, 'certificate-authority-data': Buffer.from(ca).toString('base64') }
  const config = {
    clusters: [{ name: 'a', cluster }],
    users: [{ name: 'a', user: { token: TOKEN } }],
    contexts: [{ name: 'a', context: { cluster: 'a', user: 'a' } }],
    'current-context': 'a',
  }
  await writeFile(file, JSON.stringify(config))
}

const surroundings = (cwd: string) => ({
  env: {},
  cwd,
  stdin: () => process.stdin,
  stdout: new Collector(),
  stderr: new Collector(),
  clock: realClock,
  random: secureRandom,
  readFile: (path: string) => readFile(path, 'utf8'),
})

async function administrator(kubeconfig: string, closing: AsyncDisposableStack): Promise<ApiClient> {
  const sources = { env: {}, cwd: '/', readFile: (path: string) => readFile(path, 'utf8') }
  const config = await programConfig({ kubeconfig, master: '' }, sources)
  const connection = await openConnection(config, { clock: realClock, ...sources })
  closing.defer(() => connection.close())
  return new ApiClient({ ...connection, clock: realClock, userAgent: 'test' })
}

const FILES = {
  'bootstrap-kubeconfig': 'bootstrap.conf',
  kubeconfig: 'kubelet.conf',
  'cert-dir': 'pki',
  'root-dir': 'root',
  config: 'config.yaml',
}

/** A later flag wins: `--config=` starts without a configuration. */
function startProgram(folder: string, args: readonly string[]): Running {
  const stop = new AbortController()
  const stderr = new Collector()
  const ended = kubelet.run(
    {
      ...surroundings(folder),
      path: ['kubelet'],
      args: [...Object.entries(FILES).map(([flag, file]) => `--${flag}=${join(folder, file)}`), ...args],
      stderr,
    },
    stop.signal,
  )
  return {
    log: () => stderr.text,
    ended,
    async [Symbol.asyncDispose]() {
      stop.abort()
      await ended
    },
  }
}

/** Port 0 means the default port in a configuration, so a free port is chosen first. */
async function freePort(): Promise<number> {
  const { createServer } = await import('node:net')
  const server = createServer()
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  const address = server.address()
  const port = typeof address === 'object' && address !== null ? address.port : 0
  await new Promise((resolve) => server.close(resolve))
  return port
}

async function writeConfiguration(folder: string, more: string): Promise<number> {
  const port = await freePort()
  const text = `apiVersion: kubelet.config.k8s.io/v1beta1
kind: KubeletConfiguration
address: 127.0.0.1
port: ${port}
healthzPort: 0
failCgroupV1: false
failSwapOn: false
oomScoreAdj: 0
containerRuntimeEndpoint: unix://${join(folder, 'runtime.sock')}
podLogsDir: ${join(folder, 'logs')}
${more}`
  await writeFile(join(folder, 'config.yaml'), text)
  return port
}

const CLIENT = 'kubernetes.io/kube-apiserver-client-kubelet'
const SERVING = 'kubernetes.io/kubelet-serving'

const isReady = (node: Node | undefined): boolean =>
  node?.status.conditions?.some(({ type, status }) => type === 'Ready' && status === 'True') ?? false

function readyNode(client: ApiClient, name: string): Promise<Node | undefined> {
  return until({ client, kind: Nodes, name, timeoutMs: PATIENCE_MS }, isReady)
}

async function approve(client: ApiClient, name: string): Promise<void> {
  const found = await client.get(CertificateSigningRequests, { name })
  const times = { lastUpdateTime: null, lastTransitionTime: null }
  const conditions = [{ type: 'Approved', status: 'True', reason: 'ByHand', message: 'm', ...times }]
  const decided = { ...found, status: { ...found.status, conditions } }
  await client.update(CertificateSigningRequests, decided, { subresource: 'approval' })
}

describe('a kubelet with a bootstrap kubeconfig', () => {
  it('joins a cluster of "hyperkube up" with only the file that the cluster writes', async () => {
    await using closing = new AsyncDisposableStack()
    const folder = await mkdtemp(join(tmpdir(), 'joining-'))
    closing.defer(() => rm(folder, { recursive: true, maxRetries: 10 }))
    const stop = new AbortController()
    const stdout = new Collector()
    const flags = ['--nodes=0', '--runtime=simulated', '--secure-port=0', '-o=json']
    const cluster = up.run(
      {
        ...surroundings(folder),
        path: ['up'],
        args: [`--data-dir=${join(folder, 'data')}`, `--kubeconfig=${join(folder, 'admin.conf')}`, ...flags],
        stdout,
      },
      stop.signal,
    )
    closing.defer(async () => {
      stop.abort()
      await cluster
    })
    await eventually(
      () => stdout.text,
      (said) => said.includes('apiServer'),
    )
    await serveMemoryRuntime(folder, closing)
    await writeConfiguration(folder, '')
    const bootstrap = `--bootstrap-kubeconfig=${join(folder, 'data', 'bootstrap.kubeconfig')}`
    closing.use(startProgram(folder, ['--hostname-override=far0', '--node-ip=127.0.0.1', bootstrap]))
    const client = await administrator(join(folder, 'admin.conf'), closing)
    assert.ok(isReady(await readyNode(client, 'far0')))
  })

  it('gets a certificate, a kubeconfig and a node, and reuses them after a restart', async () => {
    await using bed = await startBed()
    await writeConfiguration(bed.folder, '')
    {
      await using running = bed.start('--hostname-override=far1', '--node-ip=127.0.0.1')
      const node = await readyNode(bed.client, 'far1')
      assert.deepEqual(node?.status.addresses?.[0], { type: 'InternalIP', address: '127.0.0.1' }, running.log())
    }
    const [request, ...others] = await bed.requests(CLIENT)
    assert.deepEqual(others, [])
    assert.equal(request?.spec.username, 'system:bootstrap:abcdef')
    assert.deepEqual(request?.spec.usages, ['digital signature', 'client auth'])
    assert.match(request?.metadata.name ?? '', /^node-csr-[\w-]{43}$/)
    const current = join(bed.folder, 'pki', 'kubelet-client-current.pem')
    assert.ok((await lstat(current)).isSymbolicLink())
    assert.match(await readlink(current), /\/pki\/kubelet-client-\d{4}(?:-\d\d){5}\.pem$/)
    assert.match(await readFile(current, 'utf8'), /^-----BEGIN CERTIFICATE-----[^]+-----BEGIN PRIVATE KEY-----/)
    assert.match(
      await readFile(join(bed.folder, 'kubelet.conf'), 'utf8'),
      /client-certificate: .*kubelet-client-current\.pem/,
    )
    await assert.rejects(lstat(join(bed.folder, 'pki', 'kubelet-client.key.tmp')))
    await bed.client.delete(Nodes, { name: 'far1' })
    await using again = bed.start('--hostname-override=far1', '--node-ip=127.0.0.1')
    assert.ok(isReady(await readyNode(bed.client, 'far1')), again.log())
    assert.equal((await bed.requests(CLIENT)).length, 1)
  })

  it('serves with a certificate that the cluster signed once it is approved, and authenticates clients', async () => {
    await using bed = await startBed()
    const more = `serverTLSBootstrap: true\nauthentication: {x509: {clientCAFile: ${join(bed.folder, 'ca.crt')}}}\n`
    const port = await writeConfiguration(bed.folder, more)
    await writeFile(join(bed.folder, 'ca.crt'), bed.authority.certificatePem)
    await using running = bed.start('--hostname-override=far2', '--node-ip=127.0.0.1')
    await readyNode(bed.client, 'far2')
    await assert.rejects(subjectAt(port), /handshake failure/)
    const [wanted] = await bed.requests(SERVING)
    assert.equal(wanted?.spec.username, 'system:node:far2', running.log())
    await approve(bed.client, wanted?.metadata.name ?? '')
    // The file exists a moment before the port uses it.
    const shown = await eventually(
      () => subjectAt(port).catch(({ message }: Error) => message),
      (said) => !said.includes('handshake failure'),
    )
    assert.equal(shown, 'system:node:far2')
    const admin = bed.authority.issue({ commonName: 'root', organizations: ['system:masters'], purpose: 'client' })
    const tls = { ca: bed.authority.certificatePem, certificate: admin.certificatePem, key: admin.keyPem }
    const http = createHttpClient({ clock: realClock, tls })
    try {
      const answer = await http.request({ url: `https://127.0.0.1:${port}/configz` })
      const { kubeletconfig } = JSON.parse(await answer.text(1 << 20)) as { kubeletconfig: Record<string, unknown> }
      assert.deepEqual([kubeletconfig['port'], kubeletconfig['serverTLSBootstrap']], [port, true])
    } finally {
      http.close()
    }
  })

  it('refuses anonymous requests by default, and accepts the API server', async () => {
    await using bed = await startBed({ hasClientAuthority: true })
    const port = await freePort()
    await using running = bed.start(
      '--config=',
      '--hostname-override=far4',
      '--address=127.0.0.1',
      '--node-ip=127.0.0.1',
      `--port=${port}`,
      `--container-runtime-endpoint=unix://${join(bed.folder, 'runtime.sock')}`,
      '--healthz-port=0',
      '--fail-cgroupv1=false',
      '--fail-swap-on=false',
      '--oom-score-adj=0',
    )
    await readyNode(bed.client, 'far4')
    const ask = async (path: string, more: Partial<HttpRequest> = {}, tls: object = {}): Promise<[number, string]> => {
      const http = createHttpClient({ clock: realClock, tls: { insecure: true, ...tls } })
      try {
        const answer = await http.request({ url: `https://127.0.0.1:${port}${path}`, ...more })
        return [answer.status, await answer.text(1 << 20)]
      } finally {
        http.close()
      }
    }
    for (const path of ['/pods', '/configz', '/metrics', '/exec/default/web/c?command=id&output=1', '/healthz'])
      for (const headers of [{}, { authorization: 'Bearer made-up' }])
        assert.deepEqual(await ask(path, { headers }), [401, 'Unauthorized'], path)
    assert.deepEqual(await ask('/run/default/web/c?cmd=id', { method: 'POST' }), [401, 'Unauthorized'])
    const certified = (commonName: string, ...organizations: string[]): object => {
      const { certificatePem: certificate, keyPem: key } = bed.authority.issue({
        commonName,
        organizations,
        purpose: 'client',
      })
      return { certificate, key }
    }
    assert.equal((await ask('/pods', {}, certified('jane')))[0], 403)
    const [status, text] = await ask('/configz', {}, certified('kube-apiserver-kubelet-client', 'system:masters'))
    assert.equal(status, 200, running.log())
    const { kubeletconfig } = JSON.parse(text) as { kubeletconfig: Record<string, unknown> }
    assert.equal(kubeletconfig['readOnlyPort'] ?? 0, 0)
    assert.match(running.log(), /Accepting client certificates that the CA in the kubeconfig signed/)
    assert.doesNotMatch(running.log(), /Warning:/)
  })

  it('warns if flags allow everything to anonymous users', async () => {
    await using bed = await startBed()
    const port = await writeConfiguration(bed.folder, '')
    const open = ['--anonymous-auth=true', '--authorization-mode=AlwaysAllow', `--read-only-port=${await freePort()}`]
    await using running = bed.start('--hostname-override=far5', '--node-ip=127.0.0.1', ...open)
    await readyNode(bed.client, 'far5')
    const http = createHttpClient({ clock: realClock, tls: { insecure: true } })
    const { status } = await http.request({ url: `https://127.0.0.1:${port}/pods` })
    http.close()
    assert.equal(status, 200)
    const said = 'Warning: anonymous requests are allowed everything, including commands in all containers'
    assert.match(running.log(), new RegExp(said))
    assert.match(running.log(), /Warning: the read-only port serves pods and metrics without authentication/)
  })

  it('exits with the message of the denial if its certificate request is denied', async () => {
    await using bed = await startBed()
    await bed.client.delete(ClusterRoleBindings, { name: 'join-1' })
    await writeConfiguration(bed.folder, '')
    await using running = bed.start('--hostname-override=far3')
    const { promise: asked, resolve } = Promise.withResolvers<string>()
    const stop = new AbortController()
    const { follow } = await import('#client/reflector.ts')
    const looking = follow(
      { client: bed.client, kind: CertificateSigningRequests, random: secureRandom, signal: stop.signal },
      {
        replace: ([first]) => first && resolve(first.metadata.name ?? ''),
        change: ({ object }) => resolve(object.metadata.name ?? ''),
        failed: () => undefined,
      },
    )
    const name = await asked
    stop.abort()
    await looking
    const found = await bed.client.get(CertificateSigningRequests, { name })
    const condition = { type: 'Denied', status: 'True', reason: 'Stranger', message: 'who?' }
    const conditions = [{ ...condition, lastUpdateTime: null, lastTransitionTime: null }]
    const denied = { ...found, status: { ...found.status, conditions } }
    await bed.client.update(CertificateSigningRequests, denied, { subresource: 'approval' })
    assert.equal(await running.ended, 1)
    const said = 'certificate signing request is denied, reason: Stranger, message: who?'
    assert.match(running.log(), new RegExp(`Error: failed to run Kubelet: ${RegExp.escape(said)}\n$`))
  })
})

function subjectAt(port: number): Promise<string> {
  return new Promise((resolve, reject) => {
    const socket = connect({ host: '127.0.0.1', port, rejectUnauthorized: false }, () => {
      const { CN } = socket.getPeerCertificate().subject
      socket.destroy()
      resolve(String(CN))
    })
    socket.on('error', reject)
  })
}
