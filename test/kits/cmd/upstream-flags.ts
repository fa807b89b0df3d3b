/**
 * Compares a program's flags with those of upstream v1.36.4. upstream-flags.json lists these by program and group, as
 * rows of name, type and default. `node test/upstream/program-flags.ts --write` records them.
 */
import assert from 'node:assert/strict'

import { defineFlags, type FlagGroups } from '#lib/flags/flags.ts'

import recorded from './upstream-flags.json' with { type: 'json' }

export type UpstreamProgramName = keyof typeof recorded

export interface UpstreamFlag {
  readonly group: string
  readonly name: string
  readonly hint: string
  readonly initial: string
}

/** Asserts that groups, order, types and defaults are upstream's, except for `deviations`. */
export function assertUpstreamFlags(
  groups: FlagGroups,
  program: UpstreamProgramName,
  deviations: readonly string[] = [],
): void {
  const rows = upstreamFlags(program)
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

function differenceOf(groups: FlagGroups, { group, name, hint, initial }: UpstreamFlag): string[] {
  const each = groups[group]?.[name]
  if (each === undefined) return [name]
  const printed = each.kind.print(each.initial)
  const isSame = initial === printed || (initial === '' && (each.kind.plain.includes(printed) || printed === '[]'))
  const isKind = (each.kind.hint === '' ? 'bool' : each.kind.hint) === hint
  return isSame && isKind ? [] : [`${name}: ${each.kind.hint} ${printed}, not ${hint} ${initial}`]
}

export function upstreamFlags(program: UpstreamProgramName): UpstreamFlag[] {
  return Object.entries(recorded[program]).flatMap(([group, rows]) =>
    rows.map((row: string) => {
      const [name = '', hint = '', initial = ''] = row.split(' ')
      return { group, name, hint, initial }
    }),
  )
}
