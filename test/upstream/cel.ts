/**
 * Runs CEL expressions that were recorded from upstream's libraries: compile errors, type, cost estimate, value or
 * error, and actual cost. Prints each difference and the counts of each group; exits with 1 on a difference.
 *
 *     node test/upstream/cel.ts [--cases FILE] [group or id …]
 *
 * Each line of the file is one case. cel-rules.ts runs the cases about validation rules of custom resources.
 */
import { readFileSync } from 'node:fs'

import { type Compilation, type Compiled, createEnvironment } from '#cel/environment.ts'
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
import {
  CelError,
  Double,
  Failure,
  intOf,
  ListValue,
  MapValue,
  Optional,
  type Result,
  TypeValue,
  Uint,
  type Value,
} from '#cel/value.ts'
import { doubleText } from '#cel/values/conversion.ts'
import { listValue } from '#cel/values/list.ts'
import { mapOfEntries } from '#cel/values/map.ts'
import { showValue } from '#cel/values/show.ts'
import {
  Duration,
  durationSecondsText,
  parseGoDuration,
  parseTimestamp,
  Timestamp,
  timestampText,
} from '#cel/values/time.ts'

import { casesFromArguments } from './cel-cases.ts'

interface Case {
  readonly id: string
  readonly kind: 'expr' | 'rule'
  readonly group: string
  readonly expr: string
  readonly vars?: Readonly<Record<string, Variable>>
  /** Not evaluated. */
  readonly compileOnly?: boolean
  readonly result: Outcome & { readonly varies?: readonly (keyof Outcome)[] }
}

/** Without a value it is declared, but not set. */
interface Variable {
  readonly type: string
  readonly value?: unknown
}

interface Outcome {
  readonly type?: string
  readonly estimatedCost?: { readonly min: string; readonly max: string }
  readonly compileError?: string
  readonly compileIssues?: readonly unknown[]
  readonly programError?: string
  readonly evalError?: string
  readonly value?: unknown
  readonly actualCost?: number
}

const FIELDS: readonly (keyof Outcome)[] = [
  'compileError',
  'compileIssues',
  'type',
  'estimatedCost',
  'programError',
  'evalError',
  'value',
  'actualCost',
]

const COST_LIMIT = 1_000_000

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

/** A recorded value, by its type where the form does not say it. */
function decode(json: unknown, type: CelType): Value {
  if (json === null || typeof json === 'boolean') return json
  if (Array.isArray(json)) return listValue(json.map((one) => decode(one, type.kind === 'list' ? type.element : DYN)))
  if (typeof json === 'object') return decodeObject(json, type)
  switch (type.kind) {
    case 'int':
      return intOf(BigInt(json as string | number))
    case 'uint':
      return new Uint(BigInt(json as string | number))
    case 'double':
      return new Double(Number(json))
    case 'bytes':
      return new Uint8Array(Buffer.from(json as string, 'base64'))
    case 'timestamp':
      return parseTimestamp(json as string) as Timestamp
    case 'duration':
      return parseGoDuration(json as string) as Duration
    default:
      return typeof json === 'number' && !Number.isInteger(json) ? new Double(json) : (json as string | number)
  }
}

function decodeObject(json: object, type: CelType): Value {
  if ('$double' in json) return new Double(Number(json.$double))
  const [key, value] = type.kind === 'map' ? [type.key, type.value] : [STRING, DYN]
  return mapOfEntries(Object.entries(json).map(([name, one]) => [decode(name, key), decode(one, value)]))
}

/** In the form of the corpus. */
function encode(value: Result): unknown {
  if (value === null || typeof value === 'boolean' || typeof value === 'string') return value
  if (typeof value === 'number' || typeof value === 'bigint') return { int: `${value}` }
  if (value instanceof Failure) throw new CelError(value.message)
  if (value instanceof Double) return { double: Number.isFinite(value.value) ? doubleText(value) : `${value.value}` }
  if (value instanceof Uint) return { uint: `${value.value}` }
  if (value instanceof Uint8Array) return { bytes: Buffer.from(value).toString('base64') }
  if (value instanceof ListValue) return Array.from({ length: value.size }, (_, at) => encode(value.at(at)))
  return value instanceof MapValue ? encodeMap(value) : encodeOther(value)
}

function encodeMap(map: MapValue): unknown {
  const entries = Array.from(map.keys(), (key) => [encode(key), encode(map.get(key) as Result)])
  return { map: entries.sort(([a], [b]) => (canonical(a) < canonical(b) ? -1 : 1)) }
}

const OTHERS: Readonly<Record<string, string>> = {
  'kubernetes.Quantity': 'quantity',
  'kubernetes.URL': 'url',
  'kubernetes.Semver': 'semver',
  'kubernetes.NamedFormat': 'format',
  'net.IP': 'ip',
  'net.CIDR': 'cidr',
}

function encodeOther(value: Exclude<Value, null | boolean | string | number | bigint>): unknown {
  if (value instanceof Timestamp) return { timestamp: timestampText(value) }
  if (value instanceof Duration) return { duration: durationSecondsText(value) }
  if (value instanceof TypeValue) return { type: value.name }
  if (value instanceof Optional) return { optional: value.value === undefined ? [] : [encode(value.value)] }
  const name = 'typeName' in value ? value.typeName : ''
  return { [OTHERS[name] ?? name]: showValue(value) }
}

function compile({ expr, vars = {} }: Case): Compilation {
  const variables = Object.fromEntries(Object.entries(vars).map(([name, { type }]) => [name, parseType(type)]))
  return createEnvironment({ variables }).compile(expr)
}

function run(test: Case): Outcome {
  const compiled = compile(test)
  if (compiled.issues !== undefined) return { compileError: compiled.report, compileIssues: compiled.issues }
  const { min, max } = compiled.estimateCost()
  const known = { type: describeType(compiled.type), estimatedCost: { min: `${min}`, max: `${max}` } }
  return test.compileOnly ? known : { ...known, ...evaluate(compiled, test) }
}

function evaluate(compiled: Compiled, { vars = {} }: Case): Outcome {
  const budget = { limit: COST_LIMIT, spent: 0 }
  const program = attempt(() => compiled.program())
  if (typeof program === 'string') return { programError: program }
  const set = Object.entries(vars).filter(([, { value }]) => value !== undefined)
  const variables = Object.fromEntries(set.map(([name, { type, value }]) => [name, decode(value, parseType(type))]))
  const value = attempt(() => ({ encoded: encode(program.evaluate(variables, budget)) }))
  return { ...(typeof value === 'string' ? { evalError: value } : { value: value.encoded }), actualCost: budget.spent }
}

/** The result, or the message of the error. */
function attempt<T extends object>(action: () => T): T | string {
  try {
    return action()
  } catch (error) {
    if (error instanceof CelError) return error.message
    throw error
  }
}

/** With keys in order. */
function canonical(value: unknown): string {
  return JSON.stringify(value, (_, inner: unknown) =>
    inner !== null && typeof inner === 'object' && !Array.isArray(inner)
      ? Object.fromEntries(Object.entries(inner).sort(([a], [b]) => (a < b ? -1 : 1)))
      : inner,
  )
}

function differences(test: Case): readonly string[] {
  let ours: Outcome
  try {
    ours = run(test)
  } catch (error) {
    return [`threw ${error instanceof Error ? error.stack : String(error)}`]
  }
  return FIELDS.filter((field) => !test.result.varies?.includes(field))
    .filter((field) => canonical(ours[field]) !== canonical(test.result[field]))
    .map((field) => `${field}\n    ours     ${canonical(ours[field])}\n    upstream ${canonical(test.result[field])}`)
}

function print(line: string): void {
  process.stdout.write(`${line}\n`)
}

function main(): boolean {
  const { path, wanted } = casesFromArguments()
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
  const same = groups.values().reduce((sum, count) => sum + count.same, 0)
  print(`${same} of ${cases.length} cases have upstream's result`)
  return same === cases.length && same > 0
}

process.exitCode = main() ? 0 : 1
