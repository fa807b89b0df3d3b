/**
 * One element of a field path: a field (`f:name`), a keyed item (`k:{"name":"web"}`), a set member (`v:"a"`) or an
 * index (`i:3`). Its FieldsV1 text identifies it.
 */
import { compareText, goNumber, goQuote, sortTexts } from '#lib/go/text.ts'
import { parseJson, stringifyJson } from '#lib/json/json.ts'

/** The FieldsV1 text. */
export type PathElement = string

export function fieldElement(name: string): PathElement {
  return `f:${name}`
}

export type ItemKey = readonly [name: string, value: unknown]

/** Keys sorted by name, regardless of the schema. */
export function keyElement(keys: readonly ItemKey[]): PathElement {
  const sorted = keys.length === 1 ? keys : keys.toSorted(([a], [b]) => compareText(a, b))
  // Not through an object, which would put numeric names first.
  return `k:{${sorted.map(([name, value]) => `${stringifyJson(name)}:${valueText(value)}`).join(',')}}`
}

export function valueElement(value: unknown): PathElement {
  // One template: a list may have a hundred thousand items.
  return isPlain(value) ? `v:"${value}"` : `v:${valueText(value)}`
}

const plainText = /^[\w ./:-]*$/

function valueText(value: unknown): string {
  return isPlain(value) ? `"${value}"` : stringifyJson(value, { sortedKeys: true })
}

function isPlain(value: unknown): value is string {
  return typeof value === 'string' && plainText.test(value)
}

const canonical = /^(?:k:\{"[A-Za-z]+":(?:"[\w ./:-]*"|[1-9]\d{0,14})\}|v:"[\w ./:-]*")$/

/**
 * The canonical form of a given element. Undefined for an element type of a later version. Throws for an invalid text.
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

/** Keys that every parser reads alike. */
const PLAIN_KEYS = /^\{"[A-Za-z]+":(?:"[\w ./:-]*"|\d{1,15})(?:,"[A-Za-z]+":(?:"[\w ./:-]*"|\d{1,15}))*\}$/

function keysOf(element: PathElement): ItemKey[] {
  const text = element.slice(2)
  const keys: unknown = PLAIN_KEYS.test(text) ? JSON.parse(text) : parseJson(text)
  if (typeof keys === 'object' && keys !== null && !Array.isArray(keys)) return Object.entries(keys)
  throw new TypeError(`Not the keys of a list item: "${element}"`)
}

/** The name in a field element; undefined for other types. */
export function fieldName(element: PathElement): string | undefined {
  return element.startsWith('f:') ? element.slice(2) : undefined
}

/** A path in the form of error texts: `.spec.containers[name="web"].image`, `.metadata.finalizers[="x"]`. */
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

/** The elements in the order of FieldsV1: fields, keys, values, indexes; each type sorted by content. */
export function sortElements(elements: PathElement[]): PathElement[] {
  if (elements.length < 2) return elements
  if (elements.every((element) => element.startsWith('f:'))) return sortTexts(elements)
  if (elements.every((element) => element.startsWith('v:"'))) return sortByValue(elements)
  if (isSortedAsWritten(elements)) return elements.sort()
  const sortKeys = new Map(elements.map((element) => [element, sortKeyOf(element)]))
  return elements.sort((a, b) => {
    const kinds = KIND_ORDER.indexOf(a.charAt(0)) - KIND_ORDER.indexOf(b.charAt(0))
    return kinds === 0 ? compareLists(sortKeys.get(a) ?? [], sortKeys.get(b) ?? []) : kinds
  })
}

/** A list item with one text key without escapes, whose characters all sort after the closing quote. */
const KEYED_BY_TEXT = /^k:\{"[A-Za-z]+":"[#-[\]-~]*"\}$/

/** Whether all are such items, with the same key. */
function isSortedAsWritten(elements: readonly PathElement[]): boolean {
  const [first = ''] = elements
  const prefix = first.slice(0, first.indexOf(':', 2) + 1)
  return elements.every((element) => element.startsWith(prefix) && KEYED_BY_TEXT.test(element))
}

/** A text without escapes, whose characters all sort after the closing quote: the written form sorts like the text. */
const SORTED_AS_WRITTEN = /^v:"[#-[\]-~]*"$/

/** The common case of a set of texts. */
function sortByValue(elements: PathElement[]): PathElement[] {
  if (elements.every((element) => SORTED_AS_WRITTEN.test(element))) return elements.sort()
  const byValue = new Map(elements.map((element) => [JSON.parse(element.slice(2)) as string, element]))
  return sortTexts([...byValue.keys()]).map((value) => byValue.get(value) as PathElement)
}

/** The sort key of an element, as a list. */
function sortKeyOf(element: PathElement): unknown[] {
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

/** Numbers, text, booleans, lists, maps, null; within a type by value. */
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
