/**
 * Runs judges, scripts that compare hyperkube with something external: `npm run judges -- [NAME… | --changed | --all]
 * [--list] [--budget MINUTES]`. It writes each result into docs/judges.md. `--changed` takes those whose code changed
 * since they last passed, `--all` takes all; both start with the oldest result. `--budget` starts no judge that would
 * exceed that many minutes.
 */
import { type ChildProcess, spawn, spawnSync } from 'node:child_process'
import { createWriteStream, existsSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { performance } from 'node:perf_hooks'
import { finished } from 'node:stream/promises'
import { parseArgs } from 'node:util'

import { commitsSince, PAGE, readHistory } from './age.ts'
import { formatPage, type LastRun, parsePage, type Runs } from './page.ts'
import { type Judge, JUDGES, type Need, REQUIREMENTS } from './registry.ts'

const ROOT = join(import.meta.dirname, '..', '..')

/** A judge that takes so many times its usual minutes has failed. */
const PATIENCE = 4
/** Characters of a result on the page. */
const RESULT_LENGTH = 160

const USAGE = `npm run judges -- [NAME... | --changed | --all] [--list] [--budget MINUTES]
  --changed         those whose code changed since they last passed
  --all             all, the oldest result first
  --list            names them and ends
  --budget MINUTES  starts no judge that would exceed it
`

if (process.argv.includes('--help') || process.argv.includes('-h')) {
  process.stdout.write(USAGE)
  process.exit(0)
}

const { values: options, positionals: names } = parseArgs({
  options: {
    all: { type: 'boolean', default: false },
    changed: { type: 'boolean', default: false },
    list: { type: 'boolean', default: false },
    budget: { type: 'string', default: 'Infinity' },
  },
  allowPositionals: true,
})

async function main(): Promise<number> {
  const judges = choose(readPage())
  if (options.list || judges.length === 0) return list(judges)
  let failed = 0
  let left = Number(options.budget)
  for (const judge of judges) {
    const minutes = readPage().get(judge.name)?.minutes ?? judge.minutes
    if (minutes > left) continue
    const run = await runJudge(judge)
    if (!run.hasPassed) failed++
    left -= run.minutes
    writeFileSync(PAGE, formatPage(new Map(readPage()).set(judge.name, run)))
    console.log(`${run.hasPassed ? '✔' : '✖'} ${judge.name} (${run.minutes} min): ${run.result}`)
  }
  return failed > 0 ? 1 : 0
}

function readPage(): Runs {
  return parsePage(existsSync(PAGE) ? readFileSync(PAGE, 'utf8') : '')
}

function choose(runs: Runs): readonly Judge[] {
  const unknown = names.filter((name) => !JUDGES.some((judge) => judge.name === name))
  if (unknown.length > 0) throw new Error(`No judge "${unknown.join('", "')}"; --list names them`)
  if (names.length > 0) return JUDGES.filter(({ name }) => names.includes(name))
  const history = readHistory() ?? []
  const ages = new Map(JUDGES.map((judge) => [judge, commitsSince(judge, runs, history)]))
  const byAge = JUDGES.toSorted((a, b) => compareAges(ages.get(b) ?? 0, ages.get(a) ?? 0))
  if (options.all || options.list) return byAge
  if (options.changed) return byAge.filter((judge) => ages.get(judge) !== 0)
  throw new Error('Name judges, or use --changed, --all or --list')
}

function compareAges(a: number, b: number): number {
  return a === b ? 0 : a - b
}

function list(judges: readonly Judge[]): number {
  const runs = readPage()
  for (const { name, minutes, needs, shows } of judges) {
    const { commit = '-', date = 'not run yet', hasPassed = true } = runs.get(name) ?? {}
    console.log(
      `${hasPassed ? ' ' : '✖'} ${name.padEnd(24)} ${commit.padEnd(9)} ${date}  ${minutes} min  ${needs.join(' ')}`,
    )
    console.log(`  ${shows}`)
  }
  return 0
}

async function runJudge({ name, command, needs, minutes: usual }: Judge): Promise<LastRun> {
  const before = readPage().get(name)?.lastGreen
  const commit = currentCommit()
  const started = performance.now()
  const problem = needs.map(provide).find((one) => one !== undefined)
  const { hasPassed, result } =
    problem === undefined ? await execute(name, command, usual * PATIENCE) : { hasPassed: false, result: problem }
  const minutes = Math.round((performance.now() - started) / 6_000) / 10
  const date = new Date().toISOString().slice(0, 10)
  return { commit, date, minutes, hasPassed, result, lastGreen: hasPassed ? commit : before }
}

/** Results are of commits, so the sources must be committed. */
function currentCommit(): string {
  const git = (...args: string[]): string => spawnSync('git', args, { cwd: ROOT, encoding: 'utf8' }).stdout.trim()
  const changed = git('status', '--porcelain', '--', 'src', 'test', 'package-lock.json')
  if (changed !== '') throw new Error(`Commit these first, so that the result has a commit:\n${changed}`)
  return git('rev-parse', '--short', 'HEAD')
}

/** Installs what is needed if it can; returns why it cannot. */
function provide(need: Need): string | undefined {
  if (need === 'root') return process.getuid?.() === 0 ? undefined : 'needs root'
  const requirement = REQUIREMENTS[need]
  if (requirement === undefined || isThere(requirement.program)) return undefined
  const { program, packages } = requirement
  const env = { ...process.env, DEBIAN_FRONTEND: 'noninteractive', RUNLEVEL: '1' }
  const apt = (...args: string[]): boolean =>
    spawnSync('apt-get', ['-qq', ...args], { stdio: ['ignore', 'ignore', 'inherit'], env }).status === 0
  const install = (): boolean => apt('install', '-y', '--no-install-recommends', ...packages)
  if (packages.length > 0) void (install() || (apt('update') && install()))
  return isThere(program) ? undefined : `${program} is not installed`
}

function isThere(program: string): boolean {
  if (program.includes('/')) return existsSync(program)
  const folders = [...(process.env['PATH'] ?? '').split(':'), '/usr/sbin', '/sbin']
  return folders.some((folder) => existsSync(join(folder, program)))
}

interface Outcome {
  readonly hasPassed: boolean
  readonly result: string
}

async function execute(name: string, command: readonly string[], limitMinutes: number): Promise<Outcome> {
  const folder = mkdtempSync(join(tmpdir(), `hyperkube-judge-${name}-`))
  const log = join(folder, 'log')
  const stream = createWriteStream(log)
  console.log(`… ${name}: ${command.join(' ')} (${log})`)
  const stop = AbortSignal.timeout(limitMinutes * 60_000)
  const child = spawn(process.execPath, command, { cwd: ROOT, stdio: ['ignore', 'pipe', 'pipe'], detached: true })
  using _group = stopGroup(child, stop)
  let output = ''
  child.stdout.on('data', (chunk: Buffer) => {
    output = (output + chunk.toString()).slice(-100_000)
    stream.write(chunk)
  })
  child.stderr.on('data', (chunk: Buffer) => stream.write(chunk))
  const code = await new Promise<number | null>((resolve) => {
    child.on('error', () => resolve(null))
    child.on('close', resolve)
  })
  stream.end()
  await finished(stream)
  const hasPassed = code === 0
  if (hasPassed) rmSync(folder, { recursive: true })
  const ending = stop.aborted ? `no end after ${limitMinutes} minutes` : `exit code ${code}`
  return { hasPassed, result: [...(hasPassed ? [] : [ending]), lastLine(output)].join('; ') }
}

/**
 * Ends a judge together with its programs, after its time limit or when this process is interrupted. The judge leads
 * a process group, so one signal reaches all of them.
 */
function stopGroup({ pid }: ChildProcess, stop: AbortSignal): Disposable {
  const kill = (): void => {
    if (pid !== undefined) process.kill(-pid, 'SIGTERM')
  }
  const interrupt = (): void => {
    kill()
    process.exit(1)
  }
  stop.addEventListener('abort', kill)
  const signals = ['SIGINT', 'SIGTERM', 'SIGHUP'] as const
  for (const name of signals) process.on(name, interrupt)
  return {
    [Symbol.dispose]() {
      stop.removeEventListener('abort', kill)
      for (const name of signals) process.off(name, interrupt)
    },
  }
}

/** The last line of the output with more than one word, in a form that fits into a cell of a Markdown table. */
function lastLine(output: string): string {
  const line = output.split('\n').findLast((one) => one.trim().includes(' ')) ?? ''
  return line.trim().replaceAll('|', '/').replaceAll('`', '').slice(0, RESULT_LENGTH)
}

process.exitCode = await main()
