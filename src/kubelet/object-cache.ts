/**
 * Config maps and secrets that pods of this node refer to. Each is watched from the first time that a pod asks for it, and as
 * long as a pod does; nothing else of them is ever read.
 */
import { type ConfigMap, ConfigMaps, type Pod, type Secret, Secrets } from '#apis/core/v1.ts'
import type { Kind } from '#apis/kinds.ts'
import type { ApiClient } from '#client/api-client.ts'
import { follow } from '#client/follow.ts'
import type { Random } from '#lib/random.ts'
import type { KubeObject } from '#meta/object.ts'
import { isNotFound } from '#meta/status.ts'

/** Undefined for what is not there. */
export interface PodObjects {
  configMap(pod: Pod, name: string): Promise<ConfigMap | undefined>
  secret(pod: Pod, name: string): Promise<Secret | undefined>
  /** The pod asks for nothing any more. */
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

/** Without a memory: each time the API server is asked. */
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

/** How long the first answer is waited for, as upstream does. */
const SYNC_MS = 1000
/** Who is not asked for so long is not watched until the next time. */
const IDLE_MS = 300_000

type Immutable<T> = T & { readonly immutable?: boolean }

class ObjectCache<T extends KubeObject> {
  readonly #kind: Kind<T>
  readonly #options: PodObjectsOptions
  readonly #entries = new Map<string, Entry<T>>()
  #sweptMs = 0

  constructor(kind: Kind<T>, options: PodObjectsOptions) {
    this.#kind = kind
    this.#options = options
  }

  /** Rejects when the API server does not say within a second whether it is there. */
  async get({ metadata: { namespace = '', uid = '' } }: Pod, name: string): Promise<Immutable<T> | undefined> {
    this.#sweep()
    const key = `${namespace}/${name}`
    const entry = this.#entries.get(key) ?? new Entry<T>(this.#kind, { namespace, name }, this.#options)
    this.#entries.set(key, entry)
    entry.users.add(uid)
    return entry.get()
  }

  forget(uid: string): void {
    for (const [key, entry] of this.#entries) {
      entry.users.delete(uid)
      if (entry.users.size > 0) continue
      entry.rest()
      this.#entries.delete(key)
    }
  }

  #sweep(): void {
    const nowMs = this.#options.client.clock.elapsed()
    if (nowMs < this.#sweptMs + IDLE_MS / 5) return
    this.#sweptMs = nowMs
    for (const entry of this.#entries.values()) if (entry.readMs + IDLE_MS < nowMs) entry.rest()
  }
}

class Entry<T extends KubeObject> {
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
      await this.#news()
    }
    if (!this.#isKnown) {
      const word = this.#kind.kind.toLowerCase()
      throw new Error(`failed to sync ${word} cache: timed out waiting for the condition`)
    }
    return this.#object
  }

  /** Resolves with the first news, or when they take too long. */
  #news(): Promise<void> {
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

  /** Is not watched any more; what was known may be old and is forgotten. */
  rest(): void {
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
        replace: ([object]) => this.#learn(object, watching),
        change: ({ type, object }) => this.#learn(type === 'DELETED' ? undefined : object, watching),
        // It is tried again; who waits says that it took too long.
        failed: () => undefined,
      },
    )
  }

  #learn(object: Immutable<T> | undefined, watching: AbortController): void {
    if (this.#watching !== watching) return
    this.#object = object
    this.#isKnown = true
    // What cannot change need not be watched.
    if (object?.immutable === true) watching.abort()
    for (const go of this.#waiting) go()
  }
}
