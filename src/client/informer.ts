/**
 * Informer: an indexed in-memory copy of a collection with event handlers. Objects are shared and must not be changed.
 * A listener sees each object added, updated any number of times, then deleted; a late listener first gets every object
 * as added.
 */
import type { Kind } from '#apis/kinds.ts'
import type { BackoffPolicy } from '#lib/backoff.ts'
import { every, type Timer } from '#lib/clock.ts'
import type { Random } from '#lib/random.ts'
import { type KubeObject, objectKey } from '#meta/object.ts'
import type { ObjectEvent } from '#meta/watch.ts'

import type { ApiClient, Selection } from './api-client.ts'
import { InternPool } from './interning.ts'
import { follow } from './reflector.ts'

export interface Listener<T extends KubeObject> {
  added?(object: T): void
  /** Also on a resync, with the same object twice. */
  updated?(object: T, old: T): void
  /** The last seen state. */
  deleted?(object: T): void
}

/** The index values of an object. */
export type Index<T extends KubeObject> = (object: T) => readonly string[]

export interface InformerOptions<T extends KubeObject> {
  readonly client: ApiClient
  readonly kind: Kind<T>
  readonly random: Random
  readonly selection?: Selection
  /** Requests and stores metadata only. */
  readonly metadataOnly?: boolean
  readonly indexes?: Readonly<Record<string, Index<T>>>
  /** Drops unused fields before an object is stored. */
  readonly transform?: (object: T) => T
  /** Backoff between failed lists and watches. Default: as client-go, up to half a minute. */
  readonly retry?: BackoffPolicy
  readonly onError: (error: unknown) => void
}

export class Informer<T extends KubeObject> {
  readonly kind: Kind<T>
  readonly #options: InformerOptions<T>
  readonly #objects = new Map<string, T>()
  readonly #internPool = new InternPool<T>()
  readonly #indexes = new Map<string, { readonly of: Index<T>; readonly keys: Map<string, Set<string>> }>()
  readonly #listeners = new Set<Listener<T>>()
  /** Versions passed to `learn` ahead of their watch event: older events are skipped. */
  readonly #ahead = new Map<string, number>()
  readonly #synced = Promise.withResolvers<void>()
  #isSynced = false

  constructor(options: InformerOptions<T>) {
    this.kind = options.kind
    this.#options = options
    for (const [name, of] of Object.entries(options.indexes ?? {})) this.addIndex(name, of)
  }

  /** An informer that has these objects already. It is not to be run. */
  static holding<T extends KubeObject>(options: InformerOptions<T>, objects: readonly T[]): Informer<T> {
    const informer = new Informer(options)
    informer.#replace(objects)
    return informer
  }

  /** Lists and watches until the signal is aborted. Never throws. */
  run(signal: AbortSignal): Promise<void> {
    const { client, kind, random, selection = {}, metadataOnly, retry, onError } = this.#options
    return follow(
      { client, kind, random, selection, metadataOnly, isShared: true, signal, retry },
      {
        arrived: (object) => this.#interned(object),
        replace: (objects) => this.#replace(objects),
        change: (event) => this.#change(event),
        failed: onError,
      },
    )
  }

  /** Whether the initial list is complete. */
  get isSynced(): boolean {
    return this.#isSynced
  }

  get synced(): Promise<void> {
    return this.#synced.promise
  }

  get size(): number {
    return this.#objects.size
  }

  /**
   * Stores the result of a write before its watch event arrives, so that the next read sees it. Ignores unknown
   * objects: they may have been deleted meanwhile.
   */
  learn(object: T): void {
    const key = objectKey(object)
    const stored = this.#objects.get(key)
    if (stored === undefined || stored.metadata.uid !== object.metadata.uid) return
    const [before, version] = [versionOf(stored), versionOf(object)]
    if (!(version > before)) return
    this.#store(this.#interned(object))
    this.#ahead.set(key, version)
  }

  /** By `namespace/name`, or the name alone. */
  get(key: string): T | undefined {
    return this.#objects.get(key)
  }

  list(): IterableIterator<T> {
    return this.#objects.values()
  }

  /** The objects with this index value, unordered. */
  by(index: string, value: string): T[] {
    const found = this.#indexes.get(index)
    if (found === undefined) throw new Error(`${this.kind.kind} has no index "${index}"`)
    const keys = found.keys.get(value)
    return keys === undefined ? [] : Array.from(keys, (key) => this.#objects.get(key) as T)
  }

  /** Does nothing if an index of that name exists. */
  addIndex(name: string, of: Index<T>): void {
    if (this.#indexes.has(name)) return
    this.#indexes.set(name, { of, keys: new Map() })
    for (const [key, object] of this.#objects) this.#reindex(key, object, undefined, name)
  }

  /** Returns a function that removes the listener. `resyncMs`: the period of resyncs. */
  listen(listener: Listener<T>, resyncMs = 0): () => void {
    this.#listeners.add(listener)
    for (const object of this.#objects.values()) listener.added?.(object)
    const resync = (): void => {
      for (const object of this.#objects.values()) listener.updated?.(object, object)
    }
    const timer: Timer | undefined = resyncMs > 0 ? every(this.#options.client.clock, resyncMs, resync) : undefined
    return () => {
      timer?.cancel()
      this.#listeners.delete(listener)
    }
  }

  #replace(objects: readonly T[]): void {
    this.#ahead.clear()
    const gone = new Set(this.#objects.keys())
    for (const object of objects) {
      gone.delete(objectKey(object))
      this.#store(object)
    }
    this.#internPool.reset(objects)
    for (const key of gone) this.#remove(key)
    this.#isSynced = true
    this.#synced.resolve()
  }

  #change({ type, object }: ObjectEvent<T>): void {
    const key = objectKey(object)
    const ahead = this.#ahead.get(key)
    if (type !== 'DELETED' && ahead !== undefined && versionOf(object) < ahead) return
    if (ahead !== undefined) this.#ahead.delete(key)
    if (type === 'DELETED') this.#remove(key, object)
    else this.#store(this.#interned(object))
  }

  /** The object to store: transformed, with equal parts of other objects shared. */
  #interned(received: T): T {
    const fresh = this.#options.transform?.(received) ?? received
    const stored = this.#objects.get(objectKey(fresh))
    // A new list may return unchanged objects.
    if (stored !== undefined && stored.metadata.resourceVersion === fresh.metadata.resourceVersion) return stored
    return this.#internPool.intern(fresh, stored?.metadata.uid === fresh.metadata.uid ? stored : undefined)
  }

  #store(object: T): void {
    const key = objectKey(object)
    const stored = this.#objects.get(key)
    if (stored !== undefined && stored.metadata.resourceVersion === object.metadata.resourceVersion) return
    const isOther = stored !== undefined && stored.metadata.uid !== object.metadata.uid
    // Another object of the same name: listeners must see the deletion of the first.
    if (isOther) this.#remove(key)
    const old = isOther ? undefined : stored
    this.#objects.set(key, object)
    this.#reindex(key, object, old)
    for (const listener of this.#listeners) {
      if (old === undefined) listener.added?.(object)
      else listener.updated?.(object, old)
    }
  }

  #remove(key: string, last: T | undefined = this.#objects.get(key)): void {
    const stored = this.#objects.get(key)
    if (stored === undefined || last === undefined) return
    this.#objects.delete(key)
    this.#internPool.forget(stored)
    this.#reindex(key, undefined, stored)
    for (const listener of this.#listeners) listener.deleted?.(last)
  }

  #reindex(key: string, object: T | undefined, old: T | undefined, only?: string): void {
    for (const [name, { of, keys }] of this.#indexes) {
      if (only !== undefined && name !== only) continue
      const [before, now] = [old === undefined ? [] : of(old), object === undefined ? [] : of(object)]
      // Most changes keep the index values.
      if (before.length === now.length && before.every((value, at) => value === now[at])) continue
      for (const value of before) {
        const found = keys.get(value)
        found?.delete(key)
        if (found?.size === 0) keys.delete(value)
      }
      for (const value of now) {
        const found = keys.get(value)
        if (found === undefined) keys.set(value, new Set([key]))
        else found.add(key)
      }
    }
  }
}

/** Resource versions of one kind are increasing numbers. */
function versionOf({ metadata }: KubeObject): number {
  return Number(metadata.resourceVersion ?? Number.NaN)
}
