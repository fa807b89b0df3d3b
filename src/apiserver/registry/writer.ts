/** Writer: what the server itself writes, as a client of its own registry. */
import type { Kind } from '#apis/kinds.ts'
import { apiVersionOf } from '#meta/kind.ts'
import { deepCopy, type KubeObject } from '#meta/object.ts'
import type { DeleteOptions } from '#meta/options.ts'
import { isAlreadyExists, isNotFound } from '#meta/status.ts'

import type {
  ChangeTerms,
  NewObject,
  ObjectChange,
  ObjectName,
  ObjectReader,
  ObjectWriter,
  UpdateObject,
  User,
} from './resource.ts'
import type { WriteRequest } from './services.ts'
import type { Store } from './store.ts'

/** Who the server is to itself. */
export const SYSTEM_USER: User = {
  name: 'system:apiserver',
  uid: '',
  groups: ['system:masters', 'system:authenticated'],
  extra: {},
}

/** Who owns the fields that the server sets. */
const MANAGER = 'kube-apiserver'

export class Writer implements ObjectWriter {
  readonly #storeOf: (kind: Kind) => Store | undefined
  readonly #objects: ObjectReader
  readonly #user: User

  constructor(storeOf: (kind: Kind) => Store | undefined, objects: ObjectReader, user: User) {
    this.#storeOf = storeOf
    this.#objects = objects
    this.#user = user
  }

  get<T extends KubeObject>(kind: Kind<T>, namespace: string, name: string): Promise<T | undefined> {
    return this.#objects.get(kind, namespace, name)
  }

  list<T extends KubeObject>(kind: Kind<T>, namespace: string): Promise<readonly T[]> {
    return this.#objects.list(kind, namespace)
  }

  async create<T extends KubeObject>(kind: Kind<T>, object: NewObject<T>): Promise<T | undefined> {
    const whole = { kind: kind.kind, apiVersion: apiVersionOf(kind), ...deepCopy(object) } as unknown as KubeObject
    const request = this.#request(kind, object.metadata.namespace)
    return (await this.#storeOf(kind)?.create(request, whole))?.entry.object as T | undefined
  }

  async ensure<T extends KubeObject>(kind: Kind<T>, object: NewObject<T>): Promise<boolean> {
    const { name = '', namespace = '' } = object.metadata
    if ((await this.get(kind, namespace, name)) !== undefined) return false
    try {
      return (await this.create(kind, object)) !== undefined
    } catch (error) {
      // Another server of the same cluster was faster.
      if (isAlreadyExists(error)) return false
      throw error
    }
  }

  readonly update: UpdateObject = (kind, { namespace, name }, change, terms) =>
    this.#update(kind, { ...this.#request(kind, namespace), name }, change, terms)

  readonly updateStatus: UpdateObject = (kind, { namespace, name }, change, terms) =>
    this.#update(kind, { ...this.#request(kind, namespace), name, subresource: 'status' }, change, terms)

  async delete(kind: Kind, { namespace, name }: ObjectName, options: DeleteOptions = {}): Promise<boolean> {
    const store = this.#storeOf(kind)
    if (store === undefined) return false
    try {
      await store.delete(this.#request(kind, namespace), name, options)
      return true
    } catch (error) {
      if (isNotFound(error)) return false
      throw error
    }
  }

  async #update<T extends KubeObject>(
    kind: Kind<T>,
    { name, ...request }: WriteRequest & ObjectName,
    change: ObjectChange<T>,
    { resourceVersion, creates = false }: ChangeTerms = {},
  ): Promise<void> {
    const transform = (live: KubeObject): KubeObject | Promise<KubeObject> => change(deepCopy(live) as T)
    const terms = { resourceVersion, ...(creates && { mayCreate: () => undefined }) }
    await this.#storeOf(kind)?.update(request, name, transform, terms)
  }

  #request(kind: Kind, namespace = ''): WriteRequest {
    return {
      gvk: kind,
      namespace,
      subresource: '',
      user: this.#user,
      dryRun: false,
      manager: MANAGER,
      options: {},
      warn: () => undefined,
      signal: new AbortController().signal,
    }
  }
}
