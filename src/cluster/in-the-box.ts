/**
 * What a cluster has before anybody installs anything: volumes for claims, metrics for `kubectl top` and autoscalers, and
 * the ConfigMaps in which tools look up what kind of cluster they are in. An object that is there already stays as it is.
 */
import { APIServices } from '#apis/apiregistration/v1.ts'
import { type ConfigMap, ConfigMaps, Nodes, ServiceAccounts } from '#apis/core/v1.ts'
import type { Kind } from '#apis/kinds.ts'
import { ClusterRoleBindings, ClusterRoles, type PolicyRule, RoleBindings, Roles } from '#apis/rbac/v1.ts'
import { StorageClasses } from '#apis/storage/v1.ts'
import { ApiClient } from '#client/api-client.ts'
import type { RunningServer } from '#control-plane/server.ts'
import { type Controller, rule } from '#controllers/controller.ts'
import type { Clock } from '#lib/clock.ts'
import { parseJson } from '#lib/json.ts'
import { stringifyYaml } from '#lib/yaml-write.ts'
import type { KubeObject } from '#meta/object.ts'
import { kubernetesVersion } from '#model/version.ts'
import { defineUsage, type StatsSummary, type UsageSource } from '#resources/metrics/usage.ts'

import { accountUser } from './controllers.ts'
import { JOIN_ACCESS } from './joining.ts'
import { LOCAL_PATH_CLASS } from './local-path.ts'

export interface Box {
  readonly clock: Clock
  /** Where clients reach the server, and PEM of what they verify it with. */
  readonly server: string
  readonly ca: string
  readonly serviceCidr: string
  /** Those that upstream's bootstrap policy does not know: they get roles of their own. */
  readonly controllers: readonly Controller[]
}

export type Wanted = readonly [Kind, KubeObject]

const RBAC = 'rbac.authorization.k8s.io'
const INFO_ROLE = 'kubeadm:bootstrap-signer-clusterinfo'
const METER = 'metrics-server'
/** Who holds network policies: on nodes of the machine, and on those that join with `kube-network-policies`. */
export const POLICIES_ACCOUNT = 'kube-network-policies'
const USAGE_GROUP = 'metrics.k8s.io'
/** Of a node that does not answer, `kubectl top` does not wait for long. */
const SUMMARY_MS = 5000
const MAX_SUMMARY_BYTES = 64 << 20

export async function unpackBox({ server }: Pick<RunningServer, 'server'>, box: Box): Promise<void> {
  const { registry } = server
  const source = { objects: registry, clock: box.clock, summaryOf: summaryOf(server, box.clock) }
  for (const kind of defineUsage(source)) registry.addVirtual(kind)
  const wanted: readonly Wanted[] = [
    [StorageClasses, LOCAL_PATH_CLASS],
    ...box.controllers.flatMap(accessOf),
    ...USAGE_ACCESS,
    ...POLICIES_ACCESS,
    ...INFO_ACCESS,
    ...JOIN_ACCESS,
    [ConfigMaps, kubeadmConfig(box)],
  ]
  await Promise.all([
    ...wanted.map(([kind, object]) => registry.writer.ensure(kind, object)),
    registry.writer.update(ConfigMaps, CLUSTER_INFO, (info) => withKubeconfig(info, box), { creates: true }),
  ])
}

/** Through the server itself, which knows how to reach each kubelet. */
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

/** What `metrics-server` would bring: without a Service, its APIService says that the group is served here. */
const USAGE_ACCESS: readonly Wanted[] = [
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

export const POLICIES_ACCESS: readonly Wanted[] = [
  [ServiceAccounts, { metadata: { name: POLICIES_ACCOUNT, namespace: 'kube-system' } }],
  ...clusterAccess(`system:${POLICIES_ACCOUNT}`, POLICIES_ACCOUNT, [
    rule('', 'pods namespaces nodes', 'get list watch'),
    rule('networking.k8s.io', 'networkpolicies', 'get list watch'),
  ]),
]

function accessOf({ name, account = name, rules }: Controller): readonly Wanted[] {
  return clusterAccess(`${name}-role`, account, rules)
}

/** A ClusterRole, and that an account of kube-system has it. */
export function clusterAccess(role: string, account: string, rules: readonly PolicyRule[]): readonly Wanted[] {
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

/** How to reach the cluster, for whoever does not know it yet. Others sign it, in the same ConfigMap; where it is may change. */
function withKubeconfig(info: ConfigMap, { server, ca }: Box): ConfigMap {
  const cluster = { 'certificate-authority-data': Buffer.from(ca).toString('base64'), server }
  const kubeconfig = stringifyYaml({ apiVersion: 'v1', clusters: [{ cluster, name: '' }], kind: 'Config' })
  return { ...info, metadata: { ...info.metadata, ...CLUSTER_INFO }, data: { ...info.data, kubeconfig } }
}

/** Everybody may read it, as kubeadm has it. */
const INFO_ACCESS: readonly Wanted[] = [
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

/** Network plugins look up here which addresses are whose. */
function kubeadmConfig({ server, serviceCidr }: Box): KubeObject {
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
