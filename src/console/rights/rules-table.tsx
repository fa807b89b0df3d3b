/** The rules of a role as a table. */
import type { VNode } from 'preact'

import type { PolicyRule } from '#apis/rbac/v1.ts'

import { LongText } from '../parts/long-text.tsx'
import { PlainTable } from '../parts/plain-table.tsx'
import { RULE_COLUMNS, ruleRow } from './rule-row.ts'

export interface RulesTableProps {
  readonly label: string
  readonly rules: readonly PolicyRule[]
}

export function RulesTable({ label, rules }: RulesTableProps): VNode {
  const cellsOf = (rule: PolicyRule): readonly VNode[] =>
    ruleRow(rule).map((text, at) => <LongText key={at} text={text} name={RULE_COLUMNS[at] ?? ''} />)
  return <PlainTable label={label} columns={RULE_COLUMNS} rows={rules} cells={cellsOf} />
}
