/** Lists the addons of a cluster in RKE's order and with its names. Pure. */
import type { ClusterFile } from '../cluster.ts'
import type { Addon } from '../desired.ts'
import { dnsManifest } from './dns.ts'
import { ingressManifest } from './ingress.ts'
import { metricsManifest } from './metrics-server.ts'
import { nodeLocalManifest } from './node-local-dns.ts'
import type { AddonContext } from './objects.ts'

/** Provider "none" has no addon: an existing one is deleted. */
export function systemAddons(cluster: ClusterFile, context: AddonContext): Addon[] {
  const { dns, monitoring, ingress } = cluster
  return [
    ...(dns.provider === 'none' ? [] : [{ name: 'rke-coredns-addon', manifest: dnsManifest(cluster, context) }]),
    ...(dns.nodelocal === undefined
      ? []
      : [{ name: 'rke-nodelocal-addon', manifest: nodeLocalManifest(cluster, dns.nodelocal, context) }]),
    ...(monitoring.provider === 'none'
      ? []
      : [{ name: 'rke-metrics-addon', manifest: metricsManifest(cluster, context) }]),
    ...(ingress.provider === 'none'
      ? []
      : [{ name: 'rke-ingress-controller', manifest: ingressManifest(cluster, context) }]),
  ]
}
