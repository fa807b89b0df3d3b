/**
 * kube-scheduler beside upstream's, each on our API server, with the workloads of upstream's scheduler_perf: how many pods a second
 * get a node from the first that is created to the last that is bound, and what that costs. Clients' limits are lifted for both.
 */
import type { ChildProcess } from 'node:child_process'
import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { request } from 'node:https'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { performance } from 'node:perf_hooks'

import { end, freePort, launch } from '../upstream/kube-apiserver.ts'
import { writeKubeconfig } from '../upstream/ours.ts'
import type { Bench } from './bench.ts'
import { encodeRequest, pause, sendAll } from './http-load.ts'
import { installed, type ServerUnderTest, startOurs, usageOf } from './server-under-test.ts'
import { besides, type Figures, toTable } from './table.ts'

const ZONE = 'topology.kubernetes.io/zone'
const HOST = 'kubernetes.io/hostname'
const NAMESPACE = '/api/v1/namespaces/bench'

interface Workload {
  readonly name: string
  readonly nodes: number
  /** There before, each with its node; and those that are counted. */
  readonly before?: { readonly pods: number; readonly spec: object }
  readonly pods: number
  readonly spec: object
}

const labelSelector = { matchLabels: { color: 'green' } }
const preferredNear = {
  podAffinity: {
    preferredDuringSchedulingIgnoredDuringExecution: [
      { weight: 1, podAffinityTerm: { labelSelector, topologyKey: HOST } },
    ],
  },
}
const apart = {
  podAntiAffinity: { requiredDuringSchedulingIgnoredDuringExecution: [{ labelSelector, topologyKey: HOST }] },
}
const inTwoZones = {
  nodeAffinity: {
    requiredDuringSchedulingIgnoredDuringExecution: {
      nodeSelectorTerms: [{ matchExpressions: [{ key: ZONE, operator: 'In', values: ['zone-1', 'zone-2'] }] }],
    },
  },
}
const spread = (whenUnsatisfiable: string): object => ({
  topologySpreadConstraints: [{ maxSkew: 5, topologyKey: ZONE, whenUnsatisfiable, labelSelector }],
})

const WORKLOADS: readonly Workload[] = [
  { name: 'basic, 1,000 nodes', nodes: 1000, pods: 3000, spec: {} },
  { name: 'node affinity', nodes: 1000, pods: 1000, spec: { affinity: inTwoZones } },
  { name: 'required anti-affinity', nodes: 1000, pods: 900, spec: { affinity: apart } },
  { name: 'preferred affinity', nodes: 1000, pods: 1000, spec: { affinity: preferredNear } },
  { name: 'topology spread', nodes: 1000, pods: 1000, spec: spread('DoNotSchedule') },
  { name: 'soft topology spread', nodes: 1000, pods: 1000, spec: spread('ScheduleAnyway') },
  {
    name: 'preemption',
    nodes: 500,
    before: { pods: 2000, spec: asking('900m') },
    pods: 500,
    spec: { ...asking('3'), priorityClassName: 'high' },
  },
  { name: 'basic, 5,000 nodes', nodes: 5000, pods: 1000, spec: {} },
]

const COLUMNS = ['', 'pods/s', 'attempt p99 ms', 'CPU ms per pod', 'resident MB']

export const bench: Bench = {
  about: 'pods a second until all are bound, on our API server; CPU and memory are the scheduler’s',
  async run({ reference }) {
    const ours = await measure('ours')
    if (!reference) return [toTable(ours)]
    return [besides(ours, await measure('upstream'))]
  },
}

type Side = 'ours' | 'upstream'

async function measure(side: Side): Promise<Figures> {
  const rows: Figures['rows'][number][] = []
  for (const workload of WORKLOADS) rows.push({ name: workload.name, values: await play(side, workload) })
  return { title: 'scheduling', columns: COLUMNS, rows }
}

async function play(side: Side, workload: Workload): Promise<number[]> {
  const folder = await mkdtemp(join(tmpdir(), 'hyperkube-scheduler-bench-'))
  const server = await startOurs(folder)
  try {
    await fill(server, workload)
    const scheduler = await startScheduler(side, folder, server)
    try {
      return await run(server, scheduler, workload)
    } finally {
      await end(scheduler.child, 'SIGTERM')
    }
  } finally {
    await server.stop()
    await rm(folder, { recursive: true, force: true })
  }
}

function post(path: string, body: object): Buffer {
  return encodeRequest({ method: 'POST', path, body: JSON.stringify(body) })
}

async function fill(server: ServerUnderTest, { nodes, before }: Workload): Promise<void> {
  await sendAll(server, [
    post('/api/v1/namespaces', { metadata: { name: 'bench' } }),
    post('/apis/scheduling.k8s.io/v1/priorityclasses', { metadata: { name: 'high' }, value: 1000 }),
  ])
  await sendAll(server, [post(`${NAMESPACE}/serviceaccounts`, { metadata: { name: 'default' } })])
  const allocatable = { cpu: '4', memory: '32Gi', pods: '110' }
  const all = Array.from({ length: nodes }, (_, at) => `node-${at}`)
  const node = (name: string, at: number): object => ({
    metadata: { name, labels: { [HOST]: name, [ZONE]: `zone-${at % 3}` } },
    spec: {},
    status: { allocatable, capacity: allocatable, conditions: [{ type: 'Ready', status: 'True' }] },
  })
  await sendAll(
    server,
    all.map((name, at) => post('/api/v1/nodes', node(name, at))),
  )
  const ready = JSON.stringify({ spec: { taints: null } })
  const headers = { 'content-type': 'application/merge-patch+json' }
  await sendAll(
    server,
    all.map((name) => encodeRequest({ method: 'PATCH', path: `/api/v1/nodes/${name}`, headers, body: ready })),
  )
  const placed = Array.from({ length: before?.pods ?? 0 }, (_, at) =>
    pod(`before-${at}`, { ...before?.spec, nodeName: `node-${at % nodes}` }),
  )
  await sendAll(server, placed)
}

function asking(cpu: string): object {
  return {
    containers: [{ name: 'c', image: 'registry.k8s.io/pause:3.10', resources: { requests: { cpu, memory: '500Mi' } } }],
  }
}

function pod(name: string, spec: object): Buffer {
  return post(`${NAMESPACE}/pods`, {
    metadata: { name, labels: { color: 'green' } },
    spec: { ...asking('100m'), terminationGracePeriodSeconds: 0, ...spec },
  })
}

interface RunningProgram {
  readonly child: ChildProcess
  readonly port: number
}

async function startScheduler(side: Side, folder: string, server: ServerUnderTest): Promise<RunningProgram> {
  const kubeconfig = await writeKubeconfig(join(folder, 'kubeconfig'), server)
  const config = join(folder, 'scheduler.json')
  const settings = {
    apiVersion: 'kubescheduler.config.k8s.io/v1',
    kind: 'KubeSchedulerConfiguration',
    leaderElection: { leaderElect: false },
    clientConnection: { kubeconfig, qps: 100_000, burst: 100_000 },
  }
  await writeFile(config, JSON.stringify(settings))
  const port = await freePort()
  const flags = [
    `--config=${config}`,
    `--secure-port=${port}`,
    '--bind-address=127.0.0.1',
    `--cert-dir=${folder}`,
    `--authentication-kubeconfig=${kubeconfig}`,
    `--authorization-kubeconfig=${kubeconfig}`,
    '--authorization-always-allow-paths=/healthz,/readyz,/livez,/metrics',
  ]
  const log = join(folder, 'scheduler.log')
  const [program, first] = await programOf(side)
  const child = await launch(program, [...first, ...flags], log)
  while ((await get(port, '/readyz').catch(() => '')) !== 'ok') await pause(20)
  return { child, port }
}

async function programOf(side: Side): Promise<[program: string, args: readonly string[]]> {
  if (side === 'ours') {
    return [process.execPath, ['--disable-warning=ExperimentalWarning', await installed(), 'kube-scheduler']]
  }
  const { upstreamPrograms } = await import('../upstream/programs.ts')
  const { 'kube-scheduler': path } = await upstreamPrograms(['kube-scheduler'], (line) =>
    process.stderr.write(`${line}\n`),
  )
  return [path, []]
}

/** Of the scheduler, as nobody in particular. */
function get(port: number, path: string): Promise<string> {
  return new Promise((resolve, reject) => {
    const asked = request({ port, path, host: '127.0.0.1', rejectUnauthorized: false }, (answer) => {
      let text = ''
      answer.setEncoding('utf8').on('data', (part: string) => (text += part))
      answer.on('end', () => resolve(text))
    })
    asked.on('error', reject).end()
  })
}

async function run(
  server: ServerUnderTest,
  { child, port }: RunningProgram,
  { pods, spec }: Workload,
): Promise<number[]> {
  const before = await usageOf(child.pid ?? 0)
  const bound = watchBound(server, pods)
  await bound.open
  const start = performance.now()
  await Promise.all([
    sendAll(
      server,
      Array.from({ length: pods }, (_, at) => pod(`pod-${at}`, spec)),
    ),
    bound.all,
  ])
  const seconds = (performance.now() - start) / 1000
  const after = await usageOf(child.pid ?? 0)
  bound.close()
  const p99 = attemptP99(await get(port, '/metrics'))
  return [pods / seconds, p99 * 1000, (after.cpuMs - before.cpuMs) / pods, after.residentMb]
}

/** Whoever gets a node leaves the selection of those that have none. */
function watchBound(
  { port, tls }: ServerUnderTest,
  count: number,
): { open: Promise<void>; all: Promise<void>; close(): void } {
  const open = Promise.withResolvers<void>()
  const all = Promise.withResolvers<void>()
  const path = `${NAMESPACE}/pods?watch=1&fieldSelector=spec.nodeName%3D`
  const headers = { accept: 'application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1' }
  let seen = 0
  const asked = request({ port, path, host: '127.0.0.1', headers, ...tls }, (answer) => {
    open.resolve()
    let rest = ''
    answer.setEncoding('utf8').on('data', (part: string) => {
      const lines = (rest + part).split('\n')
      rest = lines.pop() ?? ''
      seen += lines.filter((line) => line.startsWith('{"type":"DELETED"')).length
      if (seen >= count) all.resolve()
    })
  })
  asked.on('error', (error) => all.reject(error)).end()
  return { open: open.promise, all: all.promise, close: () => asked.destroy() }
}

/** The bound of the bucket that ninety-nine of a hundred attempts are within, in seconds. */
function attemptP99(metrics: string): number {
  const buckets = new Map<number, number>()
  for (const [, le = '', count = ''] of metrics.matchAll(
    /^scheduler_scheduling_attempt_duration_seconds_bucket\{[^}]*le="([^"]+)"\} (\d+)/gm,
  )) {
    const bound = Number(le.replace('+Inf', 'Infinity'))
    buckets.set(bound, (buckets.get(bound) ?? 0) + Number(count))
  }
  const most = buckets.get(Infinity) ?? Number.NaN
  return Math.min(...[...buckets].filter(([, count]) => count >= most * 0.99).map(([bound]) => bound))
}
