/** FieldsV1: a field set as JSON. A path that is a member and has members below it is marked by `"."` among those. */
import { EMPTY_SET, type FieldSet, isEmptySet } from './field-set.ts'
import { type PathElement, readElement, sortElements } from './path-element.ts'

export interface FieldsV1 {
  readonly [element: string]: FieldsV1
}

/** What a set was decoded from, so that the many entries a request does not touch are not written anew. */
const sources = new WeakMap<FieldSet, FieldsV1>()

export function encodeFieldsV1(set: FieldSet): FieldsV1 {
  return sources.get(set) ?? encodeNode(set)
}

function encodeNode(set: FieldSet): FieldsV1 {
  const fields: Record<string, FieldsV1> = {}
  for (const element of sortElements([...set.members.union(set.children)])) {
    const child = set.children.get(element)
    const below = child === undefined ? {} : encodeNode(child)
    fields[element] = child !== undefined && set.members.has(element) ? { '.': {}, ...below } : below
  }
  return fields
}

/** Throws when the value is not FieldsV1. The set keeps the value, which must not change any more. */
export function decodeFieldsV1(fields: unknown): FieldSet {
  const reading: Reading = { isExact: true }
  const set = decodeNode(fields, reading)
  if (isEmptySet(set)) return EMPTY_SET
  if (reading.isExact) sources.set(set, fields as FieldsV1)
  return set
}

interface Reading {
  /** The set says all that was there, as it was there. */
  isExact: boolean
}

function decodeNode(fields: unknown, reading: Reading): FieldSet {
  if (fields === null) return EMPTY_SET
  const members = new Set<PathElement>()
  const children = new Map<PathElement, FieldSet>()
  for (const [text, below] of entriesOf(fields)) {
    const element = readElement(text)
    if (element !== text) reading.isExact = false
    if (element === undefined) continue
    const child = decodeNode(below, reading)
    if (isEmptySet(child)) {
      if (below === null || Object.keys(below as object).length > 0) reading.isExact = false
      members.add(element)
    } else {
      if (Object.hasOwn(below as object, '.')) members.add(element)
      children.set(element, child)
    }
  }
  return { members, children }
}

/** What is in a node, without the mark that its own path is a member. */
function entriesOf(fields: unknown): [text: string, below: unknown][] {
  if (typeof fields !== 'object' || fields === null || Array.isArray(fields))
    throw new TypeError('FieldsV1 must be an object of objects')
  return Object.entries(fields).filter(([text]) => text !== '.')
}
