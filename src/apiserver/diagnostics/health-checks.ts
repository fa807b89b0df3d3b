/**
 * The health checks of the API server, under upstream's names and in upstream's order. The checks of post-start hooks
 * always pass, because the server listens only after all hooks have run.
 */
import type { HealthCheck } from '#component/pages/health.ts'

import type { Registry } from '../registry/registry.ts'

export interface Readiness {
  readonly stopping: boolean
}

/** Each with the gate that it depends on, if any. */
const HOOKS: readonly (string | readonly [name: string, gate: string])[] = [
  'start-apiserver-admission-initializer',
  'generic-apiserver-start-informers',
  'priority-and-fairness-config-consumer',
  'priority-and-fairness-filter',
  'storage-object-count-tracker-hook',
  'start-apiextensions-informers',
  'start-apiextensions-controllers',
  'crd-informer-synced',
  'start-system-namespaces-controller',
  ['start-kube-apiserver-coordinated-leader-election-controller', 'CoordinatedLeaderElection'],
  ['peer-endpoint-reconciler-controller', 'UnknownVersionInteroperabilityProxy'],
  'start-cluster-authentication-info-controller',
  'start-kube-apiserver-identity-lease-controller',
  'start-kube-apiserver-identity-lease-garbage-collector',
  'storage-readiness',
  'start-legacy-token-tracking-controller',
  'start-service-ip-repair-controllers',
  'rbac/bootstrap-roles',
  'scheduling/bootstrap-system-priority-classes',
  'priority-and-fairness-config-producer',
  'bootstrap-controller',
  'start-kubernetes-service-cidr-controller',
]

const AGGREGATION_HOOKS = [
  'start-kube-aggregator-informers',
  'apiservice-status-local-available-controller',
  'apiservice-status-remote-available-controller',
  'apiservice-registration-controller',
  'apiservice-discovery-controller',
  'kube-apiserver-autoregistration',
]

/** Started after the groups are registered. */
const LAST_HOOKS = ['apiservice-openapi-controller', 'apiservice-openapiv3-controller']

const ALL = ['healthz', 'livez', 'readyz'] as const

/** `further` are names of hooks that only some servers have. */
export function healthChecks(
  registry: Registry,
  readiness: Readiness,
  further: readonly string[] = [],
): readonly HealthCheck[] {
  const { backend, atRest, isEnabled } = registry.services
  const storage = async (): Promise<void> => {
    const { ok, message } = await backend.health(undefined, { withoutSizes: true })
    if (!ok) throw new Error(message)
  }
  const loaded = (): void => {
    for (const { store } of registry.served()) {
      if (!store.collection.isLoaded) throw new Error(`${store.collection.prefix} is being read anew`)
    }
  }
  const notDraining = (): void => {
    if (readiness.stopping) throw new Error('process is shutting down')
  }
  const hook = (name: string): HealthCheck => ({ name: `poststarthook/${name}`, on: ALL, check: nothing })
  const hooks = HOOKS.flatMap((one) => (typeof one === 'string' ? [one] : isEnabled(one[1]) ? [one[0]] : []))
  return [
    { name: 'ping', on: ALL, check: nothing },
    // The log cannot block without blocking the server.
    { name: 'log', on: ALL, check: nothing },
    // The server calls itself without a connection, so it needs no certificate that could expire.
    { name: 'loopback-serving-certificate', on: ['healthz', 'livez'], check: nothing },
    { name: 'etcd', on: ALL, check: storage },
    { name: 'etcd-readiness', on: ['readyz'], check: storage },
    { name: 'informer-sync', on: ['readyz'], check: loaded },
    ...kmsChecks(atRest.check),
    ...[...hooks, ...further, ...AGGREGATION_HOOKS].map(hook),
    { name: 'autoregister-completion', on: ALL, check: nothing },
    ...LAST_HOOKS.map(hook),
    { name: 'shutdown', on: ['readyz'], check: notDraining },
  ]
}

/** KMS plugins are checked for readiness, but not for liveness. */
function kmsChecks(check: (() => void | Promise<void>) | undefined): readonly HealthCheck[] {
  return check === undefined ? [] : [{ name: 'kms-providers', on: ['healthz', 'readyz'], check }]
}

function nothing(): void {}
