/**
 * Mutation test of the security checks of the management server and of the past: disables one check at a time in a copy of the sources,
 * and expects the test of that check to fail. `node test/reliability/management-defences.ts [TEXT]` runs only checks
 * against attacks with TEXT in their name.
 */
import { spawnSync } from 'node:child_process'
import { cpSync, mkdirSync, mkdtempSync, readFileSync, rmSync, symlinkSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'

import { CLUSTER_DEFENCES } from './management/cluster-defences.ts'
import { CONSOLE_DEFENCES } from './management/console-defences.ts'
import type { Defence } from './management/defence.ts'
import { PAST_DEFENCES } from './management/past-defences.ts'
import { PEOPLE_DEFENCES } from './management/people-defences.ts'

const ROOT = join(import.meta.dirname, '..', '..')
const PARTS = ['bin', 'package.json', 'scripts', 'src', 'test', 'tsconfig.json']
/** A test that waits for a defence which is gone must end, too. */
const TIMEOUT_MS = 180_000

const [only = ''] = process.argv.slice(2)
const all = [...CLUSTER_DEFENCES, ...PEOPLE_DEFENCES, ...CONSOLE_DEFENCES, ...PAST_DEFENCES]
const defences = all.filter(({ attack }) => attack.includes(only))
const copy = mkdtempSync(join(tmpdir(), 'management-defences-'))
try {
  copySources()
  const problems = [...baseline(), ...defences.flatMap((defence) => judge(defence))]
  process.stdout.write(
    problems.length === 0
      ? `Each of ${defences.length} defences is missed by its test\n`
      : `${problems.length} problems: ${problems.join('; ')}\n`,
  )
  process.exitCode = problems.length === 0 && defences.length > 0 ? 0 : 1
} finally {
  rmSync(copy, { recursive: true, force: true })
}

/** Files that git knows or would add: no results of other runs. */
function copySources(): void {
  const list = spawnSync('git', ['ls-files', '-co', '--exclude-standard', '--', ...PARTS], {
    cwd: ROOT,
    encoding: 'utf8',
  })
  for (const file of list.stdout.trim().split('\n')) {
    mkdirSync(dirname(join(copy, file)), { recursive: true })
    cpSync(join(ROOT, file), join(copy, file))
  }
  symlinkSync(join(ROOT, 'node_modules'), join(copy, 'node_modules'))
}

/** A test that fails anyway shows nothing. */
function baseline(): string[] {
  const files = [...new Set(defences.map(({ test: [file] }) => file))]
  return files.flatMap((file) => {
    const failed = failuresOf(file)
    process.stdout.write(`${failed.length === 0 ? 'ok' : 'NOT OK'} ${file} with all defences\n`)
    return failed.length === 0 ? [] : [`${file} fails with all defences (${failed.join(', ')})`]
  })
}

function judge({ attack, file, text, without, test: [testFile, name] }: Defence): string[] {
  const path = join(copy, file)
  const source = readFileSync(path, 'utf8')
  const count = source.split(text).length - 1
  if (count !== 1) return [report(attack, `${file} has the text of the defence ${count} times`)]
  writeFileSync(
    path,
    source.replace(text, () => without),
  )
  const failed = failuresOf(testFile)
  writeFileSync(path, source)
  const isMissed = name === '' ? failed.length > 0 : failed.includes(name)
  if (isMissed) process.stdout.write(`ok ${attack}: ${failed.length} tests fail\n`)
  return isMissed ? [] : [report(attack, `"${name}" of ${testFile} passes without the defence`)]
}

function report(attack: string, problem: string): string {
  process.stdout.write(`NOT OK ${attack}: ${problem}\n`)
  return `${attack}: ${problem}`
}

/** The names of the failed tests. A file that cannot be loaded has none: a mutation must leave a program. */
function failuresOf(file: string): string[] {
  const args = ['--import', './scripts/property-seed.ts', '--test', '--test-reporter=tap', '--test-timeout=60000', file]
  const run = spawnSync(process.execPath, args, {
    cwd: copy,
    encoding: 'utf8',
    timeout: TIMEOUT_MS,
    maxBuffer: 1 << 28,
  })
  const failed = [...run.stdout.matchAll(/^ *not ok \d+ - (.*)$/gm)].map(([, name = '']) => unescape(name))
  return failed.filter((name) => name !== file && !name.endsWith(file))
}

/** TAP escapes these. */
function unescape(name: string): string {
  return name.replaceAll(/\\([\\#])/g, '$1')
}
