/** Flags of a program held against a table of upstream's: `# group`, then lines of name, hint of the type and default. */
import assert from 'node:assert/strict'

import { defineFlags, type FlagGroups } from '#lib/flags/flags.ts'

interface Row {
  readonly group: string
  readonly name: string
  readonly hint: string
  readonly initial: string
}

/** They are all of upstream's, in its groups and their order, with its types and its defaults but for `deviations`. */
export function assertUpstreamFlags(groups: FlagGroups, table: string, deviations: readonly string[] = []): void {
  const rows = rowsOf(table)
  defineFlags(groups)
  assert.deepEqual(Object.keys(groups), [...new Set(rows.map(({ group }) => group))])
  for (const [group, flags] of Object.entries(groups)) {
    const names = rows.filter((row) => row.group === group).map(({ name }) => name)
    assert.deepEqual(Object.keys(flags).sort(), names.sort(), group)
  }
  assert.deepEqual(
    rows.flatMap((row) => differenceOf(groups, row)),
    deviations,
  )
}

function differenceOf(groups: FlagGroups, { group, name, hint, initial }: Row): string[] {
  const each = groups[group]?.[name]
  if (each === undefined) return [name]
  const printed = each.kind.print(each.initial)
  const isSame = initial === printed || (initial === '' && (each.kind.plain.includes(printed) || printed === '[]'))
  const isKind = (each.kind.hint === '' ? 'bool' : each.kind.hint) === hint
  return isSame && isKind ? [] : [`${name}: ${each.kind.hint} ${printed}, not ${hint} ${initial}`]
}

function rowsOf(table: string): Row[] {
  let group = ''
  return table.split('\n').flatMap((line): Row[] => {
    if (line.startsWith('# ')) group = line.slice(2)
    const [name = '', hint = '', initial = ''] = line.split(' ')
    return line === '' || line.startsWith('# ') ? [] : [{ group, name, hint, initial: initial === "''" ? '' : initial }]
  })
}
