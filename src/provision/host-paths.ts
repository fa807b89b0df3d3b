/** Where things are on the machines: RKE's layout, all of it below `prefix_path`. */
import { posix } from 'node:path'

type Prefixed = { readonly prefix_path: string }

/** An absolute path of the layout, where the cluster has it. */
export function hostPath({ prefix_path }: Prefixed, path: string): string {
  return posix.join(prefix_path, path)
}

/** Where a certificate is that machines know by this stem. */
export function certificatePaths(
  cluster: Prefixed,
  stem: string,
): { readonly certificate: string; readonly key: string; readonly kubeconfig: string } {
  const folder = hostPath(cluster, '/etc/kubernetes/ssl')
  return {
    certificate: `${folder}/${stem}.pem`,
    key: `${folder}/${stem}-key.pem`,
    kubeconfig: `${folder}/kubecfg-${stem}.yaml`,
  }
}

/** Files that programs read, beside their certificates. */
export const CONFIG_FILES = {
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
