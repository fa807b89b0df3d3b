/**
 * PATCH in four formats: JSON patch, merge patch, strategic merge patch, and apply. The first three transform the live
 * object and continue as an update; apply merges by ownership. Conflicts with other writers are retried unless the
 * patch names a version.
 */
import type { Answer, Call } from '#component/requests/call.ts'
import { parseJsonInSteps } from '#lib/json/json.ts'
import { applyMergePatch } from '#lib/json/merge-patch.ts'
import { applyJsonPatchInSteps, JsonPatchError } from '#lib/json/patch.ts'
import { isJsonObject, type JsonDuplicate, JsonError } from '#lib/json/value.ts'
import { runAtOnce, runInSlices, completedSteps, type Steps, yieldToEventLoop } from '#lib/time-slicing.ts'
import type { ReadYaml } from '#lib/yaml/reader.ts'
import { applyInSteps, type FieldRequest, TypedPatchError } from '#meta/apply/field-manager.ts'
import { goWord } from '#meta/codec/decode-state.ts'
import { CodecError } from '#meta/codec/error.ts'
import { isRefusal, negotiatePatch, type PatchType } from '#meta/codec/negotiate.ts'
import { unmarshalErrors } from '#meta/codec/object.ts'
import { apiVersionOf, type GroupResource, type GroupVersionKind, parseApiVersion } from '#meta/kind.ts'
import { copyInSteps, type KubeObject, type ObjectMeta } from '#meta/object.ts'
import { invalidOptionsError, type PatchOptions, patchOptionsQuery, validatePatchOptions } from '#meta/options.ts'
import type { JsonMap } from '#meta/patch/json-map.ts'
import { type PatchDocument, readPatchDocument } from '#meta/patch/patch-document.ts'
import { decodePatched } from '#meta/patch/patched-object.ts'
import { StrategicMergeError } from '#meta/patch/strategic-merge-error.ts'
import { strategicMerge } from '#meta/patch/strategic-merge.ts'
import { decodeQuery } from '#meta/query.ts'
import type { StructSchema } from '#meta/schema.ts'
import {
  applyConflictError,
  badRequestError,
  conflictError,
  failure,
  genericError,
  invalidError,
  modifiedError,
  requestEntityTooLargeError,
} from '#meta/status-errors.ts'
import { fieldPath } from '#meta/validation/field-path.ts'

import type { CustomRules } from '../registry/resource.ts'
import type { Services } from '../registry/services.ts'
import type { Shapes } from '../registry/shapes.ts'
import { isLarge } from '../registry/sizes.ts'
import { answerWithObject } from './answers.ts'
import { otherRequest, readYaml, settleNamespace, validationOf, writeRequestOf } from './body.ts'
import { dropRepeatedOwners } from './owner-references.ts'
import { settleName } from './update.ts'
import { expectedVersion, versionRequired } from './versions.ts'
import { formFor, type View } from './view.ts'

export async function patchObject(call: Call, view: View): Promise<Answer> {
  const form = formFor(call, view, 'object')
  const { representation, services, store, resource } = view
  const { options, isApply, change } = await readPatch(call, services, {
    kind: representation.kind,
    schemaFor: resource.shapes.schemaFor,
    resource: { group: representation.kind.group, resource: resource.kind.plural },
    needsVersion: resource.putNeedsVersion === true,
    custom: resource.custom,
  })
  const creates = isApply && call.info.subresource === ''
  const terms = { isTracked: isApply, ...(creates && { mayCreate: () => call.demand('create') }) }
  const request = otherRequest(writeRequestOf(call, representation.kind, options), { isApply })
  const { entry, created } = await store.update(request, call.info.name, change, terms)
  return answerWithObject(call, view, entry, { form, status: created ? 201 : 200 })
}

const APPLY_TYPE: PatchType = 'application/apply-patch+yaml'

/** The target of a patch: objects of one kind in the version of the request. */
export interface PatchTarget {
  readonly kind: GroupVersionKind & { readonly namespaced: boolean }
  /** The schemas of all kinds: a patch may change the object's kind, which is ignored. */
  readonly schemaFor: Shapes['schemaFor']
  /** The name in conflict errors. */
  readonly resource: GroupResource
  /** True if a patch may not remove the resource version. */
  readonly needsVersion?: boolean
  readonly custom?: CustomRules | undefined
  /** True for a custom resource's Scale, which supports only the patch types of custom resources. */
  readonly isOfCustom?: boolean
}

/** A parsed patch of any type. */
export interface ReadPatch {
  readonly options: PatchOptions
  readonly isApply: boolean
  /** Applies it to an object: the result is canonical, and has its owners if it is an apply. Throws StatusError. */
  readonly change: Merge
}

/** The patch of the call's body. Throws StatusError for errors that do not depend on the object. */
export async function readPatch(call: Call, services: Services, target: PatchTarget): Promise<ReadPatch> {
  const isCustom = target.custom !== undefined || target.isOfCustom === true
  const type = negotiatePatch(call.header('content-type'), isCustom ? 'custom' : 'builtin')
  if (isRefusal(type)) throw failure(type)
  const options = decodeQuery(patchOptionsQuery, call.query)
  const isApply = type === APPLY_TYPE
  const errors = validatePatchOptions(options, { apply: isApply })
  if (errors.length > 0) throw invalidOptionsError('PatchOptions', errors)
  const patch = { call, services, target, options, type, body: await call.body() }
  const merge = isApply ? await readApply(patch) : patchMerge(patch)
  const change: Merge = async (live, fields) => {
    const next = await merge(live, fields)
    checkTerms(call, target, next.metadata, live.metadata)
    dropRepeatedOwners(next.metadata, (text) => call.warn(text), 'after mutating admission happens')
    return next
  }
  return { options, isApply, change }
}

/** The preconditions that the patched object contains. */
function checkTerms({ info: { name } }: Call, target: PatchTarget, next: ObjectMeta, live: ObjectMeta): void {
  const { resource, needsVersion } = target
  const resourceVersion = expectedVersion(next)
  if (live.uid === undefined) {
    if ((next.uid ?? '') === '') return
    const why = `uid mismatch: the provided object specified uid ${next.uid}, and no existing object was found`
    throw conflictError(resource, name, why)
  }
  if (resourceVersion === '' && needsVersion === true) throw versionRequired(resource, name)
  if (resourceVersion !== '' && resourceVersion !== live.resourceVersion) throw modifiedError(resource, name)
}

interface Patch {
  readonly call: Call
  readonly services: Services
  readonly target: PatchTarget
  readonly options: PatchOptions
  readonly type: PatchType
  readonly body: Buffer
}

type Merge = (live: KubeObject, fields: FieldRequest) => Promise<KubeObject> | KubeObject

function patchMerge(patch: Patch): Merge {
  const { call, target, options, type } = patch
  let known: PatchDocument | undefined
  return (live) => {
    const steps = function* (): Steps<KubeObject> {
      // Parsed only if the object exists: a missing object is 404 for any patch.
      const document = (known ??= yield* readPatchDocument(patch.body, type, validationOf(options.fieldValidation)))
      yield
      const schema = target.schemaFor(target.kind)
      const next = yield* decodeFor(patch, document, () => patchErrors(applyTo(schema, live, document)))
      settleIdentity(next, call, target.kind.namespaced)
      return next
    }
    return runInSlices(steps(), patch.services.clock)
  }
}

function* applyTo(schema: StructSchema | undefined, live: KubeObject, { type, value }: PatchDocument): Steps<unknown> {
  const target = (yield* copyInSteps(live)) as unknown as JsonMap
  yield
  switch (type) {
    case 'application/json-patch+json':
      return value === null ? target : yield* applyJsonPatchInSteps(target as never, value as never)
    case 'application/merge-patch+json':
      return applyMergePatch(target as never, value as never)
    default: {
      if (schema === undefined) throw failure({ code: 415, message: 'There is no schema to merge by' })
      return strategicMerge(schema, target, value as JsonMap)
    }
  }
}

/** Errors of patching, as API errors. */
function* patchErrors(work: Steps<unknown>): Steps<unknown> {
  try {
    return yield* work
  } catch (cause) {
    if (cause instanceof JsonPatchError) throw jsonPatchFailure(cause)
    if (cause instanceof StrategicMergeError) throw strategicFailure(cause)
    // Merging recurses as deep as the patch: no object is deeper than the stack allows.
    if (cause instanceof JsonError || cause instanceof RangeError) throw badRequestError(TOO_DEEP)
    throw cause
  }
}

const TOO_DEEP = 'error decoding patch: json: exceeded max depth'

function jsonPatchFailure({ code, message }: JsonPatchError): Error {
  if (code === 'operations' || code === 'copies') return requestEntityTooLargeError(message)
  return genericError({ code: 422, method: 'PATCH' })
}

function strategicFailure({ code, message }: StrategicMergeError): Error {
  if (code === 'bad-format') return badRequestError(message)
  return code === 'unprocessable' ? genericError({ code: 422, method: 'PATCH' }) : failure({ code: 500, message })
}

/** The patched object in canonical form; unknown fields of the patch are rejected or warned about. */
function* decodeFor(
  { call, target, options }: Patch,
  document: PatchDocument,
  make: () => Steps<unknown>,
): Steps<KubeObject> {
  const { kind, schemaFor, custom } = target
  const schema = schemaFor(kind)
  if (schema === undefined) return (yield* make()) as KubeObject
  const { object, offences } = yield* decodePatched(
    {
      schema,
      validation: validationOf(options.fieldValidation),
      isKnown: (gvk) => custom !== undefined || schemaFor(gvk) !== undefined,
      // An applied configuration is kept exactly, nulls included.
      prune: custom && ((found) => custom.prune(found, document.type === APPLY_TYPE)),
    },
    document,
    make,
  )
  for (const offence of offences) call.warn(offence)
  // A status is written into the stored object, whatever kind the patched one declares.
  if (custom !== undefined && call.info.subresource === '') checkCustomKind(kind, object)
  return { ...object, kind: kind.kind, apiVersion: apiVersionOf(kind) }
}

/** A patch may not change the kind of a custom resource. */
function checkCustomKind(wanted: GroupVersionKind, { kind = '', apiVersion = '', metadata }: KubeObject): void {
  const own = apiVersionOf(wanted)
  const errors = [
    ...(kind === wanted.kind ? [] : [fieldPath('kind').invalid(kind, `must be ${wanted.kind}`)]),
    ...(apiVersion === own ? [] : [fieldPath('apiVersion').invalid(apiVersion, `must be ${own}`)]),
  ]
  if (errors.length > 0) throw invalidError({ ...parseApiVersion(apiVersion), kind }, metadata.name ?? '', errors)
}

type Config = Partial<KubeObject> & { metadata?: KubeObject['metadata'] }

/** Rejects a body that is not an apply configuration, after the target is known. */
async function readApply(patch: Patch): Promise<Merge> {
  try {
    return applyMerge(patch, await readConfig(patch))
  } catch (cause) {
    return () => {
      throw cause
    }
  }
}

function applyMerge(patch: Patch, { config, repeated }: ReadConfig): Merge {
  const { call, target, options, type } = patch
  const { kind } = target
  const { metadata } = config
  // Any JSON value can be here: nothing has checked it yet.
  const apiVersion = typeof config.apiVersion === 'string' ? config.apiVersion : ''
  const named = typeof config.kind === 'string' ? config.kind : ''
  if (named !== kind.kind || apiVersion !== apiVersionOf(kind)) {
    const [group, version] = apiVersion.includes('/') ? apiVersion.split('/') : ['', apiVersion]
    throw badRequestError(`invalid object type: ${group}/${version}, Kind=${named}`)
  }
  if ((metadata?.managedFields ?? null) !== null) throw badRequestError('metadata.managedFields must be nil')
  const whole = { ...config, metadata: metadata ?? {} }
  return async (_live, fields) => {
    try {
      const result = await runInSlices(applyInSteps(fields, whole, options.force ?? false), patch.services.clock)
      if (!result.ok) throw applyConflictError(result.causes, result.message)
      noteRepeated(patch, repeated)
      if (isLarge(patch.call)) await yieldToEventLoop()
      const steps = decodeFor(patch, { type, value: config, offences: [] }, completedSteps(result.object))
      const next = await runInSlices(steps, patch.services.clock)
      settleIdentity(next, call, kind.namespaced)
      return next
    } catch (cause) {
      throw applyFailure(cause, call, kind)
    }
  }
}

/** An applied body that cannot be decoded is 500, as upstream. Internal errors stay unchanged. */
function applyFailure(cause: unknown, { info: { namespace, name } }: Call, kind: GroupVersionKind): unknown {
  if (cause instanceof TypedPatchError) return failure({ code: 500, message: cause.message }, { cause })
  const isUnreadable = cause instanceof CodecError || (cause instanceof Error && cause.constructor === Error)
  if (!isUnreadable) return cause
  const type = `${apiVersionOf(kind)}, Kind=${kind.kind}`
  const why = `unable to convert unstructured object to ${type}: ${cause.message}`
  const message = `failed to convert new object (${namespace}/${name}; ${type}) to proper version: ${why}`
  return failure({ code: 500, message }, { cause })
}

/** The path determines the object; a body that names another is rejected. */
function settleIdentity(object: KubeObject, call: Call, namespaced: boolean): void {
  settleNamespace(object, call, namespaced)
  settleName(object, call)
}

interface ReadConfig {
  readonly config: Config
  /** Duplicate keys, as reported by the YAML parser. */
  readonly repeated: readonly string[]
}

async function readConfig({ call, services, body }: Patch): Promise<ReadConfig> {
  const steps = parseJsonConfig(body)
  const json = isLarge(call) ? await runInSlices(steps, services.clock) : runAtOnce(steps)
  const { value, duplicates } = json ?? (await readYamlConfig(call, services, body))
  if (isLarge(call)) await yieldToEventLoop()
  if (isJsonObject(value)) return { config: value as unknown as Config, repeated: duplicates }
  const why = `json: cannot unmarshal ${goWord(value, false)} into Go value of type map[string]interface {}`
  throw badRequestError(`error decoding YAML: error unmarshaling JSON: while decoding JSON: ${why}`)
}

function noteRepeated({ call, options }: Patch, repeated: readonly string[]): void {
  const validation = validationOf(options.fieldValidation)
  if (repeated.length === 0 || validation === 'Ignore') return
  if (validation === 'Warn') for (const one of repeated) call.warn(one)
  else throw badRequestError(`error strict decoding YAML: error converting YAML to JSON: ${unmarshalErrors(repeated)}`)
}

/**
 * kubectl sends JSON as YAML; parsing it as JSON is many times faster. Undefined if it is not JSON or repeats a key,
 * which upstream reports with its line.
 */
function* parseJsonConfig(body: Buffer): Steps<ReadYaml | undefined> {
  if (body[0] !== OPENING_BRACE) return undefined
  const duplicates: JsonDuplicate[] = []
  try {
    const value = yield* parseJsonInSteps(body, { duplicates })
    return duplicates.length === 0 ? { value, duplicates: [] } : undefined
  } catch (cause) {
    if (!(cause instanceof JsonError)) throw cause
    if (cause.code === 'limit') throw requestEntityTooLargeError(cause.message)
    return undefined
  }
}

const OPENING_BRACE = 0x7b

async function readYamlConfig(call: Call, services: Services, body: Buffer): Promise<ReadYaml> {
  try {
    return await readYaml(call, services, body)
  } catch (cause) {
    if (!(cause instanceof CodecError)) throw cause
    if (cause.code === 'limit') throw requestEntityTooLargeError(cause.message)
    throw badRequestError(`error decoding YAML: error converting YAML to JSON: ${cause.message}`)
  }
}
