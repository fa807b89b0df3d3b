/** The paths of files on the machines of a cluster: RKE's layout below `prefix_path`. */
import { posix } from 'node:path'

type PathPrefix = { readonly prefix_path: string }

/** The path of the cluster for a path of the layout. */
export function hostPath({ prefix_path }: PathPrefix, path: string): string {
  return posix.join(prefix_path, path)
}

/** The path of a certificate by its name. */
export function certificatePaths(
  cluster: PathPrefix,
  stem: string,
): { readonly certificate: string; readonly key: string; readonly kubeconfig: string } {
  const folder = hostPath(cluster, '/etc/kubernetes/ssl')
  return {
    certificate: `${folder}/${stem}.pem`,
    key: `${folder}/${stem}-key.pem`,
    kubeconfig: `${folder}/kubecfg-${stem}.yaml`,
  }
}

/** Files of programs other than certificates. */
export const CONFIG_FILES = {
  agentAuthority: '/etc/kubernetes/ssl/management-server-ca.pem',
  agentCredential: '/etc/kubernetes/ssl/cluster-agent-credential',
  admission: '/etc/kubernetes/admission.yaml',
  auditPolicy: '/etc/kubernetes/audit-policy.yaml',
  authenticationWebhook: '/etc/kubernetes/kube-api-authn-webhook.yaml',
  cloud: '/etc/kubernetes/cloud-config',
  credentialProviders: '/etc/kubernetes/credential-providers.yaml',
  encryption: '/etc/kubernetes/ssl/encryption.yaml',
  registries: '/var/lib/kubelet/config.json',
  snapshotBucket: '/etc/kubernetes/ssl/snapshot-bucket.json',
} as const

export const FOLDERS = {
  credentialProviders: '/opt/hyperkube/credential-providers',
  etcdData: '/var/lib/etcd',
  kubelet: '/var/lib/kubelet',
  snapshots: '/opt/rke/etcd-snapshots',
  volumePlugins: '/var/lib/kubelet/volumeplugins',
} as const
