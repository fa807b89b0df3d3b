/** The judge of printers: a Go program on upstream's own packages, built once and kept in the user's cache folder. */
import { spawnSync } from 'node:child_process'
import { copyFileSync, existsSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import { homedir } from 'node:os'
import { join } from 'node:path'

import { UPSTREAM_VERSION } from '../programs.ts'

const SOURCE = join(import.meta.dirname, 'judge', 'main.go')
const FOLDER = join(process.env['XDG_CACHE_HOME'] ?? join(homedir(), '.cache'), 'hyperkube', 'kubectl-printers')
const GO = { env: { ...process.env, GOFLAGS: '-mod=mod', CGO_ENABLED: '0' }, encoding: 'utf8' } as const

export interface PrintCase {
  readonly printer: 'jsonpath' | 'template' | 'columns' | 'yaml' | 'json' | 'kyaml' | 'name' | 'table'
  readonly template?: string
  readonly strict?: boolean
  readonly asJson?: boolean
  readonly objects: readonly object[]
  readonly options?: object
}

export interface Outcome {
  readonly out: string
  readonly error?: string
}

/** What upstream makes of each case. `panic` is the error where it crashes. */
export function judge(cases: readonly PrintCase[]): Outcome[] {
  const program = join(FOLDER, 'judge')
  const copy = join(FOLDER, 'main.go')
  mkdirSync(FOLDER, { recursive: true })
  if (!existsSync(program) || readFileSync(copy, 'utf8') !== readFileSync(SOURCE, 'utf8')) build(program, copy)
  const input = cases.map((one) => JSON.stringify(one)).join('\n')
  const { stdout } = spawnSync(program, [], { encoding: 'utf8', input, maxBuffer: 1 << 29 })
  return stdout
    .trim()
    .split('\n')
    .map((line) => JSON.parse(line) as Outcome)
}

function build(program: string, copy: string): void {
  copyFileSync(SOURCE, copy)
  const version = UPSTREAM_VERSION.replace('v1.', 'v0.')
  const needs = ['apimachinery', 'cli-runtime', 'kubectl'].map((name) => `require k8s.io/${name} ${version}\n`).join('')
  writeFileSync(join(FOLDER, 'go.mod'), `module hyperkube.upstream/printers\ngo 1.26.0\n${needs}`)
  const { status, stderr } = spawnSync('go', ['build', '-o', program, '.'], { ...GO, cwd: FOLDER })
  if (status !== 0) throw new Error(`The judge was not built: ${stderr}`)
}
