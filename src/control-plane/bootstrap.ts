/** What must be there before the first request, and what keeps it there. */
import { hostname } from 'node:os'

import { startCustomResources } from '#apiextensions/start.ts'
import { converterOf } from '#apiextensions/webhook-converter.ts'
import { ensureApiServices } from '#apiserver/bootstrap/apiservices.ts'
import { ensureAuthenticationConfig } from '#apiserver/bootstrap/authentication-config.ts'
import { ensureFlowControl, keepFlowControl } from '#apiserver/bootstrap/flow-control.ts'
import { startFlowStatus } from '#apiserver/bootstrap/flow-status.ts'
import { identityOf, startIdentityCleanup, startIdentityLease } from '#apiserver/bootstrap/identity-lease.ts'
import { createKubernetesService, type KubernetesService } from '#apiserver/bootstrap/kubernetes-service.ts'
import { ensurePolicy } from '#apiserver/bootstrap/policy.ts'
import { publishStorageVersions } from '#apiserver/bootstrap/storage-versions.ts'
import { ensureSystemObjects } from '#apiserver/bootstrap/system-objects.ts'
import type { Registry } from '#apiserver/registry/registry.ts'
import { createWebhookCaller } from '#apiserver/webhooks/caller.ts'
import { startRounds } from '#lib/rounds.ts'

import { advertisedAddress, bracketed, isLoopback } from './addresses.ts'
import type { LoadedAuthentication } from './authentication.ts'
import type { ServiceParts } from './service-parts.ts'
import type { Site } from './site.ts'

/** In the order in which the ones need the others. */
export async function bootstrap(
  { settings, clock, isEnabled, log, closing, network }: Site,
  registry: Registry,
  services: ServiceParts,
  { published }: LoadedAuthentication,
): Promise<void> {
  await ensureSystemObjects(registry)
  // What comes together is written together.
  await Promise.all([ensurePolicy(registry, isEnabled), ensureFlowControl(registry), ensureApiServices(registry)])
  const kept = keepFlowControl(registry, (error) => log.error(error, 'Keeping flow schemas and priority levels failed'))
  closing.defer(() => kept.stop())
  if (settings['enable-priority-and-fairness']) {
    const flows = startFlowStatus(registry, (error) => log.error(error, 'Saying what flow schemas lack failed'))
    closing.defer(() => flows?.close())
  }
  const { random, metrics } = registry.services
  const caller = createWebhookCaller({ clock, random, objects: registry, network })
  closing.defer(() => caller.close())
  const custom = startCustomResources({
    registry,
    converterOf: (definition) => converterOf(definition, { caller, random, clock, metrics }),
    onError: (error) => log.error(error, 'Looking after a definition failed'),
  })
  closing.defer(() => custom.close())
  await custom.ready
  const repair = await services.startRepair()
  closing.defer(() => repair.stop())
  await ensureAuthenticationConfig(registry, published())
  // Authorities change, and so do ConfigMaps that people edit.
  const onError = (error: unknown): void => log.error(error, 'Telling aggregated servers whom to believe failed')
  const publishing = startRounds({ clock, periodMs: PUBLISH_MS, onError }, () =>
    ensureAuthenticationConfig(registry, published()),
  )
  closing.defer(() => publishing.stop())
}

/** As often as upstream. */
const PUBLISH_MS = 60_000

/** The Lease of this server, and the leases of those that have gone. */
export async function sayThatWeAreHere(site: Site, registry: Registry, port: number): Promise<void> {
  const { isEnabled, closing, log } = site
  if (!isEnabled('APIServerIdentity')) return
  const peerAddress = `${bracketed(advertisedAddress(site.settings))}:${port}`
  const lease = await startIdentityLease(registry, {
    hostname: hostname(),
    ...(isEnabled('UnknownVersionInteroperabilityProxy') && { peerAddress }),
    onError: (error) => log.error(error, 'The lease of this server was not renewed'),
  })
  closing.defer(() => lease.stop())
  const cleanup = startIdentityCleanup(registry, (error) =>
    log.error(error, 'The leases of servers that have gone were not removed'),
  )
  closing.defer(() => cleanup.stop())
  if (isEnabled('StorageVersionAPI')) await publishStorageVersions(registry, identityOf(hostname()))
}

/** Pods cannot reach a loopback address: without another there are no endpoints. */
export function createService({ settings, plan, log, closing }: Site, registry: Registry): KubernetesService {
  const address = advertisedAddress(settings)
  const service = createKubernetesService(registry, {
    serviceCidr: plan.serviceCidr,
    advertiseAddress: isLoopback(address) ? undefined : address,
    reconciler: plan.endpoints,
    onError: (error) => log.error(error, 'The service "kubernetes" is not up to date'),
  })
  closing.defer(() => service.withdraw())
  return service
}
