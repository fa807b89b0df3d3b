/**
 * `npm run conformance`: upstream's own e2e tests against a cluster of ours. Builds or finds e2e.test, ginkgo and kubectl,
 * starts a cluster unless --kubeconfig names one, runs the chosen tests (the parallel ones together, then the serial ones
 * one by one), prints a table and brings docs/conformance.md up to date.
 */
import { spawn } from 'node:child_process'
import { createWriteStream, existsSync } from 'node:fs'
import { mkdir, mkdtemp, readFile, rm, writeFile } from 'node:fs/promises'
import { availableParallelism, tmpdir } from 'node:os'
import { join } from 'node:path'
import { parseArgs } from 'node:util'

import { upstreamPrograms, UPSTREAM_VERSION } from '../upstream/programs.ts'
import { entryOf, type Need, NEEDS, plainName } from './catalog.ts'
import { type Cluster, startCluster } from './cluster.ts'
import { inGroups, readPage, testNames, type TestRun, testRuns, writePage } from './report.ts'

const PAGE = join(import.meta.dirname, '..', '..', 'docs', 'conformance.md')

const USAGE = `npm run conformance -- [options]
  --group NAME       only this group (may be repeated; the groups are in docs/conformance.md)
  --needs LEVEL      only tests that need no more than ${NEEDS.join(', ')} (each includes the ones before it)
  --focus REGEXP     only tests whose name matches
  --skip REGEXP      not the tests whose name matches
  --kubeconfig FILE  a cluster that is there already, instead of a fresh one
  --procs N          how many tests run at a time (default: the machine's cores)
  --list             names the chosen tests and ends
  --keep             keeps the folder of reports and logs even when all pass
`

const { values: options } = parseArgs({
  options: {
    group: { type: 'string', multiple: true },
    needs: { type: 'string' },
    focus: { type: 'string' },
    skip: { type: 'string' },
    kubeconfig: { type: 'string' },
    procs: { type: 'string' },
    list: { type: 'boolean' },
    keep: { type: 'boolean' },
    help: { type: 'boolean', short: 'h' },
  },
})

interface Suite {
  readonly programs: Record<'e2e.test' | 'ginkgo' | 'kubectl', string>
  readonly folder: string
  readonly cluster: Cluster
}

async function main(): Promise<number> {
  if (options.help) return (say(USAGE), 0)
  const programs = await upstreamPrograms(['e2e.test', 'ginkgo', 'kubectl'], (line) =>
    process.stderr.write(`${line}\n`),
  )
  const folder = await mkdtemp(join(tmpdir(), 'hyperkube-conformance-'))
  const all = await listTests(programs['e2e.test'], folder)
  const chosen = choose(all)
  say(`${chosen.length} of ${all.length} conformance tests\n`)
  if (options.list || chosen.length === 0) {
    for (const name of chosen) say(`${entryOf(name)?.group}\t${entryOf(name)?.needs}\t${plainName(name)}\n`)
    await rm(folder, { recursive: true })
    return chosen.length > 0 ? 0 : 1
  }
  const runs = await withCluster(folder, async (cluster) => {
    const suite: Suite = { programs, folder, cluster }
    const serial = chosen.filter((name) => name.includes('[Serial]'))
    const parallel = chosen.filter((name) => !name.includes('[Serial]'))
    return [
      ...(await runTests(suite, 'parallel', parallel, Number(options.procs ?? availableParallelism()))),
      ...(await runTests(suite, 'serial', serial, 1)),
    ]
  })
  await remember(all, runs)
  return conclude(folder, chosen, runs)
}

function say(text: string): void {
  process.stdout.write(text)
}

async function listTests(suite: string, folder: string): Promise<string[]> {
  const report = join(folder, 'all.json')
  const flags = ['--ginkgo.dry-run', '--ginkgo.label-filter=Conformance', `--ginkgo.json-report=${report}`]
  await run(suite, ['--provider=skeleton', ...flags], { output: undefined })
  return testNames(await readFile(report, 'utf8')).filter((name) => name.includes('[Conformance]'))
}

function choose(names: readonly string[]): string[] {
  const { group, needs, focus, skip } = options
  if (needs !== undefined && !NEEDS.includes(needs as Need)) throw new Error(`--needs takes ${NEEDS.join(', ')}`)
  const level = needs === undefined ? NEEDS.length : NEEDS.indexOf(needs as Need)
  return names.filter((name) => {
    const entry = entryOf(name)
    if (group && !group.includes(entry?.group ?? 'other')) return false
    if (NEEDS.indexOf(entry?.needs ?? 'api') > level) return false
    if (skip !== undefined && new RegExp(skip).test(name)) return false
    return focus === undefined || new RegExp(focus).test(name)
  })
}

async function withCluster<T>(folder: string, use: (cluster: Cluster) => Promise<T>): Promise<T> {
  if (options.kubeconfig !== undefined) {
    return use({ kubeconfig: options.kubeconfig, nodes: -1, [Symbol.asyncDispose]: async () => {} })
  }
  await using cluster = await startCluster(folder)
  return await use(cluster)
}

async function runTests(suite: Suite, part: string, names: readonly string[], procs: number): Promise<TestRun[]> {
  if (names.length === 0) return []
  const { programs, cluster, folder } = suite
  await mkdir(join(folder, part))
  // Ginkgo looks for the pattern anywhere in a name that begins with the suite's own, so only the end can be anchored.
  const focus = `(${names.map((name) => name.replaceAll(/[\\^$.*+?()[\]{}|]/g, String.raw`\$&`)).join('|')})$`
  const runner = [`--procs=${procs}`, '--no-color', '--timeout=24h', `--focus=${focus}`, '--json-report=report.json']
  const withoutNodes = ['--allowed-not-ready-nodes=-1', '--minStartupPods=-1', '--num-nodes=0']
  const flags = [
    `--kubeconfig=${cluster.kubeconfig}`,
    '--provider=skeleton',
    `--kubectl-path=${programs.kubectl}`,
    '--disable-log-dump',
    '--dump-logs-on-failure=false',
    ...(cluster.nodes === 0 ? withoutNodes : []),
  ]
  const args = [...runner, `--output-dir=${join(folder, part)}`, programs['e2e.test'], '--', ...flags]
  await run(programs.ginkgo, args, { output: join(folder, part, 'output.txt'), mayFail: true })
  const report = join(folder, part, 'report.json')
  if (!existsSync(report)) throw new Error(`The run left no report; see ${folder}`)
  return testRuns(await readFile(report, 'utf8'))
}

interface RunOptions {
  /** The file that keeps what it prints; people see it too, but for the thousands of marks of tests left out. */
  readonly output: string | undefined
  readonly mayFail?: boolean
}

/** An interrupt from the keyboard reaches the child as well, which ends it; the cluster is stopped after it. */
function run(program: string, args: readonly string[], { output, mayFail = false }: RunOptions): Promise<void> {
  return new Promise((resolve, reject) => {
    const child = spawn(program, args, { stdio: ['ignore', 'pipe', 'inherit'] })
    if (output === undefined) child.stdout.resume()
    else {
      child.stdout.pipe(createWriteStream(output))
      child.stdout.setEncoding('utf8').on('data', (text: string) => say(text.replaceAll(/S{3,}|^S+$/gm, '')))
    }
    child.on('error', reject)
    child.on('close', (code) =>
      code === 0 || mayFail ? resolve() : reject(new Error(`${program} ended with ${code}`)),
    )
  })
}

async function remember(all: readonly string[], runs: readonly TestRun[]): Promise<void> {
  const results = existsSync(PAGE) ? readPage(await readFile(PAGE, 'utf8')) : new Map()
  for (const { name, result } of runs) results.set(plainName(name), result)
  await writeFile(PAGE, writePage(UPSTREAM_VERSION, all, results))
}

async function conclude(folder: string, chosen: readonly string[], runs: readonly TestRun[]): Promise<number> {
  const byName = new Map(runs.map((run) => [plainName(run.name), run]))
  say('\n  passed  tests  seconds  group\n')
  for (const [group, tests] of inGroups(chosen)) {
    const ran = tests.flatMap((test) => byName.get(test) ?? [])
    const seconds = ran.reduce((sum, { seconds: each }) => sum + each, 0)
    const passed = ran.filter(({ result }) => result === 'passed').length
    say(
      `  ${String(passed).padStart(6)}${String(tests.length).padStart(7)}${seconds.toFixed(1).padStart(9)}  ${group}\n`,
    )
  }
  const failed = runs.filter(({ result }) => result === 'failed')
  for (const { name, message } of failed) say(`\n✖ ${name}\n  ${message.trim().split('\n').slice(0, 6).join('\n  ')}\n`)
  const missing = chosen.length - runs.length
  say(`\n${runs.length - failed.length} passed, ${failed.length} failed, ${missing} not run, of ${chosen.length}\n`)
  const whole = failed.length === 0 && missing === 0
  if (whole && !options.keep) await rm(folder, { recursive: true })
  else say(`reports and logs: ${folder}\n`)
  return whole ? 0 : 1
}

process.on('SIGINT', () => {})
process.exitCode = await main()
