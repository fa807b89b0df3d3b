/**
 * Several API servers for tests of bootstrap and controllers, in virtual time: each has a registry of resources, and
 * all share one in-memory store.
 */
import type { Kind } from '#apis/kinds.ts'
import { createVirtualClock, type VirtualClock } from '#lib/clock.ts'
import { createSeededRandom } from '#lib/random.ts'
import type { KubeObject } from '#meta/object.ts'
import type { Backend } from '#storage/backend.ts'
import { createAtRest } from '#storage/encryption/at-rest.ts'
import { NO_ENCRYPTION } from '#storage/encryption/config.ts'
import { createMemoryBackend } from '#storage/memory.ts'
import { WatchCache } from '#storage/watch-cache/watch-cache.ts'

import { type Admission, admitAll } from './admission.ts'
import { Registry } from './registry.ts'
import { defineResource, type Resource } from './resource.ts'

export interface TestServers extends AsyncDisposable {
  readonly clock: VirtualClock
  readonly backend: Backend
  /** Another server: its own registry and cache on the common store. */
  open(kinds: readonly Kind[], options?: TestServerOptions): Promise<Registry>
}

export interface TestServerOptions {
  /** Resources with their own rules. */
  readonly own?: readonly Resource[]
  /** A clock that stands still, as if the server had been killed. */
  readonly isDead?: boolean
  /** Default: admits everything. */
  readonly admission?: (registry: Registry) => Admission
}

export function createServers(): TestServers {
  const [clock, random] = [createVirtualClock(), createSeededRandom(1)]
  const backend = createMemoryBackend({ clock, random })
  const caches: WatchCache[] = []
  return {
    clock,
    backend,
    async open(kinds, { own = [], isDead = false, admission = () => admitAll } = {}) {
      const cache = new WatchCache({ backend, clock, prefix: '/registry/' })
      const registry = new Registry({
        backend,
        cache,
        clock: isDead ? createVirtualClock() : clock,
        random,
        admission,
        isEnabled: () => false,
        allowPrivileged: true,
        atRest: createAtRest(NO_ENCRYPTION, random),
      })
      const bare = kinds.map((kind) =>
        defineResource<KubeObject>({ kind, nameRule: () => [], metadataRules: { plainFinalizers: true } }),
      )
      for (const resource of [...bare, ...own]) await registry.add(resource)
      await cache.start()
      caches.push(cache)
      return registry
    },
    async [Symbol.asyncDispose]() {
      for (const cache of caches) await cache.close()
      await backend.close()
    },
  }
}
