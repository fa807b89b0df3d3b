/** The built-in roles of the management server, which it restores at each start. */
import type { PolicyRule } from '#apis/rbac/v1.ts'
import { rule } from '#reconcile/controller.ts'

import type { RoleSpec, Scope } from '../kinds/access.ts'
import { GROUP } from '../kinds/definition.ts'
import { ADMINISTRATOR, CLUSTER_OWNER } from './memberships.ts'
import { EVERYTHING } from './role-rules.ts'

export const PROJECT_OWNER = 'project-owner'

const READ = 'get list watch'
const WRITE = 'create delete deletecollection get list patch update watch'

function role(scope: Scope, displayName: string, more: Partial<RoleSpec> = {}): RoleSpec {
  return { scope, displayName, rules: [], ...more }
}

/** For the routes of this server: see `RouteVerb`. */
function routes(resources: string, verbs: string): PolicyRule {
  return rule(GROUP, resources, verbs)
}

const GLOBAL_ROLES: Readonly<Record<string, RoleSpec>> = {
  [ADMINISTRATOR]: role('global', 'Administrator', { rules: EVERYTHING }),
  user: role('global', 'User', { isDefault: true }),
  'user-base': role('global', 'Log-In Only'),
  'clusters-create': role('global', 'Create Clusters', { rules: [routes('clusters', 'add')] }),
  'clustertemplates-create': role('global', 'Create Cluster Templates', { rules: [routes('clustertemplates', 'add')] }),
  'users-manage': role('global', 'Manage Users', { rules: [routes('users members', `${READ} manage`)] }),
  'roles-manage': role('global', 'Manage Roles', { rules: [routes('roles', `${READ} manage`)] }),
  'metrics-view': role('global', 'View Metrics', {
    rules: [{ verbs: ['get'], nonResourceURLs: ['/metrics', '/metrics/*'] }],
  }),
}

/** `inherits` names a ClusterRole that every Kubernetes cluster has. */
const CLUSTER_ROLES: Readonly<Record<string, RoleSpec>> = {
  [CLUSTER_OWNER]: role('cluster', 'Cluster Owner', { inherits: 'cluster-admin' }),
  'cluster-member': role('cluster', 'Cluster Member', {
    rules: [
      rule('', 'namespaces nodes persistentvolumes events', READ),
      rule('storage.k8s.io', 'storageclasses', READ),
      rule('apiextensions.k8s.io', 'customresourcedefinitions', READ),
      rule('metrics.k8s.io', 'nodes pods', 'get list'),
      routes('projects members', 'list'),
    ],
  }),
  'cluster-read-only': role('cluster', 'Cluster Read-Only', {
    inherits: 'view',
    rules: [routes('projects members', 'list')],
  }),
  'projects-create': role('cluster', 'Create Projects', { rules: [routes('projects', 'create')] }),
  'projects-view': role('cluster', 'View Projects', { rules: [routes('projects', 'list')] }),
  'members-manage': role('cluster', 'Manage Members', { rules: [routes('members', 'list manage')] }),
  'members-view': role('cluster', 'View Members', { rules: [routes('members', 'list')] }),
  'nodes-view': role('cluster', 'View Nodes', {
    rules: [rule('', 'nodes', READ), rule('metrics.k8s.io', 'nodes', 'get list')],
  }),
  'nodes-manage': role('cluster', 'Manage Nodes', { rules: [rule('', 'nodes', '*')] }),
  'storage-manage': role('cluster', 'Manage Storage', {
    rules: [rule('', 'persistentvolumes', '*'), rule('storage.k8s.io', '*', '*')],
  }),
}

/** Resources of projects: for each a role that manages them and one that reads them. */
const PROJECT_RESOURCES: Readonly<Record<string, (verbs: string) => readonly PolicyRule[]>> = {
  workloads: (verbs) => [
    rule('apps', 'daemonsets deployments replicasets statefulsets', verbs),
    rule('batch', 'cronjobs jobs', verbs),
    rule('', 'pods', verbs),
    rule('', 'pods/log events', READ),
  ],
  ingress: (verbs) => [rule('networking.k8s.io', 'ingresses', verbs)],
  services: (verbs) => [
    rule('', 'services', verbs),
    rule('', 'endpoints', READ),
    rule('discovery.k8s.io', 'endpointslices', READ),
  ],
  secrets: (verbs) => [rule('', 'secrets', verbs)],
  configmaps: (verbs) => [rule('', 'configmaps', verbs)],
  persistentvolumeclaims: (verbs) => [rule('', 'persistentvolumeclaims', verbs)],
  serviceaccounts: (verbs) => [rule('', 'serviceaccounts', verbs)],
}

const PROJECT_ROLES: Readonly<Record<string, RoleSpec>> = {
  [PROJECT_OWNER]: role('project', 'Project Owner', {
    inherits: 'admin',
    rules: [routes('members', 'list manage'), routes('namespaces', 'create manage'), routes('projects', 'manage')],
  }),
  'project-member': role('project', 'Project Member', {
    inherits: 'edit',
    rules: [routes('members', 'list'), routes('namespaces', 'create')],
  }),
  'project-read-only': role('project', 'Read-Only', { inherits: 'view', rules: [routes('members', 'list')] }),
  'create-ns': role('project', 'Create Namespaces', { rules: [routes('namespaces', 'create')] }),
  'project-members-manage': role('project', 'Manage Members', { rules: [routes('members', 'list manage')] }),
  'project-members-view': role('project', 'View Members', { rules: [routes('members', 'list')] }),
  ...Object.fromEntries(
    Object.entries(PROJECT_RESOURCES).flatMap(([name, rulesFor]) => [
      [`${name}-manage`, role('project', `Manage ${title(name)}`, { rules: rulesFor(WRITE) })],
      [`${name}-view`, role('project', `View ${title(name)}`, { rules: rulesFor(READ) })],
    ]),
  ),
}

function title(name: string): string {
  return name.charAt(0).toUpperCase() + name.slice(1)
}

export const BUILT_IN_ROLES: Readonly<Record<string, RoleSpec>> = {
  ...GLOBAL_ROLES,
  ...CLUSTER_ROLES,
  ...PROJECT_ROLES,
}

/** Every namespace of a project has bindings for these, so that a new member needs no change in the cluster. */
export const USUAL_PROJECT_ROLES: ReadonlySet<string> = new Set([PROJECT_OWNER, 'project-member', 'project-read-only'])
