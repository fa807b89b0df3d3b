/** Creates the registry of a server, without resources yet. */
import { meterBackend, type ResourceAt } from '#apiserver/metrics/backend.ts'
import { registerObjects } from '#apiserver/metrics/objects.ts'
import type { Admission } from '#apiserver/registry/admission.ts'
import { Registry } from '#apiserver/registry/registry.ts'
import { every } from '#lib/clock.ts'
import { WatchCache } from '#storage/watch-cache/watch-cache.ts'

import type { RestingBackend } from './encryption.ts'
import type { Environment } from './environment.ts'

/** The lifetime of unused cached encodings, or up to twice as long. */
const MEMO_AGE_MS = 30_000

export interface RegistryParts extends RestingBackend {
  readonly admission: (registry: Registry) => Admission
}

export function createRegistry(
  environment: Environment,
  { backend: store, atRest, admission }: RegistryParts,
): Registry {
  const { settings, clock, random, isEnabled, closing, metrics } = environment
  const resourceAt = (prefix: string): ReturnType<ResourceAt> => registry.resourceAt(prefix)
  const backend = meterBackend(store, metrics, { clock, resourceAt })
  const cache = new WatchCache({
    backend,
    clock,
    prefix: '/registry/',
    onRepair: ({ reason, prefix, revision }) =>
      environment.log.info('Watch cache differed from the store; reloaded the entries', {
        reason,
        prefix,
        revision,
      }),
  })
  const registry = new Registry({
    backend,
    cache,
    clock,
    random,
    isEnabled,
    allowPrivileged: settings['allow-privileged'],
    metrics,
    atRest,
    storesProtobuf: environment.plan.storesProtobuf,
    admission,
    leaseReuseMs: settings['lease-reuse-duration-seconds'] * 1000,
    deleteWorkers: Math.max(1, settings['delete-collection-workers']),
    ...(settings['min-request-timeout'] > 0 && { minWatchMs: settings['min-request-timeout'] * 1000 }),
  })
  closing.defer(() => cache.close())
  closing.defer(() => registry.services.yaml.close())
  const aging = every(clock, MEMO_AGE_MS, () => registry.services.memos.age())
  closing.defer(() => aging.cancel())
  registerObjects(metrics, registry)
  return registry
}
