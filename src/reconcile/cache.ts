/** Gives controllers read access to the informers that they declare. Objects are shared and must not be changed. */
import type { Kind } from '#apis/kinds.ts'
import type { Index, Informer } from '#client/informer.ts'
import type { Informers } from '#client/informers.ts'
import { kindKey } from '#meta/kind.ts'
import { controllerOf, isControlledBy, type KubeObject } from '#meta/object.ts'

/** Index names: by controller uid; by namespace; by namespace without a controller. */
const OWNER = 'controller'
const ORPHANS = 'orphans'
export const NAMESPACE = 'namespace'

/** A further index, created once by name on first use. */
export interface CacheIndex<T extends KubeObject> {
  readonly name: string
  readonly of: Index<T>
}

export class Cache {
  readonly #informers: Informers
  readonly #kinds: ReadonlySet<string>

  /** Only these kinds can be read: others may not be synced. */
  constructor(informers: Informers, kinds: readonly Kind[]) {
    this.#informers = informers
    this.#kinds = new Set(kinds.map(kindKey))
  }

  get<T extends KubeObject>(kind: Kind<T>, key: string): T | undefined {
    return this.#of(kind).get(key)
  }

  list<T extends KubeObject>(kind: Kind<T>): Iterable<T> {
    return this.#of(kind).list()
  }

  inNamespace<T extends KubeObject>(kind: Kind<T>, namespace: string): T[] {
    return this.#indexed(kind, NAMESPACE).by(NAMESPACE, namespace)
  }

  /** Objects that the owner controls. */
  ownedBy<T extends KubeObject>(kind: Kind<T>, owner: KubeObject): T[] {
    const found = this.#indexed(kind, OWNER).by(OWNER, owner.metadata.uid ?? '')
    return found.filter((object) => isControlledBy(object, owner))
  }

  /** Objects of a namespace without a controller, as candidates for adoption. */
  orphansIn<T extends KubeObject>(kind: Kind<T>, namespace: string): T[] {
    return this.#indexed(kind, ORPHANS).by(ORPHANS, namespace)
  }

  by<T extends KubeObject>(kind: Kind<T>, { name, of }: CacheIndex<T>, value: string): T[] {
    const informer = this.#of(kind)
    informer.addIndex(name, of)
    return informer.by(name, value)
  }

  #of<T extends KubeObject>(kind: Kind<T>): Informer<T> {
    if (this.#kinds.has(kindKey(kind))) return this.#informers.of(kind)
    throw new Error(`${kind.kind} is read from the cache and is not among what the controller watches or reads`)
  }

  #indexed<T extends KubeObject>(kind: Kind<T>, index: keyof typeof INDEXES): Informer<T> {
    const informer = this.#of(kind)
    informer.addIndex(index, INDEXES[index])
    return informer
  }
}

const INDEXES = {
  [OWNER]: (object) => [controllerOf(object)?.uid ?? ''].filter((uid) => uid !== ''),
  [ORPHANS]: (object) => (controllerOf(object) === undefined ? namespaceOf(object) : []),
  [NAMESPACE]: namespaceOf,
} satisfies Readonly<Record<string, Index<KubeObject>>>

export function namespaceOf({ metadata }: KubeObject): string[] {
  return [metadata.namespace ?? '']
}
