/** Writes the server's own objects, such as default roles, through the registry. */
import type { Kind } from '#apis/kinds.ts'
import type { User } from '#auth/user.ts'
import { runAtOnce, completedSteps } from '#lib/time-slicing.ts'
import { applyConfig } from '#meta/apply/field-manager.ts'
import { apiVersionOf } from '#meta/kind.ts'
import { deepCopy, type KubeObject } from '#meta/object.ts'
import type { DeleteOptions } from '#meta/options.ts'
import { decodePatched } from '#meta/patch/patched-object.ts'
import { applyConflictError } from '#meta/status-errors.ts'
import { isAlreadyExists, isNotFound } from '#meta/status.ts'

import type {
  ChangeTerms,
  NewObject,
  ObjectChange,
  ObjectName,
  ObjectReader,
  ObjectWriter,
  UpdateObject,
} from './resource.ts'
import type { WriteRequest } from './services.ts'
import type { Store, Transform } from './store.ts'

/** The user of the server itself. */
export const SYSTEM_USER: User = {
  name: 'system:apiserver',
  uid: '',
  groups: ['system:masters', 'system:authenticated'],
  extra: {},
}

/** The default field manager of the server's writes. */
const MANAGER = 'kube-apiserver'

export class Writer implements ObjectWriter {
  readonly #storeOf: (kind: Kind) => Store | undefined
  readonly #objects: ObjectReader
  readonly #user: User
  readonly #manager: string

  constructor(
    storeOf: (kind: Kind) => Store | undefined,
    objects: ObjectReader,
    user: User,
    manager: string = MANAGER,
  ) {
    this.#storeOf = storeOf
    this.#objects = objects
    this.#user = user
    this.#manager = manager
  }

  /** The same with another field manager. */
  managing(manager: string): Writer {
    return new Writer(this.#storeOf, this.#objects, this.#user, manager)
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

  /** Applies fields of the status: the manager then owns these and no others. Throws StatusError 404. */
  async applyStatus<T extends KubeObject>(
    kind: Kind<T>,
    { namespace, name }: ObjectName,
    status: unknown,
  ): Promise<void> {
    const store = this.#storeOf(kind)
    const schema = store?.resource.shapes.schemaFor(kind)
    if (store === undefined || schema === undefined) return
    const type = { kind: kind.kind, apiVersion: apiVersionOf(kind) }
    const config = { ...type, metadata: { name }, status }
    const document = { type: 'application/apply-patch+yaml', value: config, offences: [] } as const
    const decoding = { schema, validation: 'Ignore', isKnown: () => true } as const
    const apply: Transform = (_live, fields) => {
      const result = applyConfig(fields, config, true)
      if (!result.ok) throw applyConflictError(result.causes, result.message)
      return { ...runAtOnce(decodePatched(decoding, document, completedSteps(result.object))).object, ...type }
    }
    const request = { ...this.#request(kind, namespace), subresource: 'status' }
    await store.update(request, name, apply, { isTracked: true })
  }

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
    { resourceVersion, creates = false, shares = false }: ChangeTerms = {},
  ): Promise<void> {
    const transform = (live: KubeObject): KubeObject | Promise<KubeObject> =>
      change((shares ? live : deepCopy(live)) as T)
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
      manager: this.#manager,
      options: {},
      warn: () => undefined,
      signal: new AbortController().signal,
    }
  }
}
