/** Formats the differences between two objects like Go's struct diff, which some of upstream's errors contain. */
import { goJson } from '#lib/go/text.ts'

import { semanticEqual } from '../object.ts'

/** The number of printed differences; others are counted. */
const MAX_SHOWN = 16

/** One line for each difference: `spec.hostname: "a" -> "b"`. */
export function differencesText(path: string, old: unknown, next: unknown): string {
  const lines = differences(path, old, next)
  const shown = lines.slice(0, MAX_SHOWN)
  if (lines.length > shown.length) shown.push(`and ${lines.length - shown.length} more`)
  return shown.map((line) => `  ${line}`).join('\n')
}

function differences(path: string, old: unknown, next: unknown): string[] {
  if (semanticEqual(old, next)) return []
  if (!isTree(old) || !isTree(next) || Array.isArray(old) !== Array.isArray(next)) {
    return [`${path}: ${valueText(old)} -> ${valueText(next)}`]
  }
  const names = new Set([...Object.keys(old), ...Object.keys(next)])
  const join = (name: string): string => (Array.isArray(old) ? `${path}[${name}]` : `${path}.${name}`)
  return [...names].flatMap((name) => differences(join(name), fieldOf(old, name), fieldOf(next, name)))
}

type Tree = Readonly<Record<string, unknown>>

function isTree(value: unknown): value is Tree {
  return typeof value === 'object' && value !== null
}

function fieldOf(tree: Tree, name: string): unknown {
  return Object.hasOwn(tree, name) ? tree[name] : undefined
}

function valueText(value: unknown): string {
  return value === undefined ? '<unset>' : goJson(value)
}
