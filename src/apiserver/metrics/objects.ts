/** Metrics of stored objects and of the watch cache, computed when metrics are read. */
import { groupResourceText } from '#meta/kind.ts'
import type { ServerMeters } from '#model/metrics/families.ts'

import type { Registry } from '../registry/registry.ts'
import { averageBytes } from '../registry/sizes.ts'
import type { Store } from '../registry/store.ts'

export function registerObjects(meters: ServerMeters, registry: Registry): void {
  meters.collect('apiserver_storage_objects', (emit) => {
    for (const { group, resource, store } of stored(registry)) {
      emit(store.collection.size, groupResourceText({ group, resource }))
    }
  })
  meters.collect('apiserver_resource_objects', (emit) => {
    for (const { group, resource, store } of stored(registry)) emit(store.collection.size, group, resource)
  })
  meters.collect('apiserver_resource_size_estimate_bytes', (emit) => {
    for (const { group, resource, store } of stored(registry)) {
      emit(Math.round(averageBytes(store.collection) * store.collection.size), group, resource)
    }
  })
  meters.collect('apiserver_watch_cache_resource_version', (emit) => {
    const { revision } = registry.services.cache
    for (const { group, resource } of stored(registry)) emit(revision % 1e15, group, resource)
  })
}

interface StoredResource {
  readonly group: string
  readonly resource: string
  readonly store: Store
}

/** Resources with several versions are counted once, although each version of a custom resource has a store. */
function* stored(registry: Registry): Generator<StoredResource> {
  const seen = new Set<Store['collection']>()
  for (const { resource, store } of registry.served()) {
    if (seen.has(store.collection) || !store.collection.isLoaded) continue
    seen.add(store.collection)
    yield { group: resource.kind.group, resource: resource.kind.plural, store }
  }
}
