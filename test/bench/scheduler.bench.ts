/**
 * Benchmarks our kube-scheduler and upstream's, each on our API server, with the workloads of upstream's
 * scheduler_perf. It measures pods per second from the first creation to the last binding, and processor time. Client
 * rate limits are lifted for both. If both keep up with the creation of pods, the API server is the bottleneck, and
 * only processor time distinguishes them.
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
import { costOfDecisions, type Shape } from './decisions.ts'
import { encodeRequest, pause, sendAll } from './http-load.ts'
import { installed, type ServerUnderTest, startOurs, usageOf } from './server-under-test.ts'
import { besides, figure, type Figures, toTable } from './table.ts'

const ZONE = 'topology.kubernetes.io/zone'
const HOST = 'kubernetes.io/hostname'
const NAMESPACE = '/api/v1/namespaces/bench'

interface Workload {
  readonly name: string
  readonly nodes: number
  /** There before, each with its node, or fitting on none; and those that are counted. */
  readonly before?: { readonly pods: number; readonly spec: object; readonly fitNowhere?: boolean }
  readonly pods: number
  readonly spec: object
  /** Each has a claim of its own, which has its volume. */
  readonly haveVolumes?: boolean
  /** They are there when the scheduler starts; what counts is from the first that gets a node on. */
  readonly wait?: boolean
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

const SHAPES: readonly Shape[] = [
  { name: 'basic', spec: {} },
  { name: 'node affinity', spec: { affinity: inTwoZones } },
  { name: 'required anti-affinity', spec: { affinity: apart }, labels: { color: 'blue' } },
  { name: 'preferred affinity', spec: { affinity: preferredNear } },
  { name: 'topology spread', spec: spread('DoNotSchedule') },
  { name: 'soft topology spread', spec: spread('ScheduleAnyway') },
]

const WORKLOADS: readonly Workload[] = [
  { name: 'basic, 3,000 pods', nodes: 1000, pods: 3000, spec: {} },
  { name: 'basic, 3,000 pods that wait when it starts', nodes: 1000, pods: 3000, spec: {}, wait: true },
  ...SHAPES.slice(1).map(({ name, spec }) => ({ name, nodes: 1000, pods: name.includes('anti') ? 900 : 1000, spec })),
  { name: 'with volumes', nodes: 1000, pods: 1000, spec: {}, haveVolumes: true },
  {
    name: 'behind 500 that fit nowhere',
    nodes: 1000,
    before: { pods: 500, spec: asking('9'), fitNowhere: true },
    pods: 1000,
    spec: {},
  },
  {
    name: 'preemption, 500 nodes',
    nodes: 500,
    before: { pods: 2000, spec: asking('900m') },
    pods: 500,
    spec: { ...asking('3'), priorityClassName: 'high' },
  },
  {
    name: 'basic, 5,000 nodes that have 30,000 pods',
    nodes: 5000,
    before: { pods: 30_000, spec: {} },
    pods: 1000,
    spec: {},
  },
  ...SHAPES.map(({ name, spec }) => ({ name: `${name}, 5,000 nodes`, nodes: 5000, pods: 1000, spec })),
]

const COLUMNS = [
  '',
  'pods/s',
  'attempt p99 ms',
  'CPU ms per pod',
  'resident MB',
  'of it data MB',
  'server CPU ms per pod',
]

export const bench: Bench = {
  about: 'pods a second until all are bound, on our API server; CPU and memory are the scheduler’s',
  async run({ reference, only = '' }) {
    const isWanted = ({ name }: { readonly name: string }): boolean =>
      only.split('|').some((part) => isMeant(name, part))
    const decisions = toTable(costOfDecisions(SHAPES.filter(isWanted), { node: nodeOf, pod: podOf }))
    const rows = { ours: [] as Row[], upstream: [] as Row[] }
    // One right after the other: the machine may do something else later.
    for (const workload of WORKLOADS.filter(isWanted))
      for (const side of reference ? (['ours', 'upstream'] as const) : (['ours'] as const))
        rows[side].push(shown(side, { name: workload.name, values: await play(side, workload) }))
    const figures = (side: Side): Figures => ({ title: 'scheduling', columns: COLUMNS, rows: rows[side] })
    return [decisions, reference ? besides(figures('ours'), figures('upstream')) : toTable(figures('ours'))]
  },
}

/** `=name` is that one alone. */
function isMeant(name: string, part: string): boolean {
  return part.startsWith('=') ? name === part.slice(1) : name.includes(part)
}

/** All workloads together take long, so each figure is printed immediately. */
function shown(side: Side, row: Row): Row {
  process.stderr.write(`${side}: ${row.name}: ${row.values.map(figure).join(' ')}\n`)
  return row
}

type Row = Figures['rows'][number]
type Side = 'ours' | 'upstream'

async function play(side: Side, workload: Workload): Promise<number[]> {
  const folder = await mkdtemp(join(tmpdir(), 'hyperkube-scheduler-bench-'))
  const server = await startOurs(folder)
  try {
    await fill(server, workload)
    if (workload.wait) await sendAll(server, countedPods(workload))
    const bound = watchBound(server, workload.pods)
    await bound.open
    const scheduler = await startScheduler(side, folder, server)
    try {
      return await run(server, scheduler, workload, bound)
    } finally {
      await end(scheduler.child, 'SIGTERM')
      bound.close()
    }
  } finally {
    await server.stop()
    await rm(folder, { recursive: true, force: true })
  }
}

function post(path: string, body: object): Buffer {
  return encodeRequest({ method: 'POST', path, body: JSON.stringify(body) })
}

async function fill(server: ServerUnderTest, workload: Workload): Promise<void> {
  const { nodes, before, pods, haveVolumes = false } = workload
  await sendAll(server, [
    post('/api/v1/namespaces', { metadata: { name: 'bench' } }),
    post('/apis/scheduling.k8s.io/v1/priorityclasses', { metadata: { name: 'high' }, value: 1000 }),
  ])
  await sendAll(server, [post(`${NAMESPACE}/serviceaccounts`, { metadata: { name: 'default' } })])
  const all = Array.from({ length: nodes }, (_, at) => `node-${at}`)
  await sendAll(
    server,
    all.map((name, at) => post('/api/v1/nodes', nodeOf(name, at))),
  )
  const ready = JSON.stringify({ spec: { taints: null } })
  const headers = { 'content-type': 'application/merge-patch+json' }
  await sendAll(
    server,
    all.map((name) => encodeRequest({ method: 'PATCH', path: `/api/v1/nodes/${name}`, headers, body: ready })),
  )
  const earlier = Array.from({ length: before?.pods ?? 0 }, (_, at) => {
    const place = before?.fitNowhere ? {} : { nodeName: `node-${at % nodes}` }
    return post(`${NAMESPACE}/pods`, podOf(`before-${at}`, { ...before?.spec, ...place }))
  })
  await sendAll(server, earlier)
  if (haveVolumes) await sendAll(server, Array.from({ length: pods }, (_, at) => volumeAndClaim(at)).flat())
}

function nodeOf(name: string, at: number): object {
  const allocatable = { cpu: '4', memory: '32Gi', pods: '110' }
  return {
    metadata: { name, labels: { [HOST]: name, [ZONE]: `zone-${at % 3}` } },
    spec: {},
    status: { allocatable, capacity: allocatable, conditions: [{ type: 'Ready', status: 'True' }] },
  }
}

/** As if a controller had brought them together. */
function volumeAndClaim(at: number): Buffer[] {
  const claim = `claim-${at}`
  const shared = { accessModes: ['ReadWriteOnce'], storageClassName: '' }
  const claimRef = { kind: 'PersistentVolumeClaim', apiVersion: 'v1', namespace: 'bench', name: claim }
  const csi = { driver: 'bench.example.com', volumeHandle: claim }
  const annotations = { 'pv.kubernetes.io/bind-completed': 'yes' }
  return [
    post('/api/v1/persistentvolumes', {
      metadata: { name: `volume-${at}` },
      spec: { ...shared, capacity: { storage: '1Gi' }, claimRef, csi },
    }),
    post(`${NAMESPACE}/persistentvolumeclaims`, {
      metadata: { name: claim, annotations },
      spec: { ...shared, volumeName: `volume-${at}`, resources: { requests: { storage: '1Gi' } } },
    }),
  ]
}

function asking(cpu: string): object {
  return {
    containers: [{ name: 'c', image: 'registry.k8s.io/pause:3.10', resources: { requests: { cpu, memory: '500Mi' } } }],
  }
}

function podOf(name: string, spec: object): object {
  const metadata = { name, labels: { color: 'green' } }
  return { metadata, spec: { ...asking('100m'), terminationGracePeriodSeconds: 0, ...spec } }
}

function countedPods({ pods, spec, haveVolumes = false }: Workload): Buffer[] {
  return Array.from({ length: pods }, (_, at) => {
    const volumes = [{ name: 'data', persistentVolumeClaim: { claimName: `claim-${at}` } }]
    return post(`${NAMESPACE}/pods`, podOf(`pod-${at}`, { ...spec, ...(haveVolumes && { volumes }) }))
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
  if (side === 'ours') return [await installed(), ['kube-scheduler']]
  const { upstreamPrograms } = await import('../upstream/programs.ts')
  const { 'kube-scheduler': path } = await upstreamPrograms(['kube-scheduler'], (line) =>
    process.stderr.write(`${line}\n`),
  )
  return [path, []]
}

/** Sends an anonymous request to the scheduler. */
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
  workload: Workload,
  bound: Bound,
): Promise<number[]> {
  const { pods, wait = false } = workload
  // A scheduler that starts with pending pods is measured from its start.
  const before = wait ? { cpuMs: 0 } : await usageOf(child.pid ?? 0)
  const ofServer = await server.usage()
  const startMs = performance.now()
  await Promise.all([wait ? undefined : sendAll(server, countedPods(workload)), bound.all])
  const seconds = (performance.now() - (wait ? await bound.first : startMs)) / 1000
  const after = await usageOf(child.pid ?? 0)
  const serverMs = (await server.usage()).cpuMs - ofServer.cpuMs
  const p99 = attemptP99(await get(port, '/metrics'))
  return [
    pods / seconds,
    p99 * 1000,
    (after.cpuMs - before.cpuMs) / pods,
    after.residentMb,
    after.anonymousMb,
    serverMs / pods,
  ]
}

interface Bound {
  readonly open: Promise<void>
  /** When that was. */
  readonly first: Promise<number>
  readonly all: Promise<void>
  close(): void
}

/** Watches pods without a node: a pod that gets a node leaves the selection. */
function watchBound({ port, tls }: ServerUnderTest, count: number): Bound {
  const open = Promise.withResolvers<void>()
  const first = Promise.withResolvers<number>()
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
      if (seen > 0) first.resolve(performance.now())
      if (seen >= count) all.resolve()
    })
  })
  asked.on('error', (error) => all.reject(error)).end()
  return { open: open.promise, first: first.promise, all: all.promise, close: () => asked.destroy() }
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
