/**
 * Store: create, read, update and delete for the objects of one resource, whatever its kind. A write goes through the
 * same steps in the same order for every kind (see docs/architecture.md); only hooks of the resource differ. Reads come
 * from the cache; a refusal that rests on a cache which may be behind is confirmed before it is sent.
 */
import type { FieldRequest } from '#meta/apply/field-manager.ts'
import { sameButForTimes } from '#meta/apply/same-but-for-times.ts'
import { decodeValue } from '#meta/codec/decode.ts'
import { encodeJson } from '#meta/codec/encode-json.ts'
import { deepCopy, generateName, type KubeObject } from '#meta/object.ts'
import type { DeleteOptions } from '#meta/options.ts'
import {
  alreadyExistsError,
  conflictError,
  generateNameConflictError,
  modifiedError,
  notFoundError,
} from '#meta/status-errors.ts'
import { StatusError } from '#meta/status.ts'
import type { CommitResult, KeyValue, Revision } from '#storage/backend.ts'
import type { Resting } from '#storage/encryption/at-rest.ts'
import type { Collection } from '#storage/watch-cache/collection.ts'

import type { Attributes, Operation } from './admission.ts'
import { planDeletion } from './deletion.ts'
import type { Entry, EntryMaker } from './entry.ts'
import { storageFailure } from './errors.ts'
import { fieldRequestOf } from './field-tracking.ts'
import type { Finish, Resource, WriteContext } from './resource.ts'
import type { Services, WriteRequest } from './services.ts'
import type { WritesUnderway } from './underway.ts'
import {
  fillSystemFields,
  prepareCreate,
  prepareUpdate,
  validateCreate,
  validateUpdate,
  warningsFor,
} from './write-rules.ts'

export interface StoreOptions {
  readonly resource: Resource
  readonly services: Services
  readonly collection: Collection<Entry>
  readonly entries: EntryMaker
  /** For the cache to pick up what is written here. */
  readonly underway: WritesUnderway
}

/** What a write produced: the stored entry, or, for a dry run, an object that was never stored. */
export interface Written {
  readonly entry: Entry
  readonly created: boolean
}

/** Makes the object that shall be stored, in the version of the request, with its fields tracked, from the one that is. */
export type Transform = (live: KubeObject) => Promise<KubeObject> | KubeObject

export interface UpdateTerms {
  /** From the request: the version or uid the client saw. */
  readonly uid?: string | undefined
  readonly resourceVersion?: string | undefined
  /**
   * Create it when it is not there, from the transform of an empty object. Asked when the object is found valid and
   * before validating admission; throws StatusError when the user may not. Absent: what is not there is 404.
   */
  readonly mayCreate?: () => Promise<void> | void
}

/** Names drawn for `generateName` before giving up. */
const NAME_TRIES = 8

export class Store {
  readonly resource: Resource
  readonly collection: Collection<Entry>
  readonly #services: Services
  readonly #entries: EntryMaker
  readonly #underway: WritesUnderway
  readonly #resting: Resting

  constructor(options: StoreOptions) {
    this.resource = options.resource
    this.collection = options.collection
    this.#services = options.services
    this.#entries = options.entries
    this.#underway = options.underway
    this.#resting = options.services.atRest.resting(this.#groupResource)
  }

  get #groupResource(): { readonly group: string; readonly resource: string } {
    const { group, plural } = this.resource.kind
    return { group, resource: plural }
  }

  /** The resource as the request names it: events are in two groups. */
  #addressed({ gvk }: WriteRequest): { readonly group: string; readonly resource: string } {
    const { kind, plural } = this.resource.kind
    return gvk.kind === kind ? { group: gvk.group, resource: plural } : this.#groupResource
  }

  keyOf(namespace: string, name: string): string {
    return `${this.collection.prefix}${namespace === '' ? '' : `${namespace}/`}${name}`
  }

  /** An entry from stored bytes, for states the cache no longer has. */
  read(stored: KeyValue): Entry {
    return this.#entries.read(stored)
  }

  /** The newest entry; waits until the cache has seen everything acknowledged so far. */
  async get(namespace: string, name: string, signal?: AbortSignal): Promise<Entry | undefined> {
    await this.#services.cache.fresh(signal)
    if (!this.collection.isLoaded) await this.collection.ready
    return this.collection.get(this.keyOf(namespace, name))
  }

  async create(request: WriteRequest, body: KubeObject): Promise<Written> {
    const { metadata } = body
    const drawn = (metadata.name ?? '') === '' && (metadata.generateName ?? '') !== ''
    const { generateName: draw = generateName } = this.resource
    for (let tries = NAME_TRIES; ; tries--) {
      const object = deepCopy(body)
      if (drawn) object.metadata.name = draw(metadata.generateName ?? '', this.#services.random)
      const outcome = await this.#createOnce(request, object)
      if (outcome !== undefined) return outcome
      const { name = '' } = object.metadata
      if (!drawn) throw await this.#alreadyThere(request, object)
      if (tries === 1) throw generateNameConflictError(this.#addressed(request), name, 1)
    }
  }

  /** Says as well when what is in the way will soon be gone. */
  async #alreadyThere(request: WriteRequest, { metadata: { namespace = '', name = '' } }: KubeObject): Promise<Error> {
    const taken = alreadyExistsError(this.#addressed(request), name)
    const there = await this.get(namespace, name, request.signal)
    if (there?.object.metadata.deletionTimestamp === undefined) return taken
    return new StatusError({ ...taken.status, message: `object is being deleted: ${taken.message}` })
  }

  /** Undefined when the name is taken. */
  async #createOnce(
    request: WriteRequest,
    body: KubeObject,
    mayCreate?: UpdateTerms['mayCreate'],
  ): Promise<Written | undefined> {
    const context = this.#contextOf(request)
    fillSystemFields(body.metadata, context)
    const object = this.#toStored(body)
    const attributes = this.#attributes(request, 'CREATE', { object, oldObject: undefined })
    await this.#services.admission.mutate(attributes)
    prepareCreate(this.resource, object, context)
    const finish = await this.resource.allocate?.(object, undefined, context)
    return finishing(
      finish,
      (outcome) => outcome !== undefined,
      async () => {
        validateCreate(this.resource, object, context, request.gvk)
        await mayCreate?.()
        await this.#services.admission.validate(attributes)
        for (const warning of warningsFor(this.resource, object, undefined, request.subresource)) request.warn(warning)
        const key = this.keyOf(object.metadata.namespace ?? '', object.metadata.name ?? '')
        const entry = await this.#commit(request, key, this.#canonical(object), 0)
        return entry === undefined ? undefined : { entry, created: true }
      },
    )
  }

  /**
   * Changes the stored object. When somebody else was faster, the transform is asked again with what is there now,
   * unless the client named the version it saw.
   */
  async update(request: WriteRequest, name: string, transform: Transform, terms: UpdateTerms = {}): Promise<Written> {
    const key = this.keyOf(request.namespace, name)
    let current = this.collection.isLoaded
      ? this.collection.get(key)
      : await this.get(request.namespace, name, request.signal)
    for (;;) {
      current = await this.#confirm(request, name, current, terms)
      if (current === undefined) {
        const created = await this.#createMissing(request, name, transform, terms)
        if (created !== undefined) return created
        continue
      }
      const outcome = await this.#updateOnce(request, current, transform)
      if (outcome.entry !== undefined) return { entry: outcome.entry, created: false }
      current = outcome.now
    }
  }

  async #createMissing(
    request: WriteRequest,
    name: string,
    transform: Transform,
    { mayCreate, uid }: UpdateTerms,
  ): Promise<Written | undefined> {
    if (mayCreate === undefined) throw notFoundError(this.#addressed(request), name)
    if (uid !== undefined && uid !== '') {
      throw conflictError(
        this.#addressed(request),
        name,
        `StorageError: invalid object, Code: 4, Key: ${this.keyOf(request.namespace, name)}, ResourceVersion: 0, AdditionalErrorMsg: Precondition failed: UID in precondition: ${uid}, UID in object meta: `,
      )
    }
    const { gvk } = request
    const apiVersion = gvk.group === '' ? gvk.version : `${gvk.group}/${gvk.version}`
    const body = await transform({ kind: gvk.kind, apiVersion, metadata: {} })
    delete body.metadata.resourceVersion
    return this.#createOnce(request, deepCopy(body), mayCreate)
  }

  /** The entry the request may go on with; what looks missing or stale in the cache is looked at again, fresh. */
  async #confirm(
    request: WriteRequest,
    name: string,
    current: Entry | undefined,
    terms: UpdateTerms,
  ): Promise<Entry | undefined> {
    const suspicious = (entry: Entry | undefined): boolean =>
      entry === undefined ||
      (terms.resourceVersion !== undefined && terms.resourceVersion !== String(entry.modRevision)) ||
      (terms.uid !== undefined && terms.uid !== entry.object.metadata.uid)
    if (!suspicious(current)) return current
    const fresh = await this.get(request.namespace, name, request.signal)
    if (fresh === undefined) return undefined
    if (terms.uid !== undefined && terms.uid !== fresh.object.metadata.uid) {
      const uid = fresh.object.metadata.uid ?? ''
      throw conflictError(
        this.#addressed(request),
        name,
        `StorageError: invalid object, Code: 4, Key: ${fresh.key}, ResourceVersion: 0, AdditionalErrorMsg: Precondition failed: UID in precondition: ${terms.uid}, UID in object meta: ${uid}`,
      )
    }
    if (terms.resourceVersion !== undefined && terms.resourceVersion !== String(fresh.modRevision)) {
      throw modifiedError(this.#addressed(request), name)
    }
    return fresh
  }

  /** `entry` is absent when somebody was faster; then `now` is what is there. */
  async #updateOnce(
    request: WriteRequest,
    current: Entry,
    transform: Transform,
  ): Promise<{ readonly entry: Entry | undefined; readonly now: Entry | undefined }> {
    const { services, resource } = { services: this.#services, resource: this.resource }
    const context = this.#contextOf(request)
    const old = this.#stored(current)
    const live = services.convert(old, request.gvk)
    const sent = await transform(live)
    const object = this.#toStored(deepCopy(sent))
    const attributes = this.#attributes(request, 'UPDATE', { object, oldObject: old })
    await services.admission.mutate(attributes)
    prepareUpdate(resource, [object, old], request.subresource, context)
    const finish = await resource.allocate?.(object, old, context)
    return finishing(
      finish,
      ({ entry }) => entry !== undefined,
      async () => {
        validateUpdate(resource, [object, old], request, context)
        await services.admission.validate(attributes)
        for (const warning of warningsFor(resource, object, old, request.subresource)) request.warn(warning)
        const finished = this.#canonical(object)
        const isLast = isFinished(finished) && this.resource.isHeld?.(finished) !== true
        if (!isLast && sameButForTimes(finished, withoutVersion(old))) return { entry: current, now: current }
        const entry = isLast
          ? await this.#removeFinished(request, current, finished)
          : await this.#commit(request, current.key, finished, current.modRevision)
        return { entry, now: entry ?? (await this.get(current.namespace, current.name, request.signal)) }
      },
    )
  }

  /** Deletes, or begins to. `gone` tells which; the entry is the last state, or the marked one. */
  async delete(
    request: WriteRequest,
    name: string,
    options: DeleteOptions,
  ): Promise<{ readonly entry: Entry; readonly gone: boolean }> {
    for (;;) {
      const entry = await this.get(request.namespace, name, request.signal)
      if (entry === undefined) throw notFoundError(this.#addressed(request), name)
      this.#checkPreconditions(entry, options)
      const outcome = await this.#deleteOnce(request, entry, options)
      if (outcome !== undefined) return outcome
    }
  }

  #checkPreconditions({ object, name }: Entry, { preconditions }: DeleteOptions): void {
    const { group, kind } = this.resource.kind
    for (const [field, label] of [
      ['uid', 'UID'],
      ['resourceVersion', 'ResourceVersion'],
    ] as const) {
      const wanted = preconditions?.[field]
      const there = object.metadata[field] ?? ''
      if (wanted === undefined || wanted === there) continue
      const why = `the ${label} in the precondition (${wanted}) does not match the ${label} in record (${there}). The object might have been ${field === 'uid' ? 'deleted and then recreated' : 'modified'}`
      throw conflictError({ group, resource: kind }, name, why)
    }
  }

  async #deleteOnce(
    request: WriteRequest,
    entry: Entry,
    options: DeleteOptions,
  ): Promise<{ readonly entry: Entry; readonly gone: boolean } | undefined> {
    const context = this.#contextOf(request)
    const old = this.#stored(entry)
    const object = deepCopy(old)
    const graceSeconds = this.resource.deletion?.(object, options, context).graceSeconds ?? 0
    const isHeld = this.resource.isHeld?.(object) ?? false
    const { propagationPolicy: _, orphanDependents: __, ...bare } = options
    const terms = this.resource.ignoresPropagation === true ? bare : options
    const plan = planDeletion({ object, options: terms, graceSeconds, isHeld, nowMs: this.#services.clock.now() })
    const attributes = this.#attributes(request, 'DELETE', { object: undefined, oldObject: old })
    await this.#services.admission.mutate(attributes)
    await this.#services.admission.validate(attributes)
    if (plan.action === 'wait') return { entry, gone: false }
    if (plan.action === 'remove') return (await this.#remove(request, entry)) ? { entry, gone: true } : undefined
    const marked = await this.#commit(request, entry.key, this.#canonical(plan.object), entry.modRevision)
    return marked === undefined ? undefined : { entry: marked, gone: false }
  }

  /** The last finalizer went with this update, so the object does. The answer shows it as it would have been stored. */
  async #removeFinished(request: WriteRequest, current: Entry, finished: KubeObject): Promise<Entry | undefined> {
    const last = this.#entries.written(current.key, encodeJson(finished), finished, current.modRevision)
    return (await this.#remove(request, current)) ? last : undefined
  }

  /** False when somebody changed it meanwhile. */
  async #remove(request: WriteRequest, entry: Entry): Promise<boolean> {
    if (!request.dryRun) {
      const result = await this.#write([{ key: entry.key, value: null, expected: entry.modRevision }], request.signal)
      if (!result.ok) return false
      await this.resource.released?.(entry.object, this.#contextOf(request))
    }
    return true
  }

  /** `stored` is canonical. Undefined when the guard failed. A dry run checks the guard against the cache and stores nothing. */
  async #commit(
    request: WriteRequest,
    key: string,
    stored: KubeObject,
    expected: Revision,
  ): Promise<Entry | undefined> {
    const text = encodeJson(stored)
    if (request.dryRun) {
      const there =
        (await this.get(stored.metadata.namespace ?? '', stored.metadata.name ?? '', request.signal))?.modRevision ?? 0
      return there === expected ? this.#entries.written(key, text, stored, expected) : undefined
    }
    const { backend } = this.#services
    const value = this.#resting.seal(key, Buffer.from(text, 'utf8'))
    const lease = this.resource.ttlMs === undefined ? undefined : await backend.grantLease(this.resource.ttlMs)
    const write = { key, value, expected, ...(lease === undefined ? {} : { lease }) }
    const make = (revision: Revision): Entry => this.#entries.written(key, text, stored, revision)
    return this.#underway.run({ key, value, make }, async () => {
      const result = await this.#write([write], request.signal)
      return result.ok ? result.revision : undefined
    })
  }

  async #write(writes: Parameters<Services['backend']['commit']>[0], signal: AbortSignal): Promise<CommitResult> {
    try {
      return await this.#services.backend.commit(writes, signal)
    } catch (cause) {
      throw storageFailure(cause, this.#groupResource)
    }
  }

  /** The stored object with its kind, which bodies in the cache leave out. */
  #stored(entry: Entry): KubeObject {
    const { kind, group, version } = this.resource.kind
    return { kind, apiVersion: group === '' ? version : `${group}/${version}`, ...entry.object }
  }

  #toStored(object: KubeObject): KubeObject {
    return this.#services.convert(object, this.resource.kind)
  }

  /** In canonical form and without a resource version, which is the backend's to give. */
  #canonical(object: KubeObject): KubeObject {
    const schema = this.#services.schemaFor(this.resource.kind)
    const bare = withoutVersion(object)
    return schema === undefined
      ? bare
      : (decodeValue(schema, bare, 'Ignore', { offences: [], settles: true }) as KubeObject)
  }

  #contextOf(request: WriteRequest): WriteContext {
    const { clock, random, isEnabled, allowPrivileged, objects } = this.#services
    return {
      clock,
      random,
      isEnabled,
      allowPrivileged,
      objects,
      user: request.user,
      verb: request.verb ?? 'update',
      dryRun: request.dryRun,
      signal: request.signal,
    }
  }

  /** What tracking the fields of this write needs to know; `live` is in the version of the request. */
  fieldRequest(request: WriteRequest, live: KubeObject): FieldRequest {
    return fieldRequestOf(this.resource, this.#services, request, live)
  }

  #attributes(
    request: WriteRequest,
    operation: Operation,
    { object, oldObject }: Pick<Attributes, 'object' | 'oldObject'>,
  ): Attributes {
    const { metadata } = object ?? oldObject ?? { metadata: {} }
    return {
      operation,
      kind: this.resource.kind,
      subresource: request.subresource,
      objectKind: request.gvk,
      namespace: request.namespace,
      name: metadata.name ?? '',
      object,
      oldObject,
      options: request.options,
      dryRun: request.dryRun,
      user: request.user,
      objects: this.#services.objects,
      warn: request.warn,
      annotate: request.annotate,
      signal: request.signal,
    }
  }
}

/** Runs `work`, then tells the hook that reserved something whether the write came about; once, whatever happens. */
async function finishing<R>(
  finish: Finish | undefined,
  isWritten: (outcome: R) => boolean,
  work: () => Promise<R>,
): Promise<R> {
  if (finish === undefined) return work()
  let written = false
  try {
    const outcome = await work()
    written = isWritten(outcome)
    return outcome
  } finally {
    await finish(written)
  }
}

function withoutVersion(object: KubeObject): KubeObject {
  const { resourceVersion: _, ...metadata } = object.metadata
  return { ...object, metadata }
}

/** Deletion was only waiting for finalizers, and there are none left. */
function isFinished({ metadata }: KubeObject): boolean {
  return (
    metadata.deletionTimestamp !== undefined &&
    (metadata.finalizers?.length ?? 0) === 0 &&
    (metadata.deletionGracePeriodSeconds ?? 0) === 0
  )
}
