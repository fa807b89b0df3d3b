/**
 * Sets the defaults of cluster.yml that depend on other keys. Unlike RKE's, they follow changes: the DNS address
 * follows the service range, one range suffices, and drain has defaults.
 */
import { cidrSize, nthAddress, parseCidr } from '#lib/net/cidr.ts'

import type { Authentication, BackupConfig, ClusterFile, ClusterNode, EtcdService } from '../cluster.ts'
import { durationMs } from './field-checks.ts'

/** The result of the reader: the cluster type without the members that are filled here. */
export interface ReadCluster extends Omit<ClusterFile, 'nodes' | 'services'> {
  readonly nodes: readonly ReadNode[]
  readonly services: Omit<ClusterFile['services'], 'etcd' | 'kube-api' | 'kube-controller' | 'kubelet'> & {
    readonly etcd: Omit<EtcdService, 'backup_config'> & { readonly backup_config?: BackupConfig }
    readonly 'kube-api': Loose<ClusterFile['services']['kube-api'], 'service_cluster_ip_range'>
    readonly 'kube-controller': Loose<ClusterFile['services']['kube-controller'], 'service_cluster_ip_range'>
    readonly kubelet: Loose<ClusterFile['services']['kubelet'], 'cluster_dns_server'>
  }
}

type Loose<T, K extends keyof T> = Omit<T, K> & Partial<Pick<T, K>>
type ReadNode = Loose<ClusterNode, 'address' | 'internal_address' | 'hostname_override'>

const SERVICE_RANGE = '10.43.0.0/16'

/** The index of the DNS address in the service range. */
export const DNS_ADDRESS = 10

export function fillDefaults(read: ReadCluster): ClusterFile {
  const { services } = read
  const api = services['kube-api']
  const controller = services['kube-controller']
  const range = api.service_cluster_ip_range ?? controller.service_cluster_ip_range ?? SERVICE_RANGE
  return {
    ...read,
    ...(read.bastion_host ? { bastion_host: withKeys(read, read.bastion_host) } : {}),
    // The list is missing if the file is invalid there.
    nodes: (read.nodes as ReadCluster['nodes'] | undefined)?.map((node) => fillNode(read, node)) ?? [],
    authentication: fillWebhook(read.authentication),
    services: {
      ...services,
      etcd: { ...services.etcd, backup_config: fillBackup(services.etcd) },
      'kube-api': { ...api, service_cluster_ip_range: range },
      'kube-controller': {
        ...controller,
        service_cluster_ip_range: controller.service_cluster_ip_range ?? range,
      },
      kubelet: { ...services.kubelet, cluster_dns_server: services.kubelet.cluster_dns_server ?? dnsAddress(range) },
    },
  }
}

function fillNode(cluster: ReadCluster, node: ReadNode): ClusterNode {
  // Missing in an invalid file, whose other faults are still reported.
  const { address = '' } = node
  return {
    ...withKeys(cluster, node),
    address,
    internal_address: node.internal_address ?? address,
    hostname_override: (node.hostname_override ?? address).toLowerCase(),
  }
}

/** Machines without a key use the cluster's key and certificate. */
function withKeys<T extends Partial<ClusterNode>>(cluster: ReadCluster, machine: T): T & { ssh_agent_auth: boolean } {
  const hasKey = machine.ssh_key !== undefined || machine.ssh_key_path !== undefined
  const hasCertificate = machine.ssh_cert !== undefined || machine.ssh_cert_path !== undefined
  return {
    ...machine,
    ssh_agent_auth: (machine.ssh_agent_auth ?? false) || cluster.ssh_agent_auth,
    ...(hasKey ? {} : { ssh_key_path: cluster.ssh_key_path }),
    ...(hasCertificate || cluster.ssh_cert_path === '' ? {} : { ssh_cert_path: cluster.ssh_cert_path }),
  }
}

/** Empty if the range is too small. */
export function dnsAddress(range: string): string {
  const cidr = parseCidr(range.split(',')[0] as string)
  return cidr === undefined || cidrSize(cidr) <= BigInt(DNS_ADDRESS) ? '' : nthAddress(cidr, DNS_ADDRESS)
}

const HOUR_MS = 3_600_000

/** `snapshot`, `creation` and `retention` are the older keys: an age becomes a number of snapshots. */
function fillBackup(etcd: ReadCluster['services']['etcd']): BackupConfig {
  if (etcd.backup_config) return etcd.backup_config
  const intervalMs = Math.max(durationMs(etcd.creation), 60_000)
  return {
    enabled: etcd.snapshot && etcd.external_urls.length === 0,
    interval_hours: intervalMs / HOUR_MS,
    retention: Math.max(1, Math.floor(durationMs(etcd.retention) / intervalMs)),
    safe_timestamp: false,
    timeout: 300,
  }
}

/** RKE's default: a webhook on the machine itself, such as Rancher's kube-api-auth. */
const LOCAL_WEBHOOK = `apiVersion: v1
kind: Config
clusters:
- name: Default
  cluster:
    insecure-skip-tls-verify: true
    server: http://127.0.0.1:6440/v1/authenticate
users:
- name: Default
  user:
    insecure-skip-tls-verify: true
current-context: webhook
contexts:
- name: webhook
  context:
    user: Default
    cluster: Default
`

function fillWebhook(given: Authentication): Authentication {
  const parts = given.strategy.split('|').map((part) => part.trim())
  const strategy = parts.join('|')
  if (!parts.includes('webhook')) return { strategy, sans: given.sans }
  const { config_file = '', cache_timeout = '5s' } = given.webhook ?? {}
  return {
    strategy,
    sans: given.sans,
    webhook: { config_file: config_file === '' ? LOCAL_WEBHOOK : config_file, cache_timeout },
  }
}
