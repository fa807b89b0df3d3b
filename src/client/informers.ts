/**
 * Informers shared by all who watch the same kind, so that each object is held once and read once. Who owns which field
 * (`managedFields`) is as much again as the rest of an object, and of no use to whoever decides by what it says: it is not kept.
 */
import type { Kind } from '#apis/kinds.ts'
import type { Random } from '#lib/random.ts'
import { kindKey } from '#meta/kind.ts'
import type { KubeObject, ObjectMeta } from '#meta/object.ts'

import type { ApiClient } from './api-client.ts'
import { Informer, type InformerOptions, type Listener } from './informer.ts'

export interface InformersOptions {
  readonly client: ApiClient
  readonly random: Random
  /** Ends all of them. */
  readonly signal: AbortSignal
  /** What is kept of a kind, and of which of its objects. Default: all of all. */
  readonly tailor?: (kind: Kind) => Tailoring
  readonly onError: (error: unknown, kind: Kind) => void
}

export type Tailoring = Pick<InformerOptions<KubeObject>, 'selection' | 'metadataOnly' | 'transform' | 'indexes'>

interface Followed {
  readonly informer: Informer<KubeObject>
  readonly running: Promise<void>
}

interface FollowedMetadata extends Followed {
  readonly end: AbortController
  listening: number
}

export interface MetadataWatch {
  /** May hold more than metadata. */
  readonly informer: Informer<KubeObject>
  /** Once, by whoever asked for it. */
  stop(): void
}

export class Informers {
  readonly #options: InformersOptions
  readonly #informers = new Map<string, Followed>()
  readonly #metadata = new Map<string, FollowedMetadata>()

  constructor(options: InformersOptions) {
    this.#options = options
  }

  /** Begins to follow the kind when somebody first asks for it. */
  of<T extends KubeObject>(kind: Kind<T>): Informer<T> {
    const key = kindKey(kind)
    let found = this.#informers.get(key)
    if (found === undefined) {
      found = this.#follow(kind, this.#options.tailor?.(kind) ?? {}, this.#options.signal)
      this.#informers.set(key, found)
    }
    // Under this key there are only objects of this kind.
    return found.informer as unknown as Informer<T>
  }

  /**
   * For who looks at nothing but metadata: of the whole objects where those are followed already, so that nothing is watched
   * twice. Other kinds are followed as long as somebody listens.
   */
  metadataOf(kind: Kind, listener: Listener<KubeObject>): MetadataWatch {
    const key = kindKey(kind)
    const whole = this.#informers.get(key)
    if (whole !== undefined) return { informer: whole.informer, stop: whole.informer.listen(listener) }
    const followed = this.#metadata.get(key) ?? this.#followMetadata(kind)
    this.#metadata.set(key, followed)
    followed.listening++
    const unlisten = followed.informer.listen(listener)
    return {
      informer: followed.informer,
      stop: () => {
        unlisten()
        if (--followed.listening > 0) return
        followed.end.abort()
        this.#metadata.delete(key)
      },
    }
  }

  #followMetadata(kind: Kind): FollowedMetadata {
    const end = new AbortController()
    const signal = AbortSignal.any([this.#options.signal, end.signal])
    return { ...this.#follow(kind, { metadataOnly: true, transform: onlyOwnership }, signal), end, listening: 0 }
  }

  #follow(kind: Kind, { transform, ...tailoring }: Tailoring, signal: AbortSignal): Followed {
    const { client, random, onError } = this.#options
    const informer = new Informer<KubeObject>({
      client,
      kind,
      random,
      onError: (error) => onError(error, kind),
      ...tailoring,
      transform: (object) => transform?.(object) ?? withoutManagers(object),
    })
    return { informer, running: informer.run(signal) }
  }

  /** Shows a change before the watch tells of it, if the kind is followed: see `Informer.learn`. */
  learn(kind: Kind, object: KubeObject): void {
    this.#informers.get(kindKey(kind))?.informer.learn(object)
  }

  /** Resolves when those of these kinds have seen what was there. */
  async synced(kinds: readonly Kind[]): Promise<void> {
    await Promise.all(kinds.map((kind) => this.of(kind).synced))
  }

  /** Resolves when all have ended, after the signal. */
  async ended(): Promise<void> {
    const all = [...this.#informers.values(), ...this.#metadata.values()]
    await Promise.all(all.map(({ running }) => running))
  }
}

/** In place: it was read for nobody else. Not taken out, because that would make the object twice as large. */
function withoutManagers(object: KubeObject): KubeObject {
  const metadata: { managedFields?: ObjectMeta['managedFields'] | undefined } = object.metadata
  if (metadata.managedFields !== undefined) metadata.managedFields = undefined
  return object
}

/** What the graph of owners and whoever counts need, and no more: there are many of these. */
function onlyOwnership({ metadata }: KubeObject): KubeObject {
  const { name, namespace, uid, resourceVersion, ownerReferences, finalizers, deletionTimestamp } = metadata
  const kept = { name, namespace, uid, resourceVersion, ownerReferences, finalizers, deletionTimestamp }
  // What is undefined is not there.
  return { metadata: kept as ObjectMeta }
}
