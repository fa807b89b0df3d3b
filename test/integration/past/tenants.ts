/**
 * A model of a cluster with tenants, kept by the test itself: namespaces, objects, roles and bindings at each revision,
 * and who may do what by them. It shares no code with the server.
 */

/** A collection of the test. */
export interface TenantKind {
  readonly group: string
  readonly resource: string
  readonly isNamespaced: boolean
}

export const TENANT_KINDS: readonly TenantKind[] = [
  { group: '', resource: 'configmaps', isNamespaced: true },
  { group: '', resource: 'secrets', isNamespaced: true },
  { group: 'coordination.k8s.io', resource: 'leases', isNamespaced: true },
  { group: 'ex.io', resource: 'widgets', isNamespaced: true },
  { group: 'node.k8s.io', resource: 'runtimeclasses', isNamespaced: false },
  { group: 'scheduling.k8s.io', resource: 'priorityclasses', isNamespaced: false },
]

export const NAMESPACE_KIND: TenantKind = { group: '', resource: 'namespaces', isNamespaced: false }

export interface TenantObject {
  readonly kind: TenantKind
  /** Empty for cluster-scoped kinds. */
  readonly namespace: string
  readonly name: string
  /** A text that only this object contains. */
  readonly mark: string
}

export interface Rule {
  readonly verbs: readonly string[]
  readonly apiGroups: readonly string[]
  readonly resources: readonly string[]
  readonly resourceNames?: readonly string[]
}

export interface Subject {
  readonly kind: 'User' | 'Group' | 'ServiceAccount'
  readonly name: string
  readonly namespace?: string
}

/** `namespace` is empty for a ClusterRole and a ClusterRoleBinding. */
export interface Role {
  readonly namespace: string
  readonly name: string
  readonly rules: readonly Rule[]
}

export interface Binding {
  readonly namespace: string
  readonly name: string
  readonly role: { readonly isClusterRole: boolean; readonly name: string }
  readonly subject: Subject
}

/** The state after one step. Maps have the path of each object as key. */
export interface Tenants {
  readonly revision: number
  readonly timeMs: number
  /** The uid of each namespace, and its text. */
  readonly namespaces: ReadonlyMap<string, { readonly uid: string; readonly mark: string }>
  readonly objects: ReadonlyMap<string, TenantObject>
  readonly roles: ReadonlyMap<string, Role>
  readonly bindings: ReadonlyMap<string, Binding>
  /** Created since the step before, and possibly deleted again. */
  readonly made: readonly TenantObject[]
}

export interface Tenant {
  readonly name: string
  readonly groups: readonly string[]
}

/** An action of a user, as RBAC sees it. */
export interface Action {
  readonly verb: string
  readonly group: string
  readonly resource: string
  readonly namespace: string
  readonly name: string
}

function isSubject({ kind, name, namespace = '' }: Subject, tenant: Tenant): boolean {
  if (kind === 'Group') return tenant.groups.includes(name)
  return tenant.name === (kind === 'User' ? name : `system:serviceaccount:${namespace}:${name}`)
}

function covers(rule: Rule, { verb, group, resource, name }: Action): boolean {
  const has = (list: readonly string[], one: string): boolean => list.includes('*') || list.includes(one)
  const { resourceNames = [] } = rule
  const isNamed = resourceNames.length === 0 || resourceNames.includes(name)
  return has(rule.verbs, verb) && has(rule.apiGroups, group) && has(rule.resources, resource) && isNamed
}

/** RBAC: some binding for the user, in the namespace or in all, to a role with a rule for the action. */
export function may({ roles, bindings }: Tenants, tenant: Tenant, action: Action): boolean {
  return [...bindings.values()].some(({ namespace, role, subject }) => {
    if (namespace !== '' && namespace !== action.namespace) return false
    if (!isSubject(subject, tenant)) return false
    const found = roles.get(`${role.isClusterRole ? '' : namespace}/${role.name}`)
    return found !== undefined && found.rules.some((rule) => covers(rule, action))
  })
}

const MOMENTS: Action = { verb: 'get', group: 'hyperkube.io', resource: 'moments', namespace: '', name: '' }

/** The rule that refuses a request, or none. */
export type Outcome = 'allowed' | 'moments' | 'today' | 'earlier' | 'namespace'

export function mayReadMoments(now: Tenants, tenant: Tenant): boolean {
  return may(now, tenant, MOMENTS)
}

/** The rule of ADR 31, in the words of its design. */
export function readPast(now: Tenants, then: Tenants, tenant: Tenant, action: Action): Outcome {
  if (!mayReadMoments(now, tenant)) return 'moments'
  if (!may(now, tenant, action)) return 'today'
  if (action.namespace === '' || may(now, tenant, { ...action, namespace: '' })) return 'allowed'
  const [before, today] = [then.namespaces.get(action.namespace), now.namespaces.get(action.namespace)]
  if (!may(then, tenant, action)) return 'earlier'
  return before !== undefined && before.uid === today?.uid ? 'allowed' : 'namespace'
}
