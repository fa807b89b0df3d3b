/**
 * The plan of all certificates: issuer, subject, usage and service. Names and subjects are RKE's, with two exceptions
 * for security: each node has a separate identity (`system:node:<name>`), and etcd has a separate authority.
 */
import { nthAddress, parseCidr, parseIp } from '#lib/net/cidr.ts'

import { type ClusterFile, type ClusterNode, holdsPolicies, nodesOf } from '../cluster.ts'

export const KUBE_CA = 'kube-ca'
export const REQUESTHEADER_CA = 'kube-apiserver-requestheader-ca'
export const ETCD_CA = 'kube-etcd-ca'
export const API_SERVER = 'kube-apiserver'
export const SERVICE_ACCOUNT = 'kube-service-account-token'
export const CONTROLLER_MANAGER = 'kube-controller-manager'
export const SCHEDULER = 'kube-scheduler'
export const PROXY = 'kube-proxy'
export const NETWORK_POLICIES = 'kube-network-policies'
export const NODE = 'kube-node'
export const ADMIN = 'kube-admin'
/** The agent of the management server. */
export const CLUSTER_AGENT = 'kube-cluster-agent'
/** Its user in the cluster. */
export const CLUSTER_AGENT_USER = 'hyperkube:cluster-agent'
export const PROXY_CLIENT = 'kube-apiserver-proxy-client'
/** The API server's client certificate for etcd; for an external etcd, the given one. */
export const ETCD_CLIENT = 'kube-etcd-client'
export const ETCD_CLIENT_CA = 'kube-etcd-client-ca'

/** The names of `cert rotate --service`. */
export type RotatedService =
  | 'kube-apiserver'
  | 'kube-controller-manager'
  | 'kube-scheduler'
  | 'kubelet'
  | 'kube-proxy'
  | 'etcd'

export interface PlannedCertificate {
  /** The key in the bundle, and the base of file names, unless files on the machine omit the machine part. */
  readonly name: string
  /** The name of the issuer; its own name if self-signed. */
  readonly signer: string
  readonly commonName: string
  readonly organizations: readonly string[]
  readonly names: { readonly dns: readonly string[]; readonly ips: readonly string[] }
  /** `peer` is both client and server. */
  readonly purpose: 'authority' | 'client' | 'peer'
  /** The service whose rotation renews it; none: only a full rotation does. */
  readonly service?: RotatedService
  /** The key survives every rotation, because existing tokens are signed with it. */
  readonly keepsKey?: true
  /** True if its user has a kubeconfig on the machines. */
  readonly hasKubeconfig?: true
}

const NO_NAMES = { dns: [], ips: [] } as const

/** Authorities come before the certificates that they sign. */
export function planCertificates(cluster: ClusterFile): PlannedCertificate[] {
  const isExternal = cluster.services.etcd.external_urls.length > 0
  return [
    authority(KUBE_CA),
    authority(REQUESTHEADER_CA),
    ...(isExternal ? [] : [authority(ETCD_CA)]),
    {
      ...client(API_SERVER, 'kube-apiserver'),
      purpose: 'peer',
      names: apiServerNames(cluster),
      service: 'kube-apiserver',
    },
    { ...client(SERVICE_ACCOUNT, 'kube-service-account-token'), keepsKey: true },
    user(CONTROLLER_MANAGER, 'kube-controller-manager'),
    user(SCHEDULER, 'kube-scheduler'),
    user(PROXY, 'kube-proxy'),
    ...(holdsPolicies(cluster) ? [user(NETWORK_POLICIES, 'kube-proxy')] : []),
    { ...client(ADMIN, 'kube-admin'), organizations: ['system:masters'] },
    ...(cluster.management === undefined
      ? []
      : [{ ...client(CLUSTER_AGENT, CLUSTER_AGENT_USER), hasKubeconfig: true as const }]),
    { ...client(PROXY_CLIENT, PROXY_CLIENT), signer: REQUESTHEADER_CA, purpose: 'peer', service: 'kube-apiserver' },
    ...cluster.nodes.map((node) => nodeIdentity(node)),
    ...(isExternal ? [] : planEtcd(cluster)),
    ...(cluster.services.kubelet.generate_serving_certificate ? cluster.nodes.map((node) => kubeletServing(node)) : []),
  ]
}

function authority(name: string): PlannedCertificate {
  return { name, signer: name, commonName: name, organizations: [], names: NO_NAMES, purpose: 'authority' }
}

function client(name: string, commonName: string): PlannedCertificate {
  return { name, signer: KUBE_CA, commonName, organizations: [], names: NO_NAMES, purpose: 'client' }
}

function user(name: string, service: RotatedService): PlannedCertificate {
  return { ...client(name, `system:${name}`), service, hasKubeconfig: true }
}

function nodeIdentity(node: ClusterNode): PlannedCertificate {
  return {
    ...client(hostStem(NODE, node), `system:node:${node.hostname_override}`),
    organizations: ['system:nodes'],
    service: 'kubelet',
    hasKubeconfig: true,
  }
}

/** Only the member's own names: other members do not affect its certificate. */
function planEtcd(cluster: ClusterFile): PlannedCertificate[] {
  const members = nodesOf(cluster, 'etcd').map((node): PlannedCertificate => ({
    ...client(hostStem('kube-etcd', node), 'kube-etcd'),
    signer: ETCD_CA,
    purpose: 'peer',
    names: namesOf([...namesOfNode(node), '127.0.0.1', 'localhost']),
    service: 'etcd',
  }))
  return [...members, { ...client(ETCD_CLIENT, ETCD_CLIENT), signer: ETCD_CA, service: 'etcd' }]
}

function kubeletServing(node: ClusterNode): PlannedCertificate {
  const name = hostStem('kube-kubelet', node)
  return {
    ...client(name, name),
    purpose: 'peer',
    names: namesOf([...namesOfNode(node), '127.0.0.1', 'localhost']),
    service: 'kubelet',
  }
}

/** `kube-etcd-10-0-0-1`: by the internal address if there is one, in characters that file names allow. */
export function hostStem(prefix: string, node: Pick<ClusterNode, 'address' | 'internal_address'>): string {
  const host = node.internal_address === node.address ? node.address : node.internal_address
  return `${prefix}-${host.replaceAll(/[.:]/g, '-')}`
}

function apiServerNames(cluster: ClusterFile): PlannedCertificate['names'] {
  const domain = cluster.services.kubelet.cluster_domain
  const ranges = cluster.services['kube-api'].service_cluster_ip_range.split(',')
  const own = ranges.flatMap((range) => {
    const cidr = parseCidr(range)
    return cidr ? [nthAddress(cidr, 1)] : []
  })
  return namesOf([
    ...nodesOf(cluster, 'controlplane').flatMap(namesOfNode),
    ...cluster.authentication.sans,
    '127.0.0.1',
    ...own,
    'localhost',
    'kubernetes',
    'kubernetes.default',
    'kubernetes.default.svc',
    `kubernetes.default.svc.${domain}`,
  ])
}

function namesOfNode(node: ClusterNode): string[] {
  return [node.address, node.internal_address, node.hostname_override]
}

/** Sorted into addresses and names, distinct, in order of first occurrence. */
function namesOf(mixed: readonly string[]): PlannedCertificate['names'] {
  const all = [...new Set(mixed)]
  return {
    ips: all.filter((name) => parseIp(name) !== undefined),
    dns: all.filter((name) => parseIp(name) === undefined),
  }
}
