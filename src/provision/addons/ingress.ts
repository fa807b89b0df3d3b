/** The manifest of the ingress controller: ours on every worker, with the names and the class of RKE's nginx. Pure. */
import type { ClusterFile, Ingress } from '../cluster.ts'
import {
  account,
  type AddonContext,
  binding,
  httpProbe,
  manifestOf,
  ON_WORKERS,
  ownContainer,
  placementOf,
  podTemplate,
  rule,
  securityOf,
  strategyOf,
  TO_START,
} from './objects.ts'

const namespace = 'ingress-nginx'
const ACCOUNT = 'ingress-nginx'
const NAME = 'nginx-ingress-controller'
const LABELS = { app: 'ingress-nginx' }
const CLASS = 'nginx'
const CONTROLLER = 'k8s.io/ingress-nginx'
const ELECTION = 'ingress-controller-leader'
const HEALTH_PORT = 10_254

const RULES = [
  rule('', 'services secrets nodes', 'get list watch'),
  rule('', 'events', 'create patch'),
  rule('discovery.k8s.io', 'endpointslices', 'get list watch'),
  rule('networking.k8s.io', 'ingresses ingressclasses', 'get list watch'),
  rule('networking.k8s.io', 'ingresses/status', 'update patch'),
]
const OWN_RULES = [
  rule('', 'pods configmaps', 'get list watch'),
  rule('coordination.k8s.io', 'leases', 'create'),
  { ...rule('coordination.k8s.io', 'leases', 'get update patch'), resourceNames: [ELECTION] },
]

export function ingressManifest({ ingress }: ClusterFile, context: AddonContext): string {
  const { options, default_ingress_class: isDefault } = ingress
  return manifestOf([
    { apiVersion: 'v1', kind: 'Namespace', metadata: { name: namespace, labels: LABELS } },
    ...account(ACCOUNT, namespace, ACCOUNT, RULES),
    {
      apiVersion: 'rbac.authorization.k8s.io/v1',
      kind: 'Role',
      metadata: { name: ACCOUNT, namespace },
      rules: OWN_RULES,
    },
    binding({ name: ACCOUNT, namespace }, ACCOUNT, { name: ACCOUNT, namespace }),
    {
      apiVersion: 'networking.k8s.io/v1',
      kind: 'IngressClass',
      metadata: {
        name: CLASS,
        ...(isDefault && { annotations: { 'ingressclass.kubernetes.io/is-default-class': 'true' } }),
      },
      spec: { controller: CONTROLLER },
    },
    {
      apiVersion: 'v1',
      kind: 'ConfigMap',
      metadata: { name: 'nginx-configuration', namespace, labels: LABELS },
      data: options,
    },
    daemonSet(ingress, context),
  ])
}

function daemonSet(ingress: Ingress, context: AddonContext): object {
  const isHost = ingress.network_mode === 'hostNetwork'
  const { nginx_ingress_controller_priority_class_name: priority, dns_policy: policy } = ingress
  const spec = {
    serviceAccountName: ACCOUNT,
    ...(priority !== '' && { priorityClassName: priority }),
    ...placementOf(ingress, ON_WORKERS),
    ...(isHost && { hostNetwork: true }),
    dnsPolicy: policy || (isHost ? 'ClusterFirstWithHostNet' : 'ClusterFirst'),
    terminationGracePeriodSeconds: 60,
    containers: [container(ingress)],
    volumes: ingress.extra_volumes,
  }
  return {
    apiVersion: 'apps/v1',
    kind: 'DaemonSet',
    metadata: { name: NAME, namespace },
    spec: {
      updateStrategy: strategyOf(ingress.update_strategy, { maxUnavailable: 1 }),
      selector: { matchLabels: LABELS },
      template: podTemplate(LABELS, context, spec),
    },
  }
}

function container(ingress: Ingress): object {
  const { http_port: http, https_port: https, network_mode: mode } = ingress
  // The external port, for redirects to HTTPS.
  const listen = mode === 'none' ? { http: 80, https: 443 } : { http, https }
  const hostPort = (port: number): object => (mode === 'hostPort' ? { hostPort: port } : {})
  const flags = {
    configmap: `${namespace}/nginx-configuration`,
    'ingress-class': CLASS,
    'controller-class': CONTROLLER,
    'election-id': ELECTION,
    'http-port': String(listen.http),
    'https-port': String(listen.https),
    'healthz-port': String(HEALTH_PORT),
    ...(ingress.default_ingress_class && { 'watch-ingress-without-class': 'true' }),
    ...ingress.extra_args,
  }
  const args = ['ingress-controller', ...Object.entries(flags).map(([name, value]) => `--${name}=${value}`)]
  const field = (name: string, fieldPath: string): object => ({ name, valueFrom: { fieldRef: { fieldPath } } })
  const probe = (rest: object): object => httpProbe('/healthz', HEALTH_PORT, rest)
  return ownContainer(NAME, args, {
    env: [field('POD_NAME', 'metadata.name'), field('POD_NAMESPACE', 'metadata.namespace'), ...ingress.extra_envs],
    ports: [
      { name: 'http', containerPort: listen.http, protocol: 'TCP', ...hostPort(http) },
      { name: 'https', containerPort: listen.https, protocol: 'TCP', ...hostPort(https) },
    ],
    startupProbe: probe(TO_START),
    livenessProbe: probe({ timeoutSeconds: 5, failureThreshold: 5 }),
    readinessProbe: probe({ periodSeconds: 2, failureThreshold: 15 }),
    resources: { requests: { cpu: '100m', memory: '120Mi' } },
    securityContext: securityOf('NET_BIND_SERVICE'),
    volumeMounts: ingress.extra_volume_mounts,
  })
}
