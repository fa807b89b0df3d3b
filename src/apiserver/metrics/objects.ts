/** What is stored and what the watch cache knows of it: asked for when metrics are read, and otherwise free. */
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

interface Stored {
  readonly group: string
  readonly resource: string
  readonly store: Store
}

/** What is served in several versions is counted once, though versions of a custom resource each have a store. */
function* stored(registry: Registry): Generator<Stored> {
  const seen = new Set<Store['collection']>()
  for (const { resource, store } of registry.served()) {
    if (seen.has(store.collection) || !store.collection.isLoaded) continue
    seen.add(store.collection)
    yield { group: resource.kind.group, resource: resource.kind.plural, store }
  }
}
