/**
 * Finds Services and their endpoints in the watch cache, so that aggregation can resolve a Service on every request.
 */
import { type Service, Services } from '#apis/core/v1.ts'
import { type EndpointSlice, EndpointSlices } from '#apis/discovery/v1.ts'
import type { Address } from '#lib/http/client.ts'
import type { Random } from '#lib/random.ts'
import type { Revision } from '#storage/backend.ts'

import type { Entry } from '../registry/entry.ts'
import type { Registry } from '../registry/registry.ts'
import { addressOf, SERVICE_NAME, type ServiceReference } from './service-endpoint.ts'

export interface ServiceDirectory {
  service(namespace: string, name: string): Service | undefined
  slices(namespace: string, name: string): readonly EndpointSlice[]
  /** A random ready endpoint. Throws StatusError with upstream's text. */
  resolve(reference: ServiceReference): Address
}

export function createServiceDirectory(registry: Pick<Registry, 'storeOf'>, random: Random): ServiceDirectory {
  /** Cached results until a slice changes: many requests go to few services. */
  const found = new Map<string, readonly EndpointSlice[]>()
  let foundAt: Revision | undefined
  const service: ServiceDirectory['service'] = (namespace, name) => {
    const store = registry.storeOf(Services)
    return store?.collection.get(store.keyOf(namespace, name))?.object as Service | undefined
  }
  const slices: ServiceDirectory['slices'] = (namespace, name) => {
    const collection = registry.storeOf(EndpointSlices)?.collection
    if (collection === undefined) return []
    if (foundAt !== collection.changedAt) found.clear()
    foundAt = collection.changedAt
    const key = `${namespace}/${name}`
    const known = found.get(key) ?? slicesOf(collection.entries({ prefix: `${collection.prefix}${namespace}/` }), name)
    found.set(key, known)
    return known
  }
  return {
    service,
    slices,
    resolve: (reference) =>
      addressOf(reference, service(reference.namespace, reference.name), random, {
        slices: slices(reference.namespace, reference.name),
      }),
  }
}

function slicesOf(entries: readonly Entry[], service: string): EndpointSlice[] {
  return entries.filter(({ labels }) => labels[SERVICE_NAME] === service).map(({ object }) => object as EndpointSlice)
}
