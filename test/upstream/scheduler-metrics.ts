/**
 * Compares the metric families of our scheduler and upstream's after the same pods: `node
 * test/upstream/scheduler-metrics.ts`. Common families must have the same stability, type and labels. Families that
 * only upstream has must be listed with a reason. Exits with 1 on a difference.
 */
import { mkdir, mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'

import { realClock, sleep } from '#lib/clock.ts'

import { end, freePort, launch } from './kube-apiserver.ts'
import { metricsPage } from './metrics-page.ts'
import { ask, HYPERKUBE, type Server, startOurs, writeKubeconfig } from './ours.ts'
import { upstreamPrograms } from './programs.ts'

/** Why families of upstream's are not shown here, by how their names begin. */
const MISSING: readonly (readonly [names: RegExp, why: string])[] = [
  [/^scheduler_(?:batch|get_node_hint|store_schedule_results)/, 'pods alike share work in another way'],
  [/^scheduler_(?:pending_async_api_calls|async_api_call)/, 'requests are not queued: each is sent when it is made'],
]

interface FamilyShape {
  readonly stability: string
  readonly type: string
  readonly labels: string
}

/** Pods that fit, that fit after a while, and that do not. */
async function exercise(server: Server): Promise<void> {
  const send = (method: string, path: string, body: object): Promise<unknown> => ask(server, { method, path, body })
  const allocatable = { cpu: '2', memory: '8Gi', pods: '10' }
  await send('POST', '/api/v1/nodes', { metadata: { name: 'n1' }, status: { allocatable, capacity: allocatable } })
  const priority = { metadata: { name: 'high' }, value: 1000 }
  await send('POST', '/apis/scheduling.k8s.io/v1/priorityclasses', priority)
  const pod = (name: string, cpu: string, more: object = {}): object => ({
    metadata: { name },
    spec: { containers: [{ name: 'c', image: 'i', resources: { requests: { cpu } } }], ...more },
  })
  const pods = '/api/v1/namespaces/default/pods'
  for (let at = 0; at < 3; at++) await send('POST', pods, pod(`small-${at}`, '500m'))
  await send('POST', pods, pod('large', '100'))
  await send('POST', pods, pod('gated', '1', { schedulingGates: [{ name: 'g' }] }))
  await send('POST', pods, pod('important', '2', { priorityClassName: 'high' }))
  await sleep(realClock, 3000)
  await send('POST', '/api/v1/nodes', { metadata: { name: 'n2' }, status: { allocatable, capacity: allocatable } })
  await sleep(realClock, 5000)
}

/** The metrics of a scheduler after the same pods, on a separate server. */
async function metricsOf(folder: string, program: readonly string[]): Promise<Map<string, FamilyShape>> {
  await mkdir(folder)
  const server = await startOurs(folder, ['--disable-admission-plugins=ServiceAccount,TaintNodesByCondition'])
  const kubeconfig = await writeKubeconfig(join(folder, 'kubeconfig'), server)
  const port = await freePort()
  const flags = [`--kubeconfig=${kubeconfig}`, `--secure-port=${port}`, '--authorization-always-allow-paths=/metrics']
  const [file = '', ...first] = program
  const child = await launch(file, [...first, ...flags, '--leader-elect=false'], join(folder, 'scheduler.log'))
  try {
    await exercise(server)
    return familiesOf(await metricsPage(port))
  } finally {
    await end(child, 'SIGTERM')
    await server.stop()
  }
}

function familiesOf(text: string): Map<string, FamilyShape> {
  const families = new Map<string, FamilyShape>()
  for (const block of text.split(/^(?=# HELP )/m).filter((one) => one.startsWith('# HELP scheduler_'))) {
    const [, name = '', stability = '', type = ''] = /^# HELP (\S+) \[(\w+)\].*\n# TYPE \S+ (\S+)\n/.exec(block) ?? []
    const labels = new Set(Array.from(block.matchAll(/[{,](\w+)="/g), ([, label = '']) => label))
    labels.delete('le')
    if (name !== '') families.set(name, { stability, type, labels: [...labels].sort().join() })
  }
  return families
}

const folder = await mkdtemp(join(tmpdir(), 'scheduler-metrics-'))
const say = (line: string): boolean => process.stdout.write(`${line}\n`)
const { 'kube-scheduler': upstream } = await upstreamPrograms(['kube-scheduler'], say)
const theirs = await metricsOf(join(folder, 'theirs'), [upstream])
const ours = await metricsOf(join(folder, 'ours'), [HYPERKUBE, 'kube-scheduler'])
await rm(folder, { recursive: true })
const differences: string[] = []
for (const [name, family] of theirs) {
  const own = ours.get(name)
  const why = MISSING.find(([names]) => names.test(name))?.[1]
  if (own === undefined && why !== undefined) say(`missing: ${name}: ${why}`)
  else if (own === undefined) differences.push(`missing without a reason: ${name} ${JSON.stringify(family)}`)
  else if (JSON.stringify(own) !== JSON.stringify(family))
    differences.push(`${name}: ${JSON.stringify(own)}, upstream ${JSON.stringify(family)}`)
}
for (const name of ours.keys()) if (!theirs.has(name)) say(`only here: ${name}`)
for (const difference of differences) say(difference)
say(`${ours.size} metric families of ours, ${theirs.size} of upstream, ${differences.length} differences`)
process.exitCode = differences.length === 0 ? 0 : 1
