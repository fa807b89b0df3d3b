/** The generic describer: prints all fields of any object with readable names. */
import { isJsonObject, type JsonObject, type JsonValue } from '#lib/json/value.ts'
import type { KubeObject } from '#meta/object.ts'

import { goShow, sortedKeys } from '../templates/go-value.ts'
import { type DescribedKind, describes } from './describer.ts'
import { cells, type Part, type Value } from './rows.ts'
import { head } from './sections.ts'

/** Fields that are printed first, and fields that are omitted. */
const SKIPPED = new Set([
  '.metadata.managedFields',
  '.metadata.name',
  '.metadata.namespace',
  '.metadata.labels',
  '.metadata.annotations',
])

export const ANY_KIND: DescribedKind = describes<KubeObject>('', (object) => [
  ...head(object),
  ...fieldRows(object as unknown as JsonObject, ''),
])

function fieldRows(content: JsonObject, prefix: string): Part[] {
  return sortedKeys(content)
    .map((field) => ({ field, path: `${prefix}.${field}` }))
    .filter(({ path }) => !SKIPPED.has(path))
    .map(({ field, path }) => [readable(field), shown(content[field] ?? null, path)] as const)
}

function shown(value: JsonValue, path: string): Value | readonly Part[] {
  if (isJsonObject(value)) return fieldRows(value, path)
  if (!Array.isArray(value)) return goShow(value)
  return value.flatMap((child) => (isJsonObject(child) ? fieldRows(child, path) : [cells(goShow(child))]))
}

const ACRONYMS = new Set(['API', 'URL', 'UID', 'GUID'])

/** `podCIDRs` becomes `Pod CIDRs`, `apiVersion` becomes `API Version`; names with other characters stay unchanged. */
export function readable(field: string): string {
  if (/[^\p{L}-]/u.test(field)) return field
  return merged(words(field)).map(capitalized).join(' ')
}

/** Splits at case changes; the last capital before small letters starts a new word. */
function words(field: string): string[] {
  return field.match(/\p{Lu}+(?!\p{Ll})|\p{Lu}\p{Ll}+|\p{Ll}+|[^\p{Lu}\p{Ll}]+/gu) ?? []
}

/** `CID` and `Rs` form one word. */
function merged(parts: readonly string[]): string[] {
  const out: string[] = []
  for (let at = 0; at < parts.length; at++) {
    const [part, next] = [parts[at] as string, parts[at + 1]]
    const joins = part.length >= 2 && !/[^\P{L}\p{Lu}]/u.test(part) && next !== undefined && /^\p{Lu}/u.test(next)
    out.push(joins ? part + next : part)
    if (joins) at++
  }
  return out
}

function capitalized(part: string): string {
  if (ACRONYMS.has(part.toUpperCase())) return part.toUpperCase()
  return part.toLowerCase() === part ? part.slice(0, 1).toUpperCase() + part.slice(1) : part
}
