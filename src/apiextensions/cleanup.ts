/**
 * Deletes CustomResourceDefinitions: first all their objects, as clients would, then the definition's finalizer. The
 * status shows the progress.
 */
import { type CustomResourceDefinition, CustomResourceDefinitions } from '#apis/apiextensions/v1.ts'
import type { Entry } from '#apiserver/registry/entry.ts'
import { follow, type Following } from '#apiserver/registry/follow.ts'
import type { Registry } from '#apiserver/registry/registry.ts'
import type { Store } from '#apiserver/registry/store.ts'
import { sleep } from '#lib/clock.ts'
import { hasFinalizer, isBeingDeleted, removeFinalizer } from '#meta/object.ts'
import { isConflict, isNotFound } from '#meta/status.ts'

import { CLEANUP_FINALIZER, type Condition, isTrue, withCondition } from './definition.ts'

/** The number of concurrent deletions: enough to share commits, not so many that other requests wait. */
const AT_A_TIME = 32
/** The pause after a failure. */
const RETRY_MS = 1000

const IN_PROGRESS: Condition = {
  type: 'Terminating',
  status: 'True',
  reason: 'InstanceDeletionInProgress',
  message: 'CustomResource deletion is in progress',
}

const COMPLETED: Condition = {
  type: 'Terminating',
  status: 'False',
  reason: 'InstanceDeletionCompleted',
  message: 'removed all instances',
}

/** Starts at once; undefined if definitions are not served. */
export function startCleanup(registry: Registry, onError: (error: unknown) => void): Following | undefined {
  const store = registry.storeOf(CustomResourceDefinitions)
  if (store === undefined) return undefined
  const cleanup = new Cleanup(registry, onError)
  const following = follow<Entry>(store.collection, {
    set: ({ name, object }) => {
      if (isBeingDeleted(object) && hasFinalizer(object, CLEANUP_FINALIZER)) cleanup.begin(name)
    },
    remove: ({ name }) => cleanup.end(name),
  })
  return {
    ready: following.ready,
    close() {
      following.close()
      cleanup.close()
    },
  }
}

class Cleanup {
  readonly #registry: Registry
  readonly #onError: (error: unknown) => void
  readonly #running = new Map<string, AbortController>()

  constructor(registry: Registry, onError: (error: unknown) => void) {
    this.#registry = registry
    this.#onError = onError
  }

  begin(name: string): void {
    if (this.#running.has(name)) return
    const stopping = new AbortController()
    this.#running.set(name, stopping)
    void this.#run(name, stopping.signal)
  }

  end(name: string): void {
    this.#running.get(name)?.abort()
    this.#running.delete(name)
  }

  close(): void {
    for (const name of this.#running.keys()) this.end(name)
  }

  async #run(name: string, signal: AbortSignal): Promise<void> {
    while (!signal.aborted) {
      try {
        await this.#clean(name, signal)
        return
      } catch (error) {
        if (signal.aborted || isNotFound(error)) return
        if (!isConflict(error)) this.#onError(error)
        await sleep(this.#registry.services.clock, RETRY_MS, signal).catch(() => undefined)
      }
    }
  }

  async #clean(name: string, signal: AbortSignal): Promise<void> {
    await this.#say(name, IN_PROGRESS)
    const definition = await this.#registry.get(CustomResourceDefinitions, '', name)
    if (definition === undefined) return
    // A definition without accepted names has no objects; existing ones belong to another.
    const isOurs = isTrue(definition, 'Established')
    const { group } = definition.spec
    const store = this.#registry.storeOf({ group, plural: definition.status.acceptedNames.plural })
    if (isOurs && store !== undefined) {
      await this.#deleteAll(store)
      await untilEmpty(store, signal)
    }
    await this.#say(name, COMPLETED)
  }

  async #deleteAll(store: Store): Promise<void> {
    await this.#registry.services.cache.fresh()
    const { kind } = store.resource
    const places = store.collection.entries().map(({ namespace, name }) => ({ namespace, name }))
    for (let at = 0; at < places.length; at += AT_A_TIME) {
      const some = places.slice(at, at + AT_A_TIME)
      await Promise.all(some.map((place) => this.#registry.writer.delete(kind, place)))
    }
  }

  async #say(name: string, condition: Condition): Promise<void> {
    const { writer, services } = this.#registry
    await writer.updateStatus(CustomResourceDefinitions, { name }, (live: CustomResourceDefinition) => {
      const conditions = withCondition(live.status.conditions ?? [], condition, services.clock.now())
      live.status = { ...live.status, conditions }
      if (condition === COMPLETED) removeFinalizer(live, CLEANUP_FINALIZER)
      return live
    })
  }
}

/** Resolves when no object is stored any more. */
async function untilEmpty({ collection }: Store, signal: AbortSignal): Promise<void> {
  const { promise, resolve } = Promise.withResolvers<void>()
  let left = 0
  const following = follow<Entry>(collection, {
    set: (_entry, previous) => void (left += previous === undefined ? 1 : 0),
    remove: () => void (--left === 0 && resolve()),
  })
  signal.addEventListener('abort', () => resolve(), { once: true })
  try {
    await following.ready
    if (left > 0 && !signal.aborted) await promise
  } finally {
    following.close()
  }
}
