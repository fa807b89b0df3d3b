/**
 * Services and their endpoints as the watch cache has them now, for the aggregation layer: it sends every request for
 * another server through here and cannot wait for the store each time.
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
  /** One of the endpoints that are ready, by chance. Throws StatusError with upstream's words. */
  resolve(reference: ServiceReference): Address
}

export function createServiceDirectory(registry: Pick<Registry, 'storeOf'>, random: Random): ServiceDirectory {
  /** What was found, until a slice changes: many requests go to the same few services. */
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
