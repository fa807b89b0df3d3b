/**
 * Benchmarks priority and fairness. One user floods the server with expensive lists over hundreds of connections,
 * while other users measure their waiting times. These are a user of the same priority level, a node that renews its
 * lease, an administrator, and a new user.
 */
import { mkdtemp, readFile, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { performance } from 'node:perf_hooks'
import { Worker } from 'node:worker_threads'

import { realClock } from '#lib/clock.ts'
import { secureRandom } from '#lib/random.ts'
import { type Authority, loadAuthority } from '#lib/x509/authority.ts'

import type { AdminTls } from '../upstream/kube-apiserver.ts'
import { type Bench, quantile } from './bench.ts'
import { type Connection, encodeRequest, openConnection, pause, sendAll } from './http-load.ts'
import { type ServerUnderTest, startOurs, type StartServer, startTheirs } from './server-under-test.ts'
import { besides, type Figures, toTable } from './table.ts'

const CONNECTIONS = 300
const OBJECTS = 20_000
const SETTLE_MS = 2000
const RUN_MS = 8000
/** Between the requests of one bystander. */
const PACE_MS = 20
const LARGE = '/api/v1/namespaces/large/configmaps'

export interface FloodPlan {
  readonly server: Pick<ServerUnderTest, 'port' | 'tls'>
  readonly connections: number
  readonly paths: readonly string[]
  readonly headers: Readonly<Record<string, string>>
}

/** Each of them makes the server look at everything there is. */
const FLOODS: readonly (Pick<FloodPlan, 'paths' | 'headers'> & { readonly name: string })[] = [
  { name: 'whole lists', paths: [LARGE], headers: {} },
  {
    name: 'lists by label',
    paths: [`${LARGE}?labelSelector=app%3Dnothing`, `${LARGE}?labelSelector=app%3Dbench,n%3D7`],
    headers: {},
  },
  { name: 'tables', paths: [LARGE], headers: { accept: 'application/json;as=Table;v=v1;g=meta.k8s.io' } },
  { name: 'pages of 500', paths: [`${LARGE}?limit=500`], headers: {} },
]

export const bench: Bench = {
  about: `${CONNECTIONS} connections of one user list ${OBJECTS} objects of 1 KiB in various ways; how long others wait`,
  async run({ reference }) {
    const ours = await measure(startOurs)
    if (!reference) return ours.map(toTable)
    const theirs = await measure(startTheirs)
    return ours.map((figures, at) => (theirs[at] === undefined ? toTable(figures) : besides(figures, theirs[at])))
  },
}

async function measure(start: StartServer): Promise<readonly Figures[]> {
  const folder = await mkdtemp(join(tmpdir(), 'hyperkube-flood-'))
  const server = await start(folder)
  try {
    await fill(server)
    const clients = await loadClients(join(folder, 'pki'))
    const tables = [await underFlood(server, clients, undefined)]
    for (const flood of FLOODS) tables.push(await underFlood(server, clients, flood))
    return tables
  } finally {
    await server.stop()
    await rm(folder, { recursive: true, force: true })
  }
}

async function fill(server: ServerUnderTest): Promise<void> {
  const post = (path: string, body: object): Buffer =>
    encodeRequest({ method: 'POST', path, body: JSON.stringify(body) })
  const apiGroup = 'rbac.authorization.k8s.io'
  await sendAll(server, [
    post('/api/v1/namespaces', { metadata: { name: 'large' } }),
    post('/api/v1/namespaces', { metadata: { name: 'kube-node-lease' } }),
    post(`/apis/${apiGroup}/v1/clusterroles`, {
      metadata: { name: 'flood' },
      rules: [{ apiGroups: [''], resources: ['configmaps'], verbs: ['*'] }],
    }),
    post(`/apis/${apiGroup}/v1/clusterrolebindings`, {
      metadata: { name: 'flood' },
      roleRef: { apiGroup, kind: 'ClusterRole', name: 'flood' },
      subjects: [{ apiGroup, kind: 'Group', name: 'dev' }],
    }),
  ])
  const data = { text: 'configuration '.repeat(72) }
  const maps = Array.from({ length: OBJECTS }, (_, at) =>
    post(LARGE, { metadata: { name: `object-${at}`, labels: { app: 'bench', n: String(at % 100) } }, data }),
  )
  await sendAll(server, maps)
}

interface Clients {
  readonly as: (commonName: string, organizations: readonly string[]) => AdminTls
}

async function loadClients(pki: string): Promise<Clients> {
  const read = (name: string): Promise<string> => readFile(join(pki, name), 'utf8')
  const certificate = await read('ca.crt')
  const tools = { clock: realClock, random: secureRandom }
  const authority: Authority = loadAuthority({ certificate, key: await read('ca.key') }, tools)
  return {
    as(commonName, organizations) {
      const { certificatePem, keyPem } = authority.issue({ commonName, organizations, purpose: 'client' })
      return { ca: certificate, cert: certificatePem, key: keyPem }
    },
  }
}

interface Bystander {
  readonly name: string
  readonly tls: AdminTls
  readonly request: (turn: number) => Buffer
  /** With a connection of its own for each request. */
  readonly isNew?: boolean
}

function bystandersOf({ tls: admin }: ServerUnderTest, { as }: Clients): readonly Bystander[] {
  const user = as('bystander', ['dev'])
  const leases = '/apis/coordination.k8s.io/v1/namespaces/kube-node-lease/leases'
  const lease = { metadata: { name: 'bystander' }, spec: { holderIdentity: 'bystander', leaseDurationSeconds: 40 } }
  const headers = { 'content-type': 'application/apply-patch+yaml' }
  const one = encodeRequest({ path: `${LARGE}/object-1` })
  return [
    { name: 'GET, same level', tls: user, request: () => one },
    { name: 'LIST 100, same level', tls: user, request: () => encodeRequest({ path: `${LARGE}?limit=100` }) },
    {
      name: 'POST, same level',
      tls: user,
      request: () => encodeRequest({ method: 'POST', path: LARGE, body: '{"metadata":{"generateName":"made-"}}' }),
    },
    {
      name: 'lease of a node',
      tls: as('system:node:bystander', ['system:nodes']),
      request: (turn) =>
        encodeRequest({
          method: 'PATCH',
          path: `${leases}/bystander?fieldManager=kubelet`,
          headers,
          body: JSON.stringify({
            apiVersion: 'coordination.k8s.io/v1',
            kind: 'Lease',
            ...lease,
            spec: { ...lease.spec, leaseTransitions: turn },
          }),
        }),
    },
    { name: 'GET, administrator', tls: admin, request: () => one },
    { name: '/readyz', tls: admin, request: () => encodeRequest({ path: '/readyz' }) },
    { name: 'GET, new connection', tls: user, request: () => one, isNew: true },
  ]
}

async function underFlood(
  server: ServerUnderTest,
  clients: Clients,
  flood: (typeof FLOODS)[number] | undefined,
): Promise<Figures> {
  const { port } = server
  const tls = clients.as('flood', ['dev'])
  const plan = flood && { server: { port, tls }, connections: CONNECTIONS, paths: flood.paths, headers: flood.headers }
  const worker = plan && new Worker(new URL('flood.worker.ts', import.meta.url), { workerData: plan })
  await pause(SETTLE_MS)
  const rows = await Promise.all(bystandersOf(server, clients).map((one) => attend(server, one)))
  const counts = worker && (await new Promise<object>((resolve) => worker.once('message', resolve).postMessage('')))
  await worker?.terminate()
  await pause(SETTLE_MS)
  const told = counts === undefined ? '' : `; its answers so far: ${JSON.stringify(counts)}`
  return {
    title: flood === undefined ? 'without a flood' : `under a flood of ${flood.name}${told}`,
    columns: ['who', 'p50 ms', 'p99 ms', 'longest ms', 'answers', 'refused'],
    rows,
  }
}

async function attend(
  server: ServerUnderTest,
  { name, tls, request, isNew = false }: Bystander,
): Promise<Figures['rows'][number]> {
  const took: number[] = []
  let refused = 0
  const connect = (): Promise<Connection> => openConnection({ ...server, tls })
  let connection = await connect()
  const endMs = performance.now() + RUN_MS
  for (let turn = 0; performance.now() < endMs; turn++) {
    const startMs = performance.now()
    if (isNew) {
      connection.socket.destroy()
      connection = await connect()
    }
    const { status, text } = await connection.send(request(turn))
    took.push(performance.now() - startMs)
    if (status === 429) refused++
    else if (status >= 400) throw new Error(`${name} was answered ${status}: ${text.slice(0, 300)}`)
    await pause(PACE_MS)
  }
  connection.socket.destroy()
  return { name, values: [quantile(took, 0.5), quantile(took, 0.99), Math.max(...took), took.length, refused] }
}
