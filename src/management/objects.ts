/**
 * Caches all objects of the management API in memory and writes changes. The cache contains a change as soon as the
 * write resolves, so routes read only the cache.
 */
import { type Secret, Secrets } from '#apis/core/v1.ts'
import type { Kind } from '#apis/kinds.ts'
import type { ApiClient, Draft } from '#client/api-client.ts'
import { Informers } from '#client/informers.ts'
import type { Clock } from '#lib/clock.ts'
import type { Logger } from '#lib/log/log.ts'
import type { Random } from '#lib/random.ts'
import type { KubeObject } from '#meta/object.ts'
import { isConflict, isNotFound } from '#meta/status.ts'

import { MANAGEMENT_KINDS } from './kinds/index.ts'

/** The namespace of the management cluster with the secrets of the server. */
export const MANAGEMENT_NAMESPACE = 'hyperkube-management'

export interface ObjectsOptions {
  /** Calls `onChanged` of these objects for its writes: see `createObjects`. */
  readonly client: ApiClient
  readonly clock: Clock
  readonly random: Random
  readonly log: Logger
  readonly signal: AbortSignal
}

export class ManagementObjects {
  readonly client: ApiClient
  readonly clock: Clock
  readonly random: Random
  readonly log: Logger
  readonly #informers: Informers

  constructor({ client, clock, random, log, signal }: ObjectsOptions) {
    this.client = client
    this.clock = clock
    this.random = random
    this.log = log
    const onError = (error: unknown, { plural }: Kind): void =>
      log.error(error, 'Failed to watch management objects', { resource: plural })
    this.#informers = new Informers({ client, random, signal, onError })
    for (const { kind } of MANAGEMENT_KINDS) this.#informers.of<KubeObject>(kind)
  }

  /** Resolves when all kinds have been listed. */
  async synced(): Promise<void> {
    await this.#informers.synced(MANAGEMENT_KINDS.map(({ kind }) => kind))
  }

  get<T extends KubeObject>(kind: Kind<T>, name: string): T | undefined {
    return this.#informers.of(kind).get(name)
  }

  list<T extends KubeObject>(kind: Kind<T>): readonly T[] {
    return [...this.#informers.of(kind).list()]
  }

  /**
   * Called for each added, changed and deleted object, and at once for those that exist. Returns a function that ends it.
   */
  listen<T extends KubeObject>(kind: Kind<T>, changed: (object: T, isDeleted: boolean) => void): () => void {
    return this.#informers.of(kind).listen({
      added: (object) => changed(object, false),
      updated: (object) => changed(object, false),
      deleted: (object) => changed(object, true),
    })
  }

  async create<T extends KubeObject>(kind: Kind<T>, object: Draft<T>): Promise<T> {
    const made = await this.client.create(kind, object)
    const { name = '' } = made.metadata
    await this.#shown(kind, () => this.get(kind, name) !== undefined)
    return made
  }

  /** Changes the current object until no other writer is faster. `change` returns undefined to change nothing. */
  async change<T extends KubeObject>(
    kind: Kind<T>,
    name: string,
    change: (current: T) => Draft<T> | undefined,
    options: { readonly subresource?: 'status' } = {},
  ): Promise<T> {
    for (let tries = 0; ; tries++) {
      const current = await this.client.get(kind, { name })
      const wanted = change(current)
      if (wanted === undefined) return current
      try {
        const made = await this.client.update(kind, wanted, options)
        this.#informers.learn(kind, made)
        return made
      } catch (error) {
        if (!isConflict(error) || tries >= MAX_TRIES) throw error
      }
    }
  }

  /** Resolves when the object is gone from memory too, so that the next request does not find it. */
  async delete(kind: Kind, name: string): Promise<void> {
    await this.client.delete(kind, { name }).catch((error: unknown) => {
      if (!isNotFound(error)) throw error
    })
    await this.#shown(kind, () => this.get(kind, name) === undefined)
  }

  /** Whether the object exists. Waits for one that another replica has just created. */
  async arrives(kind: Kind, name: string): Promise<boolean> {
    const isShown = (): boolean => this.get(kind, name) !== undefined
    if (isShown()) return true
    try {
      await this.client.get(kind, { name })
    } catch (error) {
      if (isNotFound(error)) return false
      throw error
    }
    await this.#shown(kind, isShown)
    return isShown()
  }

  /** Waits for the watch event. While the watch is interrupted it gives up after a while: the event comes later. */
  #shown(kind: Kind, isShown: () => boolean): Promise<void> {
    if (isShown()) return Promise.resolve()
    const { promise, resolve } = Promise.withResolvers<void>()
    const check = (): void => {
      if (isShown()) resolve()
    }
    const unlisten = this.#informers.of(kind).listen({ added: check, deleted: check })
    const timer = this.clock.after(SHOWN_MS, resolve, { background: true })
    return promise.finally(() => {
      unlisten()
      timer.cancel()
    })
  }

  /** Undefined: there is none. Reads it from the API, because secrets are not kept in memory. */
  async secret(name: string): Promise<Secret | undefined> {
    try {
      return await this.client.get(Secrets, { namespace: MANAGEMENT_NAMESPACE, name })
    } catch (error) {
      if (isNotFound(error)) return undefined
      throw error
    }
  }
}

const MAX_TRIES = 50
const SHOWN_MS = 5000
