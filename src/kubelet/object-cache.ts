/**
 * Caches the ConfigMaps and Secrets that pods of this node refer to. Each object is watched by name while at least one
 * pod uses it.
 */
import { type ConfigMap, ConfigMaps, type Pod, type Secret, Secrets } from '#apis/core/v1.ts'
import type { Kind } from '#apis/kinds.ts'
import type { ApiClient } from '#client/api-client.ts'
import { follow } from '#client/reflector.ts'
import type { Random } from '#lib/random.ts'
import type { KubeObject } from '#meta/object.ts'
import { isNotFound } from '#meta/status.ts'

/** Undefined when the object does not exist. */
export interface PodObjects {
  configMap(pod: Pod, name: string): Promise<ConfigMap | undefined>
  secret(pod: Pod, name: string): Promise<Secret | undefined>
  /** The pod no longer uses any object. */
  forget(uid: string): void
}

export interface PodObjectsOptions {
  readonly client: ApiClient
  readonly random: Random
  readonly signal: AbortSignal
}

export function createPodObjects(options: PodObjectsOptions): PodObjects {
  const configMaps = new ObjectCache<ConfigMap>(ConfigMaps, options)
  const secrets = new ObjectCache<Secret>(Secrets, options)
  return {
    configMap: (pod, name) => configMaps.get(pod, name),
    secret: (pod, name) => secrets.get(pod, name),
    forget(uid) {
      configMaps.forget(uid)
      secrets.forget(uid)
    },
  }
}

/** Reads from the API server each time, without a cache. */
export function readObjects(client: ApiClient): PodObjects {
  const read = <T extends KubeObject>(kind: Kind<T>, { metadata: { namespace } }: Pod, name: string) =>
    client.get(kind, { namespace, name }).catch((error: unknown) => {
      if (!isNotFound(error)) throw error
      return undefined
    })
  return {
    configMap: (pod, name) => read(ConfigMaps, pod, name),
    secret: (pod, name) => read(Secrets, pod, name),
    forget: () => undefined,
  }
}

/** Timeout of the first list, as in upstream. */
const SYNC_MS = 1000
/** An object unused for this long is no longer watched until the next use. */
const IDLE_MS = 300_000

type Immutable<T> = T & { readonly immutable?: boolean }

class ObjectCache<T extends KubeObject> {
  readonly #kind: Kind<T>
  readonly #options: PodObjectsOptions
  readonly #entries = new Map<string, CacheEntry<T>>()
  #sweptMs = 0

  constructor(kind: Kind<T>, options: PodObjectsOptions) {
    this.#kind = kind
    this.#options = options
  }

  /** Rejects when the first list takes more than a second. */
  async get({ metadata: { namespace = '', uid = '' } }: Pod, name: string): Promise<Immutable<T> | undefined> {
    this.#sweep()
    const key = `${namespace}/${name}`
    const entry = this.#entries.get(key) ?? new CacheEntry<T>(this.#kind, { namespace, name }, this.#options)
    this.#entries.set(key, entry)
    entry.users.add(uid)
    return entry.get()
  }

  forget(uid: string): void {
    for (const [key, entry] of this.#entries) {
      entry.users.delete(uid)
      if (entry.users.size > 0) continue
      entry.stopWatch()
      this.#entries.delete(key)
    }
  }

  #sweep(): void {
    const nowMs = this.#options.client.clock.elapsed()
    if (nowMs < this.#sweptMs + IDLE_MS / 5) return
    this.#sweptMs = nowMs
    for (const entry of this.#entries.values()) if (entry.readMs + IDLE_MS < nowMs) entry.stopWatch()
  }
}

class CacheEntry<T extends KubeObject> {
  readonly users = new Set<string>()
  readMs = 0
  readonly #kind: Kind<T>
  readonly #where: { readonly namespace: string; readonly name: string }
  readonly #options: PodObjectsOptions
  #object: Immutable<T> | undefined
  #isKnown = false
  readonly #waiting = new Set<() => void>()
  #watching: AbortController | undefined

  constructor(kind: Kind<T>, where: { readonly namespace: string; readonly name: string }, options: PodObjectsOptions) {
    this.#kind = kind
    this.#where = where
    this.#options = options
  }

  async get(): Promise<Immutable<T> | undefined> {
    const { clock } = this.#options.client
    this.readMs = clock.elapsed()
    if (!this.#isKnown) {
      this.#watch()
      await this.#firstEvent()
    }
    if (!this.#isKnown) {
      const word = this.#kind.kind.toLowerCase()
      throw new Error(`failed to sync ${word} cache: timed out waiting for the condition`)
    }
    return this.#object
  }

  /** Resolves with the first event, or after the timeout. */
  #firstEvent(): Promise<void> {
    return new Promise((resolve) => {
      const go = (): void => {
        timer.cancel()
        this.#waiting.delete(go)
        resolve()
      }
      const timer = this.#options.client.clock.after(SYNC_MS, go)
      this.#waiting.add(go)
    })
  }

  /** Stops the watch and forgets the object, which may be stale. */
  stopWatch(): void {
    this.#watching?.abort()
    this.#watching = undefined
    this.#isKnown = false
    this.#object = undefined
  }

  #watch(): void {
    if (this.#watching !== undefined) return
    const { client, random, signal } = this.#options
    const watching = new AbortController()
    this.#watching = watching
    const { namespace, name } = this.#where
    const selection = { namespace, fieldSelector: `metadata.name=${name}` }
    const either = AbortSignal.any([signal, watching.signal])
    void follow<T>(
      { client, random, kind: this.#kind, selection, signal: either },
      {
        replace: ([object]) => this.#store(object, watching),
        change: ({ type, object }) => this.#store(type === 'DELETED' ? undefined : object, watching),
        // The watch retries; the waiting caller reports the timeout.
        failed: () => undefined,
      },
    )
  }

  #store(object: Immutable<T> | undefined, watching: AbortController): void {
    if (this.#watching !== watching) return
    this.#object = object
    this.#isKnown = true
    // An immutable object needs no watch.
    if (object?.immutable === true) watching.abort()
    for (const go of this.#waiting) go()
  }
}
