/**
 * From canonical form to the JSON text upstream writes. Canonical objects have their keys in the right order already,
 * with one exception no JavaScript object can help: keys that look like array indexes come first and by number, where
 * Go sorts them as text. Such keys are rare and only maps have them, so they are looked for in the finished text.
 */
import { compareText } from '#lib/go-text.ts'
import { quoteJson } from '#lib/json-write.ts'
import { stringifyJson } from '#lib/json.ts'

import { apiVersionOf, type GroupVersionKind } from '../kind.ts'

export interface JsonEncoding {
  /** Two spaces per level, as for people. */
  readonly pretty?: boolean
}

/** Upstream's indentation. */
const INDENT = 2

/** A key that may be an array index; inside a string value it is a false alarm that costs only time. */
const indexKey = /"\d+":/

/** The text without the newline that ends an answer. */
export function encodeJson(value: unknown, { pretty = false }: JsonEncoding = {}): string {
  const text = stringifyJson(value, pretty ? { indent: INDENT } : {})
  return indexKey.test(text) && holdsIndexKey(value) ? writeOrdered(value, pretty ? 0 : -1) : text
}

/**
 * What the JSON text of an object of that kind starts with. Items of lists of built-in kinds come without it: cut so
 * many characters off and put `{` in front.
 */
export function typeMetaPrefix(gvk: GroupVersionKind): string {
  return `{"kind":${quoteJson(gvk.kind)},"apiVersion":${quoteJson(apiVersionOf(gvk))},`
}

/** The text of an item of a list, given that of the object. `prefix` is from `typeMetaPrefix`. */
export function stripTypeMeta(text: string, prefix: string): string {
  return text.startsWith(prefix) ? `{${text.slice(prefix.length)}` : text
}

export interface JsonListParts {
  /** Of the list, `PodList`. */
  readonly gvk: GroupVersionKind
  /** Text of the list's metadata. */
  readonly metadata: string
  /** Texts of the items, as they are to appear. */
  readonly items: readonly string[]
}

/** The text of a list from ready-made parts; no items are `[]`, never null. */
export function encodeJsonList({ gvk, metadata, items }: JsonListParts): string {
  return `${typeMetaPrefix(gvk)}"metadata":${metadata},"items":[${items.join(',')}]}`
}

function isIndexKey(key: string): boolean {
  return /^(?:0|[1-9]\d*)$/.test(key)
}

function holdsIndexKey(value: unknown): boolean {
  const pending: unknown[] = [value]
  for (let next = pending.pop(); pending.length > 0 || next !== undefined; next = pending.pop()) {
    if (typeof next !== 'object' || next === null) continue
    // Such keys are always in front.
    const [first] = Object.keys(next)
    if (!Array.isArray(next) && first !== undefined && isIndexKey(first)) return true
    for (const child of Object.values(next)) if (typeof child === 'object' && child !== null) pending.push(child)
  }
  return false
}

/** Like the fast way, but with the keys of maps that need it sorted. `level` is -1 for text on one line. */
function writeOrdered(value: unknown, level: number): string {
  if (typeof value !== 'object' || value === null || 'toJSON' in value) return stringifyJson(value)
  const inner = level < 0 ? level : level + 1
  if (Array.isArray(value))
    return wrap(
      '[]',
      value.map((item) => writeOrdered(item, inner)),
      level,
    )
  const keys = Object.keys(value)
  if (keys[0] !== undefined && isIndexKey(keys[0])) keys.sort(compareText)
  const colon = level < 0 ? ':' : ': '
  const members = keys
    .map((key): [string, unknown] => [key, Reflect.get(value, key)])
    .filter(([, member]) => member !== undefined)
    .map(([key, member]) => `${quoteJson(key)}${colon}${writeOrdered(member, inner)}`)
  return wrap('{}', members, level)
}

function wrap(brackets: string, parts: readonly string[], level: number): string {
  if (parts.length === 0) return brackets
  const [open, close] = [brackets.charAt(0), brackets.charAt(1)]
  if (level < 0) return `${open}${parts.join(',')}${close}`
  const lead = `\n${' '.repeat(INDENT * (level + 1))}`
  return `${open}${lead}${parts.join(`,${lead}`)}\n${' '.repeat(INDENT * level)}${close}`
}
