/**
 * Computes the flags of every program on every machine: RKE's, without those that v1.36 removed, and with the
 * differences in docs/build.md. `extra_args` and `extra_args_array` come last and win.
 */
import { parseIp } from '#lib/net/cidr.ts'

import { type ClusterFile, type ClusterNode, hasRole, nodesOf, type ServiceName, type Taint } from '../cluster.ts'
import { certificatePaths, CONFIG_FILES, FOLDERS, hostPath } from '../host-paths.ts'
import * as pki from '../pki/plan.ts'

export const COMPONENTS = [
  'etcd',
  'kube-apiserver',
  'kube-controller-manager',
  'kube-scheduler',
  'kubelet',
  'kube-proxy',
] as const
export type ComponentName = (typeof COMPONENTS)[number]

/** Facts about the machine that flags depend on. */
export interface FlagFacts {
  /** With systemd-resolved, /etc/resolv.conf has an address that pods cannot reach. */
  readonly usesSystemdResolved?: boolean
  /** `systemd` where systemd is the init, else `cgroupfs`. */
  readonly cgroupDriver?: string
}

/** By name, without dashes; a list repeats the flag. */
export type Flags = Readonly<Record<string, string | readonly string[]>>

interface FlagContext {
  readonly cluster: ClusterFile
  readonly node: ClusterNode
  readonly facts: FlagFacts
}

const BUILDERS: Readonly<Record<ComponentName, (around: FlagContext) => Record<string, string | undefined>>> = {
  etcd: etcdFlags,
  'kube-apiserver': apiServerFlags,
  'kube-controller-manager': controllerManagerFlags,
  'kube-scheduler': schedulerFlags,
  kubelet: kubeletFlags,
  'kube-proxy': proxyFlags,
}

/** The section of cluster.yml with a program's extra flags. */
export const SERVICE_OF: Readonly<Record<ComponentName, ServiceName>> = {
  etcd: 'etcd',
  'kube-apiserver': 'kube-api',
  'kube-controller-manager': 'kube-controller',
  'kube-scheduler': 'scheduler',
  kubelet: 'kubelet',
  'kube-proxy': 'kubeproxy',
}

/** The programs of a machine by its roles, in start order. */
export function componentsOf(cluster: ClusterFile, node: ClusterNode): readonly ComponentName[] {
  const isExternal = cluster.services.etcd.external_urls.length > 0
  return COMPONENTS.filter((name) => {
    if (name === 'etcd') return hasRole(node, 'etcd') && !isExternal
    return name === 'kubelet' || name === 'kube-proxy' || hasRole(node, 'controlplane')
  })
}

/** The flags of the program. For etcd without the initial members, which only matter at the first start. */
export function componentFlags(
  component: ComponentName,
  cluster: ClusterFile,
  node: ClusterNode,
  facts: FlagFacts = {},
): Flags {
  const built = Object.entries(BUILDERS[component]({ cluster, node, facts }))
  const flags = new Map(built.filter((row): row is [string, string] => row[1] !== undefined))
  const { extra_args, extra_args_array } = cluster.services[SERVICE_OF[component]]
  const extra: [string, string | readonly string[]][] = [
    ...Object.entries(extra_args),
    ...Object.entries(extra_args_array),
  ]
  // Moved to the end, because programs use the last value of a repeated flag.
  for (const [name] of extra) flags.delete(name)
  return Object.fromEntries([...flags, ...extra])
}

/** As command arguments. */
export function argumentsOf(flags: Flags): string[] {
  return Object.entries(flags).flatMap(([name, value]) =>
    typeof value === 'string' ? [`--${name}=${value}`] : value.map((one) => `--${name}=${one}`),
  )
}

const CIPHERS = [
  'TLS_ECDHE_ECDSA_WITH_AES_128_GCM_SHA256',
  'TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256',
  'TLS_ECDHE_ECDSA_WITH_CHACHA20_POLY1305_SHA256',
  'TLS_ECDHE_RSA_WITH_CHACHA20_POLY1305_SHA256',
  'TLS_ECDHE_ECDSA_WITH_AES_256_GCM_SHA384',
  'TLS_ECDHE_RSA_WITH_AES_256_GCM_SHA384',
].join(',')

const ADMISSION_PLUGINS = [
  'NamespaceLifecycle',
  'LimitRanger',
  'ServiceAccount',
  'DefaultStorageClass',
  'DefaultTolerationSeconds',
  'MutatingAdmissionWebhook',
  'ValidatingAdmissionWebhook',
  'ResourceQuota',
  'NodeRestriction',
  'Priority',
  'TaintNodesByCondition',
  'PersistentVolumeClaimResize',
]

/** `https://10.0.0.1:2379`, with brackets for IPv6. */
export function urlOf(host: string, port: number): string {
  return `https://${host.includes(':') ? `[${host}]` : host}:${port}`
}

/** The local member comes first: it is fastest, and fails together with the API server. */
function etcdServers({ cluster, node }: FlagContext): string {
  const { external_urls } = cluster.services.etcd
  if (external_urls.length > 0) return external_urls.join(',')
  const members = nodesOf(cluster, 'etcd')
  const own = members.filter((member) => member === node || member.address === node.address)
  return [...own, ...members.filter((member) => !own.includes(member))]
    .map(({ internal_address }) => urlOf(internal_address, 2379))
    .join(',')
}

/** Only an address can be advertised; for a name the program finds its own address. */
function ipOf(node: ClusterNode): string | undefined {
  return parseIp(node.internal_address) ? node.internal_address : undefined
}

function apiServerFlags(around: FlagContext): Record<string, string | undefined> {
  const { cluster, node } = around
  const { 'kube-api': api, etcd, kubelet } = cluster.services
  const paths = (stem: string): ReturnType<typeof certificatePaths> => certificatePaths(cluster, stem)
  const isExternal = etcd.external_urls.length > 0
  return {
    'admission-control-config-file': hostPath(cluster, CONFIG_FILES.admission),
    'advertise-address': ipOf(node),
    'allow-privileged': 'true',
    'anonymous-auth': 'false',
    'authorization-mode': cluster.authorization.mode === 'rbac' ? 'Node,RBAC' : 'AlwaysAllow',
    'bind-address': '0.0.0.0',
    'client-ca-file': paths(pki.KUBE_CA).certificate,
    'enable-admission-plugins': [
      ...ADMISSION_PLUGINS,
      ...(api.always_pull_images ? ['AlwaysPullImages'] : []),
      ...(api.event_rate_limit.enabled ? ['EventRateLimit'] : []),
    ].join(','),
    'encryption-provider-config': api.secrets_encryption_config.enabled
      ? hostPath(cluster, CONFIG_FILES.encryption)
      : undefined,
    'etcd-cafile': paths(isExternal ? pki.ETCD_CLIENT_CA : pki.ETCD_CA).certificate,
    'etcd-certfile': paths(pki.ETCD_CLIENT).certificate,
    'etcd-keyfile': paths(pki.ETCD_CLIENT).key,
    'etcd-prefix': isExternal ? etcd.path : '/registry',
    'etcd-servers': etcdServers(around),
    'kubelet-certificate-authority': kubelet.generate_serving_certificate ? paths(pki.KUBE_CA).certificate : undefined,
    'kubelet-client-certificate': paths(pki.API_SERVER).certificate,
    'kubelet-client-key': paths(pki.API_SERVER).key,
    'kubelet-preferred-address-types': 'InternalIP,ExternalIP,Hostname',
    profiling: 'false',
    'proxy-client-cert-file': paths(pki.PROXY_CLIENT).certificate,
    'proxy-client-key-file': paths(pki.PROXY_CLIENT).key,
    'requestheader-allowed-names': pki.PROXY_CLIENT,
    'requestheader-client-ca-file': paths(pki.REQUESTHEADER_CA).certificate,
    'requestheader-extra-headers-prefix': 'X-Remote-Extra-',
    'requestheader-group-headers': 'X-Remote-Group',
    'requestheader-username-headers': 'X-Remote-User',
    'secure-port': '6443',
    ...serviceAccountFlags(cluster),
    'service-cluster-ip-range': api.service_cluster_ip_range,
    'service-node-port-range': api.service_node_port_range,
    'storage-backend': 'etcd3',
    'tls-cert-file': paths(pki.API_SERVER).certificate,
    'tls-cipher-suites': CIPHERS,
    'tls-private-key-file': paths(pki.API_SERVER).key,
    ...auditFlags(cluster),
    ...webhookFlags(cluster),
  }
}

/** The issuer is a URL, as token validators expect; RKE used the word "rke". */
function serviceAccountFlags(cluster: ClusterFile): Record<string, string> {
  const { key } = certificatePaths(cluster, pki.SERVICE_ACCOUNT)
  return {
    'service-account-issuer': `https://kubernetes.default.svc.${cluster.services.kubelet.cluster_domain}`,
    'service-account-key-file': key,
    'service-account-lookup': 'true',
    'service-account-signing-key-file': key,
  }
}

function auditFlags(cluster: ClusterFile): Record<string, string> {
  const { enabled, configuration } = cluster.services['kube-api'].audit_log
  if (!enabled) return {}
  return {
    'audit-log-format': configuration.format,
    'audit-log-maxage': String(configuration.max_age),
    'audit-log-maxbackup': String(configuration.max_backup),
    'audit-log-maxsize': String(configuration.max_size),
    'audit-log-path': configuration.path,
    'audit-policy-file': hostPath(cluster, CONFIG_FILES.auditPolicy),
  }
}

function webhookFlags(cluster: ClusterFile): Record<string, string> {
  const { webhook } = cluster.authentication
  if (!webhook) return {}
  return {
    'authentication-token-webhook-cache-ttl': webhook.cache_timeout,
    'authentication-token-webhook-config-file': hostPath(cluster, CONFIG_FILES.authenticationWebhook),
  }
}

function controllerManagerFlags({ cluster }: FlagContext): Record<string, string | undefined> {
  const controller = cluster.services['kube-controller']
  const { kubeconfig } = certificatePaths(cluster, pki.CONTROLLER_MANAGER)
  const authority = certificatePaths(cluster, pki.KUBE_CA)
  return {
    'allocate-node-cidrs': 'true',
    'authentication-kubeconfig': kubeconfig,
    'authorization-kubeconfig': kubeconfig,
    'bind-address': '127.0.0.1',
    'cloud-provider': cluster.cloud_provider.name === '' ? undefined : 'external',
    'cluster-cidr': controller.cluster_cidr,
    'cluster-signing-cert-file': authority.certificate,
    'cluster-signing-key-file': authority.key,
    'configure-cloud-routes': 'false',
    'enable-hostpath-provisioner': 'false',
    kubeconfig,
    'leader-elect': 'true',
    'node-monitor-grace-period': '40s',
    profiling: 'false',
    'root-ca-file': authority.certificate,
    'service-account-private-key-file': certificatePaths(cluster, pki.SERVICE_ACCOUNT).key,
    'service-cluster-ip-range': controller.service_cluster_ip_range,
    'terminated-pod-gc-threshold': '1000',
    'use-service-account-credentials': cluster.authorization.mode === 'rbac' ? 'true' : undefined,
    v: '2',
  }
}

function schedulerFlags({ cluster }: FlagContext): Record<string, string | undefined> {
  const { kubeconfig } = certificatePaths(cluster, pki.SCHEDULER)
  return {
    'authentication-kubeconfig': kubeconfig,
    'authorization-kubeconfig': kubeconfig,
    'bind-address': '127.0.0.1',
    kubeconfig,
    'leader-elect': 'true',
    profiling: 'false',
    v: '2',
  }
}

function kubeletFlags({ cluster, node, facts }: FlagContext): Record<string, string | undefined> {
  const { kubelet } = cluster.services
  const serving = kubelet.generate_serving_certificate
    ? certificatePaths(cluster, pki.hostStem('kube-kubelet', node))
    : undefined
  const taints = [...roleTaints(node), ...node.taints]
  return {
    address: '0.0.0.0',
    'anonymous-auth': 'false',
    'authentication-token-webhook': 'true',
    'authorization-mode': 'Webhook',
    'cgroup-driver': facts.cgroupDriver,
    'client-ca-file': certificatePaths(cluster, pki.KUBE_CA).certificate,
    'cluster-dns': cluster.dns.nodelocal?.ip_address ?? kubelet.cluster_dns_server,
    'cluster-domain': kubelet.cluster_domain,
    'event-qps': '0',
    'fail-swap-on': String(kubelet.fail_swap_on),
    'hostname-override': node.hostname_override,
    ...credentialFlags(cluster),
    kubeconfig: certificatePaths(cluster, pki.NODE).kubeconfig,
    'make-iptables-util-chains': 'true',
    'node-ip': node.internal_address === node.address ? undefined : ipOf(node),
    'read-only-port': '0',
    'register-with-taints': taints.length === 0 ? undefined : taints.map(taintText).join(','),
    'resolv-conf': facts.usesSystemdResolved ? '/run/systemd/resolve/resolv.conf' : '/etc/resolv.conf',
    'root-dir': hostPath(cluster, FOLDERS.kubelet),
    'streaming-connection-idle-timeout': '30m',
    'tls-cert-file': serving?.certificate,
    'tls-cipher-suites': CIPHERS,
    'tls-private-key-file': serving?.key,
    v: '2',
    'volume-plugin-dir': hostPath(cluster, FOLDERS.volumePlugins),
  }
}

function credentialFlags(cluster: ClusterFile): Record<string, string> {
  if (!cluster.private_registries.some(({ ecr_credential_plugin }) => ecr_credential_plugin)) return {}
  return {
    'image-credential-provider-bin-dir': hostPath(cluster, FOLDERS.credentialProviders),
    'image-credential-provider-config': hostPath(cluster, CONFIG_FILES.credentialProviders),
  }
}

function taintText({ key, value, effect }: Taint): string {
  return `${key}${value === '' ? '' : `=${value}`}:${effect}`
}

/** Machines that are not workers have taints against ordinary pods. */
export function roleTaints(node: Pick<ClusterNode, 'role'>): Taint[] {
  if (hasRole(node, 'worker')) return []
  const taints: Taint[] = []
  if (hasRole(node, 'etcd')) taints.push({ key: 'node-role.kubernetes.io/etcd', value: 'true', effect: 'NoExecute' })
  if (hasRole(node, 'controlplane')) {
    taints.push({ key: 'node-role.kubernetes.io/controlplane', value: 'true', effect: 'NoSchedule' })
  }
  return taints
}

export function roleLabels(node: Pick<ClusterNode, 'role'>): Record<string, string> {
  return Object.fromEntries(node.role.map((role) => [`node-role.kubernetes.io/${role}`, 'true']))
}

function proxyFlags({ cluster, node }: FlagContext): Record<string, string | undefined> {
  return {
    'cluster-cidr': cluster.services['kube-controller'].cluster_cidr,
    'healthz-bind-address': '127.0.0.1:10256',
    'hostname-override': node.hostname_override,
    kubeconfig: certificatePaths(cluster, pki.PROXY).kubeconfig,
    v: '2',
  }
}

/** The name of a member in etcd and in messages. */
export function etcdMemberName(node: Pick<ClusterNode, 'hostname_override'>): string {
  return `etcd-${node.hostname_override}`
}

/** etcd's default; RKE's 5000 would delay writers for more than 5 s. */
const ETCD_DEFAULTS = { 'election-timeout': '1000', 'heartbeat-interval': '100' }

function etcdFlags({ cluster, node }: FlagContext): Record<string, string | undefined> {
  const { internal_address: internal } = node
  const own = certificatePaths(cluster, pki.hostStem('kube-etcd', node))
  const authority = certificatePaths(cluster, pki.ETCD_CA).certificate
  // A public address may not exist on an interface; an explicit internal address does.
  const isOnInterface = internal !== node.address && parseIp(internal) !== undefined
  const listen = (port: number): string => urlOf(isOnInterface ? internal : '0.0.0.0', port)
  return {
    'advertise-client-urls': urlOf(internal, 2379),
    'cert-file': own.certificate,
    'client-cert-auth': 'true',
    'data-dir': hostPath(cluster, FOLDERS.etcdData),
    ...ETCD_DEFAULTS,
    'initial-advertise-peer-urls': urlOf(internal, 2380),
    'initial-cluster-token': 'etcd-cluster-1',
    'key-file': own.key,
    'listen-client-urls': isOnInterface ? `${listen(2379)},${urlOf('127.0.0.1', 2379)}` : listen(2379),
    'listen-peer-urls': listen(2380),
    name: etcdMemberName(node),
    'peer-cert-file': own.certificate,
    'peer-client-cert-auth': 'true',
    'peer-key-file': own.key,
    'peer-trusted-ca-file': authority,
    'trusted-ca-file': authority,
  }
}
