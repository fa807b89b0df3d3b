/**
 * Compares what our kubelet and upstream's report about the same machine: Node, lease, CSINode, events, labels and
 * configuration. They run one after the other on the same containerd: `node test/upstream/kubelet-node.ts` as root.
 * Exits with 1 on a difference without a reason.
 */
import { execFile } from 'node:child_process'
import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { promisify } from 'node:util'

import { startContainerd } from '#containerd/start.ts'
import { removeContainerd } from '#containerd/stop.ts'
import { realClock, sleep } from '#lib/clock.ts'
import { createHttpClient } from '#lib/http/client.ts'
import { secureRandom } from '#lib/random.ts'
import { errorLog } from '#testing/control-plane.ts'

import { end, freePort, launch } from './kube-apiserver.ts'
import { writeNodeConfig } from './kubelet-bed.ts'
import { ask, HYPERKUBE, type Server, startOurs } from './ours.ts'
import { upstreamPrograms } from './programs.ts'

type Make = 'ours' | "upstream's"
type Flat = Map<string, unknown>

/** New each time, or where each make is kept. */
const NEW =
  /(?:Time(?:stamp)?|\.uid|resourceVersion|managedFields.*|bootID|tls(?:Cert|PrivateKey)File)$|^configz\.(?:port|healthzPort)$|kubeletEndpoint\.Port$/

const KNOWN: readonly (readonly [what: RegExp, why: string])[] = [
  [/nodeInfo\.kubeletVersion$/, 'each says what it is'],
  [
    /declaredFeatures\.ExtendWebSocketsToKubelet$/,
    'streams pass to the runtime, which may not support the newest protocol',
  ],
  [/^events\.InvalidDiskCapacity/, 'said by chance when figures come late'],
  [/^events\.NodeHas\w+\.count$/, 'said once, not at every look'],
  [/^configz\.singleProcessOOMKill$/, 'the kernel kills as it is told by the runtime'],
]

async function main(): Promise<number> {
  const folder = await mkdtemp(join(tmpdir(), 'kubelet-node-'))
  await using running = new AsyncDisposableStack()
  running.defer(() => rm(folder, { recursive: true, force: true }))
  const { kubelet } = await upstreamPrograms(['kubelet'], (line) => process.stderr.write(`${line}\n`))
  const server = await startOurs(folder)
  running.defer(() => server.stop())
  const tools = { clock: realClock, random: secureRandom, log: errorLog(), env: process.env }
  const dataDir = join(folder, 'containerd')
  running.defer(async () => void (await removeContainerd({ ...tools, dataDir })))
  const { endpoint } = await startContainerd({ ...tools, dataDir, podCidrs: ['10.249.7.0/24'] }, running)
  await writeNodeConfig(folder, server, NODE)
  const said = (make: Make): Promise<Flat> =>
    saidBy({ folder, server, endpoint, make, program: make === 'ours' ? [HYPERKUBE, 'kubelet'] : [kubelet] })
  const [mine, reference] = [await said('ours'), await said("upstream's")]
  const names = [...new Set([...mine.keys(), ...reference.keys()])].filter((name) => !NEW.test(name)).sort()
  const differing = names.filter((name) => JSON.stringify(mine.get(name)) !== JSON.stringify(reference.get(name)))
  const [known, unknown] = [true, false].map((isKnown) =>
    differing.filter((name) => KNOWN.some(([what]) => what.test(name)) === isKnown),
  )
  process.stdout.write(
    `${names.length} values, ${known?.length} known differences, ${unknown?.length} unknown differences\n`,
  )
  for (const name of unknown ?? []) {
    process.stdout.write(`${name}: ${JSON.stringify(mine.get(name))}, not ${JSON.stringify(reference.get(name))}\n`)
  }
  return unknown?.length === 0 ? 0 : 1
}

interface Bed {
  readonly folder: string
  readonly server: Server
  readonly endpoint: string
  readonly make: Make
  readonly program: readonly string[]
}

const NODE = 'measured'
const PATIENCE_MS = 60_000

async function saidBy({ folder, server, endpoint, make, program }: Bed): Promise<Flat> {
  const own = join(folder, make === 'ours' ? 'ours' : 'upstream')
  const port = await freePort()
  const file = `${own}.yaml`
  await writeFile(file, configuration(folder, endpoint, [port, await freePort()]))
  const [command = '', ...first] = program
  const flags = [`--config=${file}`, `--kubeconfig=${folder}/node.json`, `--hostname-override=${NODE}`]
  const child = await launch(
    command,
    [...first, ...flags, `--root-dir=${own}`, `--cert-dir=${own}-pki`, '--node-labels=example.com/rack=r1'],
    `${own}.log`,
  )
  try {
    await untilReady(server, `${own}.log`)
    const all = await Promise.all(Object.entries(PATHS).map(async ([name, path]) => [name, await bodyOf(server, path)]))
    const configz = await configzOf(server, port)
    return flat({ ...(Object.fromEntries(all) as object), events: await eventsOf(server), configz })
  } finally {
    await end(child, 'SIGTERM')
    // Upstream's mounts it on itself, and leaves it so.
    await promisify(execFile)('umount', [own]).catch(() => undefined)
    for (const path of [PATHS.node, EVENTS]) await ask(server, { method: 'DELETE', path })
  }
}

const PATHS = {
  node: `/api/v1/nodes/${NODE}`,
  lease: `/apis/coordination.k8s.io/v1/namespaces/kube-node-lease/leases/${NODE}`,
  csinode: `/apis/storage.k8s.io/v1/csinodes/${NODE}`,
} as const
const EVENTS = '/api/v1/namespaces/default/events'

async function bodyOf(server: Server, path: string): Promise<unknown> {
  return (await ask(server, { path })).body
}

async function untilReady(server: Server, log: string): Promise<void> {
  const conditionsOf = (body: unknown): readonly { type: string; status: string }[] =>
    (body as { status?: { conditions?: { type: string; status: string }[] } }).status?.conditions ?? []
  for (let waitedMs = 0; waitedMs < PATIENCE_MS; waitedMs += 200) {
    const { status, body } = await ask(server, { path: PATHS.node })
    const lease = await ask(server, { path: PATHS.lease })
    const isReady = conditionsOf(body).some((one) => one.type === 'Ready' && one.status === 'True')
    if (status === 200 && isReady && lease.status === 200) return
    await sleep(realClock, 200)
  }
  throw new Error(`The node is not ready:\n${(await readFile(log, 'utf8')).slice(-3000)}`)
}

/** By reason: what is said, how often and by whom. */
async function eventsOf(server: Server): Promise<object> {
  const { items } = (await bodyOf(server, EVENTS)) as { items: Record<string, unknown>[] }
  const own = items.filter(({ source }) => (source as { component?: string }).component === 'kubelet')
  return Object.fromEntries(
    own.map(({ reason, message, type, count, source, involvedObject, reportingComponent, reportingInstance }) => [
      reason,
      { message, type, count, source, involvedObject, reportingComponent, reportingInstance },
    ]),
  )
}

async function configzOf({ tls }: Server, port: number): Promise<unknown> {
  const http = createHttpClient({ clock: realClock, tls: { insecure: true, certificate: tls.cert, key: tls.key } })
  try {
    const answer = await http.request({ url: `https://127.0.0.1:${port}/configz` })
    return (JSON.parse(await answer.text(1 << 20)) as { kubeletconfig: unknown }).kubeletconfig
  } finally {
    http.close()
  }
}

function flat(value: unknown, path = ''): Flat {
  if (typeof value !== 'object' || value === null) return new Map([[path, value]])
  const isList = Array.isArray(value)
  const entries = Object.entries(value)
  // The order of a list of names says nothing.
  if (isList && path.endsWith('declaredFeatures')) return new Map(value.map((name) => [`${path}.${name}`, true]))
  if (entries.length === 0) return new Map([[path, isList ? [] : {}]])
  return new Map(
    entries.flatMap(([key, below]) => [
      ...flat(below, isList ? `${path}[${key}]` : path === '' ? key : `${path}.${key}`),
    ]),
  )
}

function configuration(folder: string, endpoint: string, [port, healthzPort]: readonly number[]): string {
  return JSON.stringify({
    apiVersion: 'kubelet.config.k8s.io/v1beta1',
    kind: 'KubeletConfiguration',
    address: '127.0.0.1',
    port,
    healthzPort,
    failCgroupV1: false,
    failSwapOn: false,
    containerRuntimeEndpoint: endpoint,
    authentication: { x509: { clientCAFile: join(folder, 'pki', 'ca.crt') } },
    systemReserved: { cpu: '100m', memory: '200Mi' },
    registerWithTaints: [{ key: 'example.com/new', effect: 'NoSchedule' }],
    clusterDNS: ['10.0.0.10'],
    clusterDomain: 'cluster.local',
  })
}

process.exitCode = await main()
