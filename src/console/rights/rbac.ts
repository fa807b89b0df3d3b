/** Decides as the RBAC authorizer does, but in both directions: who may do something, and what a user may do. */
import type { ClusterRole, ClusterRoleBinding, PolicyRule, Role, RoleBinding, Subject } from '#apis/rbac/v1.ts'
import { type RuleAccess, ruleRequestOf, RuleTable } from '#model/rule-table.ts'

export interface RbacObjects {
  readonly clusterRoles: readonly ClusterRole[]
  readonly roles: readonly Role[]
  readonly clusterRoleBindings: readonly ClusterRoleBinding[]
  readonly roleBindings: readonly RoleBinding[]
}

export type SubjectKind = 'User' | 'Group' | 'ServiceAccount'

/** A subject of a binding. */
export interface Holder {
  readonly kind: SubjectKind
  readonly name: string
  /** Of a service account. */
  readonly namespace?: string
}

/** One subject of one binding. */
export interface Grant {
  readonly holder: Holder
  /** Where it holds. Empty: in the whole cluster. */
  readonly namespace: string
  readonly binding: { readonly kind: 'RoleBinding' | 'ClusterRoleBinding'; readonly name: string }
  readonly role: { readonly kind: string; readonly name: string }
  /** Undefined: there is no such role, so the binding gives nothing. */
  readonly rules: readonly PolicyRule[] | undefined
}

/** Every subject of every binding, sorted by kind and name. */
export function allGrants(objects: RbacObjects): readonly Grant[] {
  const rules = new Map([
    ...objects.clusterRoles.map((role) => [keyOf('ClusterRole', role.metadata.name), role.rules ?? []] as const),
    ...objects.roles.map(
      (role) => [keyOf('Role', role.metadata.name, role.metadata.namespace), role.rules ?? []] as const,
    ),
  ])
  const grantsOf = (binding: RoleBinding | ClusterRoleBinding, kind: Grant['binding']['kind']): readonly Grant[] => {
    const { metadata, roleRef: role, subjects } = binding
    const { name = '', namespace = '' } = metadata
    const found = rules.get(keyOf(role.kind, role.name, role.kind === 'Role' ? namespace : ''))
    return (subjects ?? []).flatMap((subject) => {
      const holder = holderOf(subject, namespace)
      return holder === undefined ? [] : [{ holder, namespace, binding: { kind, name }, role, rules: found }]
    })
  }
  return [
    ...objects.clusterRoleBindings.flatMap((binding) => grantsOf(binding, 'ClusterRoleBinding')),
    ...objects.roleBindings.flatMap((binding) => grantsOf(binding, 'RoleBinding')),
  ].sort((a, b) => (sortKey(a) < sortKey(b) ? -1 : 1))
}

function keyOf(kind: string, name = '', namespace = ''): string {
  return `${kind}/${namespace}/${name}`
}

function sortKey({ holder, namespace, binding }: Grant): string {
  return [holder.kind, holder.namespace ?? '', holder.name, namespace, binding.name].join('\n')
}

/** A service account without a namespace is of the namespace of the binding. Other kinds of subjects have no meaning. */
export function holderOf({ kind, name, namespace = '' }: Subject, ofBinding: string): Holder | undefined {
  if (kind === 'User' || kind === 'Group') return { kind, name }
  const home = namespace === '' ? ofBinding : namespace
  return kind === 'ServiceAccount' && home !== '' ? { kind, name, namespace: home } : undefined
}

const tables = new WeakMap<readonly PolicyRule[], RuleTable>()

/** The rules of the grant allow the access. The namespace is for the caller to check. */
export function allows({ rules }: Grant, access: RuleAccess): boolean {
  if (rules === undefined) return false
  const table = tables.get(rules) ?? new RuleTable(rules)
  tables.set(rules, table)
  return table.allows(ruleRequestOf(access))
}

/**
 * The grants that allow an access in a namespace. With an empty one, for the whole cluster, as for objects without a
 * namespace. Without one, wherever they hold: a grant says where.
 */
export function whoMay(grants: readonly Grant[], access: RuleAccess, namespace: string | undefined): readonly Grant[] {
  const holds = (grant: Grant): boolean =>
    grant.namespace === '' || namespace === undefined || grant.namespace === namespace
  return grants.filter((grant) => holds(grant) && allows(grant, access))
}

/** The name and the groups with which requests arrive. */
export interface Identity {
  /** Undefined for a group, whose members may be any users. */
  readonly user: string | undefined
  readonly groups: readonly string[]
}

const SERVICE_ACCOUNT = 'system:serviceaccount:'

/** The API server adds groups to each user. `groups` are others, of an identity provider, for example. */
export function identityOf({ kind, name, namespace = '' }: Holder, groups: readonly string[] = []): Identity {
  if (kind === 'Group') return { user: undefined, groups: [name] }
  const user = kind === 'ServiceAccount' ? `${SERVICE_ACCOUNT}${namespace}:${name}` : name
  if (user === 'system:anonymous') return { user, groups: ['system:unauthenticated', ...groups] }
  if (!user.startsWith(SERVICE_ACCOUNT)) return { user, groups: ['system:authenticated', ...groups] }
  const [home = ''] = user.slice(SERVICE_ACCOUNT.length).split(':')
  const own = ['system:serviceaccounts', `system:serviceaccounts:${home}`, 'system:authenticated']
  return { user, groups: [...own, ...groups] }
}

export function grantsTo(grants: readonly Grant[], { user, groups }: Identity): readonly Grant[] {
  return grants.filter(({ holder }) =>
    holder.kind === 'Group' ? groups.includes(holder.name) : identityOf(holder).user === user,
  )
}
