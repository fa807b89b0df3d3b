/**
 * The manifest of the metrics API: our metrics-server with upstream's names; `system_images.metrics_server` selects
 * upstream's. Pure.
 */
import type { ClusterFile } from '../cluster.ts'
import {
  account,
  type AddonContext,
  binding,
  clusterBinding,
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

const NAME = 'metrics-server'
const LABELS = { 'k8s-app': NAME }
const GROUP = 'metrics.k8s.io'
const PORT = 10_250
/** Upstream's server reads resource metrics of kubelets, ours reads their statistics. */
const RULES = [
  rule('', 'nodes/metrics nodes/stats', 'get'),
  rule('', 'pods nodes namespaces configmaps', 'get list watch'),
]

export function metricsManifest(cluster: ClusterFile, context: AddonContext): string {
  const aggregated = Object.fromEntries(
    ['admin', 'edit', 'view'].map((to) => [`rbac.authorization.k8s.io/aggregate-to-${to}`, 'true']),
  )
  return manifestOf([
    ...account(NAME, namespace, `system:${NAME}`, RULES),
    {
      apiVersion: 'rbac.authorization.k8s.io/v1',
      kind: 'ClusterRole',
      metadata: { name: 'system:aggregated-metrics-reader', labels: { ...LABELS, ...aggregated } },
      rules: [rule(GROUP, 'pods nodes', 'get list watch')],
    },
    clusterBinding('metrics-server:system:auth-delegator', 'system:auth-delegator', NAME, namespace),
    binding({ name: 'metrics-server-auth-reader', namespace }, 'extension-apiserver-authentication-reader', {
      name: NAME,
      namespace,
    }),
    deployment(cluster, context),
    {
      apiVersion: 'v1',
      kind: 'Service',
      metadata: { name: NAME, namespace, labels: LABELS },
      spec: { selector: LABELS, ports: [{ name: 'https', port: 443, protocol: 'TCP', targetPort: PORT }] },
    },
    {
      apiVersion: 'apiregistration.k8s.io/v1',
      kind: 'APIService',
      metadata: { name: `v1beta1.${GROUP}`, labels: LABELS },
      spec: {
        service: { name: NAME, namespace },
        group: GROUP,
        version: 'v1beta1',
        insecureSkipTLSVerify: true,
        groupPriorityMinimum: 100,
        versionPriority: 100,
      },
    },
  ])
}

function deployment(cluster: ClusterFile, context: AddonContext): object {
  const { monitoring } = cluster
  const image = imageOf(cluster, 'metrics_server')
  const flags = [
    '--cert-dir=/tmp',
    `--secure-port=${PORT}`,
    // Kubelets have self-signed certificates unless the file configures others.
    ...(cluster.services.kubelet.generate_serving_certificate
      ? ['--kubelet-certificate-authority=/var/run/secrets/kubernetes.io/serviceaccount/ca.crt']
      : ['--kubelet-insecure-tls']),
    '--kubelet-preferred-address-types=InternalIP',
    '--metric-resolution=15s',
    ...Object.entries(monitoring.options).map(([name, value]) => `--${name}=${value}`),
  ]
  const probe = (path: string): object => ({ httpGet: { path, port: PORT, scheme: 'HTTPS' } })
  const rest = {
    ports: [{ name: 'https', containerPort: PORT, protocol: 'TCP' }],
    startupProbe: { ...probe('/livez'), ...TO_START },
    livenessProbe: { ...probe('/livez'), periodSeconds: 10, failureThreshold: 3 },
    readinessProbe: { ...probe('/readyz'), periodSeconds: 2, failureThreshold: 15 },
    resources: { requests: { cpu: '100m', memory: '200Mi' } },
    securityContext: { ...securityOf(), runAsNonRoot: true, runAsUser: 1000 },
    volumeMounts: [{ name: 'tmp-dir', mountPath: '/tmp' }],
  }
  const spec = {
    serviceAccountName: NAME,
    priorityClassName: monitoring.metrics_server_priority_class_name || 'system-cluster-critical',
    ...placementOf(monitoring, ON_WORKERS),
    containers: [
      image === undefined
        ? ownContainer(NAME, ['metrics-server', ...flags], rest)
        : { name: NAME, image, imagePullPolicy: 'IfNotPresent', args: flags, ...rest },
    ],
    volumes: [{ name: 'tmp-dir', emptyDir: {} }],
  }
  return {
    apiVersion: 'apps/v1',
    kind: 'Deployment',
    metadata: { name: NAME, namespace, labels: LABELS },
    spec: {
      replicas: monitoring.replicas,
      strategy: strategyOf(monitoring.update_strategy, { maxUnavailable: '25%', maxSurge: '25%' }),
      selector: { matchLabels: LABELS },
      template: podTemplate(LABELS, context, spec),
    },
  }
}
