/**
 * The controller manager, ours as npm installs it and upstream's as Go builds it, each beside a server of ours of its own:
 * how long it takes until everything has been made or has gone, and what a quiet cluster costs. Neither is held back by the
 * limits of its client, which are the same for both and would be all that is measured.
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
import { installed, type ServerUnderTest, startOurs, type Usage, usageOf } from './server-under-test.ts'
import { besides, type Figures, toTable } from './table.ts'

/** For a look at a busy machine: `BENCH_SCALE=0.1`. */
const SCALE = Number(process.env['BENCH_SCALE'] ?? 1)
const scaled = (count: number): number => Math.max(1, Math.round(count * SCALE))

const DEPLOYMENTS = scaled(100)
const REPLICAS = 30
const CONTENT = scaled(5_000)
const DEPENDENTS = scaled(10_000)
const PODS = scaled(10_000)
const IDLE_MS = 30_000
const POLL_MS = 20

const UNLIMITED = ['--kube-api-qps=100000', '--kube-api-burst=100000']

export const bench: Bench = {
  about: 'the controller manager: pods of Deployments, a namespace that goes, garbage, and a quiet cluster',
  async run({ reference }) {
    const ours = await measure('ours')
    if (!reference) return ours.map(toTable)
    const theirs = await measure("upstream's")
    return ours.map((figures, at) => (theirs[at] === undefined ? toTable(figures) : besides(figures, theirs[at])))
  },
}

interface Managed {
  readonly server: ServerUnderTest
  readonly usage: () => Promise<Usage>
}

async function measure(make: Make): Promise<readonly Figures[]> {
  const rows: Figures['rows'][number][] = []
  for (const [name, work] of WORKS) rows.push({ name, values: await beside(make, work) })
  const idle = await beside(make, measureIdle)
  return [
    { title: 'from the first request until everything is there, or gone', columns: WORK_COLUMNS, rows },
    { title: 'a quiet cluster', columns: IDLE_COLUMNS, rows: [{ name: `${PODS} pods`, values: idle }] },
  ]
}

const WORK_COLUMNS = ['', 's', 'CPU s of the manager', 'CPU s of the server', 'MB of the manager']
const IDLE_COLUMNS = ['', 'CPU % of the manager', 'MB of the manager', 'of which no file']

type Work = (managed: Managed) => Promise<void>

const WORKS: readonly (readonly [name: string, work: (managed: Managed) => Promise<number[]>])[] = [
  [`${DEPLOYMENTS} Deployments x ${REPLICAS}`, timed(async () => {}, makeDeployments)],
  [`a namespace with ${CONTENT} objects, after 5 s`, timed(deleteFullNamespace, untilNamespaceIsGone)],
  [`${DEPENDENTS} dependents`, timed(makeDependents, deleteOwner)],
]

/** With a server and a manager of its own. */
async function beside<T>(make: Make, use: (managed: Managed) => Promise<T>): Promise<T> {
  const folder = await mkdtemp(join(tmpdir(), 'hyperkube-bench-'))
  await using running = new AsyncDisposableStack()
  running.defer(() => rm(folder, { recursive: true, force: true }))
  const server = await startOurs(folder)
  running.defer(() => server.stop())
  const manager = await start(make, folder, server)
  running.defer(() => end(manager, 'SIGKILL'))
  await untilAtWork(server)
  return await use({ server, usage: () => usageOf(manager.pid ?? 0) })
}

async function start(make: Make, folder: string, server: ServerUnderTest): Promise<ChildProcess> {
  const kubeconfig = await writeKubeconfig(join(folder, 'kubeconfig'), server)
  const program = [await installed()] as const
  return startManager(folder, kubeconfig, { make, flags: UNLIMITED, ...(make === 'ours' && { program }) })
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

function timed(prepare: Work, work: Work): (managed: Managed) => Promise<number[]> {
  return async (managed) => {
    const { server, usage } = managed
    await prepare(managed)
    const [ownBefore, serverBefore] = [await usage(), await server.usage()]
    const startMs = performance.now()
    await work(managed)
    const tookMs = performance.now() - startMs
    const [own, servers] = [await usage(), await server.usage()]
    const cpuMs = [own.cpuMs - ownBefore.cpuMs, servers.cpuMs - serverBefore.cpuMs]
    return [tookMs / 1000, ...cpuMs.map((ms) => ms / 1000), own.residentMb]
  }
}

const range = (length: number): number[] => Array.from({ length }, (_, index) => index)

const post = (path: string, object: object): Buffer =>
  encodeRequest({ method: 'POST', path, body: JSON.stringify(object) })

async function makeDeployments({ server }: Managed): Promise<void> {
  const deployment = (index: number): object => {
    const labels = { app: `web-${index}` }
    const template = { metadata: { labels }, spec: { containers: [{ name: 'c', image: 'i' }] } }
    const spec = { replicas: REPLICAS, selector: { matchLabels: labels }, template }
    return { metadata: { name: `web-${index}` }, spec }
  }
  const path = '/apis/apps/v1/namespaces/default/deployments'
  await sendAll(
    server,
    range(DEPLOYMENTS).map((index) => post(path, deployment(index))),
  )
  await until(async () => (await count(server, '/api/v1/pods')) === DEPLOYMENTS * REPLICAS)
}

/** Both managers leave other servers five seconds to hear of the deletion, which is not what is to be measured. */
const NAMESPACE_GRACE_MS = 5000

async function deleteFullNamespace({ server }: Managed): Promise<void> {
  await ask(server, { method: 'POST', path: '/api/v1/namespaces', body: { metadata: { name: 'full' } } })
  const paths = ['configmaps', 'secrets'].map((plural) => `/api/v1/namespaces/full/${plural}`)
  const requests = range(CONTENT).map((index) =>
    post(paths[index % 2] ?? '', { metadata: { name: `one-${index}` }, data: { a: 'YQ==' } }),
  )
  await sendAll(server, requests)
  const { body } = await ask(server, { method: 'DELETE', path: '/api/v1/namespaces/full' })
  const { deletionTimestamp } = (body as { metadata: { deletionTimestamp: string } }).metadata
  await pause(Date.parse(deletionTimestamp) + NAMESPACE_GRACE_MS - Date.now())
}

async function untilNamespaceIsGone({ server }: Managed): Promise<void> {
  await until(async () => (await statusOf(server, '/api/v1/namespaces/full')) === 404)
}

const CONFIGMAPS = '/api/v1/namespaces/default/configmaps'

async function makeDependents({ server }: Managed): Promise<void> {
  const owner = { metadata: { name: 'owner' } }
  const { body } = await ask(server, { method: 'POST', path: CONFIGMAPS, body: owner })
  const { uid } = (body as { metadata: { uid: string } }).metadata
  const ownerReferences = [{ apiVersion: 'v1', kind: 'ConfigMap', name: 'owner', uid }]
  await sendAll(
    server,
    range(DEPENDENTS).map((index) => post(CONFIGMAPS, { metadata: { name: `one-${index}`, ownerReferences } })),
  )
  // The collector has to have seen them, or it would not be collecting that is measured.
  await pause(5000)
}

async function deleteOwner({ server }: Managed): Promise<void> {
  await ask(server, { method: 'DELETE', path: `${CONFIGMAPS}/owner` })
  // What the manager itself keeps in each namespace stays.
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
  await pause(IDLE_MS)
  const before = await usage()
  await pause(IDLE_MS)
  const after = await usage()
  return [((after.cpuMs - before.cpuMs) / IDLE_MS) * 100, after.residentMb, after.anonymousMb]
}
