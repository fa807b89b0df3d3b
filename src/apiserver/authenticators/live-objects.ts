/** Objects as the cache has them this moment: what decides whether a token that was right is still right. */
import type { Kind } from '#apis/kinds.ts'
import type { KubeObject } from '#meta/object.ts'

import type { Registry } from '../registry/registry.ts'

/** The same thing is handed out as long as the object has not changed. */
export interface LiveObject {
  readonly object: KubeObject
}

export interface LiveObjects {
  /** Without waiting; undefined when the cache does not have it, yet or any more. */
  peek(kind: Kind, namespace: string, name: string): LiveObject | undefined
  /** The newest state. */
  get(kind: Kind, namespace: string, name: string): Promise<LiveObject | undefined>
}

export function createLiveObjects(registry: Pick<Registry, 'storeOf'>): LiveObjects {
  return {
    peek(kind, namespace, name) {
      const store = registry.storeOf(kind)
      return store?.collection.get(store.keyOf(namespace, name))
    },
    get: async (kind, namespace, name) => registry.storeOf(kind)?.get(namespace, name),
  }
}
