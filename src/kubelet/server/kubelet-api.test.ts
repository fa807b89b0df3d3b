import assert from 'node:assert/strict'
import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, describe, it, test } from 'node:test'

import type { Pod } from '#apis/core/v1.ts'
import { ApiClient } from '#client/api-client.ts'
import type { Runtime } from '#cri/runtime.ts'
import { createVirtualClock } from '#lib/clock.ts'
import { ExpiringCache } from '#lib/collections/expiring-cache.ts'
import { GrpcError } from '#lib/grpc/status.ts'
import { createHttpClient, type HttpRequest } from '#lib/http/client.ts'
import { createLoopbackClient } from '#lib/http/loopback.ts'
import type { HttpResponse } from '#lib/http/response.ts'
import { createSeededRandom } from '#lib/random.ts'

import type { ContainerRecord } from '../pod/container-runs.ts'
import type { ContainerOfPod, PodOfNode } from '../pod/pod-of-node.ts'
import { Access } from './access.ts'
import { checkpoint } from './checkpoint.ts'
import { createKubeletApi } from './kubelet-api.ts'
import { kubeletZPages } from './kubelet-zpages.ts'

const dir = await mkdtemp(join(tmpdir(), 'hyperkube-kubelet-api-'))
after(() => rm(dir, { recursive: true }))
const clock = createVirtualClock()
let isInSync = true

/**
 * An API server with four users: one may do everything, one may read metrics, one may only get, one may only create.
 */
function apiServer(): { client: ApiClient; reviews: () => number } {
  let reviews = 0
  const transport = createLoopbackClient({
    clock,
    identity: undefined,
    async serve(exchange) {
      reviews++
      const { kind, spec } = JSON.parse((await exchange.readBody(10_000)).toString()) as {
        kind: string
        spec: { token?: string; user?: string; resourceAttributes?: { subresource?: string; verb?: string } }
      }
      const who = TOKENS[spec.token ?? '']
      const status =
        kind === 'TokenReview'
          ? { authenticated: who !== undefined, user: { username: who, groups: ['system:authenticated'] } }
          : { allowed: isAllowed(spec.user, spec.resourceAttributes) }
      exchange.respond(201, ['Content-Type', 'application/json'], JSON.stringify({ kind, spec, status, metadata: {} }))
    },
  })
  const client = new ApiClient({ transport, clock, userAgent: 'test', server: 'https://api' })
  return { client, reviews: () => reviews }
}

const TOKENS: Readonly<Record<string, string>> = {
  'admin-token': 'admin',
  'metrics-token': 'prometheus',
  'looking-token': 'onlooker',
  'writing-token': 'writer',
}

function isAllowed(user = '', { subresource = '', verb = '' } = {}): boolean {
  if (user === 'prometheus') return subresource === 'metrics'
  return user === 'admin' || (user === 'onlooker' && verb === 'get') || (user === 'writer' && verb === 'create')
}

const pod: Pod = {
  metadata: { name: 'web', namespace: 'default', uid: 'u1' },
  spec: { containers: [{ name: 'c', image: 'web:1', resources: {} }] },
  status: { phase: 'Running' },
}

const record: ContainerRecord = {
  spec: { name: 'c', resources: {} },
  role: 'main',
  restartCount: 0,
  isStarted: true,
  isReady: true,
  imageId: 'i',
}

interface KubeletBed {
  readonly reviews: () => number
  readonly respond: (path: string, more?: Partial<HttpRequest>) => Promise<HttpResponse>
  readonly ask: (path: string, more?: Partial<HttpRequest>) => Promise<[status: number, text: string]>
}

function kubelet(container: Partial<ContainerOfPod>, runtime: Partial<Runtime> = {}): KubeletBed {
  const { client, reviews } = apiServer()
  const view: PodOfNode = {
    pod,
    sandboxId: 's1',
    containers: new Map([['c', { record, current: undefined, previous: undefined, ...container }]]),
  }
  const serve = createKubeletApi({
    clock,
    access: new Access({ client, node: 'node1', authorities: () => [], allowsAnonymous: false }),
    runtime: runtime as Runtime,
    http: createHttpClient({ clock }),
    pods: () => [view],
    find: (namespace, name) => (namespace === 'default' && name === 'web' ? view : undefined),
    isInSync: () => isInSync,
    configuration: { kind: 'KubeletConfiguration' },
    summary: () => Promise.resolve({ node: {} }),
    resourceMetrics: () => Promise.resolve('resource_scrape_error 0\n'),
    cadvisorMetrics: () => Promise.resolve('machine_cpu_cores 2\n'),
    metrics: () => Promise.resolve('kubelet_running_pods 1\n'),
    probeMetrics: () => 'prober_probe_total 1\n',
    checkpointsDir: '/var/lib/kubelet/checkpoints',
    zpages: kubeletZPages({
      clock,
      random: createSeededRandom(1),
      isEnabled: () => true,
      flags: new Map([['v', '2']]),
    }),
  })
  const http = createLoopbackClient({ serve, clock, identity: undefined })
  const headers = { authorization: 'Bearer admin-token' }
  const respond: KubeletBed['respond'] = (path, more = {}) =>
    http.request({ url: 'https://kubelet', path, headers, ...more })
  return {
    reviews,
    respond,
    async ask(path, more) {
      const { status, body } = await respond(path, more)
      const pieces: Buffer[] = []
      for await (const piece of body) pieces.push(piece)
      return [status, Buffer.concat(pieces).toString()]
    },
  }
}

test('the kubelet server answers 401 to requests without credentials or with an unknown token', async () => {
  const { ask } = kubelet({})
  assert.deepEqual(await ask('/pods', { headers: {} }), [401, 'Unauthorized'])
  assert.deepEqual(await ask('/pods', { headers: { authorization: 'Bearer made-up' } }), [401, 'Unauthorized'])
})

/** All paths of upstream's kubelet, and unknown ones. */
const PATHS = [
  ['/healthz', '/pods', '/runningpods/', '/configz', '/flagz', '/statusz', '/stats/summary', '/metrics', '/'],
  ['/metrics/cadvisor', '/metrics/resource', '/metrics/probes', '/containerLogs/default/web/c', '/logs/', '/nope'],
  ['/run/default/web/c?cmd=id', '/exec/default/web/c?output=1', '/attach/default/web/c', '/portForward/default/web'],
  ['/checkpoint/default/web/c', '/debug/pprof/', '/debug/pprof/profile', '/debug/flags/v', '/cri/exec/token'],
].flat()

test('CVE-2019-11248, CVE-2025-0426: the kubelet server refuses every path to a user without permission', async () => {
  const { ask } = kubelet({ current: { containerId: 'k1', logPath: '' } })
  for (const path of PATHS)
    for (const method of ['GET', 'POST', 'PUT', 'DELETE', 'OPTIONS', 'BREW']) {
      assert.deepEqual(await ask(path, { method, headers: {} }), [401, 'Unauthorized'], `${method} ${path}`)
      if (path.startsWith('/metrics')) continue
      const [status, text] = await ask(path, { method, headers: { authorization: 'Bearer metrics-token' } })
      assert.deepEqual([status, text.split(',')[0]], [403, 'Forbidden (user=prometheus'], `${method} ${path}`)
    }
})

/** User, method, path and expected status. `onlooker` may only get, `writer` may only create. */
const DIRECT_REQUESTS: readonly (readonly [user: string, method: string, path: string, status: number])[] = [
  ['looking', 'GET', '/containerLogs/default/nope/c', 404],
  ...['GET', 'HEAD', 'POST', 'PUT', 'PATCH', 'DELETE', 'OPTIONS', 'BREW'].flatMap((method) =>
    ['/exec', '/%65xec', '/ex%65c', '/attach', '/portForward', '/run', '/r%75n'].map(
      (path) => ['looking', method, `${path}/default/web/c?output=1&command=id&cmd=id`, 403] as const,
    ),
  ),
  // Spellings without a handler: both authorization and routing treat them as other paths.
  ...['//exec', '/./exec', '/pods/../exec', '/EXEC', '/exec%2Fdefault', '/x\\..\\exec', '//host/run', '/%2565xec'].map(
    (path) => ['looking', 'GET', `${path}/default/web/c?output=1&command=id&cmd=id`, 404] as const,
  ),
  ['looking', 'GET', '/%zz/exec/default/web/c', 400],
  ['looking', 'GET', 'https://node1:10250/run/default/web/c?cmd=id', 403],
  ['writing', 'GET', '/run/default/web/c?cmd=id', 405],
  ['writing', 'HEAD', '/run/default/web/c?cmd=id', 405],
  ['writing', 'PUT', '/run/default/web/c?cmd=id', 405],
  ['writing', 'PUT', '/exec/default/web/c?output=1&command=id', 405],
  ['writing', 'DELETE', '/portForward/default/web', 405],
  ['writing', 'POST', '/run/default/web/c?cmd=id', 200],
  ['writing', 'POST', '/run/default/web/c/?cmd=id', 200],
  ['writing', 'GET', '/exec/default/web/c?output=1&command=id', 500],
  ['writing', 'GET', '/containerLogs/default/web/c', 403],
  ...['/run', '/run/default/web', '/run/a/b/c/d/e', '/portForward/default', '/checkpoint/default/web'].map(
    (path) => ['writing', 'POST', path, 404] as const,
  ),
]

describe('kubelet server', () => {
  it('refuses commands in containers to a user who may only get nodes/proxy, for all methods and spellings', async () => {
    const commands: unknown[] = []
    const { ask } = kubelet(
      { current: { containerId: 'k1', logPath: '' } },
      {
        execSync({ cmd }) {
          commands.push(cmd)
          return Promise.resolve({ stdout: Buffer.from('uid=0'), stderr: Buffer.alloc(0), exitCode: 0 })
        },
      },
    )
    for (const [token, method, path, status] of DIRECT_REQUESTS) {
      const [got] = await ask(path, { method, headers: { authorization: `Bearer ${token}-token` } })
      assert.equal(got, status, `${token} ${method} ${path}`)
    }
    assert.deepEqual(commands, [['id'], ['id']])
  })

  it('requires the create permission when a WebSocket opens a stream', async () => {
    const { ask } = kubelet({ current: { containerId: 'k1', logPath: '' } })
    const upgrade = { connection: 'Upgrade', upgrade: 'websocket', 'sec-websocket-key': 'a' }
    const headers = { authorization: 'Bearer looking-token', ...upgrade }
    for (const path of ['/exec', '/%65xec', '/attach', '/portForward', '/run'])
      assert.deepEqual(await ask(`${path}/default/web/c?output=1&command=id&cmd=id`, { headers }), [
        403,
        'Forbidden (user=onlooker, verb=create, resource=nodes, subresource(s)=[proxy])',
      ])
  })

  it('serves its version and flags as text and as objects', async () => {
    const { ask } = kubelet({})
    const [, status] = await ask('/statusz')
    assert.match(status, /^\nkubelet statusz\nWarning: This endpoint is not meant to be machine parseable/)
    assert.match(status, /^Paths.* \/configz \/flagz \/healthz \/metrics$/m)
    assert.match((await ask('/flagz'))[1], /^\nkubelet flagz\nWarning: [^\n]*\nv(:|: |=| )2\n$/)
    const accepting = (accept: string): object => ({ headers: { authorization: 'Bearer admin-token', accept } })
    const [code, text] = await ask('/flagz', accepting('application/json;as=Flagz;v=v1beta1;g=config.k8s.io'))
    assert.deepEqual(
      [code, JSON.parse(text)],
      [200, { kind: 'Flagz', apiVersion: 'config.k8s.io/v1beta1', metadata: { name: 'kubelet' }, flags: { v: '2' } }],
    )
    const [refused, why] = await ask('/flagz', accepting('image/png'))
    assert.deepEqual([refused, (JSON.parse(why) as { reason: string }).reason], [406, 'NotAcceptable'])
    assert.equal((await ask('/statusz/x'))[0], 404)
  })

  it('lists the allowed methods in a response 405', async () => {
    const { respond } = kubelet({})
    for (const [path, allow] of [
      ['/run/default/web/c', 'POST'],
      ['/checkpoint/default/web/c', 'POST'],
      ['/exec/default/web/c', 'GET, POST'],
      ['/pods', 'GET'],
    ] as const) {
      const { status, headers } = await respond(path, { method: 'PUT' })
      assert.deepEqual([status, headers.allow], [405, allow], path)
    }
  })
})

test('the kubelet server requires a separate permission for each path, and names it in the response 403', async () => {
  const { ask } = kubelet({})
  const headers = { authorization: 'Bearer metrics-token' }
  assert.deepEqual(await ask('/metrics', { headers }), [200, 'kubelet_running_pods 1\n'])
  assert.deepEqual(await ask('/metrics/resource', { headers }), [200, 'resource_scrape_error 0\n'])
  assert.deepEqual(await ask('/pods', { headers }), [
    403,
    'Forbidden (user=prometheus, verb=get, resource=nodes, subresource(s)=[pods proxy])',
  ])
  assert.deepEqual(await ask('/exec/default/web/c?output=1', { headers, method: 'POST' }), [
    403,
    'Forbidden (user=prometheus, verb=create, resource=nodes, subresource(s)=[proxy])',
  ])
})

test('the kubelet server caches token and access reviews, and concurrent requests share one review', async () => {
  const { ask, reviews } = kubelet({})
  await Promise.all([ask('/healthz'), ask('/healthz')])
  await ask('/healthz')
  assert.equal(reviews(), 2)
  await clock.advance(600_000)
  await ask('/healthz')
  assert.equal(reviews(), 4)
})

test('the kubelet server has no bearer token as a key of a cache', async (context) => {
  const lookups = context.mock.method(ExpiringCache.prototype, 'get')
  const { ask } = kubelet({})
  assert.equal((await ask('/healthz'))[0], 200)
  const keys = lookups.mock.calls.map((call) => call.arguments[0])
  assert.ok(keys.length >= 2, `only ${keys.length} lookups`)
  assert.ok(!keys.some((key) => key?.includes('admin-token')))
})

test('the kubelet server responds with pods, configuration and health, and with 404 to unknown paths', async () => {
  const { ask } = kubelet({})
  assert.deepEqual(await ask('/healthz'), [200, 'ok'])
  const [, pods] = await ask('/pods')
  assert.equal((JSON.parse(pods) as { items: Pod[] }).items[0]?.metadata.name, 'web')
  assert.deepEqual(await ask('/configz'), [200, '{"kubeletconfig":{"kind":"KubeletConfiguration"}}'])
  assert.deepEqual(await ask('/spec'), [404, '404 page not found\n'])
  assert.deepEqual(await ask('/constructor'), [404, '404 page not found\n'])
})

test('/healthz of the kubelet reports each check, and fails if the sync loop is unhealthy', async () => {
  const { ask } = kubelet({})
  assert.deepEqual(await ask('/healthz?verbose'), [
    200,
    '[+]ping ok\n[+]log ok\n[+]syncloop ok\nhealthz check passed\n',
  ])
  isInSync = false
  const failed = '[-]syncloop failed: reason withheld\n'
  assert.deepEqual(await ask('/healthz'), [500, `[+]ping ok\n[+]log ok\n${failed}healthz check failed\n`])
  assert.deepEqual(await ask('/healthz/ping'), [200, 'ok'])
  assert.equal((await ask('/healthz/syncloop'))[0], 500)
  assert.equal((await ask('/healthz/nonsense'))[0], 404)
  isInSync = true
})

test('/containerLogs of the kubelet sends the log of a container, or the reason why there is none', async () => {
  const logPath = join(dir, '0.log')
  await writeFile(logPath, '2026-11-15T10:13:59.271175292Z stdout F hello\n')
  const { ask } = kubelet({ current: { containerId: 'k1', logPath } })
  assert.deepEqual(await ask('/containerLogs/default/web/c'), [200, 'hello\n'])
  assert.deepEqual(await ask('/containerLogs/default/web/c?limitBytes=3'), [200, 'hel'])
  assert.deepEqual(await ask('/containerLogs/default/nope/c'), [404, 'pod "nope" does not exist'])
  assert.deepEqual(await ask('/containerLogs/default/web/nope'), [404, 'container "nope" not found in pod "web"'])
  const [, none] = await ask('/containerLogs/default/web/c?previous=true')
  assert.equal(none, 'previous terminated container "c" in pod "web" not found')
  assert.deepEqual(await ask('/containerLogs/default/web/c?tailLines=x'), [
    400,
    '{"message": "Unable to decode query."}',
  ])
  assert.deepEqual(await ask('/containerLogs/default/web/c?tailLines=-1'), [422, '{"message": "Invalid request."}'])
  const waiting = kubelet({ record: { ...record, waiting: { reason: 'ErrImagePull' } } })
  const [status, text] = await waiting.ask('/containerLogs/default/web/c')
  assert.deepEqual([status, text], [400, `container "c" in pod "web" is waiting to start: image can't be pulled`])
})

test('/exec and /attach of the kubelet need an upgrade, a stream, a pod and a container; /run needs no upgrade', async () => {
  const { ask } = kubelet(
    { current: { containerId: 'k1', logPath: '' } },
    {
      execSync: ({ containerId, cmd }) =>
        Promise.resolve({
          stdout: Buffer.from(`${containerId} ${cmd?.join('|')}`),
          stderr: Buffer.alloc(0),
          exitCode: 0,
        }),
    },
  )
  const method = 'POST'
  assert.deepEqual(await ask('/exec/default/web/c?output=1', { method }), [500, 'Upgrade request required'])
  assert.deepEqual(await ask('/exec/default/web/c', { method }), [
    400,
    'you must specify at least 1 of stdin, stdout, stderr',
  ])
  assert.deepEqual(await ask('/portForward/default/web', { method }), [500, 'Upgrade request required'])
  assert.deepEqual(await ask('/run/default/web/c?cmd=ls -l', { method }), [200, 'k1 ls|-l'])
})

const running = { current: { containerId: 'c1', logPath: '' }, record: { ...record, run: { id: 'x', startedMs: 0 } } }

test('/checkpoint of the kubelet makes the runtime write below the kubelet’s directory', async (t) => {
  const folder = await mkdtemp(join(tmpdir(), 'checkpoints-'))
  t.after(() => rm(folder, { recursive: true }))
  const calls: object[] = []
  const checkpointContainer = async (request: object): Promise<object> => (calls.push(request), {})
  const answer = await checkpoint(['default', 'web', 'c'], {
    clock,
    runtime: { checkpointContainer } as unknown as Runtime,
    query: new URLSearchParams('timeout=5&timeout=300'),
    checkpointsDir: folder,
    find: () => ({ pod, sandboxId: 's1', containers: new Map([['c', { previous: undefined, ...running }]]) }),
  })
  const [location = ''] = (JSON.parse(String(answer.body)) as { items: string[] }).items
  assert.match(location, /\/checkpoint-web_default-c-\d{4}-.*\.tar$/)
  assert.deepEqual(calls, [{ containerId: 'c1', location, timeout: 300 }])
})

test('/checkpoint of the kubelet fails with upstream’s texts', async () => {
  const checkpointContainer = (): Promise<never> =>
    Promise.reject(new GrpcError('unimplemented', 'method CheckpointContainer not implemented'))
  const { ask } = kubelet(running, { checkpointContainer })
  const post = { method: 'POST' }
  assert.deepEqual(await ask('/checkpoint/default/other/c', post), [404, 'pod does not exist'])
  assert.deepEqual(await ask('/checkpoint/default/web/d', post), [404, 'container d does not exist'])
  const wrong = 'cannot parse value of timeout parameter'
  assert.deepEqual(await ask('/checkpoint/default/web/c?timeout=x', post), [404, wrong])
  assert.deepEqual(await ask('/checkpoint/default/web/c'), [405, '405: Method Not Allowed'])
})
