/** Finds the permissions that are nearest to a refused request. Pure: repeats checks of RBAC with one thing changed. */
import type { ClusterRole, PolicyRule, Role, RoleBinding, ClusterRoleBinding, Subject } from '#apis/rbac/v1.ts'
import { type Access, resourceAccess } from '#auth/authorizer.ts'
import { RbacIndex } from '#auth/authorizers/rbac/rbac.ts'
import type { User } from '#auth/user.ts'
import { editDistance } from '#lib/nearest.ts'
import { ruleRequestOf, RuleTable } from '#model/rule-table.ts'

export type AnyRole = Role | ClusterRole
export type AnyBinding = RoleBinding | ClusterRoleBinding

/** The RBAC objects that the asker may list. */
export interface RbacObjects {
  readonly roles: readonly Role[]
  readonly clusterRoles: readonly ClusterRole[]
  readonly bindings: readonly RoleBinding[]
  readonly clusterBindings: readonly ClusterRoleBinding[]
}

export interface Miss {
  /** `may create pods in the namespace shop`, with the user as the subject. */
  readonly text: string
  /** The object that it follows from. */
  readonly binding?: AnyBinding
  readonly role?: AnyRole
}

const VERBS = ['get', 'list', 'watch', 'create', 'update', 'patch', 'delete', 'deletecollection']
const MAX_EDITS = 2

export function indexOf({ roles, clusterRoles, bindings, clusterBindings }: RbacObjects): RbacIndex {
  const index = new RbacIndex()
  for (const role of roles) index.setRole(role)
  for (const role of clusterRoles) index.setClusterRole(role)
  for (const binding of [...bindings, ...clusterBindings]) index.setBinding(binding)
  return index
}

/** The nearest first. */
export function nearMisses(objects: RbacObjects, user: User, access: Access): Miss[] {
  const index = indexOf(objects)
  const may = (changed: Partial<Access>): boolean =>
    index.authorize(user, resourceAccess({ ...access, ...changed })).allowed
  return [
    ...missingRoles(objects, index, user, access),
    ...otherSubjects(objects, access, user),
    ...otherNames(index, user, access),
    ...otherVerbs(access, may),
    ...otherNamespaces(objects, access, may),
    ...otherSubresources(access, may),
  ]
}

/** Bindings of the user whose role does not exist. */
function missingRoles(
  { bindings, clusterBindings }: RbacObjects,
  index: RbacIndex,
  user: User,
  { namespace }: Access,
): Miss[] {
  const own = [...bindings.filter(({ metadata }) => metadata.namespace === namespace), ...clusterBindings]
  return own.flatMap((binding) => {
    const { roleRef, subjects = [], metadata } = binding
    if (!subjects.some((subject) => isOf(subject, user, metadata.namespace))) return []
    if (typeof index.rulesOf(roleRef, metadata.namespace ?? '') !== 'string') return []
    return [{ text: `is bound to the ${roleRef.kind} ${roleRef.name}, which does not exist`, binding }]
  })
}

function isOf({ kind, name, namespace = '' }: Subject, user: User, home = ''): boolean {
  if (kind === 'User') return name === user.name
  if (kind === 'Group') return user.groups.includes(name)
  return `system:serviceaccount:${namespace === '' ? home : namespace}:${name}` === user.name
}

/** Bindings that would allow it, for a user with almost this name. */
function otherSubjects(
  { bindings, clusterBindings, roles, clusterRoles }: RbacObjects,
  access: Access,
  user: User,
): Miss[] {
  const here = [...bindings.filter(({ metadata }) => metadata.namespace === access.namespace), ...clusterBindings]
  const [, , accountNamespace = '', account = ''] = user.name.startsWith('system:serviceaccount:')
    ? user.name.split(':')
    : []
  return here.flatMap((binding) => {
    const { roleRef, subjects = [], metadata } = binding
    const role = (roleRef.kind === 'Role' ? roles : clusterRoles).find(
      (one) =>
        one.metadata.name === roleRef.name &&
        (roleRef.kind !== 'Role' || one.metadata.namespace === metadata.namespace),
    )
    if (!allows(role?.rules, access)) return []
    const near = subjects.find(({ kind, name, namespace = '' }) => {
      if (kind === 'User') return name !== user.name && isAlike(name, user.name)
      const home = namespace === '' ? (metadata.namespace ?? '') : namespace
      return kind === 'ServiceAccount' && name === account && home !== accountNamespace
    })
    if (near === undefined) return []
    const where = near.namespace === undefined ? '' : ` of the namespace ${near.namespace}`
    return [
      {
        text: `is not the ${near.kind} ${near.name}${where}, to which ${binding.metadata.name} binds the ${roleRef.kind} ${roleRef.name}`,
        binding,
      },
    ]
  })
}

function isAlike(one: string, other: string): boolean {
  return one.toLowerCase() === other.toLowerCase() || (one.length > 4 && editDistance(one, other) <= MAX_EDITS)
}

/** Rules of the user that allow it for objects of other names only. */
function otherNames(index: RbacIndex, user: User, access: Access): Miss[] {
  const { rules } = index.resolve(user, access.namespace)
  const names = rules.flatMap((rule) => {
    const { resourceNames = [] } = rule
    return resourceNames.length > 0 && allows([withoutNames(rule)], access) ? resourceNames : []
  })
  if (names.length === 0) return []
  return [{ text: `may ${access.verb} ${resourceText(access)} only with the name ${[...new Set(names)].join(' or ')}` }]
}

function withoutNames(rule: PolicyRule): PolicyRule {
  return { ...rule, resourceNames: [] }
}

function otherVerbs(access: Access, may: (changed: Partial<Access>) => boolean): Miss[] {
  const allowed = VERBS.filter((verb) => verb !== access.verb && may({ verb }))
  if (allowed.length === 0) return []
  return [{ text: `may ${allowed.join(', ')} ${resourceText(access)}${placeText(access.namespace)}` }]
}

function otherNamespaces(
  { bindings }: RbacObjects,
  access: Access,
  may: (changed: Partial<Access>) => boolean,
): Miss[] {
  const known = new Set(bindings.map(({ metadata }) => metadata.namespace ?? ''))
  const allowed = [...known].filter((namespace) => namespace !== access.namespace && may({ namespace })).sort()
  if (allowed.length === 0) return []
  const names = allowed.slice(0, 3).join(', ')
  const more = allowed.length > 3 ? ` and ${allowed.length - 3} more` : ''
  return [{ text: `may ${access.verb} ${resourceText(access)} in the namespace ${names}${more}` }]
}

function otherSubresources(access: Access, may: (changed: Partial<Access>) => boolean): Miss[] {
  if (access.subresource === '' || !may({ subresource: '' })) return []
  return [{ text: `may ${access.verb} ${access.resource}, but not the subresource ${access.subresource}` }]
}

/** Roles that allow it and are not bound to the user, those with the fewest rules first; none that allows everything. */
export function unboundRoles({ roles, clusterRoles }: RbacObjects, access: Access): AnyRole[] {
  const here = roles.filter(({ metadata }) => metadata.namespace === access.namespace && access.namespace !== '')
  const usable = clusterRoles.filter(({ metadata: { name = '' } }) => !name.startsWith('system:'))
  return [...here, ...usable]
    .filter((role) => allows(role.rules, access) && breadthOf(role) < EVERYTHING)
    .toSorted((a, b) => breadthOf(a) - breadthOf(b))
}

const EVERYTHING = 1e6

/** The number of permissions. */
function breadthOf({ rules }: AnyRole): number {
  return (rules ?? []).reduce((sum, { verbs, resources = [] }) => {
    const isWide = verbs.includes('*') && resources.includes('*')
    return sum + (isWide ? EVERYTHING : verbs.length * resources.length)
  }, 0)
}

function allows(rules: readonly PolicyRule[] | null | undefined, access: Access): boolean {
  return rules !== null && rules !== undefined && new RuleTable(rules).allows(ruleRequestOf(access))
}

/** `deployments.apps`, `pods/log`. */
export function resourceText({ group, resource, subresource }: Access): string {
  const whole = group === '' ? resource : `${resource}.${group}`
  return subresource === '' ? whole : `${whole}/${subresource}`
}

export function placeText(namespace: string): string {
  return namespace === '' ? ' in all namespaces' : ` in the namespace ${namespace}`
}
