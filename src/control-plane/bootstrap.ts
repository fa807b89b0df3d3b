/** Creates the objects that must exist before the first request, and maintains them. */

import { startCustomResources } from '#apiextensions/start.ts'
import { converterOf } from '#apiextensions/webhook-converter.ts'
import { ensureApiServices } from '#apiserver/bootstrap/apiservices.ts'
import { ensureAuthenticationConfig } from '#apiserver/bootstrap/authentication-config.ts'
import { startFlowStatus } from '#apiserver/bootstrap/flow-status.ts'
import { identityOf, startIdentityCleanup, startIdentityLease } from '#apiserver/bootstrap/identity-lease.ts'
import { createKubernetesService, type KubernetesService } from '#apiserver/bootstrap/kubernetes-service.ts'
import { ensurePolicy } from '#apiserver/bootstrap/policy.ts'
import { publishStorageVersions } from '#apiserver/bootstrap/storage-versions.ts'
import { ensureSystemObjects } from '#apiserver/bootstrap/system-objects.ts'
import { ensureFlowControl, keepFlowControl } from '#apiserver/fairness/default-objects.ts'
import type { Registry } from '#apiserver/registry/registry.ts'
import { createWebhookCaller } from '#apiserver/webhooks/caller.ts'
import { bracketed } from '#component/bound-port.ts'
import { runPeriodically } from '#lib/periodic.ts'

import { advertisedAddress, isLoopback } from './addresses.ts'
import type { LoadedAuthentication } from './authentication.ts'
import type { Environment } from './environment.ts'
import type { ServiceParts } from './service-parts.ts'

/** In the order of their dependencies. */
export async function bootstrap(
  { settings, clock, isEnabled, log, closing, network }: Environment,
  registry: Registry,
  services: ServiceParts,
  { published }: LoadedAuthentication,
): Promise<void> {
  await ensureSystemObjects(registry)
  // Concurrently: the store groups concurrent commits.
  await Promise.all([ensurePolicy(registry, isEnabled), ensureFlowControl(registry), ensureApiServices(registry)])
  const kept = keepFlowControl(registry, (error) =>
    log.error(error, 'Failed to update flow schemas and priority levels'),
  )
  closing.defer(() => kept.stop())
  if (settings['enable-priority-and-fairness']) {
    const flows = startFlowStatus(registry, (error) => log.error(error, 'Failed to update the status of flow schemas'))
    closing.defer(() => flows?.close())
  }
  const { random, metrics } = registry.services
  const caller = createWebhookCaller({ clock, random, objects: registry, network })
  closing.defer(() => caller.close())
  const custom = startCustomResources({
    registry,
    converterOf: (definition) => converterOf(definition, { caller, random, clock, metrics }),
    onError: (error) => log.error(error, 'Failed to sync CustomResourceDefinition'),
  })
  closing.defer(() => custom.close())
  await custom.ready
  const repair = await services.startRepair()
  closing.defer(() => repair.stop())
  await ensureAuthenticationConfig(registry, published())
  // Authorities change, and people edit ConfigMaps.
  const onError = (error: unknown): void =>
    log.error(error, 'Failed to update the ConfigMap extension-apiserver-authentication')
  const publishing = runPeriodically({ clock, periodMs: PUBLISH_MS, onError }, () =>
    ensureAuthenticationConfig(registry, published()),
  )
  closing.defer(() => publishing.stop())
}

/** Upstream's period. */
const PUBLISH_MS = 60_000

/** The Lease of this server, and the removal of expired ones. */
export async function publishIdentity(environment: Environment, registry: Registry, port: number): Promise<void> {
  const { isEnabled, closing, log } = environment
  if (!isEnabled('APIServerIdentity')) return
  const peerAddress = `${bracketed(advertisedAddress(environment.settings))}:${port}`
  const lease = await startIdentityLease(registry, {
    hostname: environment.host,
    ...(isEnabled('UnknownVersionInteroperabilityProxy') && { peerAddress }),
    onError: (error) => log.error(error, 'Failed to renew the identity lease'),
  })
  closing.defer(() => lease.stop())
  const cleanup = startIdentityCleanup(registry, (error) =>
    log.error(error, 'Failed to delete expired identity leases'),
  )
  closing.defer(() => cleanup.stop())
  if (isEnabled('StorageVersionAPI')) await publishStorageVersions(registry, identityOf(environment.host))
}

/** Pods cannot reach a loopback address: without another there are no endpoints. */
export function createService({ settings, plan, log, closing }: Environment, registry: Registry): KubernetesService {
  const address = advertisedAddress(settings)
  const service = createKubernetesService(registry, {
    serviceCidr: plan.serviceCidr,
    advertiseAddress: isLoopback(address) ? undefined : address,
    reconciler: plan.endpoints,
    onError: (error) => log.error(error, 'Failed to update the service "kubernetes"'),
  })
  closing.defer(() => service.withdraw())
  return service
}
