/**
 * Plans updates of the default RBAC roles and bindings: adds missing parts and keeps additions of users. An object
 * annotated `autoupdate: "false"` is skipped. Pure: compares existing with wanted objects and returns the action.
 */
import type { ClusterRole, ClusterRoleBinding, Role, RoleBinding, Subject } from '#apis/rbac/v1.ts'
import { type KubeObject, semanticEqual } from '#meta/object.ts'
import { uncoveredRights } from '#model/rule-coverage.ts'

import { AUTO_UPDATE } from './roles.ts'

type RoleLike = Role | ClusterRole
type BindingLike = RoleBinding | ClusterRoleBinding
type PolicyObject = RoleLike | BindingLike

export type ReconcilePlan<T extends KubeObject> =
  | { readonly action: 'none' }
  | { readonly action: 'create' | 'update'; readonly object: T }
  /** The role of a binding is immutable: delete, then create. */
  | { readonly action: 'recreate'; readonly object: T }

/** `existing` is absent if there is none; it is not modified. */
export function planReconcile<T extends PolicyObject>(existing: T | undefined, wanted: T): ReconcilePlan<T> {
  if (existing === undefined) return { action: 'create', object: wanted }
  if (existing.metadata.annotations?.[AUTO_UPDATE] === 'false') return { action: 'none' }
  if (isBinding(existing) && isBinding(wanted) && !semanticEqual(existing.roleRef, wanted.roleRef)) {
    return { action: 'recreate', object: wanted }
  }
  const object = {
    ...existing,
    metadata: {
      ...existing.metadata,
      labels: { ...wanted.metadata.labels, ...existing.metadata.labels },
      annotations: { ...wanted.metadata.annotations, ...existing.metadata.annotations },
    },
    ...(isBinding(existing)
      ? joinedSubjects(existing, wanted as BindingLike)
      : joinedRules(existing, wanted as RoleLike)),
  }
  // A role without aggregation must not keep an aggregation rule: the controller would overwrite its rules.
  if ('aggregationRule' in object && !('aggregationRule' in wanted)) delete object.aggregationRule
  return semanticEqual(object, existing) ? { action: 'none' } : { action: 'update', object }
}

function isBinding(object: PolicyObject): object is BindingLike {
  return 'roleRef' in object
}

function joinedSubjects({ subjects = [] }: BindingLike, wanted: BindingLike): { subjects?: Subject[] } {
  const missing = (wanted.subjects ?? []).filter((one) => !subjects.some((there) => sameSubject(there, one)))
  return missing.length === 0 ? {} : { subjects: [...subjects, ...missing] }
}

function sameSubject(a: Subject, b: Subject): boolean {
  return (
    a.kind === b.kind &&
    a.name === b.name &&
    (a.apiGroup ?? '') === (b.apiGroup ?? '') &&
    (a.namespace ?? '') === (b.namespace ?? '')
  )
}

function joinedRules(existing: RoleLike, wanted: RoleLike): Partial<ClusterRole> {
  const rules = existing.rules ?? []
  const missing = uncoveredRights(rules, wanted.rules ?? [])
  return {
    ...(missing.length === 0 ? {} : { rules: [...rules, ...missing] }),
    ...joinedSelectors(existing, wanted),
  }
}

function joinedSelectors(
  existing: RoleLike & Partial<ClusterRole>,
  wanted: RoleLike & Partial<ClusterRole>,
): Partial<ClusterRole> {
  const there = existing.aggregationRule?.clusterRoleSelectors ?? []
  const missing = (wanted.aggregationRule?.clusterRoleSelectors ?? []).filter(
    (one) => !there.some((selector) => semanticEqual(selector, one)),
  )
  return missing.length === 0 ? {} : { aggregationRule: { clusterRoleSelectors: [...there, ...missing] } }
}
