/** Translates the network settings of cluster.yml to flanneld's configuration. Pure. */
import type { ClusterFile } from '../cluster.ts'

/** The interface in the file, for machines with several. */
export function ifaceOf({ network }: ClusterFile): string | undefined {
  const { options, canal_network_provider, flannel_network_provider } = network
  const named = [
    options['canal_iface'],
    options['flannel_iface'],
    canal_network_provider?.iface,
    flannel_network_provider?.iface,
  ]
  return named.find(Boolean)
}

export function usesFlannel({ network }: ClusterFile): boolean {
  return network.plugin !== 'none'
}

/** RKE's defaults: VNI 1 on port 8472. */
export function netConf({ network, services }: ClusterFile): string {
  const option = (name: string): string | undefined =>
    network.options[`flannel_backend_${name}`] ?? network.options[`canal_flannel_backend_${name}`]
  const backend = {
    Type: option('type') ?? 'vxlan',
    VNI: Number(option('vni') ?? 1),
    Port: Number(option('port') ?? 8472),
    ...(network.mtu > 0 && { MTU: network.mtu }),
  }
  const [first = ''] = services['kube-controller'].cluster_cidr.split(',')
  return `${JSON.stringify({ Network: first, Backend: backend }, undefined, 2)}\n`
}
