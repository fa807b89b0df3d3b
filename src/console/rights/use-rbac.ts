/** Follows the roles and bindings of a cluster. Kinds that the user may not list are left out, and named. */
import { useMemo } from 'preact/hooks'

import type { ClusterRole, ClusterRoleBinding, Role, RoleBinding } from '#apis/rbac/v1.ts'

import { clusterPath, type KindAddress, listPath } from '../api/kinds.ts'
import { type LiveObjects, useLive } from '../objects/live.ts'
import { allGrants, type Grant } from './rbac.ts'

export interface Rbac {
  readonly grants: readonly Grant[]
  readonly isLoading: boolean
  /** Reasons why the grants are not all, or not the latest. */
  readonly warnings: readonly string[]
  /** All four lists were refused. */
  readonly isRefused: boolean
}

const KINDS = ['clusterroles', 'clusterrolebindings', 'roles', 'rolebindings'] as const
type Plural = (typeof KINDS)[number]

function addressOf(plural: Plural): KindAddress {
  return { group: 'rbac.authorization.k8s.io', version: 'v1', plural }
}

/** So that lists of several pages are read whole. */
const keepAll = (): boolean => true

/** With a namespace, the roles and bindings of the others are not read. */
export function useRbac(cluster: string, namespace: string): Rbac {
  const list = (plural: Plural, inside = ''): LiveObjects =>
    useLive(clusterPath(cluster, listPath(addressOf(plural), inside)), keepAll)
  const clusterRoles = list('clusterroles')
  const clusterRoleBindings = list('clusterrolebindings')
  const roles = list('roles', namespace)
  const roleBindings = list('rolebindings', namespace)
  const all = [clusterRoles, clusterRoleBindings, roles, roleBindings]
  const grants = useMemo(
    () =>
      allGrants({
        clusterRoles: clusterRoles.objects as readonly ClusterRole[],
        clusterRoleBindings: clusterRoleBindings.objects as readonly ClusterRoleBinding[],
        roles: roles.objects as readonly Role[],
        roleBindings: roleBindings.objects as readonly RoleBinding[],
      }),
    all.map(({ objects }) => objects),
  )
  return {
    grants,
    isLoading: all.some(({ state }) => state.type === 'loading'),
    warnings: all.flatMap((one, at) => warningsOf(one, KINDS[at] ?? 'roles')),
    isRefused: all.every(({ state }) => state.type === 'failed'),
  }
}

function warningsOf({ state, isWhole }: LiveObjects, plural: Plural): readonly string[] {
  if (state.type === 'failed') return [`Without ${plural}: ${state.message}`]
  if (state.type === 'stale')
    return [`${state.message}: ${plural} as of ${new Date(state.sinceMs).toLocaleTimeString()}`]
  return isWhole ? [] : [`The cluster has more ${plural} than this page reads`]
}
