/** Summaries of RBAC objects: the rules of roles as a table, and the subjects of bindings. */
import type { ClusterRole, ClusterRoleBinding, Role, RoleBinding, Subject } from '#apis/rbac/v1.ts'

import { RULE_COLUMNS, ruleRow } from '../rights/rule-row.ts'
import { type Cell, fields, link, type Section, table, type Value } from './section.ts'

const GROUP = 'rbac.authorization.k8s.io'
const V1 = `${GROUP}/v1`

export function roleSections({ rules }: Role | ClusterRole): readonly Section[] {
  return table('Rules', RULE_COLUMNS, (rules ?? []).map(ruleRow))
}

export function bindingSections({ roleRef, subjects, metadata }: RoleBinding | ClusterRoleBinding): readonly Section[] {
  const { namespace } = metadata
  const { kind, name } = roleRef
  const role = { ...link(V1, kind, name, kind === 'Role' ? namespace : undefined), text: `${kind} ${name}` }
  return [
    fields('Binding', [['Role', role]]),
    ...table(
      'Subjects',
      ['Kind', 'Name', 'Namespace'],
      (subjects ?? []).map((one) => subjectRow(one)),
    ),
  ]
}

function subjectRow(subject: Subject): readonly Cell[] {
  return [subject.kind, subjectValue(subject), subject.namespace]
}

function subjectValue({ kind, name, namespace }: Subject): Value {
  return kind === 'ServiceAccount' ? link('v1', kind, name, namespace) : { text: name }
}

/** The subjects that have a role, by the bindings that name it. */
export function boundTable(
  role: { readonly kind: string; readonly name: string },
  bindings: readonly (RoleBinding | ClusterRoleBinding)[],
): readonly Section[] {
  const naming = bindings.filter(({ roleRef }) => roleRef.kind === role.kind && roleRef.name === role.name)
  return table(
    'Bound to',
    ['Kind', 'Name', 'In namespace', 'By'],
    naming.flatMap(({ kind = '', metadata, subjects }) =>
      (subjects ?? []).map((subject) => {
        const where = subject.namespace === undefined ? '' : `${subject.namespace}/`
        const who = subjectValue(subject)
        return [
          subject.kind,
          { ...who, text: where + who.text },
          metadata.namespace ?? 'all',
          { ...link(V1, kind, metadata.name ?? '', metadata.namespace), text: `${kind} ${metadata.name ?? ''}` },
        ]
      }),
    ),
  )
}
