/**
 * Every certificate of a cluster as data: who signs it, whom it names, what it is good for, to which service it belongs.
 * RKE's names and subjects, but for what let one machine act as another: each node has an identity of its own
 * (`system:node:<name>`), and etcd an authority of its own, so that no certificate of a node opens it.
 */
import { nthAddress, parseCidr, parseIp } from '#lib/cidr.ts'

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
export const PROXY_CLIENT = 'kube-apiserver-proxy-client'
/** What the API server shows to etcd; with an external etcd, as it was given. */
export const ETCD_CLIENT = 'kube-etcd-client'
export const ETCD_CLIENT_CA = 'kube-etcd-client-ca'

/** As `cert rotate --service` names them. */
export type RotatedService =
  | 'kube-apiserver'
  | 'kube-controller-manager'
  | 'kube-scheduler'
  | 'kubelet'
  | 'kube-proxy'
  | 'etcd'

export interface PlannedCertificate {
  /** Key of the bundle, and stem of the files unless the machine's own files drop what tells machines apart. */
  readonly name: string
  /** Name of the authority; its own name when it signs itself. */
  readonly signer: string
  readonly commonName: string
  readonly organizations: readonly string[]
  readonly names: { readonly dns: readonly string[]; readonly ips: readonly string[] }
  /** `peer` is both client and server. */
  readonly purpose: 'authority' | 'client' | 'peer'
  /** Whose rotation makes it anew; none: only when everything is. */
  readonly service?: RotatedService
  /** The key outlives every rotation: tokens that are out there are signed with it. */
  readonly keepsKey?: true
  /** Whether its user has a kubeconfig on the machines. */
  readonly hasKubeconfig?: true
}

const NO_NAMES = { dns: [], ips: [] } as const

/** In an order in which authorities come before what they sign. */
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

/** Own names only: a member that joins or leaves changes no other's certificate. */
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

/** `kube-etcd-10-0-0-1`: by the internal address where there is one, in characters that file names have. */
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

/** Sorted into addresses and names, each once, in the order of first mention. */
function namesOf(mixed: readonly string[]): PlannedCertificate['names'] {
  const all = [...new Set(mixed)]
  return {
    ips: all.filter((name) => parseIp(name) !== undefined),
    dns: all.filter((name) => parseIp(name) === undefined),
  }
}
