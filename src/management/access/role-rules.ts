/**
 * Checks the rules of management roles. Rules of the group `management.hyperkube.io` apply to routes of this server,
 * all others to clusters. With `inherits`, a role also includes a ClusterRole of the cluster.
 */
import type { PolicyRule } from '#apis/rbac/v1.ts'
import { bootstrapPolicy } from '#apiserver/bootstrap/roles.ts'
import { forbiddenError } from '#meta/status-errors.ts'
import { describeRights, uncoveredRights } from '#model/rule-coverage.ts'
import { rule } from '#reconcile/controller.ts'

import type { RoleSpec } from '../kinds/access.ts'
import { GROUP } from '../kinds/definition.ts'

/**
 * Verbs that API servers do not know, so that they allow something in the routes only: those refuse to give more than the
 * caller has, which the management API does not.
 */
export type RouteVerb = 'add' | 'create' | 'list' | 'manage'

export const EVERYTHING: readonly PolicyRule[] = [rule('*', '*', '*'), { verbs: ['*'], nonResourceURLs: ['*'] }]

/** Not `GROUP`: a right to everything there is no right to ClusterRoles. */
const INHERITED_GROUP = `inherits.${GROUP}`

/** Each ClusterRole of Kubernetes includes those after it. */
const INHERITANCE = ['admin', 'edit', 'view']

/** The rights that members certainly have. The clusters may add some to the ClusterRoles of Kubernetes. */
export function ownedRules({ rules, inherits }: Pick<RoleSpec, 'rules' | 'inherits'>): readonly PolicyRule[] {
  if (inherits === undefined) return rules
  if (inherits === 'cluster-admin') return EVERYTHING
  const at = INHERITANCE.indexOf(inherits)
  if (at < 0) return [...rules, inherited(inherits)]
  return [...rules, ...INHERITANCE.slice(at).flatMap((name) => [inherited(name), ...knownRules(name)])]
}

/** The rights that members may have. Those of a ClusterRole are unknown here: only its members, and owners, have them all. */
export function grantedRules({ rules, inherits }: Pick<RoleSpec, 'rules' | 'inherits'>): readonly PolicyRule[] {
  if (inherits === undefined) return rules
  return inherits === 'cluster-admin' ? EVERYTHING : [...rules, inherited(inherits)]
}

/** The rules that hold in the clusters themselves. */
export function rulesInCluster(rules: readonly PolicyRule[]): readonly PolicyRule[] {
  return rules.flatMap((one) => {
    if (one.apiGroups === undefined) return [one]
    const apiGroups = one.apiGroups.filter((group) => group !== GROUP)
    return apiGroups.length === 0 ? [] : [{ ...one, apiGroups }]
  })
}

export function allows(rules: readonly PolicyRule[], verb: RouteVerb, resource: string): boolean {
  return uncoveredRights(rules, [rule(GROUP, resource, verb)]).length === 0
}

export function covers(owned: readonly PolicyRule[], wanted: readonly PolicyRule[]): boolean {
  return uncoveredRights(owned, wanted).length === 0
}

/** Throws StatusError 403 with the missing rights. `what` says what needs them. */
export function requireCovered(owned: readonly PolicyRule[], wanted: readonly PolicyRule[], what: string): void {
  const missing = uncoveredRights(owned, wanted)
  if (missing.length === 0) return
  const why = `${what} needs rights that you do not have:\n${describeRights(missing).join('\n')}`
  throw forbiddenError({ group: GROUP, resource: 'roles' }, '', why)
}

function inherited(name: string): PolicyRule {
  return { apiGroups: [INHERITED_GROUP], resources: ['clusterroles'], resourceNames: [name], verbs: ['inherit'] }
}

const known = new Map<string, readonly PolicyRule[]>()

/** Those that every API server gives the ClusterRole, and restores when it starts. */
function knownRules(name: string): readonly PolicyRule[] {
  if (known.size === 0) {
    for (const { metadata, rules } of bootstrapPolicy(() => false).clusterRoles)
      known.set(metadata.name ?? '', rules ?? [])
  }
  return known.get(`system:aggregate-to-${name}`) ?? []
}
