/** Runs the reference of the printer comparison: a Go program on upstream's packages, built once and cached. */
import { spawnSync } from 'node:child_process'
import { join } from 'node:path'

import { ownGoProgram } from '../go-program.ts'
import { UPSTREAM_VERSION } from '../programs.ts'

const SOURCE = join(import.meta.dirname, 'judge', 'main.go')

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

/** Upstream's output for each case. `panic` is the error of a crash. */
export function judge(cases: readonly PrintCase[]): Outcome[] {
  const version = UPSTREAM_VERSION.replace('v1.', 'v0.')
  const needs = ['apimachinery', 'cli-runtime', 'kubectl'].map((name) => [`k8s.io/${name}`, version])
  const program = ownGoProgram('kubectl-printers', SOURCE, Object.fromEntries(needs) as Record<string, string>)
  const input = cases.map((one) => JSON.stringify(one)).join('\n')
  const { stdout } = spawnSync(program, [], { encoding: 'utf8', input, maxBuffer: 1 << 29 })
  return stdout
    .trim()
    .split('\n')
    .map((line) => JSON.parse(line) as Outcome)
}
