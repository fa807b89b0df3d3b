/** The manifest of the DNS cache on every node, at the address that kubelets give to pods. Pure. */
import type { ClusterFile, Dns } from '../cluster.ts'
import { stubs } from './dns.ts'
import {
  type AddonContext,
  manifestOf,
  ON_LINUX,
  ownContainer,
  placementOf,
  podTemplate,
  securityOf,
  strategyOf,
  SYSTEM_NAMESPACE as namespace,
  TO_START,
} from './objects.ts'

const NAME = 'node-local-dns'
const LABELS = { 'k8s-app': NAME }
/** Upstream's port, which differs from the DNS server's, because both may run on one machine. */
const METRICS_PORT = 9253

export function nodeLocalManifest(
  { dns, services: { kubelet } }: ClusterFile,
  local: NonNullable<Dns['nodelocal']>,
  context: AddonContext,
): string {
  const args = [
    'dns',
    `--cache-of=${kubelet.cluster_dns_server}`,
    `--local-address=${local.ip_address}`,
    `--domain=${kubelet.cluster_domain}`,
    `--metrics-port=${METRICS_PORT}`,
    ...(dns.upstreamnameservers.length > 0 ? [`--upstreams=${dns.upstreamnameservers.join(',')}`] : []),
    ...stubs(dns.stubdomains),
  ]
  const probe = (path: string): object => ({ httpGet: { host: local.ip_address, path, port: METRICS_PORT } })
  const container = ownContainer('node-cache', args, {
    resources: { limits: { memory: '256Mi' }, requests: { cpu: '25m', memory: '60Mi' } },
    startupProbe: { ...probe('/health'), ...TO_START },
    livenessProbe: { ...probe('/health'), timeoutSeconds: 5 },
    readinessProbe: { ...probe('/ready'), periodSeconds: 2 },
    // The capabilities for its address and for port 53.
    securityContext: securityOf('NET_ADMIN', 'NET_BIND_SERVICE'),
  })
  const spec = {
    serviceAccountName: NAME,
    automountServiceAccountToken: false,
    priorityClassName: local.nodelocal_dns_priority_class_name || 'system-node-critical',
    ...placementOf({ node_selector: local.node_selector }, ON_LINUX),
    hostNetwork: true,
    dnsPolicy: 'Default',
    terminationGracePeriodSeconds: 5,
    containers: [container],
  }
  return manifestOf([
    { apiVersion: 'v1', kind: 'ServiceAccount', metadata: { name: NAME, namespace } },
    {
      apiVersion: 'apps/v1',
      kind: 'DaemonSet',
      metadata: { name: NAME, namespace, labels: LABELS },
      spec: {
        updateStrategy: strategyOf(local.update_strategy, { maxUnavailable: '10%' }),
        selector: { matchLabels: LABELS },
        template: podTemplate(LABELS, context, spec),
      },
    },
  ])
}
