/**
 * Tests `pods/proxy`, `services/proxy` and `nodes/proxy`: forwarded requests, returned responses, and forbidden
 * targets.
 */
import assert from 'node:assert/strict'
import { createServer, type IncomingMessage, type Server } from 'node:http'
import { after, before, describe, it } from 'node:test'
import { gzipSync } from 'node:zlib'

import type { Network } from '#apiserver/connect/address-rule.ts'
import type { ControlPlane, ControlPlaneResponse } from '#testing/control-plane.ts'

import {
  addNode,
  addPod,
  type ConnectedPlane,
  create,
  dialPlane,
  PODS,
  READER,
  startConnectedPlane,
  upgradeRequest,
  WEBSOCKET,
} from './connected-plane.ts'
import { textOf } from './stand-in-kubelet.ts'

const PAGE = '<html><a href="/login">x</a></html>'

interface Seen {
  readonly method: string
  readonly url: string
  readonly headers: IncomingMessage['headers']
  readonly body: string
}

let connected: ConnectedPlane
let web: Server
let port = 0
let seen: Seen
/** The addresses of host names; tests change them to simulate a name server. */
let names: string[][] = []

/** Pods have addresses that are unreachable here, so all of them lead to this machine. */
const network: Network = { lookup: () => Promise.resolve(names.shift() ?? []), routeTo: () => '127.0.0.1' }

before(async () => {
  web = createServer((request, response) => {
    const pieces: Buffer[] = []
    request.on('data', (piece: Buffer) => pieces.push(piece))
    request.on('end', () => {
      const { method = '', url = '', headers } = request
      seen = { method, url, headers, body: Buffer.concat(pieces).toString() }
      const { pathname, searchParams } = new URL(url, 'http://web')
      if (pathname === '/redirect') {
        response.writeHead(302, { location: searchParams.get('to') ?? '' }).end()
      } else if (pathname === '/page') {
        response.writeHead(200, { 'content-type': 'text/html; charset=utf-8', 'content-length': PAGE.length }).end(PAGE)
      } else if (pathname === '/packed') {
        response.writeHead(200, { 'content-type': 'text/html', 'content-encoding': 'gzip' }).end(gzipSync(PAGE))
      } else if (pathname === '/nothing') {
        response.writeHead(204).end()
      } else if (pathname === '/half') {
        response.writeHead(200, { 'content-length': 100 }).write('half')
        setImmediate(() => response.destroy())
      } else {
        const cookies = ['a=1', 'b=2']
        response.writeHead(201, { 'x-own': 'y', 'set-cookie': cookies, 'access-control-allow-origin': '*' }).end('made')
      }
    })
  })
  await new Promise<void>((resolve) => web.listen(0, '127.0.0.1', resolve))
  ;({ port } = web.address() as { port: number })
  connected = await startConnectedPlane({ network })
  await addNode(connected, 'near', '127.0.0.1')
  await addNode(connected, 'far', '10.9.9.9')
  await addNode(connected, 'named', 'node.example')
  await addNode(connected, 'metadata', '169.254.169.254')
  await addPod(connected, { name: 'web', node: 'far', ip: '10.1.2.3', port })
  await addPod(connected, { name: 'bare', node: 'far', ip: '10.1.2.4' })
  await addPod(connected, { name: 'here', node: 'far', ip: '127.0.0.1', port })
  await addPod(connected, { name: 'trap', node: 'far', ip: '169.254.169.254', port })
  await addPod(connected, { name: 'young' })
})

after(async () => {
  await connected.stop()
  web.closeAllConnections()
  web.close()
})

const ask = (path: string, method = 'GET', body?: string, headers = {}): Promise<ControlPlaneResponse> =>
  connected.plane.request(method, path, body, headers)
const refusal = async (path: string): Promise<readonly unknown[]> => {
  const answer = await ask(path)
  return [answer.status, answer.json()['message']]
}
const WEB = `${PODS}/web/proxy`

describe('proxied request to a pod', () => {
  it('arrives with method, path, query, headers and body, and without credentials', async () => {
    const because = { 'hyperkube-because': 'pods/default/one@7' }
    const headers = { 'x-mine': '1', 'content-type': 'text/plain', ...because }
    const answer = await ask(`${WEB}/a/b%20c/?q=1&timeout=5&r=%zz`, 'PUT', 'some body', headers)
    assert.deepEqual([answer.status, answer.text], [201, 'made'])
    assert.deepEqual([seen.method, seen.url, seen.body], ['PUT', '/a/b%20c/?q=1&timeout=5&r=%zz', 'some body'])
    assert.equal(seen.headers.authorization, undefined)
    assert.equal(seen.headers['x-mine'], '1')
    assert.equal(seen.headers['hyperkube-because'], undefined)
    assert.equal(seen.headers.host, new URL(connected.plane.url).host)
    assert.equal(seen.headers['x-forwarded-for'], '127.0.0.1')
    assert.equal(seen.headers['x-forwarded-uri'], `${WEB}/a/b%20c/`)
  })

  it("gets the response headers, except those for the pod's own origin", async () => {
    const { headers } = await ask(`${WEB}/x`)
    assert.equal(headers.get('x-own'), 'y')
    assert.deepEqual(headers.getSetCookie(), ['a=1', 'b=2'])
    assert.equal(headers.get('access-control-allow-origin'), null)
    assert.ok(headers.get('audit-id'))
  })

  it('may have any method', async () => {
    for (const method of ['GET', 'POST', 'PUT', 'PATCH', 'DELETE', 'OPTIONS', 'HEAD']) {
      const answer = await ask(`${WEB}/m`, method)
      assert.deepEqual([answer.status, seen.method], [201, method])
    }
  })

  it('never leaves the path that was authorized', async () => {
    await ask(`${WEB}/a/%2e%2e/%2E%2E%2f..%2fetc/passwd`)
    assert.equal(seen.url, '/etc/passwd')
  })

  it('succeeds if the pod responds early or with an empty body', async () => {
    assert.equal((await ask(`${WEB}/nothing`)).status, 204)
    const large = await ask(`${WEB}/up`, 'POST', 'x'.repeat(2_000_000), { 'content-type': 'text/plain' })
    assert.deepEqual([large.status, seen.body.length], [201, 2_000_000])
  })

  it('without a path is redirected to the path with a slash', async () => {
    const answer = await connected.fetch(`${WEB}?q=1`, { redirect: 'manual' })
    assert.deepEqual([answer.status, answer.headers.get('location')], [301, `${WEB}/?q=1`])
    const doubled = await connected.fetch(`/${WEB}`, { redirect: 'manual' })
    assert.equal(doubled.headers.get('location'), `${WEB}/`)
  })

  it('goes to the named port, or to the first one', async () => {
    assert.equal((await ask(`${PODS}/bare:${port}/proxy/x`)).status, 201)
    assert.equal((await ask(`${PODS}/http:bare:${port}/proxy/x`)).status, 201)
    const tls = 'error trying to reach service: tls: first record does not look like a TLS handshake'
    assert.deepEqual(await refusal(`${PODS}/https:bare:${port}/proxy/x`), [503, tls])
  })

  it('fails if the pod aborts the response', async () => {
    const answer = await connected.fetch(`${WEB}/half`)
    await assert.rejects(answer.text())
  })

  it('is upgraded to WebSocket, with its query', async () => {
    web.once('upgrade', (request, socket) => {
      socket.end(`HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n\r\n${request.url}`)
    })
    const socket = dialPlane(connected)
    socket.write(upgradeRequest('GET', `${WEB}/ws?q=1`, WEBSOCKET))
    assert.match(await textOf(socket), /\r\n\r\n\/ws\?q=1$/)
  })
})

describe('proxied response of a pod', () => {
  const locationOf = async (to: string): Promise<string | null> => {
    const answer = await connected.fetch(`${WEB}/redirect?to=${encodeURIComponent(to)}`, { redirect: 'manual' })
    assert.equal(answer.status, 302)
    return answer.headers.get('location')
  }

  it('with a redirect leads through the proxy', async () => {
    assert.equal(await locationOf('/login'), `${WEB}/login`)
    assert.equal(await locationOf(`http://10.1.2.3:${port}/login`), `${WEB}/login`)
    assert.equal(await locationOf('https://elsewhere.example/'), 'https://elsewhere.example/')
  })

  it('with HTML has rewritten links, compressed or not', async () => {
    const page = PAGE.replace('/login', `${WEB}/login`)
    const plain = await ask(`${WEB}/page`)
    assert.equal(plain.text, page)
    const packed = await connected.fetch(`${WEB}/packed`)
    assert.equal(packed.headers.get('content-encoding'), 'gzip')
    assert.equal(await packed.text(), page)
  })
})

describe('refused proxy request to a pod', () => {
  it('includes targets at loopback, link-local and missing addresses (CVE-2020-8562, CVE-2022-3294)', async () => {
    for (const pod of ['here', 'trap', 'young']) {
      assert.deepEqual(await refusal(`${PODS}/${pod}/proxy/x`), [400, 'address not allowed'])
    }
  })

  it('gets an error with the missing pod, the invalid name or the missing port', async () => {
    assert.deepEqual(await refusal(`${PODS}/none/proxy/x`), [404, 'pods "none" not found'])
    assert.deepEqual(await refusal(`${PODS}/ftp:web:80/proxy/x`), [400, 'invalid pod request "ftp:web:80"'])
    assert.deepEqual(await refusal(`${PODS}/a:b:c:d/proxy/x`), [400, 'invalid pod request "a:b:c:d"'])
    const unknown = 'error trying to reach service: dial tcp: lookup tcp/80@x: unknown port'
    assert.deepEqual(await refusal(`${PODS}/web:80@x/proxy/x`), [503, unknown])
    const refused = 'error trying to reach service: dial tcp 10.1.2.3:1: connect: connection refused'
    assert.deepEqual(await refusal(`${PODS}/web:1/proxy/x`), [503, refused])
    assert.deepEqual(await refusal(`${WEB}/x?dryRun=All`), [400, 'dryRun is not supported'])
  })
})

describe('proxied request to a Service', () => {
  const SERVICES = '/api/v1/namespaces/default/services'

  before(async () => {
    const { plane } = connected
    const endpoints = '/api/v1/namespaces/default/endpoints'
    const ref = (name: string, namespace = 'default'): object => ({ targetRef: { kind: 'Pod', name, namespace } })
    const ports = [
      { name: 'web', port: 80 },
      { name: 'other', port: 81 },
    ]
    for (const name of ['web', 'forged', 'foreign', 'empty']) {
      await create(plane, SERVICES, { metadata: { name }, spec: { ports } })
    }
    const subset = (address: object): object => ({ addresses: [address], ports: [{ name: 'web', port }] })
    const objects = {
      web: [subset({ ip: '10.1.2.3', ...ref('web') })],
      // Without these checks, users who may write endpoints could reach any address through the proxy.
      forged: [subset({ ip: '10.6.6.6', ...ref('web') }), subset({ ip: '10.1.2.3' })],
      foreign: [subset({ ip: '10.1.2.3', ...ref('web', 'kube-system') })],
      empty: [],
    }
    for (const [name, subsets] of Object.entries(objects))
      await create(plane, endpoints, { metadata: { name }, subsets })
  })

  it('goes to one of its pods, by the name or number of a port', async () => {
    for (const id of ['web:web', 'web:80', 'http:web:80']) {
      assert.equal((await ask(`${SERVICES}/${id}/proxy/x`)).status, 201, id)
      assert.equal(seen.headers['x-forwarded-uri'], `${SERVICES}/${id}/proxy/x`)
    }
  })

  it('fails if the Service has no endpoint', async () => {
    const none = (id: string): readonly unknown[] => [503, `no endpoints available for service "${id}"`]
    assert.deepEqual(await refusal(`${SERVICES}/none/proxy/x`), [404, 'services "none" not found'])
    assert.deepEqual(await refusal(`${SERVICES}/web/proxy/x`), none('web'))
    assert.deepEqual(await refusal(`${SERVICES}/web:81/proxy/x`), none('web:81'))
    assert.deepEqual(await refusal(`${SERVICES}/web:82/proxy/x`), [503, 'no service port 82 found for service "web"'])
    assert.deepEqual(await refusal(`${SERVICES}/empty:80/proxy/x`), none('empty'))
  })

  it('never goes to an address that is not a pod of its namespace', async () => {
    for (const id of ['forged:80', 'foreign:80']) {
      assert.deepEqual(await refusal(`${SERVICES}/${id}/proxy/x`), [503, `no endpoints available for service "${id}"`])
    }
  })
})

describe('proxied request to a node', () => {
  const NODES = '/api/v1/nodes'

  it('goes to the kubelet with the client certificate of the server', async () => {
    const answer = await ask(`${NODES}/far/proxy/metrics?x=1`)
    assert.deepEqual([answer.status, answer.text], [200, 'fine'])
    assert.equal(connected.kubelet.asked.at(-1), 'GET /metrics?x=1')
    assert.match(connected.kubelet.caller, /kube-apiserver-kubelet-client/)
  })

  it("fails if the kubelet's certificate is for another address", async () => {
    await addNode(connected, 'swapped', '10.9.9.8')
    const [status, message] = await refusal(`${NODES}/swapped/proxy/metrics`)
    assert.equal(status, 503)
    assert.match(String(message), /^error trying to reach service: .*10\.9\.9\.8/)
  })

  it('reaches other ports of the machine without a client certificate', async () => {
    assert.equal((await ask(`${NODES}/far:${port}/proxy/x`)).status, 201)
  })

  it('never goes to loopback or link-local addresses, by address or by name', async () => {
    const refused = [400, 'address not allowed']
    assert.deepEqual(await refusal(`${NODES}/near/proxy/pods`), refused)
    assert.deepEqual(await refusal(`${NODES}/near:${port}/proxy/x`), refused)
    assert.deepEqual(await refusal(`${NODES}/metadata/proxy/latest`), refused)
    names = [['10.9.9.9', '127.0.0.1']]
    assert.deepEqual(await refusal(`${NODES}/named/proxy/pods`), refused)
    assert.deepEqual(await refusal(`${NODES}/none/proxy/pods`), [404, 'nodes "none" not found'])
  })

  it('connects to the address that was checked, even if DNS changes (CVE-2020-8562)', async () => {
    names = [['10.9.9.9'], ['127.0.0.1']]
    const [status, message] = await refusal(`${NODES}/named:${port}/proxy/x`)
    assert.deepEqual([status, message], [503, 'error trying to reach service: address not allowed'])
  })

  it('requires create on nodes/proxy for commands in containers, with any method', async () => {
    const { plane, kubelet } = connected
    const roles: readonly (readonly [user: string, verbs: readonly string[]])[] = [
      ['none', []],
      ['getter', ['get']],
      ['creator', ['create']],
      ['both', ['get', 'create']],
      ['changer', ['get', 'update', 'patch', 'delete']],
    ]
    for (const [user, verbs] of roles) await grant(plane, user, verbs)
    const may: readonly (readonly [method: string, path: string, users: readonly string[]])[] = [
      ['GET', 'pods', ['getter', 'both', 'changer']],
      ['GET', 'containerLogs/default/web/c', ['getter', 'both', 'changer']],
      ['GET', 'logs/syslog', ['getter', 'both', 'changer']],
      ['POST', 'checkpoint/default/web/c', ['creator', 'both']],
      ['PUT', 'debug/flags/v', ['changer']],
      ...['run', 'exec', 'attach', 'portForward'].flatMap((command) => [
        ['GET', `${command}/default/web/c?cmd=id`, ['both']] as const,
        ['HEAD', `${command}/default/web/c?cmd=id`, ['both']] as const,
        ['POST', `${command}/default/web/c?cmd=id`, ['creator', 'both']] as const,
        ['PUT', `${command}/default/web/c?cmd=id`, []] as const,
        ['DELETE', `${command}/default/web/c?cmd=id`, []] as const,
        [
          'GET',
          `%2E/${command.replace(/^./, (letter) => `%${letter.charCodeAt(0).toString(16)}`)}/x`,
          ['both'],
        ] as const,
      ]),
    ]
    for (const [method, path, users] of may) {
      for (const [user] of roles) {
        const before = kubelet.asked.length
        const { status } = await ask(`${NODES}/far/proxy/${path}`, method, undefined, { 'impersonate-user': user })
        const isAllowed = users.includes(user)
        assert.deepEqual(
          [status, kubelet.asked.length - before],
          isAllowed ? [200, 1] : [403, 0],
          `${user} ${method} ${path}`,
        )
      }
    }
  })

  it('requires create on nodes/proxy for an upgrade to WebSocket', async () => {
    const commands = `${NODES}/far/proxy/exec/default/web/c?command=id`
    await assert.rejects(connected.webSocket(commands, [], READER), { status: 403 })
    await assert.rejects(connected.webSocket(`${PODS}/web:1/proxy/x`, [], READER), { status: 500 })
  })
})

/** Gives the user these verbs on `nodes/proxy`. */
async function grant(plane: ControlPlane, user: string, verbs: readonly string[]): Promise<void> {
  const apiGroup = 'rbac.authorization.k8s.io'
  const name = `nodes-proxy-${user}`
  const rules = verbs.length === 0 ? [] : [{ apiGroups: [''], resources: ['nodes/proxy'], verbs }]
  await create(plane, `/apis/${apiGroup}/v1/clusterroles`, { metadata: { name }, rules })
  await create(plane, `/apis/${apiGroup}/v1/clusterrolebindings`, {
    metadata: { name },
    roleRef: { apiGroup, kind: 'ClusterRole', name },
    subjects: [{ apiGroup, kind: 'User', name: user }],
  })
}
