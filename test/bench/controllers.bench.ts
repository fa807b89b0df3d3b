/**
 * Benchmarks our kube-controller-manager and upstream's: the time until all objects are created or deleted, and the
 * cost of an idle cluster. Upstream's manager runs twice: on our server, to compare the managers alone, and on
 * upstream's server with etcd. The managers run each task one right after the other, because the speed of the machine
 * varies over a day. Client rate limits are lifted for all of them.
 */
import type { ChildProcess } from 'node:child_process'
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { performance } from 'node:perf_hooks'

import { type Make, startManager } from '../upstream/components.ts'
import { end } from '../upstream/kube-apiserver.ts'
import { ask, writeKubeconfig } from '../upstream/ours.ts'
import type { Bench } from './bench.ts'
import { encodeRequest, pause, sendAll } from './http-load.ts'
import {
  installed,
  type ServerUnderTest,
  startOurs,
  type StartServer,
  startTheirs,
  type Usage,
  usageOf,
} from './server-under-test.ts'
import { besides, type Figures } from './table.ts'

/** For a look at a busy machine: `BENCH_SCALE=0.1`. */
const SCALE = Number(process.env['BENCH_SCALE'] ?? 1)
const scaled = (count: number): number => Math.max(1, Math.round(count * SCALE))

const DEPLOYMENTS = scaled(100)
const REPLICAS = 30
const CONTENT = scaled(5_000)
const DEPENDENTS = scaled(10_000)
const PODS = scaled(10_000)
const IDLE_MS = 30_000
/** The manager has processed all events and released memory by then. */
const SETTLE_MS = 120_000
/** Each work is done so often by the same processes: what has just been started is slower, the more so the more it compiles. */
const ROUNDS = 3
const POLL_MS = 20

const UNLIMITED = ['--kube-api-qps=100000', '--kube-api-burst=100000']

export const bench: Bench = {
  about: 'the controller manager: pods of Deployments, a namespace that goes, garbage, and a quiet cluster',
  async run({ reference }) {
    const planes = reference ? PLANES : PLANES.slice(0, 1)
    const figures = planes.map(({ whose }) => ({
      work: {
        title: 'from the first request until everything is there, or gone',
        whose,
        columns: WORK_COLUMNS,
        rows: [] as Row[],
      },
      idle: {
        title: `a quiet cluster, ${SETTLE_MS / 1000} s after the pods were made`,
        whose,
        columns: IDLE_COLUMNS,
        rows: [] as Row[],
      },
    }))
    for (const work of WORKS)
      for (const [at, plane] of planes.entries()) figures[at]?.work.rows.push(...(await beside(plane, inRounds(work))))
    for (const [at, plane] of planes.entries())
      figures[at]?.idle.rows.push({ name: `${PODS} pods`, values: await beside(plane, measureIdle) })
    return [figures.map(({ work }) => work), figures.map(({ idle }) => idle)].map(([ours, ...others]) =>
      besides(ours as Figures, ...others),
    )
  },
}

type Row = Figures['rows'][number]

interface Plane {
  readonly whose: string
  readonly server: StartServer
  readonly manager: Make
}

/** Ours first. */
const PLANES: readonly Plane[] = [
  { whose: 'ours', server: startOurs, manager: 'ours' },
  { whose: "upstream's manager", server: startOurs, manager: "upstream's" },
  { whose: 'and its server', server: startTheirs, manager: "upstream's" },
]

interface Managed {
  readonly server: ServerUnderTest
  readonly usage: () => Promise<Usage>
}

const WORK_COLUMNS = ['', 's', 'CPU s of the manager', 'CPU s of the server', 'MB of the manager', 'MB of both']
const IDLE_COLUMNS = [
  '',
  'CPU % of the manager',
  'CPU % of both',
  'MB of the manager',
  'without file pages',
  'MB of both',
]

interface Work {
  readonly name: string
  /** Creates objects before the measurement. */
  readonly prepare?: (managed: Managed, round: number) => Promise<void>
  readonly run: (managed: Managed, round: number) => Promise<void>
}

const WORKS: readonly Work[] = [
  { name: `${DEPLOYMENTS} Deployments x ${REPLICAS}`, run: makeDeployments },
  { name: `a namespace with ${CONTENT} objects, after 5 s`, prepare: deleteFullNamespace, run: untilNamespaceIsGone },
  { name: `${DEPENDENTS} dependents`, prepare: makeDependents, run: deleteOwner },
]

/** With a server and a manager of its own. */
async function beside<T>(plane: Plane, use: (managed: Managed) => Promise<T>): Promise<T> {
  const folder = await mkdtemp(join(tmpdir(), 'hyperkube-bench-'))
  await using running = new AsyncDisposableStack()
  running.defer(() => rm(folder, { recursive: true, force: true }))
  const server = await plane.server(folder)
  running.defer(() => server.stop())
  const manager = await start(plane.manager, folder, server)
  running.defer(() => end(manager, 'SIGKILL'))
  await untilAtWork(server)
  return await use({ server, usage: () => usageOf(manager.pid ?? 0) })
}

async function start(make: Make, folder: string, server: ServerUnderTest): Promise<ChildProcess> {
  const kubeconfig = await writeKubeconfig(join(folder, 'kubeconfig'), server)
  const program = [await installed()] as const
  return startManager(folder, kubeconfig, { make, flags: UNLIMITED, ...(make === 'ours' && { program }) })
}

/** The first time and the last. */
function inRounds(work: Work): (managed: Managed) => Promise<Row[]> {
  return async (managed) => {
    const rows: Row[] = []
    for (let round = 0; round < ROUNDS; round++) {
      await work.prepare?.(managed, round)
      const values = await timed(managed, () => work.run(managed, round))
      rows.push({ name: round === 0 ? `${work.name}, first` : `${work.name}, ${round + 1}. time`, values })
    }
    return [rows[0] as Row, rows[ROUNDS - 1] as Row]
  }
}

const statusOf = async (server: ServerUnderTest, path: string): Promise<number> => (await ask(server, { path })).status

async function until(isTrue: () => Promise<boolean>): Promise<void> {
  while (!(await isTrue())) await pause(POLL_MS)
}

/** Its controllers have begun when namespaces have accounts, and a little later the rest of them has as well. */
async function untilAtWork(server: ServerUnderTest): Promise<void> {
  await until(async () => (await statusOf(server, '/api/v1/namespaces/default/serviceaccounts/default')) === 200)
  await pause(2000)
}

async function count(server: ServerUnderTest, path: string): Promise<number> {
  const { body } = await ask(server, { path: `${path}?limit=1` })
  const { items, metadata } = body as { items: unknown[]; metadata: { remainingItemCount?: number } }
  return items.length + (metadata.remainingItemCount ?? 0)
}

async function timed({ server, usage }: Managed, work: () => Promise<void>): Promise<number[]> {
  const [ownBefore, serverBefore] = [await usage(), await server.usage()]
  const startMs = performance.now()
  await work()
  const tookMs = performance.now() - startMs
  const [own, servers] = [await usage(), await server.usage()]
  const cpuMs = [own.cpuMs - ownBefore.cpuMs, servers.cpuMs - serverBefore.cpuMs]
  return [tookMs / 1000, ...cpuMs.map((ms) => ms / 1000), own.residentMb, own.residentMb + servers.residentMb]
}

const range = (length: number): number[] => Array.from({ length }, (_, index) => index)

const post = (path: string, object: object): Buffer =>
  encodeRequest({ method: 'POST', path, body: JSON.stringify(object) })

async function makeDeployments({ server }: Managed, round: number): Promise<void> {
  const deployment = (index: number): object => {
    const labels = { app: `web-${round}-${index}` }
    const template = { metadata: { labels }, spec: { containers: [{ name: 'c', image: 'i' }] } }
    const spec = { replicas: REPLICAS, selector: { matchLabels: labels }, template }
    return { metadata: { name: `web-${round}-${index}` }, spec }
  }
  const path = '/apis/apps/v1/namespaces/default/deployments'
  await sendAll(
    server,
    range(DEPLOYMENTS).map((index) => post(path, deployment(index))),
  )
  await until(async () => (await count(server, '/api/v1/pods')) === (round + 1) * DEPLOYMENTS * REPLICAS)
}

/** All managers leave other servers five seconds to hear of the deletion, which is not what is to be measured. */
const NAMESPACE_GRACE_MS = 5000

const fullNamespace = (round: number): string => `/api/v1/namespaces/full-${round}`

async function deleteFullNamespace({ server }: Managed, round: number): Promise<void> {
  const path = fullNamespace(round)
  await ask(server, { method: 'POST', path: '/api/v1/namespaces', body: { metadata: { name: `full-${round}` } } })
  const paths = ['configmaps', 'secrets'].map((plural) => `${path}/${plural}`)
  const requests = range(CONTENT).map((index) =>
    post(paths[index % 2] ?? '', { metadata: { name: `one-${index}` }, data: { a: 'YQ==' } }),
  )
  await sendAll(server, requests)
  const { body } = await ask(server, { method: 'DELETE', path })
  const { deletionTimestamp } = (body as { metadata: { deletionTimestamp: string } }).metadata
  await pause(Date.parse(deletionTimestamp) + NAMESPACE_GRACE_MS - Date.now())
}

async function untilNamespaceIsGone({ server }: Managed, round: number): Promise<void> {
  await until(async () => (await statusOf(server, fullNamespace(round))) === 404)
}

const CONFIGMAPS = '/api/v1/namespaces/default/configmaps'

async function makeDependents({ server }: Managed, round: number): Promise<void> {
  const name = `owner-${round}`
  const owner = { metadata: { name } }
  const { body } = await ask(server, { method: 'POST', path: CONFIGMAPS, body: owner })
  const { uid } = (body as { metadata: { uid: string } }).metadata
  const ownerReferences = [{ apiVersion: 'v1', kind: 'ConfigMap', name, uid }]
  await sendAll(
    server,
    range(DEPENDENTS).map((index) =>
      post(CONFIGMAPS, { metadata: { name: `one-${round}-${index}`, ownerReferences } }),
    ),
  )
  // The collector has to have seen them, or it would not be collecting that is measured.
  await pause(5000)
}

async function deleteOwner({ server }: Managed, round: number): Promise<void> {
  await ask(server, { method: 'DELETE', path: `${CONFIGMAPS}/owner-${round}` })
  // The manager's own ConfigMap stays in each namespace.
  await until(async () => (await count(server, CONFIGMAPS)) <= 1)
}

async function measureIdle({ server, usage }: Managed): Promise<number[]> {
  const path = '/api/v1/namespaces/default/pods'
  const pod = (index: number): object => ({
    metadata: { name: `pod-${index}`, labels: { app: `web-${index % 100}`, 'pod-template-hash': '7c5ddbdf54' } },
    spec: { containers: [{ name: 'c', image: 'registry.example/team/web:1.2.3' }] },
  })
  await sendAll(
    server,
    range(PODS).map((index) => post(path, pod(index))),
  )
  await pause(SETTLE_MS)
  const before = [await usage(), await server.usage()]
  await pause(IDLE_MS)
  const [own, servers] = [await usage(), await server.usage()]
  const percents = [own, servers].map(({ cpuMs }, at) => ((cpuMs - (before[at]?.cpuMs ?? 0)) / IDLE_MS) * 100)
  const [ofManager = 0, ofServer = 0] = percents
  return [ofManager, ofManager + ofServer, own.residentMb, own.anonymousMb, own.residentMb + servers.residentMb]
}
