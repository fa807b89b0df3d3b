/**
 * Creates the default addons of a cluster: storage, metrics for `kubectl top` and autoscalers, and ConfigMaps from
 * which tools read cluster information. Existing objects stay unchanged.
 */
import { APIServices } from '#apis/apiregistration/v1.ts'
import { type ConfigMap, ConfigMaps, Nodes, ServiceAccounts } from '#apis/core/v1.ts'
import type { Kind } from '#apis/kinds.ts'
import { ClusterRoleBindings, ClusterRoles, type PolicyRule, RoleBindings, Roles } from '#apis/rbac/v1.ts'
import { StorageClasses } from '#apis/storage/v1.ts'
import { ApiClient } from '#client/api-client.ts'
import type { RunningServer } from '#control-plane/server.ts'
import { type Controller } from '#controllers/controller.ts'
import type { Clock } from '#lib/clock.ts'
import { parseJson } from '#lib/json/json.ts'
import { stringifyYaml } from '#lib/yaml/write.ts'
import type { KubeObject } from '#meta/object.ts'
import { kubernetesVersion } from '#model/version.ts'
import { rule } from '#reconcile/controller.ts'
import { defineUsage, type StatsSummary, type UsageSource } from '#resources/metrics/usage.ts'

import { accountUser } from './controllers.ts'
import { JOIN_ACCESS } from './joining.ts'
import { LOCAL_PATH_CLASS } from './local-path.ts'

export interface AddonOptions {
  readonly clock: Clock
  /** The server's URL for clients, and its CA in PEM. */
  readonly server: string
  readonly ca: string
  readonly serviceCidr: string
  /** Controllers without a role in upstream's bootstrap policy: they get one here. */
  readonly controllers: readonly Controller[]
}

export type AddonObject = readonly [Kind, KubeObject]

const RBAC = 'rbac.authorization.k8s.io'
const INFO_ROLE = 'kubeadm:bootstrap-signer-clusterinfo'
const METER = 'metrics-server'
/**
 * The account of network policy enforcers, on nodes of this machine and on those that join with
 * `kube-network-policies`.
 */
export const POLICIES_ACCOUNT = 'kube-network-policies'
const USAGE_GROUP = 'metrics.k8s.io'
/** The timeout of `kubectl top` for an unresponsive node. */
const SUMMARY_MS = 5000
const MAX_SUMMARY_BYTES = 64 << 20

export async function installAddons({ server }: Pick<RunningServer, 'server'>, options: AddonOptions): Promise<void> {
  const { registry } = server
  const source = { objects: registry, clock: options.clock, summaryOf: summaryOf(server, options.clock) }
  for (const kind of defineUsage(source)) registry.addVirtual(kind)
  const wanted: readonly AddonObject[] = [
    [StorageClasses, LOCAL_PATH_CLASS],
    ...options.controllers.flatMap(accessOf),
    ...USAGE_ACCESS,
    ...POLICIES_ACCESS,
    ...INFO_ACCESS,
    ...JOIN_ACCESS,
    [ConfigMaps, kubeadmConfig(options)],
  ]
  await Promise.all([
    ...wanted.map(([kind, object]) => registry.writer.ensure(kind, object)),
    registry.writer.update(ConfigMaps, CLUSTER_INFO, (info) => withKubeconfig(info, options), { creates: true }),
  ])
}

/** Through the server itself, which can reach each kubelet. */
function summaryOf(server: RunningServer['server'], clock: Clock): UsageSource['summaryOf'] {
  const client = new ApiClient({ transport: server.clientAs(accountUser(METER)), clock, userAgent: METER })
  return async (name, signal) => {
    const path = `/api/v1/nodes/${encodeURIComponent(name)}/proxy/stats/summary?only_cpu_and_memory=true`
    const about = { resource: { group: '', resource: Nodes.plural }, name }
    const late = new AbortController()
    const timer = clock.after(SUMMARY_MS, () => late.abort(), { background: true })
    try {
      const response = await client.ask({ method: 'GET', path, about, signal: AbortSignal.any([signal, late.signal]) })
      return parseJson(await response.bytes(MAX_SUMMARY_BYTES)) as unknown as StatsSummary
    } catch {
      return undefined
    } finally {
      timer.cancel()
    }
  }
}

/** Replaces metrics-server: an APIService without a Service means that the group is served locally. */
const USAGE_ACCESS: readonly AddonObject[] = [
  [
    APIServices,
    {
      metadata: { name: `v1beta1.${USAGE_GROUP}`, labels: { 'k8s-app': METER } },
      spec: { group: USAGE_GROUP, version: 'v1beta1', groupPriorityMinimum: 100, versionPriority: 100 },
    } as KubeObject,
  ],
  ...clusterAccess(`system:${METER}`, METER, [rule('', 'nodes/proxy', 'get')]),
  [
    ClusterRoles,
    {
      metadata: {
        name: 'system:aggregated-metrics-reader',
        labels: Object.fromEntries(['admin', 'edit', 'view'].map((to) => [`${RBAC}/aggregate-to-${to}`, 'true'])),
      },
      rules: [rule(USAGE_GROUP, 'pods nodes', 'get list watch')],
    } as KubeObject,
  ],
]

export const POLICIES_ACCESS: readonly AddonObject[] = [
  [ServiceAccounts, { metadata: { name: POLICIES_ACCOUNT, namespace: 'kube-system' } }],
  ...clusterAccess(`system:${POLICIES_ACCOUNT}`, POLICIES_ACCOUNT, [
    rule('', 'pods namespaces nodes', 'get list watch'),
    rule('networking.k8s.io', 'networkpolicies', 'get list watch'),
  ]),
]

function accessOf({ name, account = name, rules }: Controller): readonly AddonObject[] {
  return clusterAccess(`${name}-role`, account, rules)
}

/** A ClusterRole and its binding to an account of kube-system. */
export function clusterAccess(role: string, account: string, rules: readonly PolicyRule[]): readonly AddonObject[] {
  const subjects = [{ kind: 'ServiceAccount', namespace: 'kube-system', name: account }]
  return [
    [ClusterRoles, { metadata: { name: role }, rules } as KubeObject],
    [
      ClusterRoleBindings,
      {
        metadata: { name: role },
        roleRef: { apiGroup: RBAC, kind: 'ClusterRole', name: role },
        subjects,
      } as KubeObject,
    ],
  ]
}

const CLUSTER_INFO = { namespace: 'kube-public', name: 'cluster-info' }

/** Sets the kubeconfig for joining nodes in cluster-info. Keeps signatures; updates a changed address. */
function withKubeconfig(info: ConfigMap, { server, ca }: AddonOptions): ConfigMap {
  const cluster = { 'certificate-authority-data': Buffer.from(ca).toString('base64'), server }
  const kubeconfig = stringifyYaml({ apiVersion: 'v1', clusters: [{ cluster, name: '' }], kind: 'Config' })
  return { ...info, metadata: { ...info.metadata, ...CLUSTER_INFO }, data: { ...info.data, kubeconfig } }
}

/** Anonymous read access, as kubeadm. */
const INFO_ACCESS: readonly AddonObject[] = [
  [
    Roles,
    {
      metadata: { namespace: 'kube-public', name: INFO_ROLE },
      rules: [{ ...rule('', 'configmaps', 'get'), resourceNames: [CLUSTER_INFO.name] }],
    } as KubeObject,
  ],
  [
    RoleBindings,
    {
      metadata: { namespace: 'kube-public', name: INFO_ROLE },
      roleRef: { apiGroup: RBAC, kind: 'Role', name: INFO_ROLE },
      subjects: [{ apiGroup: RBAC, kind: 'User', name: 'system:anonymous' }],
    } as KubeObject,
  ],
]

/** Network plugins read the CIDRs here. */
function kubeadmConfig({ server, serviceCidr }: AddonOptions): KubeObject {
  const configuration = {
    apiVersion: 'kubeadm.k8s.io/v1beta4',
    clusterName: 'hyperkube',
    controlPlaneEndpoint: new URL(server).host,
    kind: 'ClusterConfiguration',
    kubernetesVersion: kubernetesVersion(),
    networking: { dnsDomain: 'cluster.local', serviceSubnet: serviceCidr },
  }
  const metadata = { name: 'kubeadm-config', namespace: 'kube-system' }
  return { metadata, data: { ClusterConfiguration: stringifyYaml(configuration) } } as KubeObject
}
