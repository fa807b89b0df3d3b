/** Any object: its fields, one below the other, with names made readable. */
import { isJsonObject, type JsonObject, type JsonValue } from '#lib/json-value.ts'
import type { KubeObject } from '#meta/object.ts'

import { goShow, sortedKeys } from '../templates/go-value.ts'
import type { Surroundings } from './describer.ts'
import { Page } from './page.ts'
import { putEventsOf, putHead } from './sections.ts'

/** What is shown at the beginning, and what nobody reads. */
const SKIPPED = new Set([
  '.metadata.managedFields',
  '.metadata.name',
  '.metadata.namespace',
  '.metadata.labels',
  '.metadata.annotations',
])

export async function describeGeneric(object: KubeObject, around: Surroundings): Promise<string> {
  const page = new Page()
  putHead(page, object)
  putFields(page, 0, object as unknown as JsonObject, '')
  await putEventsOf(page, object, around)
  return page.text()
}

function putFields(page: Page, level: number, content: JsonObject, prefix: string): void {
  for (const field of sortedKeys(content)) {
    const path = `${prefix}.${field}`
    if (!SKIPPED.has(path)) putField(page, level, { label: readable(field), path }, content[field] ?? null)
  }
}

function putField(page: Page, level: number, { label, path }: { label: string; path: string }, value: JsonValue): void {
  if (isJsonObject(value)) {
    page.put(level, `${label}:\n`)
    return putFields(page, level + 1, value, path)
  }
  if (!Array.isArray(value)) return page.row(level, label, goShow(value))
  page.put(level, `${label}:\n`)
  for (const child of value) {
    if (isJsonObject(child)) putFields(page, level + 1, child, path)
    else page.line(level + 1, goShow(child))
  }
}

const ACRONYMS = new Set(['API', 'URL', 'UID', 'GUID'])

/** `podCIDRs` as `Pod CIDRs`, `apiVersion` as `API Version`; what has more than letters and dashes stays as it is. */
export function readable(field: string): string {
  if (/[^\p{L}-]/u.test(field)) return field
  return merged(words(field)).map(capitalized).join(' ')
}

/** Where case changes; the last capital before small letters begins their word. */
function words(field: string): string[] {
  return field.match(/\p{Lu}+(?!\p{Ll})|\p{Lu}\p{Ll}+|\p{Ll}+|[^\p{Lu}\p{Ll}]+/gu) ?? []
}

/** `CID` and `Rs` are one word. */
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
