/**
 * `npm run conformance`: runs upstream's e2e tests against our cluster. Builds or finds e2e.test, ginkgo and kubectl,
 * starts a cluster unless --kubeconfig names one, runs the selected tests, prints a table and updates
 * docs/conformance.md. `npm run ratchet` runs only tests that the page lists as passed and that need no containers, and
 * does not change the page.
 */
import { execFileSync } from 'node:child_process'
import { existsSync } from 'node:fs'
import { mkdir, mkdtemp, readFile, rm, writeFile } from 'node:fs/promises'
import { availableParallelism, tmpdir } from 'node:os'
import { join, resolve } from 'node:path'
import { parseArgs } from 'node:util'

import type { Make } from '../upstream/components.ts'
import { ETCD_NAME } from '../upstream/etcd.ts'
import { missingGo, upstreamPrograms, UPSTREAM_VERSION } from '../upstream/programs.ts'
import { entryOf, type Need, NEEDS, plainName } from './catalog.ts'
import { type Cluster, startCluster, startPrograms, startRealCluster } from './cluster.ts'
import { inGroups, type LastResult, readPage, readReference, type TestRun, writePage } from './report.ts'
import { endWithSuite, listTests, runTests } from './suite.ts'
import { throughServer } from './through-server.ts'

const PAGE = join(import.meta.dirname, '..', '..', 'docs', 'conformance.md')

const USAGE = `npm run conformance -- [options]
  --group NAME       only this group (may be repeated; the groups are in docs/conformance.md)
  --needs LEVEL      only tests that need no more than ${NEEDS.join(', ')} (each includes the ones before it)
  --from LEVEL       only tests that need at least this
  --focus REGEXP     only tests whose name matches
  --skip REGEXP      not the tests whose name matches
  --pending          not the tests that passed last time
  --kubeconfig FILE  a cluster that is there already, instead of a fresh one; the page stays as it is
  --procs N          how many tests run at a time (default: twice the machine's cores, for tests wait more than they work)
  --reference        only tests that need controllers, with ours against upstream's kube-apiserver
  --datastore etcd   with ${ETCD_NAME} as the store of our kube-apiserver, and the programs one by one; the page stays as it is
  --upstream-manager with upstream's kube-controller-manager instead of ours; the page stays as it is
  --kubectl FILE     with this kubectl instead of upstream's; the page stays as it is
  --through-server   through hyperkube server and its agent, with --reference the tests of the API too; the page stays as it is
  --ratchet          only tests that passed last time and need no containers; the page stays as it is
  --list             names the chosen tests and ends
  --keep             keeps the folder of reports and logs even when all pass
`

const { values: options } = parseArgs({
  options: {
    group: { type: 'string', multiple: true },
    needs: { type: 'string' },
    from: { type: 'string' },
    focus: { type: 'string' },
    skip: { type: 'string' },
    pending: { type: 'boolean' },
    kubeconfig: { type: 'string' },
    procs: { type: 'string' },
    reference: { type: 'boolean' },
    datastore: { type: 'string' },
    'upstream-manager': { type: 'boolean' },
    kubectl: { type: 'string' },
    'through-server': { type: 'boolean' },
    ratchet: { type: 'boolean' },
    list: { type: 'boolean' },
    keep: { type: 'boolean' },
    help: { type: 'boolean', short: 'h' },
  },
})

const PROGRAMS = ['e2e.test', 'ginkgo', 'kubectl'] as const

async function main(): Promise<number> {
  if (options.help) return (say(USAGE), 0)
  const reason = missingGo(PROGRAMS)
  if (options.ratchet && reason !== undefined) return (say(`ratchet: upstream's tests were not run: ${reason}\n`), 0)
  const built = await upstreamPrograms(PROGRAMS, (line) => process.stderr.write(`${line}\n`))
  const programs = { ...built, ...(options.kubectl !== undefined && { kubectl: resolve(options.kubectl) }) }
  const folder = await mkdtemp(join(tmpdir(), 'hyperkube-conformance-'))
  const all = await listTests(programs['e2e.test'], folder)
  const chosen = choose(all, readPage(await lastPage()))
  say(`${chosen.length} of ${all.length} conformance tests\n`)
  if (options.list || chosen.length === 0) {
    for (const name of chosen) say(`${entryOf(name)?.group}\t${entryOf(name)?.needs}\t${plainName(name)}\n`)
    await rm(folder, { recursive: true })
    return chosen.length > 0 ? 0 : 1
  }
  const procs = Number(options.procs ?? 2 * availableParallelism())
  const runs: TestRun[] = []
  for (const part of inParts(chosen)) {
    const own = join(folder, part.name)
    await mkdir(own)
    const started = await part.start(own)
    await using cluster = options['through-server'] ? await throughServer(started, own) : started
    runs.push(...(await runTests({ programs, folder: own, cluster, procs }, part.tests)))
  }
  if (isForThePage()) await remember(all, runs)
  return conclude(folder, chosen, runs)
}

/** The page is about our cluster, made here, with upstream's kubectl; and what the gate runs is on it already. */
function isForThePage(): boolean {
  const { ratchet, kubectl, kubeconfig, datastore, 'upstream-manager': isManaged } = options
  if (options['through-server']) return false
  return !ratchet && !isManaged && datastore === undefined && kubectl === undefined && kubeconfig === undefined
}

async function lastPage(): Promise<string> {
  return existsSync(PAGE) ? readFile(PAGE, 'utf8') : ''
}

function say(text: string): void {
  process.stdout.write(text)
}

/** Tests that need a kubelet also need containers. */
const WITHOUT_CONTAINERS = NEEDS.indexOf('controllers')

function choose(names: readonly string[], last: ReadonlyMap<string, LastResult>): string[] {
  const { group, needs = NEEDS.at(-1) ?? '', from = NEEDS[0], focus, skip } = options
  for (const level of [needs, from])
    if (!NEEDS.includes(level as Need)) throw new Error(`--needs and --from take ${NEEDS.join(', ')}`)
  const [least, most] = [NEEDS.indexOf(from as Need), NEEDS.indexOf(needs as Need)]
  return names.filter((name) => {
    const { group: own = 'other', needs: need = 'api' } = entryOf(name) ?? {}
    return (
      isOfRun(last.get(plainName(name)), need) &&
      !(options.ratchet && TOO_LONG.test(name)) &&
      NEEDS.indexOf(need) >= least &&
      NEEDS.indexOf(need) <= most &&
      (group === undefined || group.includes(own)) &&
      (skip === undefined || !new RegExp(skip).test(name)) &&
      (focus === undefined || new RegExp(focus).test(name))
    )
  })
}

/**
 * The ratchet runs tests that passed. Upstream's server judges our controllers, and the management server if there is one
 * in between.
 */
function isOfRun(last: LastResult | undefined, need: Need): boolean {
  if (options.pending && last !== undefined && last.result !== 'failed') return false
  const isJudged = !options.reference || options['through-server'] || need === 'controllers'
  return isJudged && (!options.ratchet || isHeld(last, need))
}

/** Spends five minutes on waiting for what must not happen, and the gate is what everybody waits for. */
const TOO_LONG = /but one using 0\.0\.0\.0 hostIP/

function isHeld(last: LastResult | undefined, needs: Need): boolean {
  return last !== undefined && last.result !== 'failed' && NEEDS.indexOf(needs) <= WITHOUT_CONTAINERS
}

/** Tests that share a cluster. */
interface Part {
  readonly name: string
  readonly tests: readonly string[]
  start(folder: string): Promise<Cluster>
}

/** Tests that need containers and nothing more run on one machine. */
const ONE_NODE = NEEDS.indexOf('kubelet')

/** Those that need no containers have simulated nodes, of which there are several; those of the network two with containers. */
function inParts(chosen: readonly string[]): readonly Part[] {
  const { kubeconfig, datastore, reference = false, 'upstream-manager': isManaged = false } = options
  if (datastore !== undefined && datastore !== 'etcd') throw new Error('--datastore takes etcd')
  const isOnEtcd = datastore === 'etcd'
  if (kubeconfig !== undefined) {
    const there = { kubeconfig, nodes: -1, [Symbol.asyncDispose]: async () => {} }
    return [{ name: 'given', tests: chosen, start: async () => there }]
  }
  const make = (isTheirs: boolean): Make => (isTheirs ? "upstream's" : 'ours')
  const makes = { server: make(reference), manager: make(isManaged), isOnEtcd }
  if (reference || isManaged || isOnEtcd)
    return [{ name: 'programs', tests: chosen, start: (folder) => startPrograms(folder, makes) }]
  const levelOf = (name: string): number => NEEDS.indexOf(entryOf(name)?.needs ?? 'api')
  const within = (least: number, most: number): string[] =>
    chosen.filter((name) => levelOf(name) >= least && levelOf(name) <= most)
  return [
    { name: 'simulated', tests: within(0, WITHOUT_CONTAINERS), start: startCluster },
    { name: 'containers', tests: within(ONE_NODE, ONE_NODE), start: (folder: string) => startRealCluster(folder) },
    {
      name: 'nodes',
      tests: within(ONE_NODE + 1, NEEDS.length),
      start: (folder: string) => startRealCluster(folder, 2),
    },
  ].filter(({ tests }) => tests.length > 0)
}

/** Of a run beside upstream's server only how many passed, and only of a whole one. */
async function remember(all: readonly string[], runs: readonly TestRun[]): Promise<void> {
  const page = await lastPage()
  const results = readPage(page)
  const origin = { version: UPSTREAM_VERSION, reference: readReference(page) }
  if (!options.reference) {
    const date = new Date().toISOString().slice(0, 10)
    for (const { name, result } of runs) results.set(plainName(name), { result, commit: commit(), date })
    return writeFile(PAGE, writePage(origin, all, results))
  }
  const { group, from, focus, skip } = options
  if (from !== undefined || group !== undefined || focus !== undefined || skip !== undefined) return
  const passed = runs.filter(({ result }) => result !== 'failed').length
  const reference = `**${passed} of ${runs.length} pass**, at commit ${commit()}`
  await writeFile(PAGE, writePage({ ...origin, reference }, all, results))
}

/** The commit under test, and whether the work tree had changes. */
function commit(): string {
  const git = (...args: string[]): string =>
    execFileSync('git', args, { cwd: import.meta.dirname })
      .toString()
      .trim()
  const changes = git('status', '--porcelain', '--untracked-files=no').split('\n')
  const isChanged = changes.some((line) => line !== '' && !line.endsWith('docs/conformance.md'))
  return `${git('rev-parse', '--short', 'HEAD')}${isChanged ? ' with changes' : ''}`
}

async function conclude(folder: string, chosen: readonly string[], runs: readonly TestRun[]): Promise<number> {
  const byName = new Map(runs.map((run) => [plainName(run.name), run]))
  say('\n  passed  tests  seconds  group\n')
  for (const [group, tests] of inGroups(chosen)) {
    const ran = tests.flatMap((test) => byName.get(test) ?? [])
    const seconds = ran.reduce((sum, { seconds: each }) => sum + each, 0)
    const passed = ran.filter(({ result }) => result !== 'failed').length
    say(
      `  ${String(passed).padStart(6)}${String(tests.length).padStart(7)}${seconds.toFixed(1).padStart(9)}  ${group}\n`,
    )
  }
  const failed = runs.filter(({ result }) => result === 'failed')
  for (const { name, message } of failed) say(`\n✖ ${name}\n  ${message.trim().split('\n').slice(0, 6).join('\n  ')}\n`)
  for (const { name, message } of runs.filter(({ result }) => result === 'flaky'))
    say(`\nflaky: ${name}\n  at first: ${message.trim().split('\n')[0]}\n`)
  const missing = chosen.length - runs.length
  say(`\n${runs.length - failed.length} passed, ${failed.length} failed, ${missing} not run, of ${chosen.length}\n`)
  const whole = failed.length === 0 && missing === 0
  if (whole && !options.keep) await rm(folder, { recursive: true })
  else say(`reports and logs: ${folder}\n`)
  return whole ? 0 : 1
}

endWithSuite()
process.exitCode = await main()
