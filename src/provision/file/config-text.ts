/** Writes a cluster.yml: every key of the table with its comment and the given value. */
import { stringifyYaml } from '#lib/yaml/yaml.ts'

import { CLUSTER } from './cluster-schema.ts'
import type { Field } from './field.ts'

/** A partial cluster file. */
export interface Draft {
  readonly [key: string]: unknown
}

const HEAD = `# A cluster for "hyperkube build up". Empty keys have the default in their comment or in docs/build.md.
`

/** Contains all keys; those that the draft lacks are empty. */
export function configText(draft: Draft): string {
  return `${HEAD}${membersText(CLUSTER, draft, 0)}`
}

/** Nested keys have no comments, to keep the file readable; the documentation describes them. */
const COMMENTED_DEPTH = 1

function membersText(members: Readonly<Record<string, Field>>, draft: Draft, depth: number): string {
  return Object.entries(members)
    .filter(([, field]) => !field.past)
    .map(([name, field]) => {
      const comment = depth < COMMENTED_DEPTH ? `${indent(depth)}# ${sentence(field.about)}\n` : ''
      return `${comment}${memberText(name, field, { value: draft[name], depth })}`
    })
    .join('')
}

function memberText(name: string, field: Field, { value, depth }: { value: unknown; depth: number }): string {
  const start = `${indent(depth)}${name}:`
  if (field.kind === 'object' && (value !== undefined || !field.optional)) {
    return `${start}\n${membersText(field.members ?? {}, (value ?? {}) as Draft, depth + 1)}`
  }
  const items = field.of?.members
  if (field.kind === 'list' && items && Array.isArray(value) && value.length > 0) {
    return `${start}\n${value.map((item) => itemText(items, item as Draft, depth)).join('')}`
  }
  const shown = value ?? field.default ?? emptyOf(field)
  return indented(stringifyYaml({ [name]: shown }), depth)
}

/** The first key of an item follows its dash. */
function itemText(members: Readonly<Record<string, Field>>, item: Draft, depth: number): string {
  const body = membersText(members, item, depth + 1)
  return `${indent(depth)}- ${body.slice(indent(depth + 1).length)}`
}

function emptyOf(field: Field): unknown {
  if (field.kind === 'text') return ''
  return field.kind === 'list' ? [] : null
}

function indent(depth: number): string {
  return '  '.repeat(depth)
}

function indented(text: string, depth: number): string {
  return text.replaceAll(/^(?=.)/gm, indent(depth))
}

function sentence(about: string): string {
  return about.charAt(0).toUpperCase() + about.slice(1)
}
