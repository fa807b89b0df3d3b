/**
 * Reads the objects that a token depends on (service account, secret, pod, node) from the watch cache, for
 * authenticators.
 */
import type { LiveObjects } from '#auth/live-objects.ts'

import type { Registry } from '../registry/registry.ts'

export function createLiveObjects(registry: Pick<Registry, 'storeOf'>): LiveObjects {
  return {
    peek(kind, namespace, name) {
      const store = registry.storeOf(kind)
      return store?.collection.get(store.keyOf(namespace, name))
    },
    get: async (kind, namespace, name) => registry.storeOf(kind)?.get(namespace, name),
  }
}
