/**
 * The reliability harness of the stores: `node test/reliability/main.ts --backend sqlite --fault mix --runs 100 --seed
 * 1`. It prints a line for each run and a summary, and exits with 1 after a violation. `--defect NAME` seeds a defect
 * that the harness must find; `--defect all` seeds each in turn. The first argument `hostile`, `fuzz`, `cost`, `kills`,
 * `managers`, `clusters` or `terms` tests the whole API server instead, `suite` the tests themselves: see
 * api/commands.ts.
 */
import { parseArgs } from 'node:util'

import { createSeededRandom } from '#lib/random.ts'

import { COMMANDS } from './api/commands.ts'
import { type BackendName, whyNoBackend } from './arena.ts'
import { DEFECTS } from './defects.ts'
import { type FaultName, FAULTS, faultsFor } from './faults.ts'
import { type RunOptions, type RunResult, runOnce } from './run.ts'

/** Of each rule that was broken; the first ones say most. */
const SHOWN_VIOLATIONS = 2

for (const signal of ['SIGINT', 'SIGTERM'] as const) process.on(signal, () => process.exit(1))
const command = COMMANDS[process.argv[2] ?? '']
if (command !== undefined) process.exit((await command(process.argv.slice(3))) ? 0 : 1)

const { values } = parseArgs({
  options: {
    backend: { type: 'string', default: 'memory' },
    fault: { type: 'string', default: 'mix' },
    runs: { type: 'string', default: '10' },
    seed: { type: 'string', default: '1' },
    defect: { type: 'string' },
    traffic: { type: 'string', default: '300' },
  },
})

const backend = oneOf('backend', values.backend, ['memory', 'sqlite', 'etcd'] as const)
const faults = possibleFaults(backend, oneOf('fault', values.fault, ['mix', ...(Object.keys(FAULTS) as FaultName[])]))
const runs = Number(values.runs)
const seed = Number(values.seed)
const trafficMs = Number(values.traffic)
const isGood = values.defect === undefined ? await runClean() : await runDefects(values.defect)
process.exit(isGood ? 0 : 1)

function oneOf<T extends string>(name: string, value: string, allowed: readonly T[]): T {
  const found = allowed.find((each) => each === value)
  if (found === undefined) throw new TypeError(`--${name} is one of ${allowed.join(', ')}, not "${value}"`)
  return found
}

function possibleFaults(backend: BackendName, fault: FaultName | 'mix'): FaultName[] {
  const reason = whyNoBackend(backend)
  if (reason !== undefined) throw new Error(`The ${backend} backend cannot be tested here: ${reason}`)
  const possible = faultsFor(backend)
  if (fault === 'mix') return possible
  if (possible.includes(fault)) return [fault]
  throw new Error(
    `Fault "${fault}" cannot be injected into ${backend} here: ${FAULTS[fault].whyNot?.() ?? 'it makes no sense there'}`,
  )
}

function planRun(n: number): RunOptions {
  const random = createSeededRandom(seed + n)
  return { backend, fault: faults[random.int(faults.length)] ?? 'none', seed: seed + n, trafficMs }
}

/** True when no run has violated anything. */
async function runClean(): Promise<boolean> {
  const results: RunResult[] = []
  let violated = 0
  for (let n = 0; n < runs; n++) {
    const options = planRun(n)
    const result = await runOnce(options)
    results.push(result)
    if (result.violations.length > 0) violated++
    report(options, result)
  }
  const sum = (pick: (result: RunResult) => number): number =>
    results.reduce((total, result) => total + pick(result), 0)
  const restarts = results.flatMap(({ restartsMs }) => restartsMs)
  console.log(
    `${runs} runs on ${backend} (${faults.join(', ')}), seed ${seed}: ${violated} with a violation; ` +
      `${sum(({ operations }) => operations)} operations, ${sum(({ commits }) => commits)} acknowledged commits, ` +
      `${sum(({ unknown }) => unknown)} without an answer, ${sum(({ events }) => events)} events` +
      (restarts.length === 0 ? '' : `; slowest of ${restarts.length} restarts ${Math.max(...restarts).toFixed(0)} ms`),
  )
  return violated === 0
}

/** True when each defect was found. */
async function runDefects(name: string): Promise<boolean> {
  const names = name === 'all' ? Object.keys(DEFECTS) : [name]
  let found = 0
  for (const defect of names) {
    const at = await runsUntilFound(defect)
    if (at !== undefined) found++
  }
  console.log(`${found} of ${names.length} defects found on ${backend}, each within ${runs} runs`)
  return found === names.length
}

async function runsUntilFound(defect: string): Promise<number | undefined> {
  for (let n = 0; n < runs; n++) {
    const { violations } = await runOnce({ ...planRun(n), defect })
    if (violations.length === 0) continue
    const rules = [...new Set(violations.map(({ rule }) => rule))].join(', ')
    console.log(`${defect}: found in run ${n + 1} by ${rules}: ${violations[0]?.detail.slice(0, 300)}`)
    return n + 1
  }
  console.log(`${defect}: not found in ${runs} runs`)
  return undefined
}

function report({ fault, seed }: RunOptions, result: RunResult): void {
  const { violations, operations, commits, unknown, events, revision, restartsMs, tookMs } = result
  const restarts = restartsMs.length === 0 ? '' : `, restart ${restartsMs.map((ms) => ms.toFixed(0)).join('+')} ms`
  console.log(
    `seed ${seed} ${fault}: ${violations.length === 0 ? 'ok' : `${violations.length} VIOLATIONS`}, ${operations} operations, ` +
      `${commits} commits, ${unknown} unknown, ${events} events, revision ${revision}${restarts}, ${(tookMs / 1000).toFixed(1)} s`,
  )
  for (const [rule, broken] of Map.groupBy(violations, (violation) => violation.rule)) {
    for (const { detail } of broken.slice(0, SHOWN_VIOLATIONS)) console.log(`  ${rule} (${broken.length}): ${detail}`)
  }
  if (violations.length > 0)
    console.log(`  again: --backend ${backend} --fault ${fault} --runs 1 --seed ${seed} --traffic ${trafficMs}`)
}
