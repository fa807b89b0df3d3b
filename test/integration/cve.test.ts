/** A test for each class of past Kubernetes vulnerabilities that concerns the API server. */
import assert from 'node:assert/strict'
import { existsSync, readdirSync, statSync, writeFileSync } from 'node:fs'
import { createServer as createHttpServer } from 'node:http'
import { connect as connectHttp2, constants } from 'node:http2'
import { createServer as createHttpsServer } from 'node:https'
import type { AddressInfo, Server } from 'node:net'
import { join } from 'node:path'
import { after, before, describe, it } from 'node:test'
import { connect as connectTls } from 'node:tls'

import { allowedAddress, isGlobalUnicast } from '#apiserver/connect/address-rule.ts'

import {
  addApiService,
  addService,
  isSaid,
  startAggregatedServer,
  startFrontPlane,
} from './aggregation/aggregated-server.ts'
import { rule, startHookedPlane } from './webhooks/hooked-plane.ts'
import { type Got, type Json, PATCHES, refused, startWire, TABLE, type Wire } from './wire/server.ts'

let wire: Wire
let ns: string
let core: string
before(async () => {
  wire = await startWire({ flags: ['--v=6', '--allow-privileged=true'] })
  ns = await wire.namespace()
  core = `/api/v1/namespaces/${ns}`
})
after(() => wire.stop())

const post = (path: string, body: unknown, headers: Record<string, string | string[]> = {}): Promise<Got> =>
  wire.request('POST', path, { body, headers })
const asJane = (method: string, path: string, body?: unknown, headers: Record<string, string> = {}): Promise<Got> =>
  wire.request(method, path, { body, headers, as: 'jane' })
const NODE = { 'impersonate-user': 'system:node:n1', 'impersonate-group': ['system:nodes'] }
const POD = { containers: [{ name: 'c', image: 'i' }] }

/** Gives jane these rules, in the namespace of these tests or everywhere. */
async function letJane(name: string, rules: readonly object[], everywhere = false): Promise<void> {
  const rbac = `/apis/rbac.authorization.k8s.io/v1${everywhere ? '' : `/namespaces/${ns}`}`
  const [roles, bindings, kind] = everywhere
    ? ['clusterroles', 'clusterrolebindings', 'ClusterRole']
    : ['roles', 'rolebindings', 'Role']
  await wire.must('POST', `${rbac}/${roles}`, { metadata: { name }, rules })
  await wire.must('POST', `${rbac}/${bindings}`, {
    metadata: { name },
    subjects: [{ kind: 'User', name: 'jane', apiGroup: 'rbac.authorization.k8s.io' }],
    roleRef: { kind, name, apiGroup: 'rbac.authorization.k8s.io' },
  })
}

async function listening(server: Server): Promise<number> {
  await new Promise<void>((resolve) => void server.listen(0, '127.0.0.1', resolve))
  return (server.address() as AddressInfo).port
}

/** Starts a server that no redirect or proxy may reach. */
async function startCanary(): Promise<{ url: string; calls(): number } & Disposable> {
  let calls = 0
  const server = createHttpServer((_request, answer) => {
    calls++
    answer.end('canary')
  })
  const port = await listening(server)
  return { url: `http://127.0.0.1:${port}/x`, calls: () => calls, [Symbol.dispose]: () => void server.close() }
}

/** A node of the cluster whose kubelet is `answer`, and a pod on it. */
async function startKubelet(
  name: string,
  answer: (path: string) => { status: number; headers?: Record<string, string>; body?: string },
): Promise<{ asked: string[]; port: number } & Disposable> {
  const { certificatePem: cert, keyPem: key } = wire.clients.issue({
    commonName: name,
    names: { ips: ['127.0.0.1'] },
    purpose: 'server',
  })
  const asked: string[] = []
  const server = createHttpsServer({ cert, key }, (request, out) => {
    asked.push(request.url ?? '')
    const { status, headers = {}, body = '' } = answer(request.url ?? '')
    out.writeHead(status, headers).end(body)
  })
  const port = await listening(server)
  await addNode(name, '127.0.0.1', port)
  await wire.must('POST', `${core}/pods`, { metadata: { name }, spec: { ...POD, nodeName: name } })
  return { asked, port, [Symbol.dispose]: () => void (server.closeAllConnections(), server.close()) }
}

async function addNode(name: string, address: string, port: number): Promise<void> {
  const status = {
    addresses: [{ type: 'InternalIP', address }],
    daemonEndpoints: { kubeletEndpoint: { Port: port } },
  }
  await wire.must('POST', '/api/v1/nodes', { metadata: { name } })
  await wire.must('PATCH', `/api/v1/nodes/${name}/status`, { status }, { headers: PATCHES.merge })
}

/** Everything the server says on a connection of its own to these bytes, until it closes it. */
function converse(bytes: string): Promise<string> {
  const { hostname, port } = new URL(wire.url)
  const { promise, resolve } = Promise.withResolvers<string>()
  let said = ''
  const socket = connectTls({ host: hostname, port: Number(port), rejectUnauthorized: false }, () =>
    socket.write(bytes),
  )
  socket.setTimeout(5000, () => socket.destroy())
  socket.on('data', (chunk: Buffer) => void (said += chunk.toString('latin1')))
  socket.on('error', () => undefined)
  socket.on('close', () => resolve(said))
  return promise
}

describe('security of forwarded requests', () => {
  it('CVE-2018-1002105: a connection is closed if its upgrade is refused', async () => {
    using kubelet = await startKubelet('upgrade', () => ({ status: 403, body: 'no' }))
    const upgrade = [
      `GET ${core}/pods/upgrade/exec?command=x&stdout=1 HTTP/1.1`,
      'Host: x',
      'Authorization: Bearer admin-token',
      'Connection: Upgrade',
      'Upgrade: SPDY/3.1',
      'X-Stream-Protocol-Version: v4.channel.k8s.io',
    ]
    const second = ['GET /runningpods/ HTTP/1.1', 'Host: x']
    const said = await converse(`${upgrade.join('\r\n')}\r\n\r\n${second.join('\r\n')}\r\n\r\n`)
    const codes = [...said.matchAll(/HTTP\/1\.1 (\d+)/g)].map(([, code]) => code)
    assert.ok(!codes.includes('101') && !codes.includes('200'), said)
    assert.ok(
      kubelet.asked.every((path) => path.startsWith('/exec/')),
      String(kubelet.asked),
    )
  })

  it('CVE-2018-1002102, CVE-2020-8559: neither server nor client follows a redirect of a kubelet', async () => {
    using canary = await startCanary()
    using kubelet = await startKubelet('redirect', () => ({ status: 302, headers: { Location: canary.url } }))
    const log = await wire.request('GET', `${core}/pods/redirect/log`)
    assert.equal(log.status, 500, log.text)
    assert.match(log.json().message, /redirects forbidden$/)
    assert.equal(log.headers['location'], undefined)
    for (const part of ['exec?command=x&stdout=1', 'attach?stdout=1', 'portforward?ports=80']) {
      const said = await converse(
        [
          `GET ${core}/pods/redirect/${part} HTTP/1.1`,
          'Host: x',
          'Authorization: Bearer admin-token',
          'Connection: Upgrade',
          'Upgrade: SPDY/3.1',
          'X-Stream-Protocol-Version: v4.channel.k8s.io',
          '\r\n',
        ].join('\r\n'),
      )
      assert.match(said, /^HTTP\/1\.1 500 /)
      assert.match(said, /"message":"invalid upgrade response: status code 302"/)
      assert.doesNotMatch(said, /^location:/im)
    }
    const asked = kubelet.asked.map((path) => path.split('/')[1])
    assert.deepEqual(asked, ['containerLogs', 'exec', 'attach', 'portForward'])
    assert.equal(canary.calls(), 0)
  })

  it('CVE-2022-3172: a redirect of an aggregated server is blocked', async () => {
    using canary = await startCanary()
    const server = await startAggregatedServer()
    const front = await startFrontPlane()
    try {
      await addService(front, server.port)
      await addApiService(front)
      await isSaid(front, 'Passed')
      server.answer = (exchange) => exchange.respond(307, ['Location', canary.url], '')
      const answer = await front.plane.request('GET', '/apis/agg.io/v1/namespaces/default/widgets')
      assert.deepEqual([answer.status, answer.headers.get('location')], [502, null])
      assert.equal(canary.calls(), 0)
    } finally {
      await front[Symbol.asyncDispose]()
      await server.stop()
    }
  })

  it('CVE-2020-8561: a redirect of a webhook is not followed', async () => {
    using canary = await startCanary()
    const hook = createHttpServer((_request, answer) => void answer.writeHead(307, { Location: canary.url }).end())
    const port = await listening(hook)
    const file = join(wire.dir, 'hook.conf')
    const config = {
      clusters: [{ name: 'h', cluster: { server: `http://127.0.0.1:${port}/` } }],
      contexts: [{ name: 'h', context: { cluster: 'h', user: 'h' } }],
      users: [{ name: 'h', user: {} }],
      'current-context': 'h',
    }
    writeFileSync(file, JSON.stringify(config))
    await using own = await startWire({ flags: [`--authentication-token-webhook-config-file=${file}`] })
    const got = await own.request('GET', '/api/v1/pods', { headers: { authorization: 'Bearer unknown' } })
    assert.equal(got.status, 401)
    assert.equal(canary.calls(), 0)
    hook.close()
  })

  it('CVE-2020-8562: a proxied request goes to the address that was checked', async () => {
    const answers = [['203.0.113.7'], ['127.0.0.1']]
    const network = { lookup: () => Promise.resolve(answers.shift() ?? []) }
    assert.equal(await allowedAddress('flips.example.com', network, isGlobalUnicast), '203.0.113.7')
    await assert.rejects(allowedAddress('flips.example.com', network, isGlobalUnicast), /address not allowed/)
  })

  it('CVE-2022-3294, NCC-JAV: a node address cannot be loopback or a metadata address', async () => {
    using canary = await startCanary()
    const port = Number(new URL(canary.url).port)
    await addNode('loopback', '127.0.0.1', port)
    await addNode('metadata', '169.254.169.254', port)
    for (const node of ['loopback', 'metadata']) {
      for (const id of [node, `${node}:${port}`, `http:${node}:${port + 1}`, `https:${node}:${port}`]) {
        await refused(wire.request('GET', `/api/v1/nodes/${id}/proxy/healthz`), 400, { message: 'address not allowed' })
      }
    }
    // A kubelet may run on this machine, but not where the cloud keeps its secrets.
    await wire.must('POST', `${core}/pods`, { metadata: { name: 'metadata' }, spec: { ...POD, nodeName: 'metadata' } })
    const log = await wire.request('GET', `${core}/pods/metadata/log`)
    assert.match(log.json().message, /address not allowed$/)
    // The same of pods and of what services claim to be pods.
    const status = { podIPs: [{ ip: '127.0.0.1' }], podIP: '127.0.0.1', phase: 'Running' }
    await wire.must('PATCH', `${core}/pods/metadata/status`, { status }, { headers: PATCHES.merge })
    await refused(wire.request('GET', `${core}/pods/metadata:${port}/proxy/x`), 400, { message: 'address not allowed' })
    assert.equal(canary.calls(), 0)
  })

  it('nodes/proxy by WebSocket: users without create open no connection to the kubelet', async () => {
    using kubelet = await startKubelet('upgraded', () => ({ status: 200, body: 'ok' }))
    await letJane('node-getter', [{ apiGroups: [''], resources: ['nodes/proxy'], verbs: ['get'] }], true)
    const upgrade = {
      connection: 'Upgrade',
      upgrade: 'websocket',
      'sec-websocket-version': '13',
      'sec-websocket-key': 'x',
    }
    for (const what of ['exec', 'attach', 'portForward', 'run', 'pods']) {
      const path = `/api/v1/nodes/upgraded/proxy/${what}/${ns}/upgraded/c?command=id`
      const got = await asJane('GET', path, undefined, upgrade)
      assert.equal(got.status, 403, got.text)
    }
    assert.deepEqual(kubelet.asked, [])
  })

  it('nodes/proxy (2026, NCC-WV3): users without create run no command in a container, whatever the method', async () => {
    using kubelet = await startKubelet('proxied', () => ({ status: 200, body: 'ok' }))
    const verbs = ['get', 'update', 'patch', 'delete']
    await letJane('node-changer', [{ apiGroups: [''], resources: ['nodes/proxy'], verbs }], true)
    const container = `${ns}/proxied/c?command=id&cmd=id`
    const spellings = ['', '/', '/./', '/pods/../', '/pods%2F..%2f', '/%2e/', '/pods/%2E%2e/', '/x/y/../../']
    const commands = ['exec', '%65xec', 'attach', 'portForward', 'port%46orward', 'run', 'r%75n', 'run%2F']
    for (const node of ['proxied', 'https:proxied:', `https:proxied:${kubelet.port}`])
      for (const method of ['GET', 'HEAD', 'PUT', 'PATCH', 'DELETE', 'POST'])
        for (const path of spellings.flatMap((prefix) =>
          commands.map((command) => `${prefix}/${command}/${container}`),
        )) {
          const got = await asJane(method, `/api/v1/nodes/${node}/proxy${path}`)
          assert.equal(got.status, 403, `${method} ${node} ${path}: ${got.text}`)
        }
    assert.deepEqual(kubelet.asked, [])
    // The kubelet has none of these paths, or they only read. The proxy goes on, and then refuses an address of this machine.
    for (const path of ['EXEC', 'run%2525', '%2565xec', 'pods/exec', 'metrics/', 'containerLogs', '%5Crun', 'exec.'])
      assert.equal((await asJane('GET', `/api/v1/nodes/proxied/proxy/${path}/${container}`)).status, 400, path)
    await letJane('node-creator', [{ apiGroups: [''], resources: ['nodes/proxy'], verbs: ['create'] }], true)
    assert.equal((await asJane('POST', `/api/v1/nodes/proxied/proxy/run/${container}`)).status, 400)
  })
})

describe('security of field values', () => {
  it('CVE-2020-8554: DenyServiceExternalIPs refuses external IPs', async () => {
    await using own = await startWire({ flags: ['--enable-admission-plugins=DenyServiceExternalIPs'] })
    const spec = { ports: [{ port: 80 }], externalIPs: ['203.0.113.7'] }
    const got = await own.request('POST', '/api/v1/namespaces/default/services', {
      body: { metadata: { name: 's' }, spec },
    })
    assert.equal(got.status, 403, got.text)
  })

  it('CVE-2021-25740: the default user roles cannot write Endpoints or EndpointSlices', async () => {
    const own = await wire.namespace()
    // The roles that `edit` and `admin` aggregate.
    const parts = ['view', 'edit', 'admin'].map((role) => `system:aggregate-to-${role}`)
    for (const name of parts) {
      await wire.must('POST', `/apis/rbac.authorization.k8s.io/v1/namespaces/${own}/rolebindings`, {
        metadata: { name: `all-${name}` },
        subjects: [{ kind: 'User', name: 'jane', apiGroup: 'rbac.authorization.k8s.io' }],
        roleRef: { kind: 'ClusterRole', name, apiGroup: 'rbac.authorization.k8s.io' },
      })
    }
    const discovery = `/apis/discovery.k8s.io/v1/namespaces/${own}`
    const slice = { metadata: { name: 'own' }, addressType: 'IPv4', endpoints: [], ports: [] }
    for (const [path, body] of [
      [`/api/v1/namespaces/${own}/endpoints`, { metadata: { name: 'own' } }],
      [`${discovery}/endpointslices`, slice],
    ] as const) {
      await wire.must('POST', path, body)
      assert.equal((await asJane('GET', path)).status, 200, path)
      for (const [method, target, headers] of [
        ['POST', path, {}],
        ['PUT', `${path}/own`, {}],
        ['PATCH', `${path}/own`, PATCHES.merge],
        ['DELETE', `${path}/own`, {}],
        ['DELETE', path, {}],
      ] as const) {
        const got = await asJane(method, target, method === 'DELETE' ? undefined : body, headers)
        assert.equal(got.status, 403, `${method} ${target}: ${got.text}`)
      }
    }
    // Allowed actions of these roles succeed, which shows that the refusals above have the right reason.
    assert.equal(
      (await asJane('POST', `/api/v1/namespaces/${own}/configmaps`, { metadata: { name: 'janes' } })).status,
      201,
    )
  })

  it('CVE-2021-25737: endpoints with loopback or link-local addresses are refused', async () => {
    for (const [addressType, address] of [
      ['IPv4', '127.0.0.1'],
      ['IPv4', '127.8.8.8'],
      ['IPv4', '169.254.169.254'],
      ['IPv6', '::1'],
      ['IPv6', 'fe80::1'],
    ] as const) {
      const slice = { metadata: { name: 's' }, addressType, endpoints: [{ addresses: [address] }], ports: [] }
      const got = await post(`/apis/discovery.k8s.io/v1/namespaces/${ns}/endpointslices`, slice)
      assert.equal(got.status, 422, `${address}: ${got.text}`)
      const subsets = [{ addresses: [{ ip: address }], ports: [{ port: 80 }] }]
      const old = await post(`${core}/endpoints`, { metadata: { name: 'e' }, subsets })
      assert.equal(old.status, 422, `${address}: ${old.text}`)
    }
  })

  it('CVE-2023-2728, CVE-2024-3177: every reference to a Secret that a service account may not mount is refused', async () => {
    const account = { name: 'strict', annotations: { 'kubernetes.io/enforce-mountable-secrets': 'true' } }
    await wire.must('POST', `${core}/serviceaccounts`, { metadata: account, secrets: [{ name: 'mine' }] })
    const env = (name: string): object => ({ env: [{ name: 'E', valueFrom: { secretKeyRef: { name, key: 'k' } } }] })
    const envFrom = (name: string): object => ({ envFrom: [{ secretRef: { name } }] })
    const container = (more: object): object => ({ name: 'x', image: 'i', ...more })
    const places: Readonly<Record<string, (name: string) => object>> = {
      volume: (name) => ({ volumes: [{ name: 'v', secret: { secretName: name } }] }),
      'container env': (name) => ({ containers: [container(env(name))] }),
      'container envFrom': (name) => ({ containers: [container(envFrom(name))] }),
      'init container env': (name) => ({ initContainers: [container(env(name))] }),
      'init container envFrom': (name) => ({ initContainers: [container(envFrom(name))] }),
    }
    for (const [place, spec] of Object.entries(places)) {
      for (const [secret, status] of [
        ['mine', 201],
        ['others', 403],
      ] as const) {
        const pod = {
          metadata: { generateName: 'p-' },
          spec: { ...POD, serviceAccountName: 'strict', ...spec(secret) },
        }
        const got = await post(`${core}/pods?dryRun=All`, pod)
        assert.equal(got.status, status, `${place} ${secret}: ${got.text}`)
      }
    }
    const pulls = { ...POD, serviceAccountName: 'strict', imagePullSecrets: [{ name: 'others' }] }
    assert.equal((await post(`${core}/pods?dryRun=All`, { metadata: { name: 'p' }, spec: pulls })).status, 403)
    await wire.must('POST', `${core}/pods`, {
      metadata: { name: 'strict' },
      spec: { ...POD, serviceAccountName: 'strict' },
    })
    for (const more of [env('others'), envFrom('others')]) {
      const body = { spec: { ephemeralContainers: [container(more)] } }
      const got = await wire.request('PATCH', `${core}/pods/strict/ephemeralcontainers`, {
        body,
        headers: PATCHES.strategic,
      })
      // Upstream's plugin forgets to say that it is forbidden.
      assert.equal(got.status, 500, got.text)
      assert.match(got.json().message, /is not allowed because service account strict does not reference that secret$/)
    }
  })

  it('CVE-2023-2727: PodSecurity checks every kind of container', async () => {
    const strict = await wire.namespace()
    const labels = { 'pod-security.kubernetes.io/enforce': 'baseline' }
    await wire.must('PATCH', `/api/v1/namespaces/${strict}`, { metadata: { labels } }, { headers: PATCHES.merge })
    const path = `/api/v1/namespaces/${strict}/pods`
    const bad = { name: 'x', image: 'i', securityContext: { privileged: true } }
    for (const spec of [{ containers: [bad] }, { ...POD, initContainers: [bad] }]) {
      await refused(post(path, { metadata: { name: 'p' }, spec }), 403, {
        message: /violates PodSecurity "baseline:latest"/,
      })
    }
    await wire.must('POST', path, { metadata: { name: 'p' }, spec: POD })
    const body = { spec: { ephemeralContainers: [bad] } }
    await refused(wire.request('PATCH', `${path}/p/ephemeralcontainers`, { body, headers: PATCHES.strategic }), 403, {
      message: /violates PodSecurity "baseline:latest"/,
    })
  })

  it('CVE-2021-25735: a webhook receives the stored object as oldObject', async () => {
    await using hooked = await startHookedPlane()
    hooked.respond('/see', () => ({ allowed: true }))
    const made = await hooked.request('POST', '/api/v1/nodes', { metadata: { name: 'n', labels: { who: 'old' } } })
    assert.equal(made.status, 201, made.text)
    await hooked.configure('validating', 'see', [
      { name: 'see.ex.io', rules: [rule('nodes', { operations: ['UPDATE'] })] },
    ])
    const node = made.json() as Json
    const next = { ...node, metadata: { ...node.metadata, labels: { who: 'new' } }, spec: { unschedulable: true } }
    assert.equal((await hooked.request('PUT', '/api/v1/nodes/n', next)).status, 200)
    const [seen] = hooked.requests('/see') as Json[]
    assert.deepEqual([seen?.oldObject.metadata.labels, seen?.oldObject.spec], [{ who: 'old' }, node.spec])
    assert.deepEqual([seen?.object.metadata.labels, seen?.object.spec.unschedulable], [{ who: 'new' }, true])
  })

  // One that is empty is let through, as upstream's server does: the kubelet refuses it.
  it('CVE-2023-2431: a seccomp profile without a name is refused', async () => {
    const securityContext = { seccompProfile: { type: 'Localhost' } }
    for (const spec of [
      { ...POD, securityContext },
      { containers: [{ name: 'c', image: 'i', securityContext }] },
      { ...POD, initContainers: [{ name: 'i', image: 'i', securityContext }] },
    ]) {
      await refused(post(`${core}/pods`, { metadata: { name: 'seccomp' }, spec }), 422, {
        message: /seccompProfile\.localhostProfile: Required value: must be set when seccomp type is Localhost$/,
      })
    }
  })

  it('CVE-2021-25743: kubectl escapes terminal control sequences', async () => {
    const message = 'a\u001B[31mred\u009B1m\u202Edesrever\u2066x'
    const event = { metadata: { name: 'esc' }, involvedObject: { namespace: ns, kind: 'Pod', name: 'p' }, message }
    await wire.must('POST', `${core}/events`, { ...event, reason: 'r', type: 'Normal' })
    const got = await wire.request('GET', `${core}/events?includeObject=None`, { headers: { accept: TABLE } })
    const cells = JSON.stringify(got.json().rows)
    assert.ok(
      !/[\p{Cc}\u202A-\u202E\u2066-\u2069]/u.test(
        got
          .json()
          .rows.flatMap((row: Json) => row.cells)
          .join(''),
      ),
      cells,
    )
    assert.ok(cells.includes('a^[[31mred'), cells)
    assert.equal((await wire.must('GET', `${core}/events/esc`)).message, message)
  })
})

describe('security of request bodies and paths', () => {
  // cost.test.ts measures the cost of these requests and the next ones in a separate server.
  it('CVE-2019-11253, CVE-2019-11254: documents with nested aliases are refused at low cost', async () => {
    const laughs = Array.from({ length: 26 }, (_, n) => `a${n + 1}: &a${n + 1} [${`*a${n},`.repeat(9)}]`)
    const bomb = `a0: &a0 lol\n${laughs.join('\n')}\nmetadata: {name: x}\n`
    const nested = `metadata: {name: x}\nx: ${'&a ['.repeat(1000)}${']'.repeat(1000)}\n`
    const before = process.memoryUsage().rss
    for (const body of [bomb, nested, `metadata: {name: x}\nx: ${'['.repeat(20_000)}\n`]) {
      const got = await post(`${core}/configmaps`, body, { 'content-type': 'application/yaml' })
      assert.ok(got.status >= 400 && got.status < 500, `${got.status} ${got.text.slice(0, 200)}`)
    }
    assert.ok(process.memoryUsage().rss - before < 100 << 20)
  })

  it('CVE-2019-1002100: patches with very many copies are refused', async () => {
    await wire.must('POST', `${core}/configmaps`, { metadata: { name: 'patched' }, data: { a: 'x'.repeat(1000) } })
    const path = `${core}/configmaps/patched`
    const many = Array.from({ length: 10_001 }, () => ({ op: 'test', path: '/data/a', value: 'x' }))
    assert.equal((await wire.request('PATCH', path, { body: many, headers: PATCHES.json })).status, 413)
    const doubling = Array.from({ length: 40 }, (_, n) => ({ op: 'copy', from: '/data', path: `/data/d${n}` }))
    const got = await wire.request('PATCH', path, { body: doubling, headers: PATCHES.json })
    assert.ok(got.status >= 400 && got.status < 500, got.text.slice(0, 200))
  })

  it('CVE-2019-11247: a cluster-scoped kind is not served below a namespace', async () => {
    await letJane('all-nodes', [{ apiGroups: [''], resources: ['nodes', 'persistentvolumes'], verbs: ['*'] }])
    await wire.must('POST', '/api/v1/nodes', { metadata: { name: 'cluster-node' } })
    for (const [method, path] of [
      ['GET', `${core}/nodes`],
      ['GET', `${core}/nodes/cluster-node`],
      ['DELETE', `${core}/nodes/cluster-node`],
      ['PATCH', `${core}/nodes/cluster-node`],
      ['GET', `${core}/persistentvolumes`],
    ] as const) {
      assert.equal((await asJane(method, path)).status, 404, path)
    }
    assert.equal((await wire.request('GET', '/api/v1/nodes/cluster-node')).status, 200)
  })

  it('CVE-2022-3162, NCC-RKV: no name in a path leads to another resource', async () => {
    await wire.must('POST', `${core}/secrets`, { metadata: { name: 'hidden' }, stringData: { k: 'canary-secret' } })
    const escapes = ['..', '%2e%2e', '..%2f..', `..%2f..%2fsecrets%2f${ns}`, '%00', 'a%00b', '.', '%2F', '..%252f']
    for (const escape of escapes) {
      for (const path of [
        `/api/v1/namespaces/${escape}/configmaps`,
        `/api/v1/namespaces/${escape}/configmaps/hidden`,
        `${core}/configmaps/${escape}`,
        `${core}/configmaps/${escape}/${ns}/hidden`,
        `${core}/configmaps/../secrets/hidden`,
      ]) {
        const got = await asJane('GET', path)
        assert.ok(!got.text.includes('canary-secret') && got.status >= 400, `${path} ${got.status}`)
        const admin = await wire.request('GET', path)
        assert.ok(!admin.text.includes('canary-secret'), `${path} ${admin.status}`)
        assert.ok(admin.status >= 400 || admin.json().items?.length === 0, `${path} ${admin.status} ${admin.text}`)
      }
      const made = await post(`${core}/configmaps`, { metadata: { name: decodeURIComponent(escape) } })
      assert.ok(made.status === 422 || made.status === 400, `${escape}: ${made.status}`)
    }
    for (const start of ['../secrets/', `../secrets/${ns}/`, '/registry/secrets/']) {
      const token = Buffer.from(JSON.stringify({ v: 'meta.k8s.io/v1', rv: 1, start })).toString('base64url')
      const got = await wire.request('GET', `${core}/configmaps?limit=5&continue=${token}`)
      assert.ok(!got.text.includes('canary-secret'), got.text)
    }
  })

  it('CVE-2020-8551, CVE-2020-8552: clients cannot create metric series', async () => {
    const series = async (): Promise<number> => (await wire.request('GET', '/metrics')).text.split('\n').length
    await wire.request('GET', '/made-up')
    await asJane('GET', '/api/v1/namespaces/x/made-ups')
    const before = await series()
    for (let n = 0; n < 300; n++) {
      const agent = { 'user-agent': `agent-${n}` }
      await Promise.all([
        wire.request('GET', `/made-up-${n}`, { headers: agent }),
        wire.request('GET', `/apis/g${n}.io/v1/things`, { headers: agent }),
        wire.request('GET', `/api/v1/namespaces/n${n}/things${n}/x/part${n}`, { as: 'jane', headers: agent }),
        wire.request(n % 2 === 0 ? 'PURGE' : 'LOCK', `/api/v1/pods${n}`, { headers: agent }),
      ])
    }
    assert.ok((await series()) - before < 200, `${await series()} after ${before}`)
  })

  it('CVE-2023-44487, CVE-2019-9514: a connection that floods the server is closed, and others continue', async () => {
    const session = connectHttp2(wire.url, { rejectUnauthorized: false })
    const closed = new Promise<void>((resolve) => session.on('close', resolve))
    session.on('error', () => undefined)
    let opened = 0
    const flood = (): void => {
      for (let n = 0; n < 500 && !session.destroyed && !session.closed && opened < 100_000; n++, opened++) {
        const stream = session.request({ ':path': '/api/v1/pods', authorization: 'Bearer admin-token' })
        stream.on('error', () => undefined)
        stream.close(constants.NGHTTP2_CANCEL)
      }
      if (!session.destroyed && !session.closed && opened < 100_000) setImmediate(flood)
    }
    session.on('connect', flood)
    await closed
    assert.ok(opened < 100_000, 'It let everything pass')
    assert.equal((await wire.request('GET', '/readyz', { http2: true })).status, 200)
  })
})

describe('security of permissions', () => {
  const rbac = '/apis/rbac.authorization.k8s.io/v1'

  it('RBAC escalation: users cannot grant permissions that they lack', async () => {
    const roles = `${rbac}/namespaces/${ns}/roles`
    const bindings = `${rbac}/namespaces/${ns}/rolebindings`
    const all = ['create', 'update', 'patch', 'get', 'delete']
    await letJane('role-writer', [
      { apiGroups: ['rbac.authorization.k8s.io'], resources: ['roles', 'rolebindings'], verbs: all },
      { apiGroups: [''], resources: ['configmaps'], verbs: ['get'] },
    ])
    const allowed = { apiGroups: [''], resources: ['configmaps'], verbs: ['get'] }
    const beyond = { apiGroups: [''], resources: ['secrets'], verbs: ['get'] }
    const role = (name: string, rule: object): object => ({
      apiVersion: 'rbac.authorization.k8s.io/v1',
      kind: 'Role',
      metadata: { name },
      rules: [rule],
    })
    assert.equal((await asJane('POST', roles, role('mine', allowed))).status, 201)
    for (const [method, path, body, headers] of [
      ['POST', roles, role('more', beyond), {}],
      ['PUT', `${roles}/mine`, role('mine', beyond), {}],
      ['PATCH', `${roles}/mine`, { rules: [beyond] }, PATCHES.merge],
      ['PATCH', `${roles}/mine`, [{ op: 'replace', path: '/rules/0/resources/0', value: 'secrets' }], PATCHES.json],
      ['PATCH', `${roles}/mine?fieldManager=j&force=true`, role('mine', beyond), PATCHES.apply],
      ['PATCH', `${roles}/created-by-apply?fieldManager=j`, role('created-by-apply', beyond), PATCHES.apply],
    ] as const) {
      const got = await asJane(method, path, body, headers)
      assert.equal(got.status, 403, `${method} ${path}: ${got.text}`)
      assert.match(got.json().message, /attempting to grant RBAC permissions not currently held/)
    }
    const binding = (name: string, kind: string, target: string): object => ({
      metadata: { name },
      subjects: [{ kind: 'User', name: 'jane', apiGroup: 'rbac.authorization.k8s.io' }],
      roleRef: { kind, name: target, apiGroup: 'rbac.authorization.k8s.io' },
    })
    assert.equal((await asJane('POST', bindings, binding('b1', 'Role', 'mine'))).status, 201)
    assert.equal((await asJane('POST', bindings, binding('b2', 'ClusterRole', 'cluster-admin'))).status, 403)
    const aggregated = {
      metadata: { name: 'sneaky', labels: { 'rbac.authorization.k8s.io/aggregate-to-admin': 'true' } },
      rules: [beyond],
    }
    await letJane(
      'cluster-role-writer',
      [{ apiGroups: ['rbac.authorization.k8s.io'], resources: ['clusterroles'], verbs: all }],
      true,
    )
    assert.equal((await asJane('POST', `${rbac}/clusterroles`, aggregated)).status, 403)
    const sum = { metadata: { name: 'sum' }, aggregationRule: { clusterRoleSelectors: [{ matchLabels: { a: 'b' } }] } }
    assert.equal((await asJane('POST', `${rbac}/clusterroles`, sum)).status, 403)
    for (const user of ['admin', 'system:admin', 'system:serviceaccount:kube-system:x']) {
      assert.equal((await asJane('GET', `${core}/secrets`, undefined, { 'impersonate-user': user })).status, 403, user)
    }
  })

  it('CVE-2025-5187, CVE-2025-4563: a node cannot extend its permissions', async () => {
    await wire.must('POST', '/api/v1/nodes', { metadata: { name: 'n1' } })
    const owner = { apiVersion: 'v1', kind: 'ConfigMap', name: 'x', uid: 'u' }
    const body = { metadata: { ownerReferences: [owner] } }
    const owned = await wire.request('PATCH', '/api/v1/nodes/n1', { body, headers: { ...NODE, ...PATCHES.merge } })
    assert.equal(owned.status, 403, owned.text)
    const mirror = (spec: object): object => ({
      metadata: {
        name: 'mirror-n1',
        annotations: { 'kubernetes.io/config.mirror': 'x' },
        ownerReferences: [{ apiVersion: 'v1', kind: 'Node', name: 'n1', uid: 'x', controller: true }],
      },
      spec: { ...POD, nodeName: 'n1', ...spec },
    })
    for (const spec of [
      { resourceClaims: [{ name: 'r', resourceClaimName: 'r' }] },
      { volumes: [{ name: 'v', secret: { secretName: 's' } }] },
      { serviceAccountName: 'default' },
      { nodeName: 'other' },
    ]) {
      const got = await post(`${core}/pods`, mirror(spec), NODE)
      assert.equal(got.status, 403, `${JSON.stringify(spec)}: ${got.text}`)
    }
    for (const [method, path] of [
      ['DELETE', '/api/v1/nodes/cluster-node'],
      ['GET', `${core}/secrets/hidden`],
      ['GET', `${core}/secrets`],
    ] as const) {
      assert.equal((await wire.request(method, path, { headers: NODE })).status, 403, path)
    }
  })

  it('CVE-2019-11248: anonymous users reach only health and version', async () => {
    for (const path of ['/healthz', '/livez', '/readyz', '/version']) {
      assert.equal((await wire.request('GET', path, { as: 'nobody' })).status, 200, path)
    }
    for (const path of [
      '/',
      '/metrics',
      '/debug/pprof/',
      '/debug/pprof/profile',
      '/configz',
      '/logs/',
      '/flagz',
      '/statusz',
      '/api',
      '/apis',
      '/openapi/v2',
      '/.well-known/openid-configuration',
      '/swagger.json',
      '/debug/flags/v',
    ]) {
      const got = await wire.request('GET', path, { as: 'nobody' })
      assert.ok(got.status === 401 || got.status === 403 || got.status === 404, `${path}: ${got.status}`)
    }
  })

  it('NCC-F9W: the CAs of front proxies and clients must differ', async () => {
    const flags = ['--requestheader-client-ca-file=ca.crt', '--requestheader-username-headers=X-Remote-User']
    await assert.rejects(startWire({ flags }), /requestheader/)
  })

  it('NCC-YVU: X-Remote headers count only from trusted proxies', async () => {
    const claims = { 'x-remote-user': 'admin', 'x-remote-group': 'system:masters', 'x-remote-extra-x': 'y' }
    for (const as of ['jane', 'nobody'] as const) {
      assert.equal((await wire.request('GET', '/api/v1/secrets', { as, headers: claims })).status, 403)
    }
  })
})

describe('security of logs and files', () => {
  it('CVE-2019-11250, CVE-2020-8563: logs contain no secrets', async () => {
    const token = 'canary-of-a-bearer-token'
    await wire.request('GET', '/api/v1/pods', { headers: { authorization: `Bearer ${token}` } })
    await wire.must('POST', `${core}/secrets`, {
      metadata: { name: 'logged' },
      stringData: { k: 'canary-of-a-secret' },
    })
    const issued = await wire.must('POST', `${core}/serviceaccounts/default/token`, { spec: {} })
    await wire.request('GET', '/api/v1/pods', { headers: { authorization: `Bearer ${issued.status.token}` } })
    const log = wire.log()
    assert.ok(log.length > 0)
    for (const canary of [token, 'canary-of-a-secret', 'admin-token', 'jane-token', issued.status.token]) {
      assert.ok(!log.includes(canary), `"${canary}" is in the log`)
    }
  })

  it('CVE-2019-11244: other users cannot read keys and kubeconfig files', () => {
    const certs = join(wire.dir, 'certs')
    assert.ok(existsSync(certs))
    for (const name of readdirSync(certs)) {
      const { mode } = statSync(join(certs, name))
      assert.equal(mode & 0o022, 0, name)
      if (name.endsWith('.key')) assert.equal(mode & 0o077, 0, name)
    }
  })
})
