/** What both kinds of bindings share: the role, the subjects, and the check that nobody gives more than they have. */
import type { ClusterRoleBinding, RoleBinding, Subject } from '#apis/rbac/v1.ts'
import type { EscalationChecks } from '#apiserver/authorizers/rbac/escalation.ts'
import { ageColumn, nameColumn } from '#apiserver/registry/columns.ts'
import type { Column, ResourceSpec } from '#apiserver/registry/resource.ts'
import { semanticEqual } from '#meta/object.ts'
import { child, type FieldError, index, invalid, notSupported, required } from '#meta/validation/field-error.ts'
import { dns1123Subdomain, pathSegmentName } from '#meta/validation/names.ts'
import { complaining } from '#meta/validation/rules.ts'

type Binding = RoleBinding | ClusterRoleBinding

const GROUP = 'rbac.authorization.k8s.io'

/** Which group each kind of subject belongs to. */
const subjectGroups = new Map([
  ['ServiceAccount', ''],
  ['User', GROUP],
  ['Group', GROUP],
])

/** The hook that asks before a binding is written. It reserves nothing, so there is nothing to undo. */
export function guardBindingWrites<T extends Binding>(
  checks: EscalationChecks | undefined,
): Pick<ResourceSpec<T>, 'allocate'> {
  if (checks === undefined) return {}
  return {
    async allocate(next, old, { user }) {
      await checks.bindingWrite(user, next, old)
      return async () => {}
    },
  }
}

export function defaultBinding({ roleRef, subjects }: Binding): void {
  roleRef.apiGroup ||= GROUP
  for (const subject of subjects ?? []) {
    const group = subjectGroups.get(subject.kind) ?? ''
    if (group !== '') subject.apiGroup ||= group
  }
}

/** `kinds`: of roles that may be bound. */
export function validateBinding(
  { roleRef, subjects }: Binding,
  kinds: readonly string[],
  namespaced: boolean,
): FieldError[] {
  const { apiGroup, kind, name } = roleRef
  const named = name === '' ? [required('roleRef.name')] : complaining('roleRef.name', name, pathSegmentName(name))
  return [
    ...(apiGroup === GROUP ? [] : [notSupported('roleRef.apiGroup', apiGroup, [GROUP])]),
    ...(kinds.includes(kind) ? [] : [notSupported('roleRef.kind', kind, kinds)]),
    ...named,
    ...(subjects ?? []).flatMap((subject, at) => validateSubject(index('subjects', at), subject, namespaced)),
  ]
}

function validateSubject(path: string, subject: Subject, namespaced: boolean): FieldError[] {
  const { kind, name, apiGroup = '', namespace = '' } = subject
  const errors = name === '' ? [required(child(path, 'name'))] : []
  const group = subjectGroups.get(kind)
  if (group === undefined) return [...errors, notSupported(child(path, 'kind'), kind, [...subjectGroups.keys()])]
  const isAccount = kind === 'ServiceAccount'
  if (isAccount && name !== '') errors.push(...complaining(child(path, 'name'), name, dns1123Subdomain(name)))
  if (apiGroup !== group) errors.push(notSupported(child(path, 'apiGroup'), apiGroup, [group]))
  if (isAccount && !namespaced && namespace === '') errors.push(required(child(path, 'namespace')))
  return errors
}

/** Binding another role would be another decision; whoever wants it deletes the binding. */
export function validateSameRole(next: Binding, old: Binding): FieldError[] {
  return semanticEqual(next.roleRef, old.roleRef) ? [] : [invalid('roleRef', next.roleRef, 'cannot change roleRef')]
}

export const bindingColumns: readonly Column<Binding>[] = [
  nameColumn,
  { name: 'Role', value: ({ roleRef }) => `${roleRef.kind}/${roleRef.name}` },
  ageColumn,
  { name: 'Users', wide: true, value: (binding) => subjectNames(binding, 'User') },
  { name: 'Groups', wide: true, value: (binding) => subjectNames(binding, 'Group') },
  { name: 'ServiceAccounts', wide: true, value: (binding) => subjectNames(binding, 'ServiceAccount') },
]

function subjectNames({ subjects }: Binding, kind: string): string {
  const named = ({ namespace = '', name }: Subject): string =>
    kind === 'ServiceAccount' ? `${namespace}/${name}` : name
  return (subjects ?? [])
    .filter((subject) => subject.kind === kind)
    .map(named)
    .join(', ')
}
