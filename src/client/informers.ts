/**
 * Shared informers: one list and watch for each kind, for all listeners. `managedFields` are dropped, because they are
 * half of an object's size and no listener reads them.
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
  /** Stops all informers. */
  readonly signal: AbortSignal
  /** The transform and selection of a kind. Default: whole objects, all of them. */
  readonly tailor?: (kind: Kind) => Tailoring
  readonly onError: (error: unknown, kind: Kind) => void
}

export type Tailoring = Pick<InformerOptions<KubeObject>, 'selection' | 'metadataOnly' | 'transform' | 'indexes'>

interface RunningInformer {
  readonly informer: Informer<KubeObject>
  readonly running: Promise<void>
}

interface RunningMetadataInformer extends RunningInformer {
  readonly end: AbortController
  listening: number
}

export interface MetadataWatch {
  /** May contain more than metadata. */
  readonly informer: Informer<KubeObject>
  /** Called once by each caller of `metadataOf`. */
  stop(): void
}

export class Informers {
  readonly #options: InformersOptions
  readonly #informers = new Map<string, RunningInformer>()
  readonly #metadata = new Map<string, RunningMetadataInformer>()

  constructor(options: InformersOptions) {
    this.#options = options
  }

  /** Starts the informer of the kind on the first call. */
  of<T extends KubeObject>(kind: Kind<T>): Informer<T> {
    const key = kindKey(kind)
    let found = this.#informers.get(key)
    if (found === undefined) {
      found = this.#follow(kind, this.#options.tailor?.(kind) ?? {}, this.#options.signal)
      this.#informers.set(key, found)
    }
    // Entries under this key have this kind.
    return found.informer as unknown as Informer<T>
  }

  /**
   * Metadata of a kind: from the informer of whole objects if there is one, else from a watch of metadata that lasts
   * while someone listens.
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

  #followMetadata(kind: Kind): RunningMetadataInformer {
    const end = new AbortController()
    const signal = AbortSignal.any([this.#options.signal, end.signal])
    return { ...this.#follow(kind, { metadataOnly: true, transform: onlyOwnership }, signal), end, listening: 0 }
  }

  #follow(kind: Kind, { transform, ...tailoring }: Tailoring, signal: AbortSignal): RunningInformer {
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

  /** Passes the result of a write to the kind's informer, if there is one: see `Informer.learn`. */
  learn(kind: Kind, object: KubeObject): void {
    this.#informers.get(kindKey(kind))?.informer.learn(object)
  }

  /** Resolves when the informers of these kinds have their initial list. */
  async synced(kinds: readonly Kind[]): Promise<void> {
    await Promise.all(kinds.map((kind) => this.of(kind).synced))
  }

  /** Resolves when all informers have stopped, after the signal. */
  async ended(): Promise<void> {
    const all = [...this.#informers.values(), ...this.#metadata.values()]
    await Promise.all(all.map(({ running }) => running))
  }
}

/** In place, because no one else has this object. Sets undefined: `delete` would double the object's size in V8. */
function withoutManagers(object: KubeObject): KubeObject {
  const metadata: { managedFields?: ObjectMeta['managedFields'] | undefined } = object.metadata
  if (metadata.managedFields !== undefined) metadata.managedFields = undefined
  return object
}

/** The fields that the garbage collector and quota need: there are many of these objects. */
function onlyOwnership({ metadata }: KubeObject): KubeObject {
  const { name, namespace, uid, resourceVersion, ownerReferences, finalizers, deletionTimestamp } = metadata
  const kept = { name, namespace, uid, resourceVersion, ownerReferences, finalizers, deletionTimestamp }
  // Undefined fields are absent.
  return { metadata: kept as ObjectMeta }
}
