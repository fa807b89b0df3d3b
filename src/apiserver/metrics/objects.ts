/** What is stored and what the watch cache knows of it: asked for when metrics are read, and otherwise free. */
import { groupResourceText } from '#meta/kind.ts'
import type { ServerMeters } from '#model/metrics/families.ts'
import { prefixEnd } from '#storage/backend.ts'

import type { Registry } from '../registry/registry.ts'
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
    for (const { group, resource, store } of stored(registry)) emit(sizeOf(store), group, resource)
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

/** A store serves several versions, and is counted once. */
function* stored(registry: Registry): Generator<Stored> {
  const seen = new Set<Store>()
  for (const { resource, store } of registry.served()) {
    if (seen.has(store) || !store.collection.isLoaded) continue
    seen.add(store)
    yield { group: resource.kind.group, resource: resource.kind.plural, store }
  }
}

/** Of about so many objects the size is looked at: those of one kind are mostly of one size. */
const SAMPLE = 100

function sizeOf({ collection: { state, prefix, size } }: Store): number {
  let count = 0
  let bytes = 0
  for (const { values } of state.runs(prefix, prefixEnd(prefix))) {
    for (const { body } of values) bytes += body.length
    count += values.length
    if (count >= SAMPLE) return Math.round((bytes / count) * size)
  }
  return bytes
}
