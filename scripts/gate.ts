/**
 * The gate: every check that must pass before a change lands. `check` runs static checks and unit tests, `test` adds
 * the tests that start servers, disks and processes. Static checks run first because they fail fastest; Node's test
 * runner runs last, so that its summary ends the output.
 */
import { spawn } from 'node:child_process'
import { mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join, relative } from 'node:path'

import { describeOverdueJudges } from '../test/judges/age.ts'
import { ensureConsolePage } from './console-bundle.ts'
import { avoidableSkips, canInstallPackages, parseSkips } from './skipped-tests.ts'
import { findTestFiles } from './test-files.ts'

const ROOT = join(import.meta.dirname, '..')
const BIN = join(ROOT, 'node_modules', '.bin')

interface Step {
  readonly name: string
  readonly command: readonly string[]
}

/** Checks that read and never write, so they may run side by side. */
const STATIC_CHECKS: readonly Step[] = [
  { name: 'format (npm run format repairs it)', command: [join(BIN, 'oxfmt'), '--check'] },
  { name: 'types', command: [join(BIN, 'tsc'), '-p', '.'] },
  { name: 'types of the console', command: [join(BIN, 'tsc'), '-p', 'src/console'] },
  { name: 'lint', command: [join(BIN, 'oxlint'), '--deny-warnings'] },
  { name: 'dead code', command: [join(BIN, 'knip'), '--no-progress'] },
  { name: 'generated files (npm run gen repairs them)', command: [process.execPath, 'scripts/gen-apis.ts', '--check'] },
]

/** Every run draws the same cases: see the file. */
const NODE = [process.execPath, '--import', './scripts/property-seed.ts']

const SERVERS_AT_ONCE = 2

async function main(mode: string): Promise<number> {
  for (const line of describeOverdueJudges()) console.log(line)
  const { unit, servers, machine } = findTestFiles()
  if (mode === 'check') {
    const unitTests = [...NODE, '--test', '--test-isolation=none', '--test-reporter=dot', ...unit]
    const results = await Promise.all([...STATIC_CHECKS, { name: 'unit tests', command: unitTests }].map(runQuietly))
    return results.includes(false) ? 1 : 0
  }
  if (mode !== 'test') throw new Error(`Unknown gate "${mode}"; use check or test`)
  const results = await Promise.all(STATIC_CHECKS.map(runQuietly))
  if (results.includes(false)) return 1
  const reports = mkdtempSync(join(tmpdir(), 'hyperkube-gate-'))
  try {
    const tests = (reporter: string, name: string, options: readonly string[], files: readonly string[]): string[] => [
      ...NODE,
      '--test',
      `--test-reporter=${reporter}`,
      '--test-reporter-destination=stdout',
      '--test-reporter=./scripts/skipped-tests.ts',
      `--test-reporter-destination=${join(reports, name)}`,
      ...options,
      ...files,
    ]
    // Several test files would build it at the same time.
    await ensureConsolePage()
    const steps = [
      tests('dot', 'unit', ['--test-isolation=none'], unit),
      // They wait for each other's answers most of the time; two of them leave no core without work.
      tests('spec', 'servers', [`--test-concurrency=${SERVERS_AT_ONCE}`], servers),
      tests('spec', 'machine', ['--test-concurrency=1'], machine),
    ]
    for (const step of steps) {
      const code = await runLoudly(step)
      if (code !== 0) return code
    }
    return reportSkips(['unit', 'servers', 'machine'].map((name) => join(reports, name)))
  } finally {
    rmSync(reports, { recursive: true })
  }
}

/** Names the skipped tests. The exit code is 1 if set-up could have installed what one of them needs. */
function reportSkips(files: readonly string[]): number {
  const skipped = files.flatMap((file) => parseSkips(readFileSync(file, 'utf8')))
  const failing = canInstallPackages() ? avoidableSkips(skipped) : []
  for (const test of skipped) {
    const verdict = failing.includes(test) ? '✖ skipped, but set-up could have installed what it needs' : '﹣ skipped'
    console.log(`${verdict}: ${test.name} (${test.reason || 'no reason'}) in ${relative(ROOT, test.file)}`)
  }
  return failing.length > 0 ? 1 : 0
}

/** Runs a step and prints one line; its output only when it fails. */
async function runQuietly({ name, command }: Step): Promise<boolean> {
  const started = performance.now()
  const [file = '', ...args] = command
  const child = spawn(file, args, { cwd: ROOT, stdio: ['ignore', 'pipe', 'pipe'] })
  const output: Buffer[] = []
  child.stdout.on('data', (chunk: Buffer) => output.push(chunk))
  child.stderr.on('data', (chunk: Buffer) => output.push(chunk))
  const code = await exitOf(child)
  const seconds = ((performance.now() - started) / 1000).toFixed(1)
  console.log(`${code === 0 ? '✔' : '✖'} ${name} (${seconds} s)`)
  if (code !== 0) console.log(Buffer.concat(output).toString())
  return code === 0
}

function runLoudly([file = '', ...args]: readonly string[]): Promise<number> {
  return exitOf(spawn(file, args, { cwd: ROOT, stdio: ['ignore', 'inherit', 'inherit'] }))
}

function exitOf(child: ReturnType<typeof spawn>): Promise<number> {
  return new Promise((resolve, reject) => {
    child.on('error', reject)
    child.on('close', (code) => resolve(code ?? 1))
  })
}

process.exitCode = await main(process.argv[2] ?? '')
