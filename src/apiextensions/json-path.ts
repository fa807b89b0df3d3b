/**
 * JSON paths of printer columns: `.spec.replicas`, `.status.conditions[?(@.type=="Ready")].status`, `.items[*].name`,
 * `.a['b.c'][-1]`. A path is compiled once into steps; each step maps values to the next values. Missing values yield
 * no result.
 */
import { isJsonObject, type JsonValue } from '#lib/json/value.ts'

/** The values of a path, in order. */
export type Path = (value: JsonValue) => readonly JsonValue[]

type Step = (value: JsonValue) => readonly JsonValue[]

/** Undefined for an invalid path. */
export function compilePath(text: string): Path | undefined {
  const reader = new Reader(text)
  const steps = readSteps(reader)
  if (steps === undefined || !reader.isAtEnd) return undefined
  return (value) => walk(value, steps)
}

/** A column shows the first result, so the number of results is limited. */
const MAX_RESULTS = 1000

function walk(value: JsonValue, steps: readonly Step[]): readonly JsonValue[] {
  let found: readonly JsonValue[] = [value]
  for (const step of steps) {
    found = found.flatMap(step).slice(0, MAX_RESULTS)
    if (found.length === 0) return found
  }
  return found
}

class Reader {
  readonly #text: string
  at = 0

  constructor(text: string) {
    this.#text = text
  }

  get isAtEnd(): boolean {
    return this.at >= this.#text.length
  }

  /** The match of a sticky expression at this position, which is consumed. */
  take(pattern: RegExp): RegExpExecArray | undefined {
    pattern.lastIndex = this.at
    const match = pattern.exec(this.#text)
    if (match === null) return undefined
    this.at += match[0].length
    return match
  }
}

const FIELD = /\.([^\s.[\]{}()'"*?@$|,:=<>!\\]+|\\.)+/y
const EVERY_FIELD = /\.\*|\[\s*\*\s*\]/y
const DEEP = /\.\.(?=[^.\s])/y
const QUOTED = /\[\s*(?:'((?:[^'\\]|\\.)*)'|"((?:[^"\\]|\\.)*)")\s*\]/y
const SLICE = /\[\s*(-?\d+)?\s*(:\s*(-?\d+)?\s*(?::\s*(-?\d+)?\s*)?)?\]/y
const FILTER = /\[\s*\?\s*\(\s*/y
const FILTER_END = /\s*\)\s*\]/y
const OPERATOR = /\s*(==|!=|<=|>=|<|>)\s*/y
const CURRENT = /@/y
const LITERAL = /"((?:[^"\\]|\\.)*)"|'((?:[^'\\]|\\.)*)'|(-?\d+(?:\.\d+)?)|(true|false)/y

/** Undefined for an invalid step. */
function readSteps(reader: Reader): Step[] | undefined {
  const steps: Step[] = []
  for (;;) {
    const step = readStep(reader)
    if (step === undefined) return steps
    if (step === 'bad') return undefined
    steps.push(step)
  }
}

function readStep(reader: Reader): Step | 'bad' | undefined {
  const deep = reader.take(DEEP)
  if (deep !== undefined) {
    reader.at--
    const next = readStep(reader)
    return typeof next === 'function' ? (value) => descendants(value).flatMap(next) : 'bad'
  }
  if (reader.take(EVERY_FIELD) !== undefined) return members
  const field = reader.take(FIELD)
  if (field !== undefined) return member(field[0].slice(1).replaceAll(/\\(.)/g, '$1'))
  const quoted = reader.take(QUOTED)
  if (quoted !== undefined) return member((quoted[1] ?? quoted[2] ?? '').replaceAll(/\\(.)/g, '$1'))
  if (reader.take(FILTER) !== undefined) return readFilter(reader) ?? 'bad'
  const slice = reader.take(SLICE)
  return slice === undefined ? undefined : (readSlice(slice) ?? 'bad')
}

function member(name: string): Step {
  return (value) => (isJsonObject(value) && Object.hasOwn(value, name) ? [value[name] as JsonValue] : [])
}

function members(value: JsonValue): readonly JsonValue[] {
  if (Array.isArray(value)) return value
  return isJsonObject(value) ? Object.values(value) : []
}

/** The value and all its descendants. */
function descendants(value: JsonValue): readonly JsonValue[] {
  const found: JsonValue[] = [value]
  for (let at = 0; at < found.length && found.length < MAX_RESULTS; at++) {
    found.push(...members(found[at] as JsonValue).slice(0, MAX_RESULTS))
  }
  return found
}

function readSlice([, from, colon, to, step]: RegExpExecArray): Step | undefined {
  if (colon === undefined) {
    if (from === undefined) return undefined
    const index = Number(from)
    return (value) => {
      const item = Array.isArray(value) ? value.at(index) : undefined
      return item === undefined ? [] : [item]
    }
  }
  const by = Math.max(1, Number(step ?? 1))
  return (value) => {
    if (!Array.isArray(value)) return []
    const some = value.slice(from === undefined ? 0 : Number(from), to === undefined ? undefined : Number(to))
    return by === 1 ? some : some.filter((_, at) => at % by === 0)
  }
}

type Operand = (item: JsonValue) => JsonValue | undefined

function readFilter(reader: Reader): Step | undefined {
  const left = readOperand(reader)
  const operator = reader.take(OPERATOR)?.[1]
  const right = operator === undefined ? undefined : readOperand(reader)
  if (left === undefined || reader.take(FILTER_END) === undefined) return undefined
  if (operator !== undefined && right === undefined) return undefined
  return (value) =>
    members(value).filter((item) => {
      const one = left(item)
      if (operator === undefined || right === undefined) return one !== undefined
      const other = right(item)
      return one !== undefined && other !== undefined && compare(one, operator, other)
    })
}

function readOperand(reader: Reader): Operand | undefined {
  if (reader.take(CURRENT) !== undefined) {
    const steps = readSteps(reader)
    return steps && ((item) => walk(item, steps)[0])
  }
  const literal = reader.take(LITERAL)
  if (literal === undefined) return undefined
  const [, double, single, number, truth] = literal
  const text = double ?? single
  const value = text === undefined ? (number === undefined ? truth === 'true' : Number(number)) : text
  return () => value
}

function compare(one: JsonValue, operator: string, other: JsonValue): boolean {
  if (typeof one !== typeof other || one === null || other === null) return operator === '!='
  switch (operator) {
    case '==':
      return one === other
    case '!=':
      return one !== other
    case '<':
      return one < other
    case '<=':
      return one <= other
    case '>':
      return one > other
    default:
      return one >= other
  }
}
