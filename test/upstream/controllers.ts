/**
 * Runs upstream's kube-controller-manager and kube-scheduler against our server: `node test/upstream/controllers.ts
 * [--seconds N] [--rounds N]`. Each round creates a namespace with objects of most kinds and deletes it again, while a
 * fake kubelet reports running pods. Prints the failed expectations and the errors in both logs.
 */
import { mkdtemp, readFile, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { parseArgs } from 'node:util'

import { realClock, sleep } from '#lib/clock.ts'

import { startComponents } from './components.ts'
import { end } from './kube-apiserver.ts'
import { ask, type Server, startOurs, writeKubeconfig } from './ours.ts'

const { values: options } = parseArgs({
  options: { seconds: { type: 'string', default: '120' }, rounds: { type: 'string', default: '3' } },
})

const LOOK_EVERY_MS = 500
const NODE = 'stand-in'

// oxlint-disable-next-line typescript/no-explicit-any -- answers are looked into, not relied upon
type Json = any

type Call = (method: string, path: string, body?: unknown) => Promise<Json>

const labels = { app: 'web' }
const template = { metadata: { labels }, spec: { containers: [{ name: 'c', image: 'i' }] } }
const selector = { matchLabels: labels }
const oneShot = { spec: { ...template.spec, restartPolicy: 'Never' } }

/** The objects that each namespace gets, by path. */
const THINGS: readonly (readonly [path: string, object: object])[] = [
  ['apis/apps/v1/NS/deployments', { metadata: { name: 'web' }, spec: { replicas: 3, selector, template } }],
  ['apis/apps/v1/NS/statefulsets', { metadata: { name: 'set' }, spec: { serviceName: 's', selector, template } }],
  ['apis/apps/v1/NS/daemonsets', { metadata: { name: 'agent' }, spec: { selector, template } }],
  ['apis/batch/v1/NS/jobs', { metadata: { name: 'once' }, spec: { template: oneShot } }],
  ['api/v1/NS/services', { metadata: { name: 'web' }, spec: { selector: labels, ports: [{ port: 80 }] } }],
  ['apis/policy/v1/NS/poddisruptionbudgets', { metadata: { name: 'web' }, spec: { minAvailable: 1, selector } }],
  ['api/v1/NS/resourcequotas', { metadata: { name: 'quota' }, spec: { hard: { pods: '20' } } }],
]

/** The expected results. */
const HOPES: readonly (readonly [what: string, path: string, isTrue: (answer: Json) => boolean])[] = [
  ['a default ServiceAccount', 'api/v1/NS/serviceaccounts/default', ({ kind }) => kind === 'ServiceAccount'],
  ['the root certificate', 'api/v1/NS/configmaps/kube-root-ca.crt', ({ data }) => data !== undefined],
  [
    'a Deployment that is available',
    'apis/apps/v1/NS/deployments/web',
    ({ status }) => status?.availableReplicas === 3,
  ],
  ['a StatefulSet that is ready', 'apis/apps/v1/NS/statefulsets/set', ({ status }) => status?.readyReplicas === 1],
  ['a DaemonSet that is ready', 'apis/apps/v1/NS/daemonsets/agent', ({ status }) => status?.numberReady === 1],
  ['a Job that is complete', 'apis/batch/v1/NS/jobs/once', ({ status }) => status?.succeeded === 1],
  ['EndpointSlices with addresses', 'apis/discovery.k8s.io/v1/NS/endpointslices', ({ items }) => hasAddresses(items)],
  [
    'a budget that allows',
    'apis/policy/v1/NS/poddisruptionbudgets/web',
    ({ status }) => status?.disruptionsAllowed > 0,
  ],
  ['a quota that counts', 'api/v1/NS/resourcequotas/quota', ({ status }) => Number(status?.used?.pods) >= 5],
]

function hasAddresses(items: Json[] = []): boolean {
  return items.some(({ endpoints }) => endpoints?.length > 0)
}

const at = (path: string, namespace: string): string => `/${path.replace('NS', `namespaces/${namespace}`)}`

/** Makes that pods run, end and go, and that their node is alive: what a kubelet would say. */
async function standIn(call: Call, signal: AbortSignal): Promise<void> {
  const capacity = { cpu: '64', memory: '256Gi', pods: '500' }
  await call('POST', '/api/v1/nodes', { metadata: { name: NODE } })
  while (!signal.aborted) {
    const beat = new Date(realClock.now()).toISOString()
    const ready = { type: 'Ready', status: 'True', reason: 'StandIn', lastHeartbeatTime: beat }
    const status = { capacity, allocatable: capacity, conditions: [ready] }
    await call('PATCH', `/api/v1/nodes/${NODE}/status`, { status })
    const pods = await call('GET', `/api/v1/pods?fieldSelector=spec.nodeName%3D${NODE}`)
    await Promise.all((pods.items as Json[]).map((pod, index) => tend(call, pod, index)))
    await sleep(realClock, LOOK_EVERY_MS)
  }
}

async function tend(call: Call, { metadata, spec, status }: Json, index: number): Promise<void> {
  const path = `/api/v1/namespaces/${metadata.namespace}/pods/${metadata.name}`
  if (metadata.deletionTimestamp !== undefined) {
    await call('DELETE', path, { gracePeriodSeconds: 0 })
    return
  }
  if (status.phase !== 'Pending') return
  const isDone = spec.restartPolicy === 'Never'
  const ip = `10.1.${index >> 8}.${index & 255}`
  const conditions = [{ type: 'Ready', status: isDone ? 'False' : 'True' }]
  const phase = isDone ? 'Succeeded' : 'Running'
  await call('PATCH', `${path}/status`, { status: { phase, conditions, podIP: ip, podIPs: [{ ip }] } })
}

/** One namespace from its beginning to its end; the hopes that did not come true. */
async function round(call: Call, namespace: string, deadline: number): Promise<string[]> {
  await call('POST', '/api/v1/namespaces', { metadata: { name: namespace } })
  for (const [path, object] of THINGS) await call('POST', at(path, namespace), object)
  let open = HOPES
  while (open.length > 0 && realClock.now() < deadline) {
    const answers = await Promise.all(open.map(([, path]) => call('GET', at(path, namespace))))
    open = open.filter(([, , isTrue], index) => !isTrue(answers[index]))
    await sleep(realClock, LOOK_EVERY_MS)
  }
  await call('DELETE', `/api/v1/namespaces/${namespace}`)
  const isThere = async (): Promise<boolean> => (await call('GET', `/api/v1/namespaces/${namespace}`)).kind !== 'Status'
  while ((await isThere()) && realClock.now() < deadline) await sleep(realClock, LOOK_EVERY_MS)
  const lost = open.map(([what]) => what)
  return (await isThere()) ? [...lost, 'a namespace that is gone when it is deleted'] : lost
}

/** Lines of klog that are errors or worse, without what differs each time, by how often they came. */
async function complaints(log: string): Promise<Map<string, number>> {
  const counts = new Map<string, number>()
  for (const line of (await readFile(log, 'utf8')).split('\n')) {
    if (!/^[EF]\d{4} |^panic:/.test(line)) continue
    const text = line.replace(/^[EF]\d{4} \S+ +\d+ /, '').replaceAll(/churn-\d+|[\da-f]{8}-[\da-f-]{27}|\d+/g, '…')
    counts.set(text, (counts.get(text) ?? 0) + 1)
  }
  return counts
}

async function churn(server: Server, folder: string): Promise<number> {
  const call: Call = async (method, path, body) => (await ask(server, { method, path, body })).body
  const kubeconfig = await writeKubeconfig(join(folder, 'kubeconfig'), server)
  const programs = await startComponents(folder, kubeconfig)
  const over = new AbortController()
  const kubelet = standIn(call, over.signal)
  try {
    const deadline = realClock.now() + Number(options.seconds) * 1000
    const names = Array.from({ length: Number(options.rounds) }, (_, index) => `churn-${index}`)
    const lost = (await Promise.all(names.map((name) => round(call, name, deadline)))).flat()
    const ended = [...programs]
      .filter(([, child]) => child.exitCode !== null)
      .map(([name]) => `${name} running to the end`)
    return await conclude(folder, [...programs.keys()], [...lost, ...ended])
  } finally {
    over.abort()
    await kubelet
    await Promise.all([...programs.values()].map((child) => end(child, 'SIGTERM')))
  }
}

async function conclude(folder: string, programs: readonly string[], lost: readonly string[]): Promise<number> {
  for (const name of programs) {
    const counts = await complaints(join(folder, `${name}.log`))
    process.stdout.write(`${name}: ${counts.size} kinds of errors\n`)
    for (const [text, count] of counts) process.stdout.write(`  ${String(count).padStart(5)}  ${text}\n`)
  }
  for (const what of lost) process.stdout.write(`✖ there was not: ${what}\n`)
  const hopes = Number(options.rounds) * (HOPES.length + 1)
  process.stdout.write(`\n${hopes - lost.length} passed, ${lost.length} failed\n`)
  return lost.length === 0 ? 0 : 1
}

async function main(): Promise<number> {
  const folder = await mkdtemp(join(tmpdir(), 'hyperkube-controllers-'))
  const server = await startOurs(folder)
  try {
    return await churn(server, folder)
  } finally {
    await server.stop()
    await rm(folder, { recursive: true, force: true })
  }
}

process.exitCode = await main()
