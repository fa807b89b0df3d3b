/**
 * Encodes canonical objects as upstream's JSON. Keys are already in order, except for index-like keys, which JavaScript
 * puts first and Go sorts as text.
 */

import { stringifyJson } from '#lib/json/json.ts'
import { isIndexKey, quoteJson, writeJson, writeJsonInSteps } from '#lib/json/write.ts'
import type { Steps } from '#lib/time-slicing.ts'

import { apiVersionOf, type GroupVersionKind } from '../kind.ts'

export interface JsonEncoding {
  /** Two spaces per level, for people. */
  readonly pretty?: boolean
}

/** Upstream's indentation. */
const INDENT = 2

/** A key that may be an array index; a match inside a string value only costs time. */
const indexKey = /"\d+":/

/** The text without the trailing newline of an answer. */
export function encodeJson(value: unknown, { pretty = false }: JsonEncoding = {}): string {
  return ordered(value, stringifyJson(value, pretty ? { indent: INDENT } : {}), pretty)
}

/** The same on one line and in steps, for a large value. */
export function encodeJsonInSteps(value: unknown): Steps<string> {
  return writeJsonInSteps(value, { sortedKeys: 'index-like' })
}

function ordered(value: unknown, text: string, pretty = false): string {
  if (!indexKey.test(text) || !holdsIndexKey(value)) return text
  return writeJson(value, { sortedKeys: 'index-like', indent: pretty ? INDENT : 0 })
}

/**
 * The beginning of the JSON text of an object of that kind. List items of built-in kinds lack it: remove this many
 * characters and prepend `{`.
 */
export function typeMetaPrefix(gvk: GroupVersionKind): string {
  return `{"kind":${quoteJson(gvk.kind)},"apiVersion":${quoteJson(apiVersionOf(gvk))},`
}

/** The text of a list item, from the text of the object. `prefix` is from `typeMetaPrefix`. */
export function stripTypeMeta(text: string, prefix: string): string {
  return text.startsWith(prefix) ? `{${text.slice(prefix.length)}` : text
}

export interface JsonListParts {
  /** The kind of the list, `PodList`. */
  readonly gvk: GroupVersionKind
  /** The text of the list's metadata. */
  readonly metadata: string
  /** The texts of the items. */
  readonly items: readonly string[]
}

/** The text of a list from its parts; without items it has `[]`, never null. */
export function encodeJsonList({ gvk, metadata, items }: JsonListParts): string {
  return `${typeMetaPrefix(gvk)}"metadata":${metadata},"items":[${items.join(',')}]}`
}

function holdsIndexKey(value: unknown): boolean {
  const pending: unknown[] = [value]
  for (let next = pending.pop(); pending.length > 0 || next !== undefined; next = pending.pop()) {
    if (typeof next !== 'object' || next === null) continue
    // Such keys are always first.
    const [first] = Object.keys(next)
    if (!Array.isArray(next) && first !== undefined && isIndexKey(first)) return true
    for (const child of Object.values(next)) if (typeof child === 'object' && child !== null) pending.push(child)
  }
  return false
}
