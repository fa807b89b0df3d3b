/**
 * Repeats the tests of the gate while every core is busy, with new property-test cases in each round. A test that fails
 * once is a defect. `node test/reliability/main.ts suite --rounds 30 --seed 1364 [--only storage] [--busy 0]`
 */
import { type ChildProcess, spawn } from 'node:child_process'
import { text } from 'node:stream/consumers'

import { findTestFiles } from '../../../scripts/test-files.ts'
import type { FailedTest } from './failed-tests.ts'

export interface SuiteOptions {
  readonly rounds: number
  /** Of the property tests in the first round; each round has the next one. */
  readonly seed: number
  /** Processes that do nothing but turn, at the usual priority. */
  readonly busy: number
  /** Files whose path has this in it; empty for all. */
  readonly only: string
  readonly progress: (line: string) => void
}

const REPORTER = ['--test-reporter=./test/reliability/api/failed-tests.ts']

/** By test that failed, the seeds of the rounds in which it did. */
export async function runSuite({ rounds, seed, busy, only, progress }: SuiteOptions): Promise<Map<string, number[]>> {
  const { unit, servers, machine } = findTestFiles()
  const wanted = (files: readonly string[]): string[] => files.filter((file) => file.includes(only))
  const failures = new Map<string, number[]>()
  const turning = Array.from({ length: busy }, () => spawn(process.execPath, ['-e', 'for (;;);']))
  try {
    for (let round = 0; round < rounds; round++) {
      const failed = [
        ...(await runFiles(['--test-isolation=none', ...REPORTER, ...wanted(unit)], seed + round)),
        ...(await runFiles([...REPORTER, ...wanted([...servers, ...machine])], seed + round)),
      ]
      for (const { file, name, why } of failed) {
        const test = `${file}: ${name}`
        failures.set(test, [...(failures.get(test) ?? []), seed + round])
        progress(`seed ${seed + round}: ${test}\n${why}`)
      }
      progress(`round ${round + 1} of ${rounds}: ${failed.length} failed`)
    }
  } finally {
    for (const child of turning) child.kill('SIGKILL')
  }
  return failures
}

async function runFiles(args: readonly string[], seed: number): Promise<FailedTest[]> {
  if (!args.some((arg) => arg.endsWith('.test.ts'))) return []
  const child = spawn(process.execPath, ['--import', './scripts/property-seed.ts', '--test', ...args], {
    env: { ...process.env, PROPERTY_SEED: String(seed) },
    stdio: ['ignore', 'pipe', 'inherit'],
  })
  const [written, code] = await Promise.all([text(child.stdout), exitOf(child)])
  const failed = written
    .split('\n')
    .flatMap((line) => (line.startsWith('{"file":') ? [JSON.parse(line) as FailedTest] : []))
  // Another failure of the run, such as a file that cannot be loaded or a crashed process, counts as well.
  if (code !== 0 && failed.length === 0) failed.push({ file: '', name: `exit code ${code}`, why: written.slice(-2000) })
  return failed
}

function exitOf(child: ChildProcess): Promise<number | null> {
  return new Promise((resolve) => child.on('close', resolve))
}
