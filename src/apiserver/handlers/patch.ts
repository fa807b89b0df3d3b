/**
 * PATCH, in four languages: JSON patch, merge patch, strategic merge patch, and apply. The first three turn the live
 * object into another one and go on as an update does; apply merges by ownership. None of them fails because somebody
 * else was faster, unless the patch itself names a version.
 */
import { applyJsonPatchInSteps, JsonPatchError } from '#lib/json-patch.ts'
import { isJsonObject, type JsonDuplicate, JsonError } from '#lib/json-value.ts'
import { parseJson } from '#lib/json.ts'
import { applyMergePatch } from '#lib/merge-patch.ts'
import { inSlices, once, type Steps, turn } from '#lib/slices.ts'
import type { ReadYaml } from '#lib/yaml-reader.ts'
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
import { invalid } from '#meta/validation/field-error.ts'

import type { Answer, Call } from '../call.ts'
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

/** What a patch is for: objects of one kind, as the client sees them. */
export interface PatchTarget {
  readonly kind: GroupVersionKind & { readonly namespaced: boolean }
  /** Of the kind, and of all others that there are: a patch may make the object another kind, which is ignored. */
  readonly schemaFor: Shapes['schemaFor']
  /** Named when somebody else was faster. */
  readonly resource: GroupResource
  /** A patch may not take the version out of the object. */
  readonly needsVersion?: boolean
  readonly custom?: CustomRules | undefined
  /** A Scale, say, of a custom resource: patched in the languages that those know. */
  readonly isOfCustom?: boolean
}

/** A patch that was read, whatever its language. */
export interface ReadPatch {
  readonly options: PatchOptions
  readonly isApply: boolean
  /** What it makes of an object: in canonical form, and where it is an apply with its owners. Throws StatusError. */
  readonly change: Merge
}

/** The patch in the body of `call`. Throws StatusError for what can be refused without knowing the object. */
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

/** What the patched object says of which one it means to replace. */
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
      // Read once there is something to patch: what is not there is 404, whatever the patch.
      const document = (known ??= readPatchDocument(patch.body, type, validationOf(options.fieldValidation)))
      yield
      const schema = target.schemaFor(target.kind)
      const next = yield* decodeFor(patch, document, () => patchErrors(applyTo(schema, live, document)))
      settleIdentity(next, call, target.kind.namespaced)
      return next
    }
    return inSlices(steps(), patch.services.clock)
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

/** What patching can run into, in the API's words. */
function* patchErrors(work: Steps<unknown>): Steps<unknown> {
  try {
    return yield* work
  } catch (cause) {
    if (cause instanceof JsonPatchError) throw jsonPatchFailure(cause)
    if (cause instanceof StrategicMergeError) throw strategicFailure(cause)
    // Merging goes as deep as the patch does: further than the stack, no object of ours reaches.
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

/** The patched object in canonical form; what the patch brought in that does not belong is refused or warned of. */
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
      // What was applied is what its author wants, nulls included.
      prune: custom && ((found) => custom.prune(found, document.type === APPLY_TYPE)),
    },
    document,
    make,
  )
  for (const offence of offences) call.warn(offence)
  // A status is written into the stored object, whatever kind the patched one says it is of.
  if (custom !== undefined && call.info.subresource === '') checkCustomKind(kind, object)
  return { ...object, kind: kind.kind, apiVersion: apiVersionOf(kind) }
}

/** A patch may not make something else of a custom resource. */
function checkCustomKind(wanted: GroupVersionKind, { kind = '', apiVersion = '', metadata }: KubeObject): void {
  const own = apiVersionOf(wanted)
  const errors = [
    ...(kind === wanted.kind ? [] : [invalid('kind', kind, `must be ${wanted.kind}`)]),
    ...(apiVersion === own ? [] : [invalid('apiVersion', apiVersion, `must be ${own}`)]),
  ]
  if (errors.length > 0) throw invalidError({ ...parseApiVersion(apiVersion), kind }, metadata.name ?? '', errors)
}

type Config = Partial<KubeObject> & { metadata?: KubeObject['metadata'] }

/** What is no configuration is refused once it is known that there is something to apply it to. */
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
  // Anything can stand there: nothing has looked at it yet.
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
      const result = await inSlices(applyInSteps(fields, whole, options.force ?? false), patch.services.clock)
      if (!result.ok) throw applyConflictError(result.causes, result.message)
      noteRepeated(patch, repeated)
      if (isLarge(patch.call)) await turn()
      const steps = decodeFor(patch, { type, value: config, offences: [] }, once(result.object))
      const next = await inSlices(steps, patch.services.clock)
      settleIdentity(next, call, kind.namespaced)
      return next
    } catch (cause) {
      throw applyFailure(cause, call, kind)
    }
  }
}

/** What cannot be an object of the kind is 500 when applied, as upstream has it. Defects of ours stay what they are. */
function applyFailure(cause: unknown, { info: { namespace, name } }: Call, kind: GroupVersionKind): unknown {
  if (cause instanceof TypedPatchError) return failure({ code: 500, message: cause.message }, { cause })
  const isUnreadable = cause instanceof CodecError || (cause instanceof Error && cause.constructor === Error)
  if (!isUnreadable) return cause
  const type = `${apiVersionOf(kind)}, Kind=${kind.kind}`
  const why = `unable to convert unstructured object to ${type}: ${cause.message}`
  const message = `failed to convert new object (${namespace}/${name}; ${type}) to proper version: ${why}`
  return failure({ code: 500, message }, { cause })
}

/** The path says which object it is; a body that says another is refused. */
function settleIdentity(object: KubeObject, call: Call, namespaced: boolean): void {
  settleNamespace(object, call, namespaced)
  settleName(object, call)
}

interface ReadConfig {
  readonly config: Config
  /** Keys given twice, as YAML's reader tells of them. */
  readonly repeated: readonly string[]
}

async function readConfig({ call, services, body }: Patch): Promise<ReadConfig> {
  const { value, duplicates } = parseJsonConfig(body) ?? (await readYamlConfig(call, services, body))
  if (isLarge(call)) await turn()
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
 * kubectl sends JSON under the name of YAML, which it is too; reading it as JSON is many times faster. Undefined when it
 * is none, or repeats a key: upstream tells of that by the line.
 */
function parseJsonConfig(body: Buffer): ReadYaml | undefined {
  if (body[0] !== OPENING_BRACE) return undefined
  const duplicates: JsonDuplicate[] = []
  try {
    const value = parseJson(body, { duplicates })
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
