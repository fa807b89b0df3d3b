/** The API objects that `three-nodes.ts` creates. */
import { AGNHOST } from './namespaced-cluster.ts'

const containers = (...more: readonly string[]): object[] => [
  {
    name: 'agnhost',
    image: AGNHOST,
    imagePullPolicy: 'Never',
    args: ['netexec', '--http-port=8080', '--udp-port=8081', ...more],
    ports: [{ containerPort: 8080 }],
    readinessProbe: { httpGet: { path: '/healthz', port: 8080 }, periodSeconds: 1 },
  },
]

/** One on each node. */
export function webOf(): object {
  const labels = { app: 'web' }
  return {
    apiVersion: 'apps/v1',
    kind: 'DaemonSet',
    metadata: { name: 'web' },
    spec: {
      selector: { matchLabels: labels },
      template: { metadata: { labels }, spec: { terminationGracePeriodSeconds: 1, containers: containers() } },
    },
  }
}

/**
 * Three pods, spread over nodes, that leave a lost node after the given time. They serve requests for a while after
 * SIGTERM.
 */
export function appOf(tolerationSeconds: number): object {
  const labels = { app: 'app' }
  const lost = { operator: 'Exists', effect: 'NoExecute', tolerationSeconds }
  const spec = {
    terminationGracePeriodSeconds: 20,
    containers: containers('--delay-shutdown=5'),
    tolerations: ['not-ready', 'unreachable'].map((what) => ({ ...lost, key: `node.kubernetes.io/${what}` })),
    topologySpreadConstraints: [
      {
        maxSkew: 1,
        topologyKey: 'kubernetes.io/hostname',
        whenUnsatisfiable: 'ScheduleAnyway',
        labelSelector: { matchLabels: labels },
      },
    ],
  }
  return {
    apiVersion: 'apps/v1',
    kind: 'Deployment',
    metadata: { name: 'app' },
    spec: { replicas: 3, selector: { matchLabels: labels }, template: { metadata: { labels }, spec } },
  }
}

export function budgetOf(): object[] {
  const selector = { app: 'app' }
  return [
    {
      apiVersion: 'policy/v1',
      kind: 'PodDisruptionBudget',
      metadata: { name: 'app' },
      spec: { minAvailable: 2, selector: { matchLabels: selector } },
    },
    serviceOf('app', { selector, ports: [{ port: 80, targetPort: 8080 }] }),
  ]
}

/** One of each type. */
export function servicesOf(externalIp: string): object[] {
  const web = { selector: { app: 'web' }, ports: [{ name: 'web', port: 80, targetPort: 8080 }] }
  return [
    serviceOf('cluster-ip', web),
    serviceOf('headless', { ...web, clusterIP: 'None', ports: [{ name: 'web', port: 8080 }] }),
    serviceOf('node-port', { ...web, type: 'NodePort' }),
    serviceOf('balanced', { ...web, type: 'LoadBalancer', ports: [{ name: 'web', port: 8090, targetPort: 8080 }] }),
    serviceOf('external', { ...web, externalIPs: [externalIp] }),
    serviceOf('away', { type: 'ExternalName', externalName: 'kubernetes.default.svc.cluster.local' }),
  ]
}

export function serviceOf(name: string, spec: object): object {
  return { apiVersion: 'v1', kind: 'Service', metadata: { name }, spec }
}

/** Those that are not about to go. */
export function podsOf(list: string): readonly { readonly name: string; readonly ip: string; readonly node: string }[] {
  interface Listed {
    readonly metadata: { readonly name: string; readonly deletionTimestamp?: string }
    readonly spec: { readonly nodeName?: string }
    readonly status: { readonly podIP?: string }
  }
  const { items } = JSON.parse(list) as { readonly items: readonly Listed[] }
  return items
    .filter(({ metadata }) => metadata.deletionTimestamp === undefined)
    .map(({ metadata, spec, status }) => ({
      name: metadata.name,
      ip: status.podIP ?? '',
      node: spec.nodeName ?? '',
    }))
}
