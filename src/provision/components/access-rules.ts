/** Lists the RBAC objects that a built cluster has in addition to Kubernetes' defaults. Pure. */
import { stringifyYaml } from '#lib/yaml/yaml.ts'

import { type ClusterFile, holdsPolicies } from '../cluster.ts'
import { CLUSTER_AGENT_USER, NETWORK_POLICIES } from '../pki/plan.ts'

/**
 * API servers may call kubelets, flannel of every node may list nodes, and kube-network-policies may read policies and
 * the objects they select. The agent of a management server may speak for its users.
 */
export function accessManifest(cluster: Pick<ClusterFile, 'network' | 'management'>): string {
  const rbac = { apiVersion: 'rbac.authorization.k8s.io/v1' }
  const group = { apiGroup: 'rbac.authorization.k8s.io' }
  const documents = [
    {
      ...rbac,
      kind: 'ClusterRoleBinding',
      metadata: { name: 'hyperkube:kube-apiserver' },
      roleRef: { ...group, kind: 'ClusterRole', name: 'system:kubelet-api-admin' },
      subjects: [{ ...group, kind: 'User', name: 'kube-apiserver' }],
    },
    {
      ...rbac,
      kind: 'ClusterRole',
      metadata: { name: 'hyperkube:flannel' },
      rules: [{ apiGroups: [''], resources: ['nodes'], verbs: ['get', 'list', 'watch'] }],
    },
    {
      ...rbac,
      kind: 'ClusterRoleBinding',
      metadata: { name: 'hyperkube:flannel' },
      roleRef: { ...group, kind: 'ClusterRole', name: 'hyperkube:flannel' },
      subjects: [{ ...group, kind: 'Group', name: 'system:nodes' }],
    },
    ...(holdsPolicies(cluster) ? policyAccess(rbac, group) : []),
    ...(cluster.management === undefined ? [] : agentAccess(rbac, group)),
  ]
  return documents.map((each) => stringifyYaml(each)).join('---\n')
}

function policyAccess(rbac: object, group: object): object[] {
  const name = `system:${NETWORK_POLICIES}`
  const verbs = ['get', 'list', 'watch']
  const rules = [
    { apiGroups: [''], resources: ['pods', 'namespaces', 'nodes'], verbs },
    { apiGroups: ['networking.k8s.io'], resources: ['networkpolicies'], verbs },
  ]
  return roleOf(name, rules, { rbac, group })
}

/** A ClusterRole, and its binding to the user of this name. */
function roleOf(
  name: string,
  rules: readonly object[],
  { rbac, group }: { readonly rbac: object; readonly group: object },
): object[] {
  return [
    { ...rbac, kind: 'ClusterRole', metadata: { name }, rules },
    {
      ...rbac,
      kind: 'ClusterRoleBinding',
      metadata: { name },
      roleRef: { ...group, kind: 'ClusterRole', name },
      subjects: [{ ...group, kind: 'User', name }],
    },
  ]
}

/** The group of owners, through which the management server itself acts. */
const OWNERS = 'hk:cluster:cluster-owner'

/** The agent checks the names of users and groups, because RBAC has no prefixes. */
function agentAccess(rbac: object, group: object): object[] {
  const name = CLUSTER_AGENT_USER
  const rules = [
    { apiGroups: [''], resources: ['users', 'groups'], verbs: ['impersonate'] },
    { apiGroups: [''], resources: ['namespaces'], resourceNames: ['kube-system'], verbs: ['get'] },
  ]
  return [
    ...roleOf(name, rules, { rbac, group }),
    {
      ...rbac,
      kind: 'ClusterRoleBinding',
      metadata: { name: OWNERS, labels: { 'management.hyperkube.io/managed': 'true' } },
      roleRef: { ...group, kind: 'ClusterRole', name: 'cluster-admin' },
      subjects: [{ ...group, kind: 'Group', name: OWNERS }],
    },
  ]
}
