/**
 * Informer: a collection kept in memory, indexed, with news for any number of listeners. It holds each object once,
 * however many listen; objects are shared and must not be changed. An object goes through a strict sequence of states:
 * added, updated any number of times, deleted; a listener that comes later hears of everything as added.
 */
import type { Kind } from '#apis/kinds.ts'
import type { BackoffPolicy } from '#lib/backoff.ts'
import { every, type Timer } from '#lib/clock.ts'
import type { Random } from '#lib/random.ts'
import { type KubeObject, objectKey } from '#meta/object.ts'
import type { ObjectEvent } from '#meta/watch.ts'

import { Siblings } from './alike.ts'
import type { ApiClient, Selection } from './api-client.ts'
import { follow } from './follow.ts'

export interface Listener<T extends KubeObject> {
  added?(object: T): void
  /** Also on a resync, with the same object twice. */
  updated?(object: T, old: T): void
  /** The last state that was seen. */
  deleted?(object: T): void
}

/** The values under which an object is found. */
export type Index<T extends KubeObject> = (object: T) => readonly string[]

export interface InformerOptions<T extends KubeObject> {
  readonly client: ApiClient
  readonly kind: Kind<T>
  readonly random: Random
  readonly selection?: Selection
  /** Reads and keeps the metadata of objects and nothing else. */
  readonly metadataOnly?: boolean
  readonly indexes?: Readonly<Record<string, Index<T>>>
  /** What is kept of an object: to drop what nobody here reads. */
  readonly transform?: (object: T) => T
  /** How long to wait after each failure to read or to watch; as upstream's reflector unless said: up to half a minute. */
  readonly retry?: BackoffPolicy
  readonly onError: (error: unknown) => void
}

export class Informer<T extends KubeObject> {
  readonly kind: Kind<T>
  readonly #options: InformerOptions<T>
  readonly #objects = new Map<string, T>()
  readonly #siblings = new Siblings<T>()
  readonly #indexes = new Map<string, { readonly of: Index<T>; readonly keys: Map<string, Set<string>> }>()
  readonly #listeners = new Set<Listener<T>>()
  /** Resource versions of objects that were learned of before their event: those of events to come may be older. */
  readonly #ahead = new Map<string, number>()
  readonly #synced = Promise.withResolvers<void>()
  #isSynced = false

  constructor(options: InformerOptions<T>) {
    this.kind = options.kind
    this.#options = options
    for (const [name, of] of Object.entries(options.indexes ?? {})) this.addIndex(name, of)
  }

  /** Begins to follow; ends with the signal. Never throws. */
  run(signal: AbortSignal): Promise<void> {
    const { client, kind, random, selection = {}, metadataOnly, retry, onError } = this.#options
    return follow(
      { client, kind, random, selection, metadataOnly, isShared: true, signal, retry },
      {
        arrived: (object) => this.#slimmed(object),
        replace: (objects) => this.#replace(objects),
        change: (event) => this.#change(event),
        failed: onError,
      },
    )
  }

  /** Whether everything that was there when it began has been seen. */
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
   * What somebody changed an object into, before the watch tells: whoever looks next sees it, and does not act on what was.
   * Only of objects that are there, since of others nobody could say whether they have gone again meanwhile.
   */
  learn(object: T): void {
    const key = objectKey(object)
    const held = this.#objects.get(key)
    if (held === undefined || held.metadata.uid !== object.metadata.uid) return
    const [before, version] = [versionOf(held), versionOf(object)]
    if (!(version > before)) return
    this.#hold(this.#slimmed(object))
    this.#ahead.set(key, version)
  }

  /** By `namespace/name`, or the name alone. */
  get(key: string): T | undefined {
    return this.#objects.get(key)
  }

  list(): IterableIterator<T> {
    return this.#objects.values()
  }

  /** The objects whose index has the value, in no order. */
  by(index: string, value: string): T[] {
    const found = this.#indexes.get(index)
    if (found === undefined) throw new Error(`${this.kind.kind} has no index "${index}"`)
    const keys = found.keys.get(value)
    return keys === undefined ? [] : Array.from(keys, (key) => this.#objects.get(key) as T)
  }

  /** Harmless when there is one of that name: it is then kept. */
  addIndex(name: string, of: Index<T>): void {
    if (this.#indexes.has(name)) return
    this.#indexes.set(name, { of, keys: new Map() })
    for (const [key, object] of this.#objects) this.#reindex(key, object, undefined, name)
  }

  /** Returns what ends it. `resyncMs`: everything is told again that often. */
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
      this.#hold(object)
    }
    this.#siblings.restart(objects)
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
    else this.#hold(this.#slimmed(object))
  }

  /** What is held of an object: without what nobody reads, and with parts of others that are equal. */
  #slimmed(received: T): T {
    const fresh = this.#options.transform?.(received) ?? received
    const held = this.#objects.get(objectKey(fresh))
    // What was read again after a pause may not have changed.
    if (held !== undefined && held.metadata.resourceVersion === fresh.metadata.resourceVersion) return held
    return this.#siblings.take(fresh, held?.metadata.uid === fresh.metadata.uid ? held : undefined)
  }

  #hold(object: T): void {
    const key = objectKey(object)
    const held = this.#objects.get(key)
    if (held !== undefined && held.metadata.resourceVersion === object.metadata.resourceVersion) return
    const isOther = held !== undefined && held.metadata.uid !== object.metadata.uid
    // Another object under the same name: whoever listens must hear that the first one has gone.
    if (isOther) this.#remove(key)
    const old = isOther ? undefined : held
    this.#objects.set(key, object)
    this.#reindex(key, object, old)
    for (const listener of this.#listeners) {
      if (old === undefined) listener.added?.(object)
      else listener.updated?.(object, old)
    }
  }

  #remove(key: string, last: T | undefined = this.#objects.get(key)): void {
    const held = this.#objects.get(key)
    if (held === undefined || last === undefined) return
    this.#objects.delete(key)
    this.#siblings.forget(held)
    this.#reindex(key, undefined, held)
    for (const listener of this.#listeners) listener.deleted?.(last)
  }

  #reindex(key: string, object: T | undefined, old: T | undefined, only?: string): void {
    for (const [name, { of, keys }] of this.#indexes) {
      if (only !== undefined && name !== only) continue
      const [before, now] = [old === undefined ? [] : of(old), object === undefined ? [] : of(object)]
      // Most changes leave an object where it is found.
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

/** Versions of one kind are numbers that grow. */
function versionOf({ metadata }: KubeObject): number {
  return Number(metadata.resourceVersion ?? Number.NaN)
}
