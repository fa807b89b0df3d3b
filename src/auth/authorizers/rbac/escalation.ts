/**
 * The escalation check: a user who writes or binds a role needs every permission in it. Users with the verbs `escalate`
 * or `bind` are exempt. Upstream's pkg/registry/rbac, v1.36.
 */
import type { ClusterRole, ClusterRoleBinding, PolicyRule, Role, RoleBinding, RoleRef } from '#apis/rbac/v1.ts'
import { goQuote } from '#lib/go/text.ts'
import { type KubeObject, semanticEqual } from '#meta/object.ts'
import { forbiddenError, internalError, notFoundError } from '#meta/status-errors.ts'
import type { StatusError } from '#meta/status.ts'
import { describeRights, quotedList, uncoveredRights } from '#model/rule-coverage.ts'

import { type Access, aggregatedText, type Authorizer, PRIVILEGED_GROUP, resourceAccess } from '../../authorizer.ts'
import type { User } from '../../user.ts'
import type { RbacIndex } from './rbac.ts'

const GROUP = 'rbac.authorization.k8s.io'

/** An aggregated role can receive any right. */
const EVERYTHING: readonly PolicyRule[] = [
  { verbs: ['*'], apiGroups: ['*'], resources: ['*'] },
  { verbs: ['*'], nonResourceURLs: ['*'] },
]

export interface EscalationParts {
  /** Authorizes `escalate` and `bind`. */
  readonly authorizer: Authorizer
  /** Resolves the rules of the writer and of roles. */
  readonly index: Pick<RbacIndex, 'resolve' | 'rulesOf'>
}

/** Checks for the four RBAC kinds. `old` is absent on create. All throw StatusError 403. */
export interface EscalationChecks {
  roleWrite(user: User, next: Role | ClusterRole, old: Role | ClusterRole | undefined): Promise<void>
  bindingWrite(
    user: User,
    next: RoleBinding | ClusterRoleBinding,
    old: RoleBinding | ClusterRoleBinding | undefined,
  ): Promise<void>
}

export function createEscalationChecks(parts: EscalationParts): EscalationChecks {
  const may = async (user: User, access: Access): Promise<boolean> =>
    (await parts.authorizer.authorize(user, access)).allowed
  return {
    async roleWrite(user, next, old) {
      if (isPrivileged(user) || (old !== undefined && changesOnlyOwnership(next, old))) return
      const { namespace = '', name = '' } = next.metadata
      const resource = namespace === '' ? 'clusterroles' : 'roles'
      // As upstream, a right to escalate one named role does not include creating it.
      const target = { group: GROUP, version: '*', resource, namespace, name: old === undefined ? '' : name }
      if (await may(user, resourceAccess({ verb: 'escalate', ...target }))) return
      const holder = { parts, user, namespace }
      const refuse = (why: string): StatusError => forbiddenError({ group: GROUP, resource }, name, why)
      const problem = findEscalation(holder, next.rules ?? [])
      if (problem !== undefined) throw refuse(problem)
      if ((aggregates(next) || aggregates(old)) && findEscalation(holder, EVERYTHING) !== undefined)
        throw refuse('must have cluster-admin privileges to use the aggregationRule')
    },
    async bindingWrite(user, next, old) {
      if (isPrivileged(user) || (old !== undefined && changesOnlyOwnership(next, old))) return
      const { namespace = '', name = '' } = next.metadata
      const access = bindAccess(next.roleRef, namespace)
      if (access !== undefined && (await may(user, access))) return
      const problem = findEscalation({ parts, user, namespace }, referredRules(parts, next.roleRef, namespace))
      const resource = namespace === '' ? 'clusterrolebindings' : 'rolebindings'
      if (problem !== undefined) throw forbiddenError({ group: GROUP, resource }, name, problem)
    },
  }
}

function isPrivileged({ groups }: User): boolean {
  return groups.includes(PRIVILEGED_GROUP)
}

/** The garbage collector may remove owner references from roles that it could not write otherwise. */
function changesOnlyOwnership(next: KubeObject, old: KubeObject): boolean {
  return semanticEqual(withoutOwnership(next), withoutOwnership(old))
}

function withoutOwnership(object: KubeObject): object {
  const { kind: _kind, apiVersion: _version, metadata, ...rest } = object
  const {
    ownerReferences: _owners,
    finalizers: _finalizers,
    selfLink: _link,
    managedFields: _fields,
    ...others
  } = metadata
  return { ...rest, metadata: others }
}

function aggregates(role: Role | ClusterRole | undefined): boolean {
  return (
    role !== undefined && 'aggregationRule' in role && (role.aggregationRule?.clusterRoleSelectors?.length ?? 0) > 0
  )
}

/** Authorized in the binding's namespace: a right to bind a cluster role in one namespace grants nothing elsewhere. */
function bindAccess({ kind, apiGroup, name }: RoleRef, namespace: string): Access | undefined {
  if (kind !== 'ClusterRole' && kind !== 'Role') return undefined
  const resource = kind === 'ClusterRole' ? 'clusterroles' : 'roles'
  return resourceAccess({ verb: 'bind', group: apiGroup, version: '*', resource, namespace, name })
}

function referredRules({ index }: EscalationParts, ref: RoleRef, namespace: string): readonly PolicyRule[] {
  const rules = index.rulesOf(ref, namespace)
  if (typeof rules !== 'string') return rules
  if (ref.kind !== 'ClusterRole' && ref.kind !== 'Role') throw internalError(new Error(rules))
  throw notFoundError({ group: GROUP, resource: ref.kind.toLowerCase() }, ref.name)
}

interface Holder {
  readonly parts: EscalationParts
  readonly user: User
  readonly namespace: string
}

/** The error text for missing rights. */
function findEscalation({ parts, user, namespace }: Holder, wanted: readonly PolicyRule[]): string | undefined {
  const { rules, errors } = parts.index.resolve(user, namespace)
  const missing = uncoveredRights(rules, wanted)
  if (missing.length === 0) return undefined
  const who = `user ${goQuote(user.name)} (groups=${quotedList(user.groups)})`
  const text = `${who} is attempting to grant RBAC permissions not currently held:\n${describeRights(missing).join('\n')}`
  return errors.length === 0 ? text : `${text}; resolution errors: [${aggregatedText(errors)}]`
}
