/**
 * Runs the conformance data of cel-spec with our CEL engine: `node test/upstream/cel-spec.ts [id …]`; `--record` writes
 * cel-go's results for our own expressions (`cel-spec/expressions.ts`) for `cel-spec/answers.test.ts`. Features that
 * Kubernetes does not enable (messages, containers, some libraries) are counted by reason. All other cases must have
 * the expected value, type or failure, or cel-go's in Kubernetes' environment. cel-go also evaluates every case, and
 * its texts and costs must equal ours. Exits with 1 on a difference. Needs Go, once.
 */
import { spawnSync } from 'node:child_process'
import {
  copyFileSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  writeFileSync,
} from 'node:fs'
import { homedir, tmpdir } from 'node:os'
import { basename, join } from 'node:path'

import { describeType } from '#cel/type.ts'
import type { Value } from '#cel/value.ts'

import {
  bindingsOf,
  type Case,
  casesOf,
  flag,
  messages,
  NotApplicable,
  text,
  typeIn,
  valueIn,
  variablesOf,
} from './cel-spec/case.ts'
import { EXPRESSIONS } from './cel-spec/expressions.ts'
import { differences, evaluate, type Outcome } from './cel-spec/outcome.ts'
import { canonical, protoJson } from './cel-spec/proto-json.ts'
import { parseTextproto } from './cel-spec/textproto.ts'
import { UPSTREAM_VERSION } from './programs.ts'

/** The module version that this Kubernetes' cel-go uses. */
const MODULE = 'cel.dev/expr@v0.25.1'
const SOURCE = join(import.meta.dirname, 'cel-spec', 'judge', 'main.go')
const FOLDER = join(process.env['XDG_CACHE_HOME'] ?? join(homedir(), '.cache'), 'hyperkube', 'cel-spec')
const GO = { env: { ...process.env, GOFLAGS: '-mod=mod', CGO_ENABLED: '0' }, encoding: 'utf8' } as const
function dataFiles(): string[] {
  const done = spawnSync('go', ['mod', 'download', '-json', MODULE], { ...GO, cwd: tmpdir() })
  const { Dir: folder } = JSON.parse(done.stdout || '{}') as { Dir?: string }
  if (folder === undefined) throw new Error(`${MODULE} cannot be had: ${done.stderr}`)
  const data = join(folder, 'tests/simple/testdata')
  return readdirSync(data)
    .filter((name) => name.endsWith('.textproto'))
    .map((name) => join(data, name))
}

/** In the order of the cases, whose names are not all different. */
function judge(files: readonly string[]): Outcome[] {
  const program = join(FOLDER, 'judge')
  const copy = join(FOLDER, 'main.go')
  mkdirSync(FOLDER, { recursive: true })
  if (!existsSync(program) || readFileSync(copy, 'utf8') !== readFileSync(SOURCE, 'utf8')) {
    copyFileSync(SOURCE, copy)
    const apiserver = `k8s.io/apiserver ${UPSTREAM_VERSION.replace('v1.', 'v0.')}`
    const needs = [MODULE.replace('@', ' '), apiserver].map((one) => `require ${one}\n`).join('')
    writeFileSync(join(FOLDER, 'go.mod'), `module hyperkube.upstream/judge\ngo 1.26.0\n${needs}`)
    const { status, stderr } = spawnSync('go', ['build', '-o', program, '.'], { ...GO, cwd: FOLDER })
    if (status !== 0) throw new Error(`The judge was not built: ${stderr}`)
  }
  const { stdout } = spawnSync(program, files, { encoding: 'utf8', maxBuffer: 1 << 28 })
  return stdout
    .trim()
    .split('\n')
    .map((line) => JSON.parse(line) as Outcome)
}

/** Why no expression of Kubernetes can be the case; undefined when one can. */
function reasonAgainst(test: Case): string | undefined {
  if (flag(test, 'disable_check')) return 'not checked before it runs'
  if (flag(test, 'disable_macros')) return 'without macros'
  if (text(test.message['container']) !== '') return 'names within a container'
  if (test.message['unknown'] !== undefined || test.message['any_unknowns'] !== undefined)
    return 'values that are unknown'
  return LACKING.find(([pattern]) => pattern.test(test.expr))?.[1]
}

const LACKING: readonly (readonly [RegExp, string])[] = [
  [/\bmath\.\w/, 'the library of mathematics'],
  [/\bbase64\.\w/, 'the library of encodings'],
  [/\bcel\.(bind|block|index|iterVar|accuVar)\b/, 'the libraries of bindings and blocks'],
  [/\bproto\.(getExt|hasExt)\b/, 'extensions of messages'],
  [/\.reverse\(\)/, 'a later library of strings'],
  [/TestAllTypes|NestedTestAllTypes|GlobalEnum|cel\.expr\.conformance/, 'messages of its own'],
]

/** Whether it is what the data asks for. */
function isAsked({ message, ...test }: Case, { value, type, evalError, compileError, programError }: Outcome): boolean {
  const [typed] = messages(message['typed_result'])
  const failed = evalError ?? compileError ?? programError
  if (typed !== undefined) {
    const isType = type === describeType(typeIn(messages(typed['deduced_type'])[0]))
    const [result] = messages(typed['result'])
    return isType && (flag({ message, ...test }, 'check_only') || isSame(value, result && valueIn(result)))
  }
  if (message['eval_error'] !== undefined || message['any_eval_errors'] !== undefined) return failed !== undefined
  const [wanted] = messages(message['value'])
  return failed === undefined && isSame(value, wanted === undefined ? true : valueIn(wanted))
}

function isSame(found: unknown, wanted: Value | undefined): boolean {
  return wanted !== undefined && canonical(found) === canonical(protoJson(wanted))
}

interface Count {
  passed: number
  asCelGo: number
  failed: number
  readonly notApplicable: Map<string, number>
}

function tally(count: Count, test: Case, theirs: Outcome): void {
  const against = (why: string): unknown => count.notApplicable.set(why, (count.notApplicable.get(why) ?? 0) + 1)
  const reason = reasonAgainst(test)
  // The judge knows what is packed, since it reads the data with it.
  if (test.expr.includes('Any{type_url')) return void against(reason ?? 'packed messages')
  try {
    const own = evaluate(test.expr, variablesOf(test), () => bindingsOf(test))
    const wrong = differences(own, theirs)
    if (wrong.length > 0) {
      count.failed++
      print(`${test.id} ${JSON.stringify(test.expr)}\n  ${wrong.join('\n  ')}`)
    } else if (reason !== undefined) against(reason)
    else if (isAsked(test, own)) count.passed++
    else count.asCelGo++
  } catch (error) {
    if (!(error instanceof NotApplicable)) throw error
    against(reason ?? error.message)
  }
}

function print(line: string): void {
  process.stdout.write(`${line}\n`)
}

function main(wanted: readonly string[]): void {
  const files = dataFiles()
  const theirs = judge(files)
  const total: Count = { passed: 0, asCelGo: 0, failed: 0, notApplicable: new Map() }
  const lines: string[] = []
  for (const path of files) {
    const whole = parseTextproto(readFileSync(path, 'utf8'))
    const count: Count = { passed: 0, asCelGo: 0, failed: 0, notApplicable: total.notApplicable }
    const cases = casesOf(text(whole['name']), whole)
    for (const test of cases) {
      const theirOutcome = theirs.shift() ?? {}
      if (wanted.length === 0 || wanted.some((id) => test.id.includes(id))) tally(count, test, theirOutcome)
    }
    const { passed, asCelGo, failed } = count
    const rest = cases.length - passed - asCelGo - failed
    lines.push(
      `${basename(path)}: ${passed} passed, ${asCelGo} as cel-go has it, ${failed} failed, ${rest} not applicable`,
    )
    total.passed += passed
    total.asCelGo += asCelGo
    total.failed += failed
  }
  for (const line of lines) print(line)
  for (const [reason, count] of total.notApplicable) print(`not applicable, ${reason}: ${count}`)
  print(`in all ${total.passed} passed, ${total.asCelGo} as cel-go has it, ${total.failed} failed`)
  process.exitCode = total.failed === 0 ? 0 : 1
}

/** Writes cel-go's results of our own expressions, for `cel-spec/answers.test.ts`. */
function record(): void {
  const folder = mkdtempSync(join(tmpdir(), 'hyperkube-cel-'))
  const file = join(folder, 'expressions.textproto')
  const tests = EXPRESSIONS.map((expr) => `  test { expr: ${JSON.stringify(expr)} }\n`)
  writeFileSync(file, `name: "own"\nsection {\n${tests.join('')}}\n`)
  const answers = judge([file]).map((outcome, at) => ({ ...outcome, id: EXPRESSIONS[at] }))
  rmSync(folder, { recursive: true })
  const lines = answers.map((answer) => `  ${JSON.stringify(answer)}`)
  writeFileSync(join(import.meta.dirname, 'cel-spec', 'answers.json'), `[\n${lines.join(',\n')}\n]\n`)
  print(`${answers.length} answers recorded`)
}

if (process.argv[2] === '--record') record()
else main(process.argv.slice(2))
