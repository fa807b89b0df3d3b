/**
 * Store: creates, reads, updates and deletes the objects of one resource. Every write takes the same steps in the same
 * order: default, track fields, convert, admit, validate, commit. Only the resource's hooks differ. Reads come from the
 * cache, which may be stale; a refusal is confirmed with the backend first.
 */
import { runInSlices, yieldToEventLoop } from '#lib/time-slicing.ts'
import { equalIgnoringTimes } from '#meta/apply/equal-ignoring-times.ts'
import type { FieldRequest } from '#meta/apply/field-manager.ts'
import { decodeValue } from '#meta/codec/decode.ts'
import { apiVersionOf } from '#meta/kind.ts'
import { copyInSteps, deepCopy, generateName, type KubeObject } from '#meta/object.ts'
import type { DeleteOptions } from '#meta/options.ts'
import {
  alreadyExistsError,
  conflictError,
  forbiddenError,
  generateNameConflictError,
  modifiedError,
  notFoundError,
} from '#meta/status-errors.ts'
import { StatusError } from '#meta/status.ts'
import type { KeyValue } from '#storage/backend.ts'
import type { Collection } from '#storage/watch-cache/collection.ts'

import type { Attributes, Operation } from './admission.ts'
import { attributesOf } from './admitting.ts'
import { type CommitOptions, Commits } from './commits.ts'
import { checkPreconditions, type DeletionPlan, isFinished, planDeletion } from './deletion.ts'
import type { Entry, EntryMaker } from './entry.ts'
import { checkReadable } from './errors.ts'
import { fieldRequestOf, settleChange } from './field-tracking.ts'
import { RequestContext } from './request-context.ts'
import type { Resource, WriteContext } from './resource.ts'
import type { Services, WriteRequest } from './services.ts'
import { isLarge } from './sizes.ts'
import type { VersionConverter } from './version-converter.ts'
import {
  clearSystemFields,
  fillSystemFields,
  finishing,
  prepareCreate,
  prepareUpdate,
  refuseVersion,
  settleNew,
  validateCreate,
  validateUpdate,
  warningsFor,
} from './write-rules.ts'

export interface StoreOptions extends CommitOptions {
  readonly collection: Collection<Entry>
  /** Aborted when the resource is no longer served; default: only by `close`. */
  readonly closing?: AbortController
}

/** The result of a write: the stored entry, or for a dry run an object that was never stored. */
export interface Written {
  readonly entry: Entry
  readonly created: boolean
}

/**
 * Makes the new object from the stored one, both in the version of the request. The live object is shared; the result
 * belongs to the store. `fields` is for callers that track owners themselves.
 */
export type Transform = (live: KubeObject, fields: FieldRequest) => Promise<KubeObject> | KubeObject

export interface UpdateTerms {
  /** The version or uid of the request. */
  readonly uid?: string | undefined
  readonly resourceVersion?: string | undefined
  /**
   * Creates a missing object from the transform of an empty one. Called after validation and before validating
   * admission; throws StatusError if the user may not create. Absent: a missing object is 404.
   */
  readonly mayCreate?: () => Promise<void> | void
  /**
   * True if the transform sets the managed fields: apply merges by them, scale translates them. Otherwise the store
   * compares.
   */
  readonly isTracked?: boolean
}

/** The maximum number of names drawn for `generateName`. */
const NAME_TRIES = 8

export class Store {
  readonly resource: Resource
  readonly collection: Collection<Entry>
  readonly #services: Services
  readonly #entries: EntryMaker
  readonly #commits: Commits
  readonly #converter: VersionConverter | undefined
  readonly #closing: AbortController

  constructor(options: StoreOptions) {
    this.resource = options.resource
    this.collection = options.collection
    this.#services = options.services
    this.#entries = options.entries
    this.#commits = new Commits(options)
    this.#converter = options.converter
    this.#closing = options.closing ?? new AbortController()
  }

  /** Aborted when the resource is no longer served, which ends its watches. */
  get closed(): AbortSignal {
    return this.#closing.signal
  }

  close(): void {
    this.#closing.abort()
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

  /** An entry from stored bytes, for states that the cache has dropped. */
  read(stored: KeyValue): Entry {
    return this.#entries.read(stored)
  }

  /** The newest entry; waits until the cache has every acknowledged commit. */
  async get(namespace: string, name: string, signal?: AbortSignal): Promise<Entry | undefined> {
    if (!this.#services.cache.isFresh) await this.#services.cache.fresh(signal)
    if (!this.collection.isLoaded) await this.collection.ready
    const key = this.keyOf(namespace, name)
    const entry = this.collection.get(key)
    if (entry === undefined) checkReadable(this.collection, key)
    return entry
  }

  /** The store takes ownership of `body`. */
  async create(request: WriteRequest, body: KubeObject): Promise<Written> {
    if (isLarge(request)) await yieldToEventLoop()
    const settling = settleChange(this.resource, this.#services, request, { live: nothingOf(request), next: body })
    const object = await this.#admitNew(request, settling instanceof Promise ? await settling : settling)
    const { name = '', generateName: prefix = '' } = object.metadata
    if (name === '' && prefix !== '') return this.#createNamed(request, object, prefix)
    const outcome = await this.#createOnce(request, object)
    if (outcome === undefined) throw await this.#alreadyThere(request, object)
    return outcome
  }

  /** Creates under a generated name, and draws again if it is taken. */
  async #createNamed(request: WriteRequest, body: KubeObject, prefix: string): Promise<Written> {
    const { generateName: draw = generateName } = this.resource
    const copy = deepCopy(body)
    for (let tries = NAME_TRIES; ; tries--) {
      // Rules may compare the object by identity: the first attempt uses the object itself.
      const object = tries === NAME_TRIES ? body : deepCopy(copy)
      const name = (object.metadata.name = draw(prefix, this.#services.random))
      const outcome = await this.#createOnce(request, object)
      if (outcome !== undefined) return outcome
      if (tries === 1) throw generateNameConflictError(this.#addressed(request), name, 1)
    }
  }

  /** The error also tells if the existing object is being deleted. */
  async #alreadyThere(request: WriteRequest, { metadata: { namespace = '', name = '' } }: KubeObject): Promise<Error> {
    const taken = alreadyExistsError(this.#addressed(request), name)
    const there = await this.get(namespace, name, request.signal)
    if (there?.object.metadata.deletionTimestamp === undefined) return taken
    return new StatusError({ ...taken.status, message: `object is being deleted: ${taken.message}` })
  }

  /** Runs mutating admission for a new object: once, and before its name is generated. */
  async #admitNew(request: WriteRequest, body: KubeObject): Promise<KubeObject> {
    this.#refuseNew(request, body)
    clearSystemFields(body.metadata)
    const object = this.#toStored(body)
    if (request.isAdmitted === true) return object
    const asking = this.#services.admission.mutate(this.#attributes(request, 'CREATE', [object, undefined]))
    if (asking !== undefined) await asking
    settleNew(object.metadata, this.resource.kind.namespaced ? request.namespace : '')
    return object
  }

  /** Undefined if the name is taken. */
  async #createOnce(
    request: WriteRequest,
    object: KubeObject,
    mayCreate?: UpdateTerms['mayCreate'],
  ): Promise<Written | undefined> {
    const context = this.#contextOf(request)
    fillSystemFields(object.metadata, context)
    // The current name: a hook that changes the name does not affect admission.
    const attributes = this.#attributes(request, 'CREATE', [object, undefined])
    prepareCreate(this.resource, object, context)
    const { allocate } = this.resource
    const finish = allocate === undefined ? undefined : await allocate.call(this.resource, object, undefined, context)
    return finishing(
      finish,
      (outcome) => outcome !== undefined,
      async () => {
        if (isLarge(request)) await yieldToEventLoop()
        const validating = validateCreate(this.resource, object, context, request.gvk)
        if (validating !== undefined) await validating
        for (const warning of warningsFor(this.resource, object, undefined, request.subresource)) request.warn(warning)
        if (mayCreate !== undefined) await mayCreate()
        const judging = request.isAdmitted === true ? undefined : this.#services.admission.validate(attributes)
        if (judging !== undefined) await judging
        if (isLarge(request)) await yieldToEventLoop()
        const key = this.keyOf(object.metadata.namespace ?? '', object.metadata.name ?? '')
        if (!request.dryRun) refuseVersion(object.metadata)
        // As upstream, a dry run returns the version that the client sent.
        const finished = this.#canonical(object, request.dryRun ? object : undefined)
        if (isLarge(request)) await yieldToEventLoop()
        const entry = await this.#commit(request, key, finished)
        return entry === undefined ? undefined : { entry, created: true }
      },
    )
  }

  /** No objects can be created while the definition of a custom resource is being deleted. */
  #refuseNew(request: WriteRequest, { metadata: { name = '' } }: KubeObject): void {
    const { closedBecause } = this.resource.custom ?? {}
    if (closedBecause !== undefined) throw forbiddenError(this.#addressed(request), name, closedBecause)
  }

  /**
   * Updates the stored object. After a conflict the transform runs again with the new state, unless the client named a
   * version.
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
      const outcome = await this.#updateOnce(request, current, transform, terms.isTracked)
      if (outcome.entry !== undefined) return { entry: outcome.entry, created: false }
      current = outcome.now
    }
  }

  async #createMissing(
    request: WriteRequest,
    name: string,
    transform: Transform,
    { mayCreate, uid, isTracked }: UpdateTerms,
  ): Promise<Written | undefined> {
    if (mayCreate === undefined) throw notFoundError(this.#addressed(request), name)
    if (uid !== undefined && uid !== '') {
      throw conflictError(
        this.#addressed(request),
        name,
        `StorageError: invalid object, Code: 4, Key: ${this.keyOf(request.namespace, name)}, ResourceVersion: 0, AdditionalErrorMsg: Precondition failed: UID in precondition: ${uid}, UID in object meta: `,
      )
    }
    const nothing = nothingOf(request)
    const body = await transform(nothing, this.#fieldRequest(request, nothing))
    delete body.metadata.resourceVersion
    const settling = settleChange(this.resource, this.#services, request, { live: nothing, next: body, isTracked })
    const object = await this.#admitNew(request, settling instanceof Promise ? await settling : settling)
    return this.#createOnce(request, object, mayCreate)
  }

  /** The entry to continue with; a missing or stale entry of the cache is confirmed with a fresh read. */
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

  /** `entry` is absent after a conflict; then `now` is the stored entry. */
  async #updateOnce(
    request: WriteRequest,
    current: Entry,
    transform: Transform,
    isTracked?: boolean,
  ): Promise<{ readonly entry: Entry | undefined; readonly now: Entry | undefined }> {
    const { resource } = this
    const context = this.#contextOf(request)
    if (this.#converter !== undefined) await this.#converter.prepare([current])
    const old = this.#stored(current)
    const live = this.resource.shapes.convert(old, request.gvk)
    if (isLarge(request, current)) await yieldToEventLoop()
    const next = await transform(live, this.#fieldRequest(request, live))
    if (isLarge(request, current)) await yieldToEventLoop()
    const settling = settleChange(this.resource, this.#services, request, { live, next, current, isTracked })
    const object = this.#toStored(settling instanceof Promise ? await settling : settling)
    const attributes = this.#attributes(request, 'UPDATE', [object, old])
    const { admission } = this.#services
    const asking = request.isAdmitted === true ? undefined : admission.mutate(attributes)
    if (asking !== undefined) await asking
    prepareUpdate(resource, [object, old], request.subresource, context)
    const { allocate } = resource
    const finish = allocate === undefined ? undefined : await allocate.call(resource, object, old, context)
    return finishing(
      finish,
      ({ entry }) => entry !== undefined,
      async () => {
        if (isLarge(request, current)) await yieldToEventLoop()
        const validating = validateUpdate(resource, [object, old], request, context)
        if (validating !== undefined) await validating
        for (const warning of warningsFor(resource, object, old, request.subresource)) request.warn(warning)
        const judging = request.isAdmitted === true ? undefined : admission.validate(attributes)
        if (judging !== undefined) await judging
        if (isLarge(request, current)) await yieldToEventLoop()
        const finished = this.#canonical(object)
        if (isLarge(request, current)) await yieldToEventLoop()
        const isLast = isFinished(finished) && this.resource.isDeletionBlocked?.(finished) !== true
        const isUnchanged = !isLast && equalIgnoringTimes(finished, withoutVersion(old))
        if (isUnchanged && !(await this.#restsStale(current))) return { entry: current, now: current }
        const entry = isLast
          ? await this.#removeFinished(request, current, finished)
          : await this.#commit(request, current.key, finished, current)
        return { entry, now: entry ?? (await this.get(current.namespace, current.name, request.signal)) }
      },
    )
  }

  /** Deletes or starts to delete. `gone` tells which; the entry is the last state, or the marked one. */
  async delete(
    request: WriteRequest,
    name: string,
    options: DeleteOptions,
  ): Promise<{ readonly entry: Entry; readonly gone: boolean }> {
    for (;;) {
      const entry = await this.get(request.namespace, name, request.signal)
      if (entry === undefined) throw notFoundError(this.#addressed(request), name)
      checkPreconditions(this.resource, entry.object, options)
      const outcome = await this.#deleteOnce(request, entry, options)
      if (outcome !== undefined) return outcome
    }
  }

  async #deleteOnce(
    request: WriteRequest,
    entry: Entry,
    options: DeleteOptions,
  ): Promise<{ readonly entry: Entry; readonly gone: boolean } | undefined> {
    const context = this.#contextOf(request)
    await this.#converter?.prepare([entry])
    const old = this.#stored(entry)
    const copy = isLarge(request, entry) ? await runInSlices(copyInSteps(old), this.#services.clock) : deepCopy(old)
    const plan = this.#planDeletion(copy, options, context)
    if (request.isAdmitted !== true) {
      const attributes = this.#attributes(request, 'DELETE', [undefined, old])
      await this.#services.admission.mutate(attributes)
      await this.#services.admission.validate(attributes)
    }
    if (plan.action === 'wait') return { entry, gone: false }
    if (plan.action === 'remove') return (await this.#remove(request, entry)) ? { entry, gone: true } : undefined
    const marked = await this.#commit(request, entry.key, this.#canonical(plan.object), entry)
    if (marked === undefined) return undefined
    if (!plan.isLast || (await this.#remove(request, marked))) return { entry: marked, gone: plan.isLast }
    // The kubelet may have removed it meanwhile: the goal is reached.
    return (await this.get(entry.namespace, entry.name)) === undefined ? { entry: marked, gone: true } : undefined
  }

  #planDeletion(object: KubeObject, options: DeleteOptions, context: WriteContext): DeletionPlan {
    const { resource } = this
    resource.deletion?.(object, options, context)
    const { propagationPolicy: _, orphanDependents: __, ...bare } = options
    return planDeletion({
      object,
      options: resource.ignoresPropagation === true ? bare : options,
      graceSeconds: resource.graceSeconds && ((requested) => resource.graceSeconds?.(object, requested) ?? 0),
      isDeletionBlocked: resource.isDeletionBlocked?.(object) ?? false,
      marksFirst: resource.marksFirst,
      nowMs: context.clock.now(),
    })
  }

  /**
   * The update removed the last finalizer, so the object is removed. The response shows it as it would have been
   * stored.
   */
  async #removeFinished(request: WriteRequest, current: Entry, finished: KubeObject): Promise<Entry | undefined> {
    const last = await this.#commits.entryOf(current.key, finished, request, current)
    return (await this.#remove(request, current)) ? last : undefined
  }

  /** False if another writer changed it meanwhile. */
  async #remove(request: WriteRequest, entry: Entry): Promise<boolean> {
    if (request.dryRun) return true
    if (!(await this.#commits.remove(entry, request))) return false
    await this.resource.released?.(entry.object, this.#contextOf(request))
    return true
  }

  /** Undefined if the stored object is no longer `current`. A dry run compares with the cache and stores nothing. */
  #commit(request: WriteRequest, key: string, object: KubeObject, current?: Entry): Promise<Entry | undefined> {
    return request.dryRun
      ? this.#rehearse(request, key, object, current)
      : this.#commits.put(key, object, request, current)
  }

  async #rehearse(
    request: WriteRequest,
    key: string,
    object: KubeObject,
    current: Entry | undefined,
  ): Promise<Entry | undefined> {
    const { namespace = '', name = '' } = object.metadata
    const there = await this.get(namespace, name, request.signal)
    const isSame = there?.modRevision === current?.modRevision
    return isSame ? this.#commits.entryOf(key, object, request, current) : undefined
  }

  /** The stored object with its kind, which cached bodies omit. */
  #stored(entry: Entry): KubeObject {
    const { kind, version, group } = this.resource.kind
    const own = { kind, apiVersion: apiVersionOf({ group, version }) }
    if (this.#converter === undefined) return { ...own, ...entry.object }
    // It may have been written in another version.
    return { ...own, ...this.#converter.convert(entry).object, ...own }
  }

  /** True if an unchanged object should still be rewritten. */
  async #restsStale(entry: Entry): Promise<boolean> {
    return this.#converter?.isCurrent(entry) === false || this.#commits.restsStale(entry)
  }

  #toStored(object: KubeObject): KubeObject {
    return this.resource.shapes.convert(object, this.resource.kind)
  }

  /** In canonical form and without a resource version, which the backend assigns. */
  #canonical(object: KubeObject, bare: KubeObject = withoutVersion(object)): KubeObject {
    const schema = this.resource.shapes.schemaFor(this.resource.kind)
    return schema === undefined
      ? bare
      : (decodeValue(schema, bare, 'Ignore', { offences: [], settles: true }) as KubeObject)
  }

  #contextOf(request: WriteRequest): WriteContext {
    return new RequestContext(this.#services, request)
  }

  #fieldRequest(request: WriteRequest, live: KubeObject): FieldRequest {
    return fieldRequestOf(this.resource, this.#services, request, live)
  }

  #attributes(request: WriteRequest, operation: Operation, [object, oldObject]: Objects): Attributes {
    const { name = '' } = (object ?? oldObject)?.metadata ?? {}
    const subject = { operation, kind: this.resource.kind, name, object, oldObject }
    return attributesOf(request, this.#services.objects, subject)
  }
}

/** The next and the stored object. */
type Objects = readonly [KubeObject | undefined, KubeObject | undefined]

/** The stored object before the first write, in the version of the request. */
function nothingOf({ gvk }: WriteRequest): KubeObject {
  return { kind: gvk.kind, apiVersion: apiVersionOf(gvk), metadata: {} }
}

function withoutVersion(object: KubeObject): KubeObject {
  if (object.metadata.resourceVersion === undefined) return object
  const { resourceVersion: _, ...metadata } = object.metadata
  return { ...object, metadata }
}
