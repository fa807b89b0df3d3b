/** The built-in roles of the management server, which it restores at each start. */
import type { PolicyRule } from '#apis/rbac/v1.ts'
import { rule } from '#reconcile/controller.ts'

import type { RoleSpec, Scope } from '../kinds/access.ts'
import { ADMINISTRATOR, CLUSTER_OWNER } from './memberships.ts'

const EVERYTHING: readonly PolicyRule[] = [rule('*', '*', '*'), { verbs: ['*'], nonResourceURLs: ['*'] }]

function role(scope: Scope, displayName: string, more: Partial<RoleSpec> = {}): RoleSpec {
  return { scope, displayName, rules: [], ...more }
}

/** `inherits` names a ClusterRole that every Kubernetes cluster has. */
export const BUILT_IN_ROLES: Readonly<Record<string, RoleSpec>> = {
  [ADMINISTRATOR]: role('global', 'Administrator', { rules: EVERYTHING }),
  user: role('global', 'User', { isDefault: true }),
  'clusters-create': role('global', 'Create Clusters'),
  [CLUSTER_OWNER]: role('cluster', 'Cluster Owner', { inherits: 'cluster-admin' }),
  'cluster-member': role('cluster', 'Cluster Member', {
    rules: [
      rule('', 'namespaces nodes persistentvolumes events', 'get list watch'),
      rule('storage.k8s.io', 'storageclasses', 'get list watch'),
      rule('apiextensions.k8s.io', 'customresourcedefinitions', 'get list watch'),
      rule('metrics.k8s.io', 'nodes pods', 'get list'),
    ],
  }),
  'cluster-read-only': role('cluster', 'Cluster Read-Only', { inherits: 'view' }),
  'nodes-view': role('cluster', 'View Nodes', {
    rules: [rule('', 'nodes', 'get list watch'), rule('metrics.k8s.io', 'nodes', 'get list')],
  }),
  'nodes-manage': role('cluster', 'Manage Nodes', { rules: [rule('', 'nodes', '*')] }),
  'storage-manage': role('cluster', 'Manage Storage', {
    rules: [rule('', 'persistentvolumes', '*'), rule('storage.k8s.io', '*', '*')],
  }),
  'project-owner': role('project', 'Project Owner', { inherits: 'admin' }),
  'project-member': role('project', 'Project Member', { inherits: 'edit' }),
  'project-read-only': role('project', 'Read-Only', { inherits: 'view' }),
}
