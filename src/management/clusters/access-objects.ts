/**
 * Builds the RBAC objects for a managed cluster: they bind the groups of the management server's roles to
 * ClusterRoles. No object names a single user, because each request carries the user's roles as groups.
 */
import type { ClusterRole, ClusterRoleBinding, PolicyRule, RoleBinding } from '#apis/rbac/v1.ts'

import { CLUSTER_OWNER, clusterGroup, globalGroup, projectGroup } from '../access/memberships.ts'
import type { Project, Role } from '../kinds/access.ts'

const RBAC = 'rbac.authorization.k8s.io'
/** Everything with this label belongs to the management server and is deleted when it is not wanted any more. */
export const MANAGED_LABEL = 'management.hyperkube.io/managed'

export interface AccessObjects {
  readonly clusterRoles: readonly ClusterRole[]
  readonly clusterRoleBindings: readonly ClusterRoleBinding[]
  readonly roleBindings: readonly RoleBinding[]
}

/** For the cluster: its cluster roles, and the roles of its projects in their namespaces. */
export function accessObjects(roles: readonly Role[], projects: readonly Project[]): AccessObjects {
  const clusterRoles = roles.filter(({ spec }) => spec.scope === 'cluster')
  const projectRoles = roles.filter(({ spec }) => spec.scope === 'project')
  const own = [...clusterRoles, ...projectRoles].filter(({ spec }) => spec.inherits === undefined)
  const views = projects.filter(({ spec }) => (spec.namespaces ?? []).length > 0)
  return {
    clusterRoles: [
      ...own.map((role) => clusterRole(roleName(role), role.spec.rules)),
      ...views.map((project) => clusterRole(viewName(project), namespacesRule(project))),
    ],
    clusterRoleBindings: [
      ...clusterRoles.map((role) =>
        bindCluster(clusterGroup(nameOf(role)), clusterRoleOf(role), [clusterGroup(nameOf(role))]),
      ),
      ...views.map((project) =>
        bindCluster(
          viewName(project),
          viewName(project),
          projectRoles.map((role) => projectGroup(nameOf(project), nameOf(role))),
        ),
      ),
    ],
    roleBindings: projects.flatMap((project) =>
      (project.spec.namespaces ?? []).flatMap((namespace) =>
        projectRoles.map((role) =>
          bindNamespace(namespace, projectGroup(nameOf(project), nameOf(role)), clusterRoleOf(role)),
        ),
      ),
    ),
  }
}

/** Gives the server, and owners of the cluster, every right. It must exist before the server can make other bindings. */
export function ownerBinding(): ClusterRoleBinding {
  const group = clusterGroup(CLUSTER_OWNER)
  return bindCluster(group, 'cluster-admin', [group])
}

/** For the management API: its global roles. */
export function managementAccessObjects(roles: readonly Role[]): AccessObjects {
  const global = roles.filter(({ spec }) => spec.scope === 'global' && spec.rules.length > 0)
  return {
    clusterRoles: global.map((role) => clusterRole(globalGroup(nameOf(role)), role.spec.rules)),
    clusterRoleBindings: global.map((role) => {
      const group = globalGroup(nameOf(role))
      return bindCluster(group, group, [group])
    }),
    roleBindings: [],
  }
}

function nameOf({ metadata }: Role | Project): string {
  return metadata.name ?? ''
}

function roleName(role: Role): string {
  return `hk:${role.spec.scope}:${nameOf(role)}`
}

function clusterRoleOf(role: Role): string {
  return role.spec.inherits ?? roleName(role)
}

function viewName(project: Project): string {
  return `hk:namespaces:${nameOf(project)}`
}

function namespacesRule({ spec }: Project): readonly PolicyRule[] {
  return [{ apiGroups: [''], resources: ['namespaces'], resourceNames: [...(spec.namespaces ?? [])], verbs: ['get'] }]
}

const labels = { [MANAGED_LABEL]: 'true' }

function clusterRole(name: string, rules: readonly PolicyRule[]): ClusterRole {
  return { apiVersion: `${RBAC}/v1`, kind: 'ClusterRole', metadata: { name, labels }, rules: [...rules] }
}

function bindCluster(name: string, role: string, groups: readonly string[]): ClusterRoleBinding {
  return {
    apiVersion: `${RBAC}/v1`,
    kind: 'ClusterRoleBinding',
    metadata: { name, labels },
    roleRef: { apiGroup: RBAC, kind: 'ClusterRole', name: role },
    subjects: groups.map((group) => ({ apiGroup: RBAC, kind: 'Group', name: group })),
  }
}

function bindNamespace(namespace: string, group: string, role: string): RoleBinding {
  return {
    apiVersion: `${RBAC}/v1`,
    kind: 'RoleBinding',
    metadata: { namespace, name: group, labels },
    roleRef: { apiGroup: RBAC, kind: 'ClusterRole', name: role },
    subjects: [{ apiGroup: RBAC, kind: 'Group', name: group }],
  }
}
