/**
 * Encodes and decodes FieldsV1, the JSON form of a field set. `"."` marks a path that is a member and has members below
 * it.
 */
import { runAtOnce, shouldYield, type Steps } from '#lib/time-slicing.ts'

import { EMPTY_SET, type FieldSet, isEmptySet } from './field-set.ts'
import { type PathElement, readElement, sortElements } from './path-element.ts'

export interface FieldsV1 {
  readonly [element: string]: FieldsV1
}

/** The source of a decoded set, so that unchanged entries are not encoded again. */
const sources = new WeakMap<FieldSet, FieldsV1>()

export function encodeFieldsV1(set: FieldSet): FieldsV1 {
  return runAtOnce(encodeFieldsInSteps(set))
}

export function* encodeFieldsInSteps(set: FieldSet): Steps<FieldsV1> {
  return sources.get(set) ?? (yield* encodeNode(set, {}))
}

/** Fills `fields`, which already contains the mark of the node itself. */
function* encodeNode(set: FieldSet, fields: Record<string, FieldsV1>): Steps<FieldsV1> {
  for (const element of sortElements([...set.members.union(set.children)])) {
    if (shouldYield()) yield
    const child = set.children.get(element)
    if (child === undefined) fields[element] = {}
    else fields[element] = yield* encodeNode(child, set.members.has(element) ? { '.': {} } : {})
  }
  return fields
}

/** Throws for a value that is not FieldsV1. The set keeps the value, which must not change any more. */
export function decodeFieldsV1(fields: unknown): FieldSet {
  const reading: Reading = { isExact: true }
  const set = decodeNode(fields, reading)
  if (isEmptySet(set)) return EMPTY_SET
  if (reading.isExact) sources.set(set, fields as FieldsV1)
  return set
}

interface Reading {
  /** True if the set represents the source completely. */
  isExact: boolean
}

function decodeNode(fields: unknown, reading: Reading): FieldSet {
  if (fields === null) return EMPTY_SET
  const members = new Set<PathElement>()
  const children = new Map<PathElement, FieldSet>()
  const nodes = nodesOf(fields)
  for (const text of Object.keys(nodes)) {
    const below = nodes[text]
    // The mark that the node's path is a member.
    if (text === '.') continue
    const element = readElement(text)
    if (element !== text) reading.isExact = false
    if (element === undefined) continue
    const child = isLeaf(below) ? EMPTY_SET : decodeNode(below, reading)
    if (isEmptySet(child)) {
      if (!isLeaf(below)) reading.isExact = false
      members.add(element)
    } else {
      if (Object.hasOwn(below as object, '.')) members.add(element)
      children.set(element, child)
    }
  }
  return { members, children }
}

function nodesOf(fields: unknown): Readonly<Record<string, unknown>> {
  if (typeof fields !== 'object' || fields === null || Array.isArray(fields))
    throw new TypeError('FieldsV1 must be an object of objects')
  return fields as Readonly<Record<string, unknown>>
}

/** Nearly all nodes are leaves, which need no new set. */
function isLeaf(node: unknown): boolean {
  if (typeof node !== 'object' || node === null || Array.isArray(node)) return false
  for (const _ in node) return false
  return true
}
