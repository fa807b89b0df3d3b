/**
 * Scenarios with upstream's kube-controller-manager and with ours, each on a server of ours: `node test/upstream/scenarios.ts
 * [--focus REGEXP] [--procs N] [--make ours|upstream's] [--twice] [--keep]`. Nodes without containers make pods run, end and
 * go. What users see is compared: the objects that are left, the conditions on the way there, the events. Told at the end: every
 * difference that the scenario does not allow. With `--twice` upstream's is compared with itself: what differs then is chance.
 */
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { parseArgs } from 'node:util'

import { Namespaces, ServiceAccounts } from '#apis/core/v1.ts'
import { realClock, sleep } from '#lib/clock.ts'
import { isNotFound } from '#meta/status.ts'

import { type Make, startManager } from './components.ts'
import { end } from './kube-apiserver.ts'
import { startOurs, writeKubeconfig } from './ours.ts'
import { serveMetrics } from './scenarios/autoscaling.ts'
import { SCENARIOS } from './scenarios/index.ts'
import { Recorder, type Recording } from './scenarios/recording.ts'
import { Act, type Scenario } from './scenarios/scenario.ts'
import { startVirtualNodes, type VirtualNodes } from './virtual-nodes.ts'

const { values: options } = parseArgs({
  options: {
    focus: { type: 'string', default: '' },
    procs: { type: 'string', default: '8' },
    make: { type: 'string' },
    twice: { type: 'boolean', default: false },
    keep: { type: 'boolean', default: false },
  },
})

const QUIET_MS = 3000
/** Long enough for either to have done all there is to do about one pod. */
const PACE_MS = 250
const NODES = [1, 2, 3].map((at) => ({
  name: `virtual-${at}`,
  labels: { 'topology.kubernetes.io/zone': `zone-${at}`, 'topology.kubernetes.io/region': 'region' },
}))
/** Both are quicker than clusters let them be, so that it does not take all day. */
const FLAGS = [
  '--kube-api-qps=200',
  '--kube-api-burst=400',
  // When claims are looked at without reason is chance, and how often they are told why they wait then too.
  '--pvclaimbinder-sync-period=1h',
  '--controllers=*,bootstrap-signer-controller,token-cleaner-controller',
  '--horizontal-pod-autoscaler-sync-period=2s',
]
const DUAL_STACK = '--service-cluster-ip-range=10.0.0.0/20,fd00:99::/112'

const namespaceOf = ({ name }: Scenario): string =>
  `s-${name.toLowerCase().replaceAll(/[^a-z0-9]+/g, '-')}`.slice(0, 50).replace(/-$/, '')

async function recordAll(make: Make, scenarios: readonly Scenario[]): Promise<Map<string, Recording>> {
  const folder = await mkdtemp(join(tmpdir(), 'hyperkube-scenarios-'))
  await using running = new AsyncDisposableStack()
  if (options.keep) process.stderr.write(`${make}: logs are in ${folder}\n`)
  else running.defer(() => rm(folder, { recursive: true, force: true }))
  const server = await startOurs(folder, [DUAL_STACK])
  running.defer(() => server.stop())
  const kubeconfig = await writeKubeconfig(join(folder, 'kubeconfig'), server)
  const manager = await startManager(folder, kubeconfig, { make, flags: FLAGS })
  running.defer(() => end(manager, 'SIGTERM'))
  const nodes = await startVirtualNodes({ server, nodes: NODES, binds: true, paceMs: PACE_MS })
  running.defer(() => nodes.stop())
  await serveMetrics(nodes.client)
  const recorder = new Recorder(nodes.client, [...new Set(scenarios.flatMap(({ clusterKinds = [] }) => clusterKinds))])
  running.defer(() => recorder.stop())
  await recorder.synced()
  const recordings = new Map<string, Recording>()
  const play = async (scenario: Scenario): Promise<void> => {
    recordings.set(scenario.name, await playOne(scenario, nodes, recorder))
    process.stderr.write('.')
  }
  await inTurns(
    scenarios.filter(({ isAlone }) => isAlone !== true),
    Number(options.procs),
    play,
  )
  await inTurns(
    scenarios.filter(({ isAlone }) => isAlone === true),
    1,
    play,
  )
  process.stderr.write(` ${make}\n`)
  return recordings
}

async function inTurns<T>(all: readonly T[], atOnce: number, work: (one: T) => Promise<void>): Promise<void> {
  const open = [...all]
  const worker = async (): Promise<void> => {
    for (let one = open.shift(); one !== undefined; one = open.shift()) await work(one)
  }
  await Promise.all(Array.from({ length: atOnce }, worker))
}

async function playOne(scenario: Scenario, nodes: VirtualNodes, recorder: Recorder): Promise<Recording> {
  const { client } = nodes
  const { run, clusterKinds = [], quietMs = QUIET_MS } = scenario
  const ns = namespaceOf(scenario)
  await client.create(Namespaces, { metadata: { name: ns } })
  await untilThere(client, ns)
  const act = new Act(client, ns, nodes)
  const failure = await run(act).then(
    () => [],
    (error: unknown) => [`failed: ${String(error)}`],
  )
  const seen = await recorder.record(ns, quietMs, clusterKinds)
  await scenario.clean?.(act)
  await client.delete(Namespaces, { name: ns }).catch((error: unknown) => {
    if (!isNotFound(error)) throw error
  })
  return { ...seen, lost: [...act.lost, ...failure] }
}

/** Pods need an account. */
async function untilThere(client: VirtualNodes['client'], namespace: string): Promise<void> {
  const isThere = (): Promise<boolean> =>
    client.get(ServiceAccounts, { namespace, name: 'default' }).then(
      () => true,
      () => false,
    )
  while (!(await isThere())) await sleep(realClock, 50)
}

/** Lines of one that the other does not have. A line may be there several times. */
function without(lines: readonly string[], others: readonly string[]): string[] {
  const left = [...others]
  return lines.filter((line) => {
    const at = left.indexOf(line)
    if (at >= 0) left.splice(at, 1)
    return at < 0
  })
}

interface Verdict {
  readonly differences: readonly string[]
  /** Why others are none. */
  readonly reasons: ReadonlySet<string>
}

function judge({ allows = [] }: Scenario, theirs: Recording, ours: Recording): Verdict {
  const reasons = new Set<string>()
  const differences: string[] = []
  for (const part of ['objects', 'conditions', 'events', 'lost'] as const) {
    const lines = [
      ...without(theirs[part], ours[part]).map((line) => `- ${line}`),
      ...without(ours[part], theirs[part]).map((line) => `+ ${line}`),
    ]
    const uncounted = lines.map((line) => line.slice(1).replace(/ x\d+$/, ''))
    lines.forEach((line, at) => {
      const isOnlyCount = uncounted.some((other, where) => where !== at && other === uncounted[at])
      const allowed = allows.find((one) => one.line.test(line) && (one.isCount !== true || isOnlyCount))
      if (allowed === undefined) differences.push(line)
      else reasons.add(allowed.why)
    })
  }
  return { differences, reasons }
}

async function main(): Promise<number> {
  const focus = new RegExp(options.focus)
  const scenarios = SCENARIOS.filter(({ name }) => focus.test(name))
  if (options.make !== undefined) {
    const only = await recordAll(options.make as Make, scenarios)
    process.stdout.write(`${JSON.stringify(Object.fromEntries(only), undefined, 1)}\n`)
    return 0
  }
  const theirs = await recordAll("upstream's", scenarios)
  const ours = await recordAll(options.twice ? "upstream's" : 'ours', scenarios)
  const counts = { same: 0, explained: 0, different: 0 }
  for (const scenario of scenarios) {
    const [one, other] = [theirs.get(scenario.name), ours.get(scenario.name)]
    if (one === undefined || other === undefined) throw new Error(`"${scenario.name}" was not played`)
    const { differences, reasons } = judge(scenario, one, other)
    const verdict = differences.length > 0 ? 'different' : reasons.size > 0 ? 'explained' : 'same'
    counts[verdict]++
    process.stdout.write(`${MARKS[verdict]} ${scenario.name}\n`)
    for (const reason of reasons) process.stdout.write(`    (${reason})\n`)
    for (const line of differences) process.stdout.write(`    ${line}\n`)
  }
  const { same, explained, different } = counts
  process.stdout.write(
    `\n${scenarios.length} scenarios, ${same} the same, ${explained} explained, ${different} different\n`,
  )
  return different === 0 ? 0 : 1
}

const MARKS = { same: '✔', explained: '≈', different: '✖' }

process.exitCode = await main()
