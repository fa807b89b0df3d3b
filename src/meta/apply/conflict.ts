/** Formats the conflict error of an apply, as `kubectl` users read it. */
import { compareText, goQuote } from '#lib/go/text.ts'

import type { StatusCause } from '../status.ts'
import type { Conflict } from './apply-kind.ts'
import { pathsOf } from './field-set.ts'
import { managerOf } from './managed-fields.ts'
import { printPath } from './path-element.ts'

export interface ConflictReport {
  readonly message: string
  readonly causes: readonly StatusCause[]
}

/** Requires at least one conflict. Causes are grouped by manager, in the order of the message. */
export function reportConflicts(conflicts: readonly Conflict[]): ConflictReport {
  const parts = conflicts
    .toSorted((a, b) => compareText(a.manager, b.manager))
    .map(({ manager, fields }) => ({ who: describeManager(manager), paths: [...pathsOf(fields)].map(printPath) }))
  const causes = parts.flatMap(({ who, paths }) =>
    paths.map((field) => ({ reason: 'FieldManagerConflict' as const, message: `conflict with ${who}`, field })),
  )
  const [first] = causes
  if (causes.length === 1 && first !== undefined)
    return { message: `Apply failed with 1 conflict: ${first.message}: ${first.field}`, causes }
  const lines = parts.flatMap(({ who, paths }) => [`conflicts with ${who}:`, ...paths.map((path) => `- ${path}`)])
  return { message: `Apply failed with ${causes.length} conflicts: ${lines.join('\n')}`, causes }
}

/** `"kubectl" with subresource "scale" using apps/v1`: the version only for updaters. */
function describeManager(id: string): string {
  const { manager, operation, apiVersion, subresource } = managerOf(id)
  const part = subresource === '' ? '' : ` with subresource ${goQuote(subresource)}`
  return `${goQuote(manager)}${part}${operation === 'Update' ? ` using ${apiVersion}` : ''}`
}
