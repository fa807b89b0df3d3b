/**
 * The commands of the API server's reliability tests: each parses its arguments, runs the test, prints the findings and
 * returns whether there were none.
 */
import { availableParallelism, loadavg } from 'node:os'
import { parseArgs } from 'node:util'

import { runClusters } from './clusters.ts'
import { lineOf, runCost } from './cost/cost.ts'
import { runFuzz } from './fuzz/fuzz.ts'
import { runHistory } from './history.ts'
import { ATTACKS } from './hostile/attacks.ts'
import { besiege, phaseRow, tableHead } from './hostile/hostile.ts'
import { type KillsOptions, runKills } from './kills.ts'
import { type ManagersOptions, runManagers } from './managers.ts'
import { runSuite } from './suite.ts'
import { runTerms } from './terms.ts'

export type Command = (args: readonly string[]) => Promise<boolean>

/** Lines a report is cut to. */
const SHOWN = 40

export const COMMANDS: Readonly<Record<string, Command>> = {
  hostile,
  fuzz,
  cost,
  kills,
  history,
  terms,
  suite,
  managers: inRounds(runManagers, '100'),
  clusters: inRounds(runClusters, '200'),
}

function text(value: string): { readonly type: 'string'; readonly default: string } {
  return { type: 'string', default: value }
}

async function hostile(args: readonly string[]): Promise<boolean> {
  const options = { attack: text('all'), seconds: text('15'), scale: text('1'), datastore: text('sqlite') }
  const { values } = parseArgs({ args: [...args], options })
  const attacks = values.attack === 'all' ? Object.keys(ATTACKS) : values.attack.split(',')
  const unknown = attacks.filter((name) => ATTACKS[name] === undefined)
  if (unknown.length > 0) throw new TypeError(`--attack is all or some of ${Object.keys(ATTACKS).join(', ')}`)
  console.log(tableHead())
  let isGood = true
  await besiege({
    attacks,
    durationMs: Number(values.seconds) * 1000,
    scale: Number(values.scale),
    datastore: values.datastore,
    progress(phase) {
      console.log(phaseRow(phase))
      for (const problem of phase.problems) console.log(`  VIOLATION under ${phase.attack}: ${problem}`)
      isGood &&= phase.problems.length === 0
    },
  })
  return isGood
}

async function fuzz(args: readonly string[]): Promise<boolean> {
  const options = {
    requests: text('10000'),
    first: text('0'),
    seed: text('1'),
    clients: text('12'),
    datastore: text('sqlite'),
  }
  const { values } = parseArgs({ args: [...args], options })
  const report = await runFuzz({
    seed: Number(values.seed),
    first: Number(values.first),
    requests: Number(values.requests),
    clients: Number(values.clients),
    datastore: values.datastore,
    progress: (done) => (done % 10_000 === 0 ? console.log(`${done} requests`) : undefined),
  })
  complain(report.problems)
  const statuses = [...report.statuses].sort(([a], [b]) => a - b).map(([status, count]) => `${status}×${count}`)
  console.log(
    `${report.sent} requests, seed ${values.seed}: ${report.problems.length} problems; ${statuses.join(' ')}; ` +
      `${report.knownErrors} of the 500s are upstream's; slowest ${report.slowestMs.toFixed(0)} ms, loop held ` +
      `${report.heldMs.toFixed(0)} ms, ${report.residentMb.toFixed(0)} MB, ${seconds(report.tookMs)}, ${load()}`,
  )
  return report.problems.length === 0
}

async function cost(args: readonly string[]): Promise<boolean> {
  const options = { requests: text('10000'), first: text('0'), seed: text('1'), datastore: text('memory') }
  const { values } = parseArgs({ args: [...args], options })
  const begun = performance.now()
  const report = await runCost({
    seed: Number(values.seed),
    first: Number(values.first),
    requests: Number(values.requests),
    datastore: values.datastore,
    progress: (line) => console.log(`VIOLATION: ${line}`),
  })
  const statuses = [...report.statuses].sort(([a], [b]) => a - b).map(([status, count]) => `${status}×${count}`)
  for (const [name, one] of [
    ['longest', report.slowest],
    ['largest', report.largest],
  ] as const) {
    if (one !== undefined) console.log(`${name}: ${lineOf(one)}`)
  }
  console.log(
    `${report.sent} requests, seed ${values.seed}: ${report.offences.length} over 100 ms or 64 MB; ${statuses.join(' ')}; ` +
      `speed ${report.speed.toFixed(2)} of the reference machine, ${seconds(performance.now() - begun)}, ${load()}; ` +
      `go on with --first ${report.nextSeries}`,
  )
  return report.offences.length === 0
}

async function kills(args: readonly string[]): Promise<boolean> {
  const options = {
    times: text('10'),
    seed: text('1'),
    writers: text('10'),
    datastore: text('sqlite'),
    built: { type: 'boolean', default: false },
  } as const
  const { values } = parseArgs({ args: [...args], options })
  const settings: KillsOptions = {
    datastore: values.datastore,
    times: Number(values.times),
    seed: Number(values.seed),
    writers: Number(values.writers),
    isBuilt: values.built,
    progress: everyTenth('kills'),
  }
  const report = await runKills(settings)
  complain(report.problems)
  console.log(
    `${report.kills} kills on ${values.datastore}, seed ${values.seed}: ${report.problems.length} problems; ` +
      `${report.acknowledged} acknowledged writes, ${report.events} events over ${report.watches} watches; ` +
      `start to /readyz ${spread(report.readyMs)}, ${load()}`,
  )
  return report.problems.length === 0
}

async function history(args: readonly string[]): Promise<boolean> {
  const options = {
    seconds: text('60'),
    every: text('20'),
    samples: text('100'),
    seed: text('1'),
    writers: text('2'),
    built: { type: 'boolean', default: false },
  } as const
  const { values } = parseArgs({ args: [...args], options })
  const report = await runHistory({
    seconds: Number(values.seconds),
    killEverySeconds: Number(values.every),
    samples: Number(values.samples),
    seed: Number(values.seed),
    writers: Number(values.writers),
    isBuilt: values.built,
    progress: (done) => console.log(done),
  })
  complain(report.problems)
  console.log(
    `${report.kills} kills, seed ${values.seed}: ${report.problems.length} problems, ${report.gaps} gaps; ` +
      `${report.acknowledged} acknowledged writes, ${report.compared} past states compared, ` +
      `${report.fileBytes} bytes of history; a past state opened in ${spread(report.readMs)}, ${load()}`,
  )
  return report.problems.length === 0 && report.gaps === 0
}

async function terms(args: readonly string[]): Promise<boolean> {
  const options = { times: text('5'), seed: text('1'), clients: text('8'), datastore: text('sqlite') }
  const { values } = parseArgs({ args: [...args], options })
  const report = await runTerms({
    datastore: values.datastore,
    times: Number(values.times),
    seed: Number(values.seed),
    clients: Number(values.clients),
    progress: everyTenth('stops'),
  })
  complain(report.problems)
  console.log(
    `${report.times} times SIGTERM on ${values.datastore}, seed ${values.seed}: ${report.problems.length} problems; ` +
      `${report.answered} requests answered, ${report.watches} watches ended; exit after ${spread(report.exitMs)}, ${load()}`,
  )
  return report.problems.length === 0
}

async function suite(args: readonly string[]): Promise<boolean> {
  const options = { rounds: text('30'), seed: text('1364'), busy: text(String(availableParallelism())), only: text('') }
  const { values } = parseArgs({ args: [...args], options })
  const failures = await runSuite({
    rounds: Number(values.rounds),
    seed: Number(values.seed),
    busy: Number(values.busy),
    only: values.only,
    progress: (line) => console.log(`${line}, ${load()}`),
  })
  for (const [test, seeds] of failures) console.log(`FAILED ${seeds.length} times: ${test} (seeds ${seeds.join(', ')})`)
  return failures.size === 0
}

function complain(problems: readonly string[]): void {
  for (const problem of problems.slice(0, SHOWN)) console.log(`VIOLATION: ${problem}`)
}

function everyTenth(what: string): (done: number) => void {
  return (done) => (done % 10 === 0 ? console.log(`${done} ${what}`) : undefined)
}

/** Of sorted times. */
function spread(ms: readonly number[]): string {
  const at = (share: number): string => (ms[Math.min(ms.length - 1, Math.floor(share * ms.length))] ?? 0).toFixed(0)
  return `p50 ${at(0.5)} ms, p90 ${at(0.9)} ms, max ${at(1)} ms`
}

function seconds(ms: number): string {
  return `${(ms / 1000).toFixed(0)} s`
}

function load(): string {
  return `machine load ${(loadavg()[0] ?? 0).toFixed(1)}`
}

type Rounds = (options: ManagersOptions) => Promise<readonly string[]>

function inRounds(run: Rounds, usual: string): (args: readonly string[]) => Promise<boolean> {
  return async (args) => {
    const { values } = parseArgs({ args: [...args], options: { rounds: text(usual), seed: text('1') } })
    const progress = (line: string): void => console.log(line)
    const violations = await run({ rounds: Number(values.rounds), seed: Number(values.seed), progress })
    complain(violations)
    return violations.length === 0
  }
}
