/**
 * Assigns certificates and kubeconfigs to machines. A machine gets only what its roles need, without keys of other
 * machines or of authorities that it does not use for signing.
 */
import { stringifyYaml } from '#lib/yaml/yaml.ts'

import { type ClusterFile, type ClusterNode, hasRole, holdsPolicies } from '../cluster.ts'
import { certificatePaths } from '../host-paths.ts'
import { type Bundle, type BundleEntry, PkiError } from './bundle.ts'
import * as plan from './plan.ts'

/** Every program uses the local API server or the local load balancer, which have the same address. */
export const LOCAL_API_SERVER = 'https://127.0.0.1:6443'

export interface PkiFile {
  readonly path: string
  /** Readable only by the owner. */
  readonly mode: number
  readonly content: string
}

/** One certificate on one machine. */
interface Share {
  /** The name in the bundle. */
  readonly name: string
  /** The name on the machine, if it differs. */
  readonly stem?: string
  readonly withoutKey?: boolean
  readonly withKubeconfig?: boolean
}

/** The certificates of a machine by its roles. */
export function sharesOf(cluster: ClusterFile, node: ClusterNode): readonly Share[] {
  const isExternal = cluster.services.etcd.external_urls.length > 0
  const isControlPlane = hasRole(node, 'controlplane')
  const always: Share[] = [
    // The controller manager signs certificate requests with it.
    { name: plan.KUBE_CA, withoutKey: !isControlPlane },
    { name: plan.PROXY, withKubeconfig: true },
    ...(holdsPolicies(cluster) ? [{ name: plan.NETWORK_POLICIES, withKubeconfig: true }] : []),
    { name: plan.hostStem(plan.NODE, node), stem: plan.NODE, withKubeconfig: true },
  ]
  const serving = cluster.services.kubelet.generate_serving_certificate
    ? [{ name: plan.hostStem('kube-kubelet', node) }]
    : []
  const etcdClient: Share[] = [
    { name: isExternal ? plan.ETCD_CLIENT_CA : plan.ETCD_CA, withoutKey: true },
    { name: plan.ETCD_CLIENT },
  ]
  const etcd: Share[] = hasRole(node, 'etcd')
    ? [{ name: plan.ETCD_CA, withoutKey: true }, { name: plan.hostStem('kube-etcd', node) }]
    : []
  const controlPlane: Share[] = isControlPlane
    ? [
        { name: plan.API_SERVER },
        { name: plan.SERVICE_ACCOUNT },
        { name: plan.CONTROLLER_MANAGER, withKubeconfig: true },
        { name: plan.SCHEDULER, withKubeconfig: true },
        { name: plan.REQUESTHEADER_CA, withoutKey: true },
        { name: plan.PROXY_CLIENT },
        ...(cluster.management === undefined ? [] : [{ name: plan.CLUSTER_AGENT, withKubeconfig: true }]),
        ...etcdClient,
      ]
    : []
  return [...new Map([...always, ...serving, ...etcd, ...controlPlane].map((one) => [one.name, one])).values()]
}

/** All files of one machine. Throws PkiError if the bundle lacks one. */
export function certificateFiles(cluster: ClusterFile, node: ClusterNode, bundle: Bundle): PkiFile[] {
  return sharesOf(cluster, node).flatMap(({ name, stem = name, withoutKey, withKubeconfig }) => {
    const entry = entryOf(bundle, name)
    const paths = certificatePaths(cluster, stem)
    const files: PkiFile[] = [{ path: paths.certificate, mode: 0o600, content: entry.certificatePEM }]
    if (!withoutKey && entry.keyPEM !== '') files.push({ path: paths.key, mode: 0o600, content: entry.keyPEM })
    if (withKubeconfig) files.push({ path: paths.kubeconfig, mode: 0o600, content: nodeKubeconfig(cluster, stem) })
    return files
  })
}

function entryOf(bundle: Bundle, name: string): BundleEntry {
  const entry = bundle[name]
  if (!entry) throw new PkiError('unreadable', `There is no certificate "${name}" in the state; run "build up" again`)
  return entry
}

/** With paths instead of certificate data: a new certificate needs no new kubeconfig. */
function nodeKubeconfig(cluster: ClusterFile, stem: string): string {
  const paths = certificatePaths(cluster, stem)
  const user = `${stem}-local`
  return stringifyYaml({
    apiVersion: 'v1',
    kind: 'Config',
    clusters: [
      {
        name: 'local',
        cluster: {
          'certificate-authority': certificatePaths(cluster, plan.KUBE_CA).certificate,
          server: LOCAL_API_SERVER,
        },
      },
    ],
    contexts: [{ name: 'local', context: { cluster: 'local', user } }],
    'current-context': 'local',
    users: [{ name: user, user: { 'client-certificate': paths.certificate, 'client-key': paths.key } }],
  })
}

/** The way to an API server. */
export interface ApiAddress {
  readonly host: string
  /** Default: 6443. */
  readonly port?: number
  /** A name in its certificate, if `host` is not one: the address of a control plane behind a tunnel. */
  readonly serverName?: string
}

/** The operator's kubeconfig, with embedded certificates. */
export function adminKubeconfig(cluster: ClusterFile, bundle: Bundle, address: string | ApiAddress): string {
  const authority = entryOf(bundle, plan.KUBE_CA)
  const admin = entryOf(bundle, plan.ADMIN)
  const name = cluster.cluster_name
  const user = `${plan.ADMIN}-${name}`
  const { host, port = 6443, serverName }: ApiAddress = typeof address === 'string' ? { host: address } : address
  return stringifyYaml({
    apiVersion: 'v1',
    kind: 'Config',
    clusters: [
      {
        name,
        cluster: {
          'certificate-authority-data': base64(authority.certificatePEM),
          server: `https://${host.includes(':') ? `[${host}]` : host}:${port}`,
          ...(serverName !== undefined && { 'tls-server-name': serverName }),
        },
      },
    ],
    contexts: [{ name, context: { cluster: name, user } }],
    'current-context': name,
    users: [
      {
        name: user,
        user: { 'client-certificate-data': base64(admin.certificatePEM), 'client-key-data': base64(admin.keyPEM) },
      },
    ],
  })
}

function base64(text: string): string {
  return Buffer.from(text).toString('base64')
}
