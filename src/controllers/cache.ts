/** What controllers read: the collections they asked for, as last seen. Objects are shared: nobody changes them. */
import type { Kind } from '#apis/kinds.ts'
import type { Index, Informer } from '#client/informer.ts'
import type { Informers } from '#client/informers.ts'
import { kindKey } from '#meta/kind.ts'
import { controllerOf, isControlledBy, type KubeObject } from '#meta/object.ts'

/** By the uid of the owner that controls an object, and by its namespace. */
const OWNER = 'controller'
const NAMESPACE = 'namespace'

/** By what else objects are found; made once, by name, when it is first asked for. */
export interface CacheIndex<T extends KubeObject> {
  readonly name: string
  readonly of: Index<T>
}

export class Cache {
  readonly #informers: Informers
  readonly #kinds: ReadonlySet<string>

  /** Of these kinds: others would be read before they are there. */
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

  /** What the object controls. */
  ownedBy<T extends KubeObject>(kind: Kind<T>, owner: KubeObject): T[] {
    const found = this.#indexed(kind, OWNER).by(OWNER, owner.metadata.uid ?? '')
    return found.filter((object) => isControlledBy(object, owner))
  }

  /** What nobody controls in a namespace: what a selector may adopt. */
  orphansIn<T extends KubeObject>(kind: Kind<T>, namespace: string): T[] {
    return this.inNamespace(kind, namespace).filter((object) => controllerOf(object) === undefined)
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

  #indexed<T extends KubeObject>(kind: Kind<T>, index: string): Informer<T> {
    const informer = this.#of(kind)
    if (index === OWNER) informer.addIndex(OWNER, (object) => [controllerOf(object)?.uid ?? ''])
    else informer.addIndex(NAMESPACE, ({ metadata }) => [metadata.namespace ?? ''])
    return informer
  }
}
