/**
 * Evaluates a JSONPath template: the values of each action in order. A step maps values to the next values. `range`
 * repeats the following nodes for each value until its `end`.
 */
import { isJsonObject } from '#lib/json/value.ts'

import { goShow, goTypeName } from '../templates/go-value.ts'
import { compareValues } from './compare.ts'
import { JsonPathError, type ListNode, type Node } from './parse.ts'

/** The result of a step. A failed step may still have values, which filters count. */
interface StepResult {
  readonly values: readonly unknown[]
  readonly error?: string
}

interface Run {
  readonly allowMissingKeys: boolean
  /** Started ranges whose loop has not begun. */
  begun: number
  inside: number
  /** Ends that have not left their loop yet. */
  ended: number
  lastEnd: number
}

export interface EvaluateOptions {
  /** A missing key yields no result instead of an error. */
  readonly allowMissingKeys: boolean
}

/** The values of each action and text in order. Throws JsonPathError. */
export function evaluate(template: ListNode, data: unknown, options: EvaluateOptions): (readonly unknown[])[] {
  const run: Run = { ...options, begun: 0, inside: 0, ended: 0, lastEnd: -1 }
  return evaluateFrom(run, template.nodes, 0, data)
}

function evaluateFrom(run: Run, nodes: readonly Node[], from: number, data: unknown): (readonly unknown[])[] {
  const all: (readonly unknown[])[] = []
  for (let at = from; at < nodes.length; at++) {
    const { values, error } = walk(run, [data], nodes[at] as Node)
    if (error !== undefined) throw new JsonPathError(error)
    if (run.ended > 0 && run.ended <= run.inside) {
      run.ended--
      run.lastEnd = at
      break
    }
    if (run.begun === 0) {
      all.push(values)
      continue
    }
    run.begun--
    run.inside++
    // Without values the loop runs once, to find its end.
    if (values.length === 0) evaluateFrom(run, nodes, at + 1, undefined)
    for (const value of values) all.push(...evaluateFrom(run, nodes, at + 1, value))
    run.inside--
    if (run.lastEnd > at) at = run.lastEnd
  }
  return all
}

function walk(run: Run, input: readonly unknown[], node: Node): StepResult {
  switch (node.type) {
    case 'text':
      return { values: [node.text] }
    case 'number':
    case 'bool':
      return { values: input.map(() => node.value) }
    case 'list':
      return walkList(run, input, node)
    case 'field':
      return walkField(run, input, node.name)
    case 'array':
      return walkArray(input, node.bounds)
    case 'filter':
      return walkFilter(run, input, node)
    case 'wildcard':
      return { values: input.flatMap(contentsOf) }
    case 'recursive':
      return { values: input.flatMap(descend) }
    case 'union':
      return walkUnion(run, input, node.lists)
    case 'identifier':
      return walkIdentifier(run, input, node.name)
  }
}

function walkList(run: Run, input: readonly unknown[], { nodes }: ListNode): StepResult {
  let found: StepResult = { values: input }
  for (const node of nodes) {
    found = walk(run, found.values, node)
    if (found.error !== undefined) return found
  }
  return found
}

function walkIdentifier(run: Run, input: readonly unknown[], name: string): StepResult {
  if (name === 'range') {
    run.begun++
    return { values: input }
  }
  if (name !== 'end') return { values: input, error: `unrecognized identifier ${name}` }
  if (run.inside === 0) return { values: [], error: 'not in range, nothing to end' }
  run.ended++
  return { values: [] }
}

function walkField(run: Run, input: readonly unknown[], name: string): StepResult {
  const holders = input.filter((value) => isJsonObject(value) && Object.hasOwn(value, name))
  const values = holders.map((value) => (value as Record<string, unknown>)[name])
  const isMissing = values.length === 0 && input.length > 0 && !run.allowMissingKeys
  return isMissing ? { values, error: `${name} is not found` } : { values }
}

type Bounds = Extract<Node, { type: 'array' }>['bounds']

function walkArray(input: readonly unknown[], bounds: Bounds): StepResult {
  const values: unknown[] = []
  for (const value of input) {
    if (value === null || value === undefined) continue
    if (!Array.isArray(value)) return { values: input, error: `${goTypeName(value)} is not array or slice` }
    const { start, end } = rangeOf(bounds, value.length)
    if (start === end) return { values }
    const error = outOfBounds(start, end, value.length)
    if (error !== undefined) return { values: input, error }
    const [, , step] = bounds
    if (step.known && step.value <= 0) return { values: input, error: 'step must be > 0' }
    for (let at = start; at < end; at += step.known ? step.value : 1) values.push(value[at])
  }
  return { values }
}

function rangeOf([first, second]: Bounds, length: number): { start: number; end: number } {
  const start = first.known && first.value < 0 ? first.value + length : first.value
  const last = second.known ? second.value : length
  const end = last < 0 || (last === 0 && second.derived === true) ? last + length : last
  return { start, end }
}

function outOfBounds(start: number, end: number, length: number): string | undefined {
  const about = (index: number): string => `array index out of bounds: index ${index}, length ${length}`
  if (start >= length || start < 0) return about(start)
  if (end > length || end < 0) return about(end - 1)
  return start > end ? `starting index ${start} is greater than ending index ${end}` : undefined
}

function walkUnion(run: Run, input: readonly unknown[], lists: readonly ListNode[]): StepResult {
  const values: unknown[] = []
  for (const list of lists) {
    const found = walkList(run, input, list)
    if (found.error !== undefined) return { values: input, error: found.error }
    values.push(...found.values)
  }
  return { values }
}

/** Members of a map, items of a list, bytes of a text. */
function contentsOf(value: unknown): readonly unknown[] {
  if (typeof value === 'string') return [...Buffer.from(value)]
  if (Array.isArray(value)) return value
  return isJsonObject(value) ? Object.values(value) : []
}

/** All maps and lists, each before its contents. */
function descend(value: unknown): unknown[] {
  const contents = contentsOf(value)
  if (contents.length === 0) return []
  return typeof value === 'string' ? [value] : [value, ...contents.flatMap(descend)]
}

type FilterNode = Extract<Node, { type: 'filter' }>

function walkFilter(run: Run, input: readonly unknown[], node: FilterNode): StepResult {
  const values: unknown[] = []
  for (const value of input) {
    if (!Array.isArray(value)) {
      return { values: input, error: `${goShow(value)} is not array or slice and cannot be filtered` }
    }
    for (const item of value) {
      const passes = passesFilter(run, item, node)
      if (typeof passes === 'string') return { values: input, error: passes }
      if (passes) values.push(item)
    }
  }
  return { values }
}

/** The text of an error if the value cannot be printed. */
function passesFilter(run: Run, item: unknown, { left, operator, right }: FilterNode): boolean | string {
  const lefts = walkList(run, [item], left)
  if (operator === 'exists') return lefts.values.length > 0
  if (lefts.error !== undefined) return lefts.error
  if (lefts.values.length === 0) return false
  if (lefts.values.length > 1) return 'can only compare one element at a time'
  const rights = walkList(run, [item], right)
  if (rights.error !== undefined) return rights.error
  if (rights.values.length === 0) return false
  if (rights.values.length > 1) return 'can only compare one element at a time'
  try {
    return compareValues(lefts.values[0], operator, rights.values[0]) ?? `unrecognized filter operator ${operator}`
  } catch (error) {
    if (error instanceof JsonPathError) return error.message
    throw error
  }
}
