/** The parts that RoleBinding and ClusterRoleBinding share: role, subjects and the escalation check. */
import type { ClusterRoleBinding, RoleBinding, Subject } from '#apis/rbac/v1.ts'
import { ageColumn, nameColumn } from '#apiserver/registry/columns.ts'
import type { Column, ResourceSpec } from '#apiserver/registry/resource.ts'
import type { EscalationChecks } from '#auth/authorizers/rbac/escalation.ts'
import { semanticEqual } from '#meta/object.ts'
import { collectErrors, type FieldError, fieldPath, type FieldPath } from '#meta/validation/field-path.ts'
import { dns1123Subdomain, pathSegmentName } from '#meta/validation/names.ts'

type Binding = RoleBinding | ClusterRoleBinding

const GROUP = 'rbac.authorization.k8s.io'

/** The API group of each subject kind. */
const subjectGroups = new Map([
  ['ServiceAccount', ''],
  ['User', GROUP],
  ['Group', GROUP],
])

/** The hook that runs the escalation check before a write. It reserves nothing, so there is nothing to undo. */
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

/** `kinds`: the role kinds that may be bound. */
export function validateBinding(
  { roleRef, subjects }: Binding,
  kinds: readonly string[],
  namespaced: boolean,
): FieldError[] {
  const { apiGroup, kind, name } = roleRef
  const named =
    name === '' ? [fieldPath('roleRef.name').required()] : fieldPath('roleRef.name').check(name, pathSegmentName)
  return collectErrors(
    apiGroup !== GROUP && fieldPath('roleRef.apiGroup').notSupported(apiGroup, [GROUP]),
    !kinds.includes(kind) && fieldPath('roleRef.kind').notSupported(kind, kinds),
    named,
    fieldPath('subjects').each(subjects, (path, subject) => validateSubject(path, subject, namespaced)),
  )
}

function validateSubject(path: FieldPath, subject: Subject, namespaced: boolean): FieldError[] {
  const { kind, name, apiGroup = '', namespace = '' } = subject
  const errors = name === '' ? [path.child('name').required()] : []
  const group = subjectGroups.get(kind)
  if (group === undefined) return [...errors, path.child('kind').notSupported(kind, [...subjectGroups.keys()])]
  const isAccount = kind === 'ServiceAccount'
  if (isAccount && name !== '') errors.push(...path.child('name').check(name, dns1123Subdomain))
  if (apiGroup !== group) errors.push(path.child('apiGroup').notSupported(apiGroup, [group]))
  if (isAccount && !namespaced && namespace === '') errors.push(path.child('namespace').required())
  return errors
}

/** The role is immutable; to change it, delete the binding. */
export function validateSameRole(next: Binding, old: Binding): FieldError[] {
  return semanticEqual(next.roleRef, old.roleRef)
    ? []
    : [fieldPath('roleRef').invalid(next.roleRef, 'cannot change roleRef')]
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
