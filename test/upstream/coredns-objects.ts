/** The objects and the image of the CoreDNS addon, with upstream's names. */
export const COREDNS_IMAGE = 'registry.k8s.io/coredns/coredns:v1.15.0'

const NAMESPACE = 'kube-system'
const LABELS = { 'k8s-app': 'kube-dns' }
const COREFILE = `.:53 {
    errors
    log
    health {
       lameduck 5s
    }
    ready
    kubernetes cluster.local in-addr.arpa ip6.arpa {
       pods insecure
       fallthrough in-addr.arpa ip6.arpa
       ttl 30
    }
    prometheus :9153
    forward . /etc/resolv.conf {
       max_concurrent 1000
    }
    cache 30
    loop
    reload
    loadbalance
}
`

const ROLE = 'system:coredns'

const access: readonly object[] = [
  { apiVersion: 'v1', kind: 'ServiceAccount', metadata: { name: 'coredns', namespace: NAMESPACE } },
  {
    apiVersion: 'rbac.authorization.k8s.io/v1',
    kind: 'ClusterRole',
    metadata: { name: ROLE },
    rules: [
      { apiGroups: [''], resources: ['endpoints', 'services', 'pods', 'namespaces'], verbs: ['list', 'watch'] },
      { apiGroups: ['discovery.k8s.io'], resources: ['endpointslices'], verbs: ['list', 'watch'] },
    ],
  },
  {
    apiVersion: 'rbac.authorization.k8s.io/v1',
    kind: 'ClusterRoleBinding',
    metadata: { name: ROLE },
    roleRef: { apiGroup: 'rbac.authorization.k8s.io', kind: 'ClusterRole', name: ROLE },
    subjects: [{ kind: 'ServiceAccount', name: 'coredns', namespace: NAMESPACE }],
  },
]

const container = {
  name: 'coredns',
  image: COREDNS_IMAGE,
  imagePullPolicy: 'Never',
  args: ['-conf', '/etc/coredns/Corefile'],
  volumeMounts: [{ name: 'config-volume', mountPath: '/etc/coredns', readOnly: true }],
  ports: [
    { containerPort: 53, name: 'dns', protocol: 'UDP' },
    { containerPort: 53, name: 'dns-tcp', protocol: 'TCP' },
    { containerPort: 9153, name: 'metrics', protocol: 'TCP' },
  ],
  livenessProbe: { httpGet: { path: '/health', port: 8080 }, initialDelaySeconds: 60, timeoutSeconds: 5 },
  readinessProbe: { httpGet: { path: '/ready', port: 8181 }, periodSeconds: 1 },
  securityContext: {
    allowPrivilegeEscalation: false,
    capabilities: { add: ['NET_BIND_SERVICE'], drop: ['ALL'] },
    readOnlyRootFilesystem: true,
  },
}

/** With so many pods, one on each node. */
export function corednsAddon(replicas: number): object[] {
  const spread = {
    maxSkew: 1,
    topologyKey: 'kubernetes.io/hostname',
    whenUnsatisfiable: 'DoNotSchedule',
    labelSelector: { matchLabels: LABELS },
  }
  const spec = {
    serviceAccountName: 'coredns',
    dnsPolicy: 'Default',
    priorityClassName: 'system-cluster-critical',
    topologySpreadConstraints: [spread],
    containers: [container],
    volumes: [{ name: 'config-volume', configMap: { name: 'coredns' } }],
  }
  const metadata = { name: 'coredns', namespace: NAMESPACE, labels: LABELS }
  const template = { metadata: { labels: LABELS }, spec }
  return [
    ...access,
    { apiVersion: 'v1', kind: 'ConfigMap', metadata, data: { Corefile: COREFILE } },
    {
      apiVersion: 'apps/v1',
      kind: 'Deployment',
      metadata,
      spec: { replicas, selector: { matchLabels: LABELS }, template },
    },
    // The addresses and ports are those that the cluster has given it.
    {
      apiVersion: 'v1',
      kind: 'Service',
      metadata: { name: 'kube-dns', namespace: NAMESPACE, labels: LABELS },
      spec: {
        selector: LABELS,
        ports: [
          { name: 'dns', port: 53, protocol: 'UDP' },
          { name: 'dns-tcp', port: 53, protocol: 'TCP' },
          { name: 'metrics', port: 9153, protocol: 'TCP' },
        ],
      },
    },
  ]
}
