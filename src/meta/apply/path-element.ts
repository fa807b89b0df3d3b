/**
 * One step of a path to a field: a struct field or map key (`f:name`), a list item by its keys (`k:{"name":"web"}`), a
 * set member by its value (`v:"a"`), an index (`i:3`). The text form of FieldsV1 is also its identity here, so sets of
 * paths are trees of strings; what comes from outside is brought into the one form first.
 */
import { compareText, goNumber, goQuote, sortTexts } from '#lib/go-text.ts'
import { parseJson, stringifyJson } from '#lib/json.ts'

/** The text form, as FieldsV1 spells it. */
export type PathElement = string

export function fieldElement(name: string): PathElement {
  return `f:${name}`
}

export type ItemKey = readonly [name: string, value: unknown]

/** Keys in order of name, whatever order the schema lists them in. */
export function keyElement(keys: readonly ItemKey[]): PathElement {
  const sorted = keys.length === 1 ? keys : keys.toSorted(([a], [b]) => compareText(a, b))
  // Not by way of an object: that would put names that are numbers first.
  return `k:{${sorted.map(([name, value]) => `${stringifyJson(name)}:${valueText(value)}`).join(',')}}`
}

export function valueElement(value: unknown): PathElement {
  return `v:${valueText(value)}`
}

const plainText = /^[\w ./:-]*$/

function valueText(value: unknown): string {
  return typeof value === 'string' && plainText.test(value) ? `"${value}"` : stringifyJson(value, { sortedKeys: true })
}

const canonical = /^(?:k:\{"[A-Za-z]+":(?:"[\w ./:-]*"|[1-9]\d{0,14})\}|v:"[\w ./:-]*")$/

/**
 * The one form of an element that somebody else wrote. Undefined for a kind of element that a later version may know.
 * Throws when it is none at all.
 */
export function readElement(text: string): PathElement | undefined {
  if (text[1] !== ':') throw new TypeError(`Not a path element of FieldsV1: "${text}"`)
  switch (text[0]) {
    case 'f':
      return text
    case 'k':
      return canonical.test(text) ? text : keyElement(keysOf(text))
    case 'v':
      return canonical.test(text) ? text : valueElement(parseJson(text.slice(2)))
    case 'i':
      if (/^[+-]?\d+$/.test(text.slice(2))) return `i:${Number(text.slice(2))}`
      throw new TypeError(`Not an index: "${text}"`)
    default:
      return undefined
  }
}

function keysOf(element: PathElement): ItemKey[] {
  const keys = parseJson(element.slice(2))
  if (typeof keys === 'object' && keys !== null && !Array.isArray(keys)) return Object.entries(keys)
  throw new TypeError(`Not the keys of a list item: "${element}"`)
}

/** The name in a field element; undefined for the other kinds. */
export function fieldName(element: PathElement): string | undefined {
  return element.startsWith('f:') ? element.slice(2) : undefined
}

/** A path as error texts show it: `.spec.containers[name="web"].image`, `.metadata.finalizers[="x"]`. */
export function printPath(path: readonly PathElement[]): string {
  return path.map(printElement).join('')
}

function printElement(element: PathElement): string {
  const rest = element.slice(2)
  switch (element[0]) {
    case 'f':
      return `.${rest}`
    case 'v':
      return `[=${printValue(parseJson(rest))}]`
    case 'i':
      return `[${rest}]`
    default:
      return `[${keysOf(element)
        .map(([name, value]) => `${name}=${printValue(value)}`)
        .join(',')}]`
  }
}

function printValue(value: unknown): string {
  if (value === null) return 'null'
  if (typeof value === 'string') return goQuote(value)
  if (typeof value === 'number' || typeof value === 'bigint') return goNumber(value)
  if (Array.isArray(value)) return `[${value.map(printValue).join(',')}]`
  if (typeof value === 'boolean') return String(value)
  return Object.entries(value as object)
    .map(([name, part]) => `${name}=${printValue(part)}`)
    .join('')
}

const KIND_ORDER = 'fkvi'

/** The elements in the order of FieldsV1: fields, keys, values, indexes; each kind by what its elements hold. */
export function sortElements(elements: PathElement[]): PathElement[] {
  if (elements.length < 2) return elements
  if (elements.every((element) => element.startsWith('f:'))) return sortTexts(elements)
  if (elements.every((element) => element.startsWith('v:"'))) return sortByValue(elements)
  const held = new Map(elements.map((element) => [element, heldBy(element)]))
  return elements.sort((a, b) => {
    const kinds = KIND_ORDER.indexOf(a.charAt(0)) - KIND_ORDER.indexOf(b.charAt(0))
    return kinds === 0 ? compareLists(held.get(a) ?? [], held.get(b) ?? []) : kinds
  })
}

/** Values of a set that are all texts, nearly always so. */
function sortByValue(elements: readonly PathElement[]): PathElement[] {
  const byValue = new Map(elements.map((element) => [JSON.parse(element.slice(2)) as string, element]))
  return sortTexts([...byValue.keys()]).map((value) => byValue.get(value) as PathElement)
}

/** What an element is ordered by, as a list. */
function heldBy(element: PathElement): unknown[] {
  switch (element[0]) {
    case 'f':
      return [element.slice(2)]
    case 'k':
      return keysOf(element).flat()
    default:
      return [parseJson(element.slice(2))]
  }
}

function compareLists(a: readonly unknown[], b: readonly unknown[]): number {
  for (let at = 0; at < Math.min(a.length, b.length); at++) {
    const order = compareValues(a[at], b[at])
    if (order !== 0) return order
  }
  return a.length - b.length
}

const VALUE_ORDER = ['number', 'string', 'boolean', 'list', 'map', 'null'] as const

/** Numbers before text, text before booleans, then lists, maps and null; within a kind, by size. */
function compareValues(a: unknown, b: unknown): number {
  const [kind, other] = [valueKind(a), valueKind(b)]
  if (kind !== other) return VALUE_ORDER.indexOf(kind) - VALUE_ORDER.indexOf(other)
  if (kind === 'string') return compareText(a as string, b as string)
  if (kind === 'list') return compareLists(a as unknown[], b as unknown[])
  if (kind === 'map') return compareLists(Object.entries(a as object).flat(), Object.entries(b as object).flat())
  const [left, right] = [a as number, b as number]
  return left < right ? -1 : left > right ? 1 : 0
}

function valueKind(value: unknown): (typeof VALUE_ORDER)[number] {
  if (value === null) return 'null'
  if (Array.isArray(value)) return 'list'
  switch (typeof value) {
    case 'number':
    case 'bigint':
      return 'number'
    case 'string':
    case 'boolean':
      return typeof value as 'string' | 'boolean'
    default:
      return 'map'
  }
}
