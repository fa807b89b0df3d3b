/**
 * Builds the RBAC objects for a managed cluster: they bind the groups of the management server's roles to
 * ClusterRoles. No object names a single user, because each request carries the user's roles as groups.
 */
import type { ClusterRole, ClusterRoleBinding, PolicyRule, RoleBinding } from '#apis/rbac/v1.ts'

import { USUAL_PROJECT_ROLES } from '../access/built-in-roles.ts'
import { CLUSTER_OWNER, clusterGroup, globalGroup, projectGroup } from '../access/memberships.ts'
import { rulesInCluster } from '../access/role-rules.ts'
import type { Member, Project, Role } from '../kinds/access.ts'

const RBAC = 'rbac.authorization.k8s.io'
/** Everything with this label belongs to the management server and is deleted when it is not wanted any more. */
export const MANAGED_LABEL = 'management.hyperkube.io/managed'

export interface AccessObjects {
  readonly clusterRoles: readonly ClusterRole[]
  readonly clusterRoleBindings: readonly ClusterRoleBinding[]
  readonly roleBindings: readonly RoleBinding[]
}

export interface AccessPlan {
  readonly roles: readonly Role[]
  /** Of the cluster. */
  readonly projects: readonly Project[]
  /** Those with a project. */
  readonly members: readonly Member[]
}

/** For the cluster: its cluster roles, and in the namespaces of each project the usual roles and those that a member has. */
export function accessObjects({ roles, projects, members }: AccessPlan): AccessObjects {
  const clusterRoles = roles.filter(({ spec }) => spec.scope === 'cluster')
  const projectRoles = roles.filter(({ spec }) => spec.scope === 'project')
  const own = [...clusterRoles, ...projectRoles].filter(({ spec }) => rulesInCluster(spec.rules).length > 0)
  const views = projects.filter(({ spec }) => (spec.namespaces ?? []).length > 0)
  const used = new Set(members.map(({ spec }) => `${spec.project} ${spec.role}`))
  const isBound = (project: Project, role: Role): boolean =>
    USUAL_PROJECT_ROLES.has(nameOf(role)) || used.has(`${nameOf(project)} ${nameOf(role)}`)
  return {
    clusterRoles: [
      ...own.map((role) => clusterRole(roleName(role), rulesInCluster(role.spec.rules))),
      ...views.map((project) => clusterRole(viewName(project), namespacesRule(project))),
    ],
    clusterRoleBindings: [
      ...clusterRoles.flatMap((role) => {
        const group = clusterGroup(nameOf(role))
        return boundRoles(role).map(({ suffix, clusterRole: bound }) => bindCluster(group + suffix, bound, [group]))
      }),
      ...views.map((project) =>
        bindCluster(
          viewName(project),
          viewName(project),
          projectRoles.map((role) => projectGroup(nameOf(project), nameOf(role))),
        ),
      ),
    ],
    roleBindings: views.flatMap((project) => {
      const bound = projectRoles.filter((role) => isBound(project, role))
      return (project.spec.namespaces ?? []).flatMap((namespace) =>
        bound.flatMap((role) => bindNamespace(namespace, project, role)),
      )
    }),
  }
}

interface BoundRole {
  /** Of the name of the binding. */
  readonly suffix: string
  readonly clusterRole: string
}

/** The ClusterRole that the role inherits, and that of the rules in it. A binding has one role. */
function boundRoles(role: Role): readonly BoundRole[] {
  const { inherits, rules } = role.spec
  const inherited = inherits === undefined ? [] : [{ suffix: '', clusterRole: inherits }]
  if (rulesInCluster(rules).length === 0) return inherited
  return [...inherited, { suffix: inherits === undefined ? '' : ':rules', clusterRole: roleName(role) }]
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

function bindNamespace(namespace: string, project: Project, role: Role): readonly RoleBinding[] {
  const group = projectGroup(nameOf(project), nameOf(role))
  return boundRoles(role).map(({ suffix, clusterRole: bound }) => ({
    apiVersion: `${RBAC}/v1`,
    kind: 'RoleBinding',
    metadata: { namespace, name: group + suffix, labels },
    roleRef: { apiGroup: RBAC, kind: 'ClusterRole', name: bound },
    subjects: [{ apiGroup: RBAC, kind: 'Group', name: group }],
  }))
}
