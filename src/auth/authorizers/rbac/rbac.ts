/**
 * RBAC: bindings grant the rules of roles to users and groups, in the cluster or in one namespace. An index by subject
 * is updated with every change, so that a check reads only the bindings of the user.
 */
import type { ClusterRole, ClusterRoleBinding, PolicyRule, Role, RoleBinding, RoleRef, Subject } from '#apis/rbac/v1.ts'
import { goQuote } from '#lib/go/text.ts'
import { type RuleRequest, ruleRequestOf, RuleTable } from '#model/rule-table.ts'

import {
  type Access,
  aggregatedText,
  type Authorizer,
  NO_OPINION,
  type RuleLists,
  type Verdict,
} from '../../authorizer.ts'
import type { User } from '../../user.ts'

/** A role that exists or is referenced. Removed when neither holds. */
interface RoleSlot {
  readonly key: string
  /** The number of bindings that reference it. */
  bindings: number
  /** Undefined while the role does not exist. */
  rules: readonly PolicyRule[] | undefined
  table: RuleTable | undefined
  /** The error text while the role does not exist. */
  readonly missing: string
}

/** One binding of one role. */
interface Grant {
  readonly slot: RoleSlot
  /** The origin of the binding, for reasons of decisions; also its identity. */
  readonly verdict: Verdict
  readonly binding: Binding
}

interface Binding {
  readonly namespace: string
  readonly slot: RoleSlot
  readonly users: readonly string[]
  readonly groups: readonly string[]
}

/** The bindings of one namespace, or of the cluster, by subject. */
class Scope {
  readonly users = new Map<string, Grant[]>()
  readonly groups = new Map<string, Grant[]>()

  get isEmpty(): boolean {
    return this.users.size === 0 && this.groups.size === 0
  }
}

/** The rules of a user, and the errors of their resolution. */
export interface ResolvedRules {
  readonly rules: readonly PolicyRule[]
  readonly errors: readonly string[]
}

export class RbacIndex implements Authorizer {
  readonly #cluster = new Scope()
  readonly #namespaces = new Map<string, Scope>()
  /** By kind, namespace and name. */
  readonly #slots = new Map<string, RoleSlot>()
  /** By namespace (empty for cluster bindings) and name. */
  readonly #bindings = new Map<string, Binding>()

  setRole(role: Role): void {
    const { namespace = '', name = '' } = role.metadata
    fill(this.#slotOf({ kind: 'Role', name }, namespace), role.rules ?? [])
  }

  setClusterRole(role: ClusterRole): void {
    fill(this.#slotOf({ kind: 'ClusterRole', name: role.metadata.name ?? '' }, ''), role.rules ?? [])
  }

  removeRole(namespace: string, name: string): void {
    this.#empty({ kind: 'Role', name }, namespace)
  }

  removeClusterRole(name: string): void {
    this.#empty({ kind: 'ClusterRole', name }, '')
  }

  /**
   * Sets a role binding, or with an empty namespace a cluster role binding, and replaces the previous one of this name.
   */
  setBinding(binding: RoleBinding | ClusterRoleBinding): void {
    const { namespace = '', name = '' } = binding.metadata
    this.removeBinding(namespace, name)
    const { roleRef, subjects = [] } = binding
    const scope = this.#scopeOf(namespace)
    const slot = this.#slotOf(roleRef, namespace)
    slot.bindings++
    const users = subjects.flatMap((subject) => userOf(subject, namespace))
    const groups = subjects.filter(({ kind }) => kind === 'Group').map((subject) => subject.name)
    const filed: Binding = { namespace, slot, users, groups }
    this.#bindings.set(`${namespace}/${name}`, filed)
    const head = headOf(namespace, name, roleRef)
    for (const subject of subjects) {
      const verdict = allowedBy(`${head} to ${subjectText(subject, namespace)}`)
      const grant: Grant = { slot, verdict, binding: filed }
      for (const user of userOf(subject, namespace)) append(scope.users, user, grant)
      if (subject.kind === 'Group') append(scope.groups, subject.name, grant)
    }
  }

  removeBinding(namespace: string, name: string): void {
    const key = `${namespace}/${name}`
    const binding = this.#bindings.get(key)
    if (binding === undefined) return
    this.#bindings.delete(key)
    const scope = this.#scopeOf(namespace)
    for (const user of binding.users) withdraw(scope.users, user, binding)
    for (const group of binding.groups) withdraw(scope.groups, group, binding)
    if (scope.isEmpty) this.#namespaces.delete(namespace)
    binding.slot.bindings--
    this.#forget(binding.slot)
  }

  authorize(user: User, access: Access): Verdict {
    const request = ruleRequestOf(access)
    const missing: string[] = []
    const found =
      firstGrant(this.#cluster, user, request, missing) ??
      (access.namespace === '' ? undefined : firstGrant(this.#namespaces.get(access.namespace), user, request, missing))
    if (found !== undefined) return found.verdict
    return missing.length === 0 ? NO_OPINION : { ...NO_OPINION, reason: `RBAC: ${aggregatedText(missing)}` }
  }

  /** All rules of the user in a namespace, including those of the cluster. */
  resolve(user: User, namespace: string): ResolvedRules {
    const seen = new Set<Binding>()
    const rules: PolicyRule[] = []
    const errors: string[] = []
    const scopes = namespace === '' ? [this.#cluster] : [this.#cluster, this.#namespaces.get(namespace)]
    for (const { slot, binding } of scopes.flatMap((scope) => grantsOf(scope, user))) {
      if (seen.has(binding)) continue
      seen.add(binding)
      if (slot.rules === undefined) errors.push(slot.missing)
      else rules.push(...slot.rules)
    }
    return { rules, errors }
  }

  /** The rules of the role that a binding in `namespace` references; an error text if the role does not exist. */
  rulesOf(ref: Pick<RoleRef, 'kind' | 'name'>, namespace: string): readonly PolicyRule[] | string {
    const slot = this.#slots.get(slotKey(ref, namespace))
    return slot?.rules ?? slot?.missing ?? missingText(ref)
  }

  rulesFor(user: User, namespace: string): RuleLists {
    const { rules, errors } = this.resolve(user, namespace)
    const lists: RuleLists = {
      resourceRules: rules
        .filter(({ resources = [] }) => resources.length > 0)
        .map(({ verbs, apiGroups = [], resources = [], resourceNames = [] }) => ({
          verbs,
          apiGroups,
          resources,
          resourceNames,
        })),
      nonResourceRules: rules
        .filter(({ nonResourceURLs = [] }) => nonResourceURLs.length > 0)
        .map(({ verbs, nonResourceURLs = [] }) => ({ verbs, nonResourceURLs })),
      incomplete: false,
    }
    return errors.length === 0 ? lists : { ...lists, error: aggregatedText(errors) }
  }

  #scopeOf(namespace: string): Scope {
    if (namespace === '') return this.#cluster
    const scope = this.#namespaces.get(namespace) ?? new Scope()
    this.#namespaces.set(namespace, scope)
    return scope
  }

  #slotOf(ref: Pick<RoleRef, 'kind' | 'name'>, namespace: string): RoleSlot {
    const key = slotKey(ref, namespace)
    const known = this.#slots.get(key)
    if (known !== undefined) return known
    const slot: RoleSlot = { key, bindings: 0, rules: undefined, table: undefined, missing: missingText(ref) }
    this.#slots.set(key, slot)
    return slot
  }

  #empty(ref: Pick<RoleRef, 'kind' | 'name'>, namespace: string): void {
    const slot = this.#slots.get(slotKey(ref, namespace))
    if (slot === undefined) return
    fill(slot, undefined)
    this.#forget(slot)
  }

  #forget({ key, bindings, rules }: RoleSlot): void {
    if (bindings === 0 && rules === undefined) this.#slots.delete(key)
  }
}

function fill(slot: RoleSlot, rules: readonly PolicyRule[] | undefined): void {
  slot.rules = rules
  slot.table = rules === undefined ? undefined : new RuleTable(rules)
}

/** Missing roles are recorded and skipped: other roles may still allow the request. */
function firstGrant(scope: Scope | undefined, user: User, request: RuleRequest, missing: string[]): Grant | undefined {
  if (scope === undefined) return undefined
  const own = firstOf(scope.users.get(user.name), request, missing)
  if (own !== undefined) return own
  for (const group of user.groups) {
    const grant = firstOf(scope.groups.get(group), request, missing)
    if (grant !== undefined) return grant
  }
  return undefined
}

function firstOf(grants: readonly Grant[] | undefined, request: RuleRequest, missing: string[]): Grant | undefined {
  if (grants === undefined) return undefined
  for (const grant of grants) {
    const { table } = grant.slot
    if (table === undefined) missing.push(grant.slot.missing)
    else if (table.allows(request)) return grant
  }
  return undefined
}

function grantsOf(scope: Scope | undefined, user: User): readonly Grant[] {
  if (scope === undefined) return []
  return [...(scope.users.get(user.name) ?? []), ...user.groups.flatMap((group) => scope.groups.get(group) ?? [])]
}

/** The user name of a subject. A service account without a namespace belongs to the binding's namespace. */
function userOf({ kind, name, namespace = '' }: Subject, bindingNamespace: string): string[] {
  if (kind === 'User') return [name]
  const home = namespace === '' ? bindingNamespace : namespace
  return kind === 'ServiceAccount' && home !== '' ? [`system:serviceaccount:${home}:${name}`] : []
}

function append(map: Map<string, Grant[]>, key: string, grant: Grant): void {
  const list = map.get(key)
  if (list === undefined) map.set(key, [grant])
  else list.push(grant)
}

function withdraw(map: Map<string, Grant[]>, key: string, binding: Binding): void {
  const rest = map.get(key)?.filter((grant) => grant.binding !== binding) ?? []
  if (rest.length === 0) map.delete(key)
  else map.set(key, rest)
}

function slotKey({ kind, name }: Pick<RoleRef, 'kind' | 'name'>, namespace: string): string {
  return kind === 'ClusterRole' ? `ClusterRole/${name}` : `${kind}/${namespace}/${name}`
}

function missingText({ kind, name }: Pick<RoleRef, 'kind' | 'name'>): string {
  if (kind !== 'Role' && kind !== 'ClusterRole') return `unsupported role reference kind: ${goQuote(kind)}`
  return `${kind.toLowerCase()}.rbac.authorization.k8s.io ${goQuote(name)} not found`
}

function allowedBy(source: string): Verdict {
  return Object.freeze({ allowed: true, denied: false, reason: `RBAC: allowed by ${source}` })
}

function headOf(namespace: string, name: string, { kind, name: role }: RoleRef): string {
  const of = `of ${kind} ${goQuote(role)}`
  return namespace === ''
    ? `ClusterRoleBinding ${goQuote(name)} ${of}`
    : `RoleBinding ${goQuote(`${name}/${namespace}`)} ${of}`
}

function subjectText({ kind, name, namespace = '' }: Subject, bindingNamespace: string): string {
  if (kind !== 'ServiceAccount') return `${kind} ${goQuote(name)}`
  return `${kind} ${goQuote(`${name}/${namespace === '' ? bindingNamespace : namespace}`)}`
}
