/**
 * The manifest of cluster DNS: Service `kube-dns` and our DNS server, with the names of RKE's CoreDNS.
 * `system_images.coredns` selects CoreDNS instead. Pure.
 */
import type { ClusterFile } from '../cluster.ts'
import {
  account,
  type AddonContext,
  httpProbe,
  imageOf,
  manifestOf,
  ON_WORKERS,
  ownContainer,
  placementOf,
  podTemplate,
  rule,
  securityOf,
  strategyOf,
  SYSTEM_NAMESPACE as namespace,
  TO_START,
} from './objects.ts'

const LABELS = { 'k8s-app': 'kube-dns' }
const AUTOSCALER = 'coredns-autoscaler'
const RULES = [
  rule('', 'endpoints services pods namespaces', 'list watch'),
  rule('discovery.k8s.io', 'endpointslices', 'list watch'),
]
const AUTOSCALER_RULES = [
  rule('', 'nodes', 'list watch'),
  rule('', 'configmaps', 'get'),
  rule('apps', 'deployments deployments/scale', 'get update patch'),
]
const PORTS = [
  { name: 'dns', containerPort: 53, protocol: 'UDP' },
  { name: 'dns-tcp', containerPort: 53, protocol: 'TCP' },
  { name: 'metrics', containerPort: 9153, protocol: 'TCP' },
]

export function dnsManifest(cluster: ClusterFile, context: AddonContext): string {
  const image = imageOf(cluster, 'coredns')
  const configmap = {
    apiVersion: 'v1',
    kind: 'ConfigMap',
    metadata: { name: 'coredns', namespace },
    data: { Corefile: corefile(cluster) },
  }
  return manifestOf([
    ...account('coredns', namespace, 'system:coredns', RULES),
    ...(image === undefined ? [] : [configmap]),
    deployment(cluster, context),
    service(cluster),
    ...autoscaler(cluster, context),
  ])
}

/** Without replicas, which the autoscaler sets. */
function deployment(cluster: ClusterFile, context: AddonContext): object {
  const { dns } = cluster
  const image = imageOf(cluster, 'coredns')
  const spec = {
    serviceAccountName: 'coredns',
    priorityClassName: dns.options['coredns_priority_class_name'] ?? 'system-cluster-critical',
    ...placementOf(dns, ON_WORKERS),
    dnsPolicy: 'Default',
    ...(image === undefined ? ownPod(cluster) : corednsPod(image)),
  }
  return {
    apiVersion: 'apps/v1',
    kind: 'Deployment',
    metadata: { name: 'coredns', namespace, labels: { ...LABELS, 'kubernetes.io/name': 'CoreDNS' } },
    spec: {
      strategy: strategyOf(dns.update_strategy, { maxUnavailable: 1, maxSurge: 0 }),
      selector: { matchLabels: LABELS },
      template: podTemplate(LABELS, context, spec),
    },
  }
}

/** Node alone uses as much memory as CoreDNS; the limit fits fifty thousand endpoints. */
const OWN_RESOURCES = { limits: { memory: '512Mi' }, requests: { cpu: '100m', memory: '100Mi' } }

function ownPod({ dns, services: { kubelet } }: ClusterFile): object {
  const args = [
    'dns',
    `--domain=${kubelet.cluster_domain}`,
    `--own-addresses=${kubelet.cluster_dns_server}`,
    '--lameduck-period=5s',
    ...(dns.upstreamnameservers.length > 0 ? [`--upstreams=${dns.upstreamnameservers.join(',')}`] : []),
    ...stubs(dns.stubdomains),
  ]
  const container = ownContainer('coredns', args, {
    resources: OWN_RESOURCES,
    ports: PORTS,
    startupProbe: httpProbe('/health', 9153, TO_START),
    livenessProbe: httpProbe('/health', 9153, { timeoutSeconds: 5, failureThreshold: 5 }),
    readinessProbe: httpProbe('/ready', 9153, { periodSeconds: 2, failureThreshold: 15 }),
    securityContext: securityOf('NET_BIND_SERVICE'),
  })
  return { containers: [container] }
}

export function stubs(domains: ClusterFile['dns']['stubdomains']): string[] {
  const all = Object.entries(domains).flatMap(([domain, servers]) => servers.map((server) => `${domain}=${server}`))
  return all.length === 0 ? [] : [`--stub-domains=${all.join(',')}`]
}

function corednsPod(image: string): object {
  const container = {
    name: 'coredns',
    image,
    imagePullPolicy: 'IfNotPresent',
    args: ['-conf', '/etc/coredns/Corefile'],
    resources: { limits: { memory: '170Mi' }, requests: { cpu: '100m', memory: '70Mi' } },
    volumeMounts: [{ name: 'config-volume', mountPath: '/etc/coredns', readOnly: true }],
    ports: PORTS,
    livenessProbe: httpProbe('/health', 8080, { initialDelaySeconds: 60, timeoutSeconds: 5, failureThreshold: 5 }),
    readinessProbe: httpProbe('/ready', 8181),
    securityContext: securityOf('NET_BIND_SERVICE'),
  }
  const items = [{ key: 'Corefile', path: 'Corefile' }]
  return { containers: [container], volumes: [{ name: 'config-volume', configMap: { name: 'coredns', items } }] }
}

/** RKE's Corefile, which clusters rely on. */
export function corefile({ dns, services: { kubelet } }: ClusterFile): string {
  const reverse = dns.reversecidrs.length > 0 ? dns.reversecidrs.join(' ') : 'in-addr.arpa ip6.arpa'
  const upstreams = dns.upstreamnameservers.length > 0 ? dns.upstreamnameservers.join(' ') : '/etc/resolv.conf'
  const main = [
    '.:53 {',
    '    errors',
    '    health {',
    '      lameduck 5s',
    '    }',
    '    ready',
    `    kubernetes ${kubelet.cluster_domain} ${reverse} {`,
    '      pods insecure',
    '      fallthrough in-addr.arpa ip6.arpa',
    '    }',
    '    prometheus :9153',
    `    forward . ${upstreams}`,
    '    cache 30',
    '    loop',
    '    reload',
    '    loadbalance',
    '}',
  ]
  const others = Object.entries(dns.stubdomains).flatMap(([domain, servers]) => [
    `${domain}:53 {`,
    '    errors',
    '    cache 30',
    `    forward . ${servers.join(' ')}`,
    '}',
  ])
  return `${[...main, ...others].join('\n')}\n`
}

function service({ services: { kubelet } }: ClusterFile): object {
  return {
    apiVersion: 'v1',
    kind: 'Service',
    metadata: {
      name: 'kube-dns',
      namespace,
      annotations: { 'prometheus.io/scrape': 'true', 'prometheus.io/port': '9153' },
      labels: { ...LABELS, 'kubernetes.io/cluster-service': 'true', 'kubernetes.io/name': 'CoreDNS' },
    },
    spec: {
      selector: LABELS,
      clusterIP: kubelet.cluster_dns_server,
      ports: PORTS.map(({ name, containerPort: port, protocol }) => ({ name, port, protocol })),
    },
  }
}

function autoscaler(cluster: ClusterFile, context: AddonContext): object[] {
  const { dns } = cluster
  const labels = { 'k8s-app': AUTOSCALER }
  const { cores_per_replica, nodes_per_replica, min, max, prevent_single_point_failure } = dns.linear_autoscaler_params
  const linear = {
    coresPerReplica: cores_per_replica,
    nodesPerReplica: nodes_per_replica,
    min,
    ...(max !== undefined && { max }),
    preventSinglePointFailure: prevent_single_point_failure,
  }
  const flags = [`--namespace=${namespace}`, `--configmap=${AUTOSCALER}`, '--target=deployment/coredns']
  const image = imageOf(cluster, 'coredns_autoscaler')
  const resources = { requests: { cpu: '20m', memory: image === undefined ? '60Mi' : '10Mi' } }
  const rest = { resources, securityContext: securityOf() }
  const container =
    image === undefined
      ? ownContainer('autoscaler', ['cluster-proportional-autoscaler', ...flags], rest)
      : { name: 'autoscaler', image, command: ['/cluster-proportional-autoscaler', ...flags], ...rest }
  const spec = {
    serviceAccountName: AUTOSCALER,
    priorityClassName: dns.options['coredns_autoscaler_priority_class_name'] ?? 'system-cluster-critical',
    ...placementOf(dns, ON_WORKERS),
    containers: [container],
  }
  return [
    ...account(AUTOSCALER, namespace, `system:${AUTOSCALER}`, AUTOSCALER_RULES),
    {
      apiVersion: 'v1',
      kind: 'ConfigMap',
      metadata: { name: AUTOSCALER, namespace },
      data: { linear: JSON.stringify(linear) },
    },
    {
      apiVersion: 'apps/v1',
      kind: 'Deployment',
      metadata: { name: AUTOSCALER, namespace, labels },
      spec: { selector: { matchLabels: labels }, template: podTemplate(labels, context, spec) },
    },
  ]
}
