/**
 * Runs a corpus of CEL cases, recorded from upstream's libraries, through our engine and prints what differs, by group.
 *
 *     node test/upstream/cel.ts <cases.jsonl> [group or id …]
 */
import { readFileSync } from 'node:fs'

import { type Compilation, createEnvironment } from '#cel/environment.ts'
import {
  BOOL,
  BYTES,
  type CelType,
  describeType,
  DOUBLE,
  DURATION,
  DYN,
  INT,
  listOf,
  mapOf,
  opaque,
  STRING,
  TIMESTAMP,
  UINT,
} from '#cel/type.ts'

import { evaluateCase, type Evaluated, type Variable } from './cel-values.ts'

interface Case {
  readonly id: string
  readonly kind: 'expr' | 'rule'
  readonly group: string
  readonly expr: string
  readonly vars?: Readonly<Record<string, Variable>>
  readonly compileOnly?: boolean
  readonly result: Expected
}

interface Expected extends Evaluated {
  readonly type?: string
  readonly estimatedCost?: { readonly min: string; readonly max: string }
  readonly compileError?: string
  readonly compileIssues?: readonly unknown[]
  /** What differed from run to run upstream, and is not compared. */
  readonly varies?: readonly string[]
}

const SIMPLE: Readonly<Record<string, CelType>> = {
  int: INT,
  uint: UINT,
  double: DOUBLE,
  bool: BOOL,
  string: STRING,
  bytes: BYTES,
  dyn: DYN,
  timestamp: TIMESTAMP,
  duration: DURATION,
  authorizer: opaque('kubernetes.authorization.Authorizer'),
}

/** `map(string,list(int))`; the key of a map is simple. */
function parseType(text: string): CelType {
  const list = /^list\((.*)\)$/.exec(text)?.[1]
  if (list !== undefined) return listOf(parseType(list))
  const [, key, value] = /^map\((\w+), *(.*)\)$/.exec(text) ?? []
  if (key !== undefined && value !== undefined) return mapOf(parseType(key), parseType(value))
  const simple = SIMPLE[text]
  if (simple === undefined) throw new Error(`Unknown type "${text}" in the corpus`)
  return simple
}

function compileCase({ expr, vars = {} }: Case): Compilation {
  const variables = Object.fromEntries(Object.entries(vars).map(([name, { type }]) => [name, parseType(type)]))
  return createEnvironment({ variables }).compile(expr)
}

/** What of ours corresponds to what was recorded. */
function resultOf(compilation: Compilation, { compileOnly, vars = {} }: Case): Expected {
  if (compilation.issues !== undefined) {
    return { compileError: compilation.report, compileIssues: compilation.issues }
  }
  const { min, max } = compilation.estimateCost()
  const evaluated = compileOnly === true ? {} : evaluateCase(compilation, vars)
  return { type: describeType(compilation.type), estimatedCost: { min: `${min}`, max: `${max}` }, ...evaluated }
}

/** With keys in order. */
function canonical(value: unknown): string {
  return JSON.stringify(value, (_, inner: unknown) =>
    inner !== null && typeof inner === 'object' && !Array.isArray(inner)
      ? Object.fromEntries(Object.entries(inner).sort(([a], [b]) => (a < b ? -1 : 1)))
      : inner,
  )
}

const FIELDS = [
  ...(['compileError', 'compileIssues', 'type', 'estimatedCost'] as const),
  ...(['programError', 'evalError', 'value', 'actualCost'] as const),
]

function differences(test: Case): readonly string[] {
  let ours: Expected
  try {
    ours = resultOf(compileCase(test), test)
  } catch (error) {
    return [`threw ${error instanceof Error ? error.stack : String(error)}`]
  }
  return FIELDS.filter((field) => test.result.varies?.includes(field) !== true)
    .filter((field) => canonical(ours[field]) !== canonical(test.result[field]))
    .map((field) => `${field}\n    ours     ${canonical(ours[field])}\n    upstream ${canonical(test.result[field])}`)
}

function print(line: string): void {
  process.stdout.write(`${line}\n`)
}

function main([path, ...wanted]: readonly string[]): void {
  if (path === undefined) throw new Error('Name the file of cases')
  const cases = readFileSync(path, 'utf8')
    .trim()
    .split('\n')
    .map((line) => JSON.parse(line) as Case)
    .filter(({ kind }) => kind === 'expr')
    .filter(({ group, id }) => wanted.length === 0 || wanted.includes(group) || wanted.includes(id))
  const groups = new Map<string, { all: number; same: number }>()
  for (const test of cases) {
    const found = differences(test)
    const count = groups.get(test.group) ?? { all: 0, same: 0 }
    groups.set(test.group, { all: count.all + 1, same: count.same + (found.length === 0 ? 1 : 0) })
    for (const difference of found) print(`${test.id} ${JSON.stringify(test.expr)}\n  ${difference}`)
  }
  for (const [group, { all, same }] of groups) print(`${group}: ${same} of ${all}`)
}

main(process.argv.slice(2))
