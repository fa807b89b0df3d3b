/**
 * The default RBAC roles and bindings of every cluster. The server updates them at each start unless the annotation
 * `autoupdate` disables it.
 */
import type { ClusterRole, ClusterRoleBinding, PolicyRule, Role, RoleBinding, Subject } from '#apis/rbac/v1.ts'
import type { ObjectMeta } from '#meta/object.ts'

import { clusterRoleTable } from './cluster-role-table.ts'
import { controllerRoleTable } from './controller-role-table.ts'
import { parseRights, type RoleTable } from './role-text.ts'

export const AUTO_UPDATE = 'rbac.authorization.kubernetes.io/autoupdate'

const API_GROUP = 'rbac.authorization.k8s.io'
const AGGREGATE = 'rbac.authorization.k8s.io/aggregate-to-'
const CONTROLLER = 'system:controller:'

export interface BootstrapPolicy {
  readonly clusterRoles: readonly ClusterRole[]
  readonly clusterRoleBindings: readonly ClusterRoleBinding[]
  readonly roles: readonly Role[]
  readonly roleBindings: readonly RoleBinding[]
}

export function bootstrapPolicy(isEnabled: (gate: string) => boolean): BootstrapPolicy {
  const clusterRoles = [
    clusterRole('cluster-admin', EVERYTHING),
    ...GATHERING.map(([name, into]) => gathering(name, into)),
    ...rolesFrom(clusterRoleTable, '', isEnabled),
    ...rolesFrom(controllerRoleTable, CONTROLLER, isEnabled),
  ]
  const names = new Set(clusterRoles.map(({ metadata }) => metadata.name))
  const bindings: [string, string][] = [
    ...Object.entries(CLUSTER_BINDINGS),
    ...Object.keys(controllerRoleTable).map((name): [string, string] => [`${CONTROLLER}${name}`, account(name)]),
  ]
  return {
    clusterRoles,
    clusterRoleBindings: bindings.filter(([name]) => names.has(name)).map(([name, who]) => clusterBinding(name, who)),
    roles: NAMESPACED.map(({ namespace, name, rights }) => role(namespace, name, parseRights(rights, isEnabled))),
    roleBindings: NAMESPACED.map((one) => binding(one)),
  }
}

/** The rules of the role `system:node`, for the node authorizer. */
export function nodeRules(isEnabled: (gate: string) => boolean): PolicyRule[] {
  return parseRights(clusterRoleTable['system:node'] ?? [], isEnabled)
}

const EVERYTHING: readonly PolicyRule[] = [
  { verbs: ['*'], apiGroups: ['*'], resources: ['*'] },
  { verbs: ['*'], nonResourceURLs: ['*'] },
]

/** Aggregated roles: a controller collects their rules from all roles with a label. */
const GATHERING: readonly (readonly [name: string, into: string | undefined])[] = [
  ['admin', undefined],
  ['edit', 'admin'],
  ['view', 'edit'],
]

/** The default bindings of cluster roles. */
const CLUSTER_BINDINGS: Readonly<Record<string, string>> = {
  'cluster-admin': 'group:system:masters',
  'system:basic-user': 'group:system:authenticated',
  'system:cluster-trust-bundle-discovery': 'group:system:serviceaccounts',
  'system:discovery': 'group:system:authenticated',
  'system:kube-controller-manager': 'user:system:kube-controller-manager',
  'system:kube-dns': account('kube-dns'),
  'system:kube-scheduler': 'user:system:kube-scheduler',
  'system:monitoring': 'group:system:monitoring',
  // The node authorizer decides about nodes.
  'system:node': '',
  'system:node-proxier': 'user:system:kube-proxy',
  'system:public-info-viewer': 'group:system:authenticated group:system:unauthenticated',
  'system:service-account-issuer-discovery': 'group:system:serviceaccounts',
  'system:volume-scheduler': 'user:system:kube-scheduler',
}

interface NamespacedRole {
  readonly namespace: string
  readonly name: string
  readonly rights: readonly string[]
  readonly subjects: string
  /** Bindings with other names. */
  readonly bindingName?: string
}

const LEADER: readonly string[] = [
  'read create update: leases @ coordination.k8s.io',
  'read create update: leasecandidates @ coordination.k8s.io',
]
const EVENTS = 'create patch update: events @ core events.k8s.io'

const NAMESPACED: readonly NamespacedRole[] = [
  {
    namespace: 'kube-public',
    name: 'system:controller:bootstrap-signer',
    rights: ['read: configmaps', 'update: configmaps = cluster-info', EVENTS],
    subjects: account('bootstrap-signer'),
  },
  {
    namespace: 'kube-system',
    name: 'extension-apiserver-authentication-reader',
    bindingName: 'system::extension-apiserver-authentication-reader',
    rights: ['read: configmaps = extension-apiserver-authentication'],
    subjects: 'user:system:kube-controller-manager user:system:kube-scheduler',
  },
  {
    namespace: 'kube-system',
    name: 'system::leader-locking-kube-controller-manager',
    rights: LEADER,
    subjects: `user:system:kube-controller-manager ${account('kube-controller-manager')} ${account('leader-election-controller')}`,
  },
  {
    namespace: 'kube-system',
    name: 'system::leader-locking-kube-scheduler',
    rights: LEADER,
    subjects: `user:system:kube-scheduler ${account('kube-scheduler')}`,
  },
  {
    namespace: 'kube-system',
    name: 'system:controller:bootstrap-signer',
    rights: ['read: secrets'],
    subjects: account('bootstrap-signer'),
  },
  {
    namespace: 'kube-system',
    name: 'system:controller:cloud-provider',
    rights: ['read create: configmaps'],
    subjects: account('cloud-provider'),
  },
  {
    namespace: 'kube-system',
    name: 'system:controller:token-cleaner',
    rights: ['read delete: secrets', EVENTS],
    subjects: account('token-cleaner'),
  },
]

/** A service account of kube-system. */
function account(name: string): string {
  return `account:${name}`
}

function rolesFrom(table: RoleTable, prefix: string, isEnabled: (gate: string) => boolean): ClusterRole[] {
  return Object.entries(table).flatMap(([name, rights]) => {
    const rules = parseRights(rights, isEnabled)
    return rules.length === 0 ? [] : [clusterRole(`${prefix}${name}`, rules, gatheredInto(name))]
  })
}

/** `system:aggregate-to-view` is aggregated into `view`. */
function gatheredInto(name: string): string | undefined {
  const prefix = 'system:aggregate-to-'
  return name.startsWith(prefix) ? name.slice(prefix.length) : undefined
}

function metadata(name: string, labels: Readonly<Record<string, string>> = {}, namespace?: string): ObjectMeta {
  return {
    name,
    ...(namespace === undefined ? {} : { namespace }),
    labels: { 'kubernetes.io/bootstrapping': 'rbac-defaults', ...labels },
    annotations: { [AUTO_UPDATE]: 'true' },
  }
}

const ROLE_VERSION = `${API_GROUP}/v1`

function clusterRole(name: string, rules: readonly PolicyRule[], into?: string): ClusterRole {
  const labels = into === undefined ? {} : { [`${AGGREGATE}${into}`]: 'true' }
  return { kind: 'ClusterRole', apiVersion: ROLE_VERSION, metadata: metadata(name, labels), rules: [...rules] }
}

function gathering(name: string, into: string | undefined): ClusterRole {
  const clusterRoleSelectors = [{ matchLabels: { [`${AGGREGATE}${name}`]: 'true' } }]
  return { ...clusterRole(name, [], into), rules: null, aggregationRule: { clusterRoleSelectors } }
}

function clusterBinding(name: string, who: string): ClusterRoleBinding {
  const roleRef = { apiGroup: API_GROUP, kind: 'ClusterRole', name }
  return { kind: 'ClusterRoleBinding', apiVersion: ROLE_VERSION, metadata: metadata(name), ...subjects(who), roleRef }
}

function role(namespace: string, name: string, rules: readonly PolicyRule[]): Role {
  return { kind: 'Role', apiVersion: ROLE_VERSION, metadata: metadata(name, {}, namespace), rules: [...rules] }
}

function binding({ namespace, name, bindingName = name, subjects: who }: NamespacedRole): RoleBinding {
  const roleRef = { apiGroup: API_GROUP, kind: 'Role', name }
  const own = metadata(bindingName, {}, namespace)
  return { kind: 'RoleBinding', apiVersion: ROLE_VERSION, metadata: own, ...subjects(who), roleRef }
}

/** `user:…`, `group:…` and `account:…`, separated by spaces; empty text omits the field. */
function subjects(text: string): { subjects?: Subject[] } {
  if (text === '') return {}
  return {
    subjects: text.split(' ').map((one) => {
      const [, type, name = ''] = /^(user|group|account):(.+)$/.exec(one) ?? []
      if (type === 'account') return { kind: 'ServiceAccount', name, namespace: 'kube-system' }
      if (type === undefined) throw new Error(`Cannot read the subject "${one}"`)
      return { kind: type === 'user' ? 'User' : 'Group', apiGroup: API_GROUP, name }
    }),
  }
}
