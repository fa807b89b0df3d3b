/**
 * Compares scenarios with upstream's kube-controller-manager and with ours, each on our server: `node
 * test/upstream/scenarios.ts [--focus REGEXP] [--procs N] [--make ours|upstream's] [--twice] [--keep] [--record]`.
 * Simulated nodes run the pods. The script compares the final objects, their conditions over time and the events. It
 * prints every difference that a scenario does not allow. `--twice` compares upstream's with itself, to find random
 * differences. `--record` writes upstream's recordings to `scenarios/answers`; `scenarios/replay.test.ts` compares ours
 * with them in virtual time.
 */
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { parseArgs } from 'node:util'

import { type Make, startManager } from './components.ts'
import { end } from './kube-apiserver.ts'
import { startOurs, writeKubeconfig } from './ours.ts'
import { readAnswers, writeAnswers } from './scenarios/answers.ts'
import { SCENARIOS } from './scenarios/index.ts'
import { CONTROLLERS, NODES_PLAN, playAll, QUICK, SERVICE_RANGES } from './scenarios/play.ts'
import type { Recording } from './scenarios/recording.ts'
import type { Scenario } from './scenarios/scenario.ts'
import { compare } from './scenarios/verdict.ts'
import { startVirtualNodes } from './virtual-nodes.ts'

const { values: options } = parseArgs({
  options: {
    focus: { type: 'string', default: '' },
    procs: { type: 'string', default: '8' },
    make: { type: 'string' },
    twice: { type: 'boolean', default: false },
    keep: { type: 'boolean', default: false },
    record: { type: 'boolean', default: false },
  },
})

const FLAGS = [
  '--kube-api-qps=200',
  '--kube-api-burst=400',
  `--controllers=${CONTROLLERS.join()}`,
  ...Object.entries(QUICK).map(([flag, ms]) => `--${flag}=${ms}ms`),
]

async function recordAll(make: Make, scenarios: readonly Scenario[]): Promise<Map<string, Recording>> {
  const folder = await mkdtemp(join(tmpdir(), 'hyperkube-scenarios-'))
  await using running = new AsyncDisposableStack()
  if (options.keep) process.stderr.write(`${make}: logs are in ${folder}\n`)
  else running.defer(() => rm(folder, { recursive: true, force: true }))
  const server = await startOurs(folder, [`--service-cluster-ip-range=${SERVICE_RANGES}`])
  running.defer(() => server.stop())
  const kubeconfig = await writeKubeconfig(join(folder, 'kubeconfig'), server)
  const manager = await startManager(folder, kubeconfig, { make, flags: FLAGS })
  running.defer(() => end(manager, 'SIGTERM'))
  const nodes = await startVirtualNodes({ server, ...NODES_PLAN })
  running.defer(() => nodes.stop())
  const onPlayed = (): void => void process.stderr.write('.')
  const recordings = await playAll(scenarios, nodes, { atOnce: Number(options.procs), onPlayed })
  process.stderr.write(` ${make}\n`)
  return recordings
}

/** Keeps the recordings of scenarios that were not played now. */
async function record(scenarios: readonly Scenario[]): Promise<void> {
  const recordings = await recordAll("upstream's", scenarios)
  await writeAnswers(new Map([...(await readAnswers()), ...recordings]))
  process.stdout.write(`${recordings.size} scenarios recorded\n`)
}

async function main(): Promise<number> {
  const focus = new RegExp(options.focus)
  const scenarios = SCENARIOS.filter(({ name }) => focus.test(name))
  if (options.record) {
    await record(scenarios)
    return 0
  }
  if (options.make !== undefined) {
    const only = await recordAll(options.make as Make, scenarios)
    process.stdout.write(`${JSON.stringify(Object.fromEntries(only), undefined, 1)}\n`)
    return 0
  }
  const theirs = await recordAll("upstream's", scenarios)
  const ours = await recordAll(options.twice ? "upstream's" : 'ours', scenarios)
  return report(scenarios, theirs, ours)
}

type Recordings = ReadonlyMap<string, Recording>

function report(scenarios: readonly Scenario[], theirs: Recordings, ours: Recordings): number {
  const counts = { same: 0, explained: 0, different: 0 }
  for (const { name, allows = [] } of scenarios) {
    const [one, other] = [theirs.get(name), ours.get(name)]
    if (one === undefined || other === undefined) throw new Error(`"${name}" was not played`)
    const { differences, reasons } = compare(allows, one, other)
    const verdict = differences.length > 0 ? 'different' : reasons.size > 0 ? 'explained' : 'same'
    counts[verdict]++
    process.stdout.write(`${MARKS[verdict]} ${name}\n`)
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
