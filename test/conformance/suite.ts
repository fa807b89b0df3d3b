/**
 * Runs upstream's e2e suite against a cluster and collects the results. A failed test is repeated twice, to distinguish
 * flaky tests from failing ones.
 */
import { type ChildProcess, spawn } from 'node:child_process'
import { createWriteStream, existsSync } from 'node:fs'
import { mkdir, readFile } from 'node:fs/promises'
import { join } from 'node:path'

import type { Cluster } from './cluster.ts'
import { testNames, type TestRun, testRuns } from './report.ts'

export interface Suite {
  readonly programs: Record<'e2e.test' | 'ginkgo' | 'kubectl', string>
  /** For reports and logs. */
  readonly folder: string
  readonly cluster: Cluster
  /** How many tests run at a time. */
  readonly procs: number
}

const MAX_ATTEMPTS = 3
/** When more than this fail, it is not luck. */
const MAX_RETRIED = 10

/** Full names of all tests that have the label; default: the conformance tests. */
export async function listTests(suite: string, folder: string, label = 'Conformance'): Promise<string[]> {
  const report = join(folder, 'all.json')
  const flags = ['--ginkgo.dry-run', `--ginkgo.label-filter=${label}`, `--ginkgo.json-report=${report}`]
  await run(suite, ['--provider=skeleton', ...flags], { output: undefined })
  return testNames(await readFile(report, 'utf8')).filter((name) => name.includes(`[${label}]`))
}

/** How each of them ended, but for those that did not begin. */
export async function runTests(suite: Suite, names: readonly string[]): Promise<TestRun[]> {
  const runs = new Map<string, TestRun>()
  let open = names
  for (let attempt = 1; attempt <= MAX_ATTEMPTS && open.length > 0; attempt++) {
    for (const found of await runOnce(suite, open, attempt)) {
      const isLucky = attempt > 1 && found.result === 'passed'
      runs.set(
        found.name,
        isLucky ? { ...found, result: 'flaky', message: runs.get(found.name)?.message ?? '' } : found,
      )
    }
    open = names.filter((name) => runs.get(name)?.result === 'failed')
    if (open.length > MAX_RETRIED) break
  }
  return [...runs.values()]
}

/** The parallel ones together, then the serial ones one by one. */
async function runOnce(suite: Suite, names: readonly string[], attempt: number): Promise<TestRun[]> {
  const serial = names.filter((name) => name.includes('[Serial]'))
  const parallel = names.filter((name) => !name.includes('[Serial]'))
  return [
    ...(await runPart(suite, `parallel-${attempt}`, parallel, suite.procs)),
    ...(await runPart(suite, `serial-${attempt}`, serial, 1)),
  ]
}

async function runPart(suite: Suite, part: string, names: readonly string[], procs: number): Promise<TestRun[]> {
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

/** The running suite. */
let running: ChildProcess | undefined

function run(program: string, args: readonly string[], { output, mayFail = false }: RunOptions): Promise<void> {
  return new Promise((resolve, reject) => {
    const child = spawn(program, args, { stdio: ['ignore', 'pipe', 'inherit'] })
    running = child
    if (output === undefined) child.stdout.resume()
    else {
      child.stdout.pipe(createWriteStream(output))
      child.stdout
        .setEncoding('utf8')
        .on('data', (text: string) => process.stdout.write(text.replaceAll(/S{3,}|^S+$/gm, '')))
    }
    child.on('error', reject)
    child.on('close', (code) =>
      code === 0 || mayFail ? resolve() : reject(new Error(`${program} ended with ${code}`)),
    )
  })
}

/** On a signal, ends the suite first and then the cluster, so that no process stays behind. */
export function endWithSuite(): void {
  // An interrupt from the keyboard reaches the suite as well.
  process.on('SIGINT', () => {})
  for (const signal of ['SIGTERM', 'SIGHUP'] as const) process.on(signal, () => running?.kill('SIGINT'))
}
