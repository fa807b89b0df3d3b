/**
 * PATCH, in four languages: JSON patch, merge patch, strategic merge patch, and apply. The first three turn the live
 * object into another one and go on as an update does; apply merges by ownership. None of them fails because somebody
 * else was faster, unless the patch itself names a version.
 */
import { applyJsonPatch, JsonPatchError } from '#lib/json-patch.ts'
import { JsonError } from '#lib/json-value.ts'
import { parseJson, stringifyJson } from '#lib/json.ts'
import { applyMergePatch } from '#lib/merge-patch.ts'
import { applyConfig, type FieldRequest, trackUpdate, TypedPatchError } from '#meta/apply/field-manager.ts'
import { decodeValue } from '#meta/codec/decode.ts'
import { CodecError } from '#meta/codec/error.ts'
import { isRefusal, negotiatePatch, type PatchType } from '#meta/codec/negotiate.ts'
import { clearsManagedFields } from '#meta/codec/object.ts'
import { apiVersionOf, type GroupResource, type GroupVersionKind } from '#meta/kind.ts'
import { deepCopy, type KubeObject } from '#meta/object.ts'
import { invalidOptionsError, type PatchOptions, patchOptionsQuery, validatePatchOptions } from '#meta/options.ts'
import { printGo } from '#meta/patch/json-map.ts'
import { StrategicMergeError } from '#meta/patch/strategic-merge-error.ts'
import { strategicMerge } from '#meta/patch/strategic-merge.ts'
import { decodeQuery } from '#meta/query.ts'
import type { StructSchema } from '#meta/schema.ts'
import {
  applyConflictError,
  badRequestError,
  failure,
  genericError,
  invalidError,
  modifiedError,
  requestEntityTooLargeError,
} from '#meta/status-errors.ts'
import { invalid } from '#meta/validation/field-error.ts'

import type { Answer, Call } from '../call.ts'
import type { Services } from '../registry/services.ts'
import { readYaml, settleNamespace, validationOf, writeRequestOf } from './body.ts'
import { applyDefaults } from './defaults.ts'
import { settleName } from './update.ts'
import { expectedVersion } from './versions.ts'
import { formOf, type View } from './view.ts'

type JsonMap = Record<string, unknown>

export async function patchObject(call: Call, view: View): Promise<Answer> {
  const form = formOf(call, 'object')
  const { representation, services, store, resource } = view
  const { options, isApply, change } = await readPatch(call, services, {
    kind: representation.kind,
    resource: { group: resource.kind.group, resource: resource.kind.plural },
    applyDefaults: (object) => applyDefaults(view, object),
    fieldRequest: (live, asked) => store.fieldRequest(writeRequestOf(call, view, asked), live),
  })
  const creates = isApply && call.info.subresource === ''
  const terms = creates ? { mayCreate: () => call.demand('create') } : {}
  const { entry, created } = await store.update(writeRequestOf(call, view, options), call.info.name, change, terms)
  return representation.object(entry, form, created ? 201 : 200)
}

/** What a patch is for: objects of one kind, as the client sees them. */
export interface PatchTarget {
  readonly kind: GroupVersionKind & { readonly namespaced: boolean }
  /** Named when somebody else was faster. */
  readonly resource: GroupResource
  applyDefaults(object: KubeObject): void
  /** For following who owns which field; `live` is what is being patched. */
  fieldRequest(live: KubeObject, options: PatchOptions): FieldRequest
}

/** A patch that was read, whatever its language. */
export interface ReadPatch {
  readonly options: PatchOptions
  readonly isApply: boolean
  /** What it makes of an object: in canonical form, with defaults, its fields tracked. Throws StatusError. */
  readonly change: (live: KubeObject) => KubeObject
}

/** The patch in the body of `call`. Throws StatusError for what can be refused without knowing the object. */
export async function readPatch(call: Call, services: Services, target: PatchTarget): Promise<ReadPatch> {
  const type = negotiatePatch(call.header('content-type'), 'builtin')
  if (isRefusal(type)) throw failure(type)
  const options = decodeQuery(patchOptionsQuery, call.query)
  const isApply = type === 'application/apply-patch+yaml'
  const errors = validatePatchOptions(options, { apply: isApply })
  if (errors.length > 0) throw invalidOptionsError('PatchOptions', errors)
  const patch = { call, services, target, options, type, body: await call.body() }
  const merge = isApply ? applyMerge(patch, await readConfig(patch)) : patchMerge(patch)
  const change = (live: KubeObject): KubeObject => {
    const next = merge(live)
    const resourceVersion = expectedVersion(next.metadata)
    // A version that the patch names, and that is not the live one, is a precondition that failed.
    if (resourceVersion !== '' && resourceVersion !== (live.metadata.resourceVersion ?? '')) {
      throw modifiedError(target.resource, call.info.name)
    }
    return next
  }
  return { options, isApply, change }
}

interface Patch {
  readonly call: Call
  readonly services: Services
  readonly target: PatchTarget
  readonly options: PatchOptions
  readonly type: PatchType
  readonly body: Buffer
}

type Merge = (live: KubeObject) => KubeObject

function patchMerge(patch: Patch): Merge {
  const { call, services, target, options, type } = patch
  const parsed = parsePatch(patch)
  return (live) => {
    const schema = services.schemaFor(target.kind)
    const next = decodePatched(patch, () => patchErrors(() => applyTo(schema, live, parsed, type)))
    settleIdentity(next, call, target.kind.namespaced)
    target.applyDefaults(next)
    return trackUpdate(target.fieldRequest(live, options), next)
  }
}

function parsePatch({ body }: Patch): unknown {
  try {
    return parseJson(body)
  } catch (cause) {
    if (!(cause instanceof JsonError)) throw cause
    throw badRequestError(`error decoding patch: ${cause.message}`)
  }
}

function applyTo(schema: StructSchema | undefined, live: KubeObject, patch: unknown, type: PatchType): unknown {
  const target = deepCopy(live) as unknown as JsonMap
  switch (type) {
    case 'application/json-patch+json':
      return applyJsonPatch(target as never, requireOperations(patch) as never)
    case 'application/merge-patch+json':
      if (patch === null) throw badRequestError('Invalid JSON Patch')
      return applyMergePatch(target as never, requireObject(patch, 'error decoding patch: ') as never)
    default: {
      if (schema === undefined) throw failure({ code: 415, message: 'There is no schema to merge by' })
      return strategicMerge(schema, target, patch === null ? {} : requireObject(patch))
    }
  }
}

/** Null is left to whoever reads the operations. */
function requireOperations(patch: unknown): unknown {
  if (Array.isArray(patch) || patch === null) return patch
  const type = typeof patch === 'boolean' ? 'bool' : typeof patch
  throw badRequestError(
    `error decoding patch: json: cannot unmarshal ${type} into Go value of type []handlers.jsonPatchOp`,
  )
}

function requireObject(patch: unknown, prefix = ''): JsonMap {
  if (isMap(patch)) return patch
  const type = Array.isArray(patch) ? 'array' : typeof patch === 'boolean' ? 'bool' : typeof patch
  throw badRequestError(`${prefix}json: cannot unmarshal ${type} into Go value of type map[string]interface {}`)
}

/** What patching can run into, in the API's words. `shown` is how an error shows the patch. */
function patchErrors(work: () => unknown, shown: () => string = () => ''): unknown {
  try {
    return work()
  } catch (cause) {
    if (cause instanceof JsonPatchError) throw jsonPatchFailure(cause)
    if (cause instanceof StrategicMergeError) throw strategicFailure(cause)
    if (cause instanceof CodecError) throw invalidPatch(shown(), cause.message)
    // Merging goes as deep as the patch does: further than the stack, no object of ours reaches.
    if (cause instanceof JsonError || cause instanceof RangeError) throw badRequestError(TOO_DEEP)
    throw cause
  }
}

const TOO_DEEP = 'error decoding patch: json: exceeded max depth'

/** Upstream names neither the kind nor the object here. */
function invalidPatch(shown: string, why: string): Error {
  return invalidError({ group: '', kind: '' }, '', [invalid('patch', shown, why)])
}

function jsonPatchFailure({ code, message }: JsonPatchError): Error {
  if (code === 'operations' || code === 'copies') return requestEntityTooLargeError(message)
  return genericError({ code: 422, method: 'PATCH' })
}

function strategicFailure({ code, message }: StrategicMergeError): Error {
  if (code === 'bad-format') return badRequestError(message)
  return code === 'unprocessable' ? genericError({ code: 422, method: 'PATCH' }) : failure({ code: 500, message })
}

/**
 * The patched object in canonical form; what the patch brought in that does not belong is refused or warned of. `make` is
 * asked again when the object has to be shown: decoding takes it apart.
 */
function decodePatched(patch: Patch, make: () => unknown): KubeObject {
  const { call, services, target, options } = patch
  const { kind } = target
  const schema = services.schemaFor(kind)
  const patched = make()
  if (schema === undefined) return patched as KubeObject
  const offences: string[] = []
  const validation = validationOf(options.fieldValidation)
  const shown = (): string => patchText(patch, make())
  const clears = clearsManagedFields(patched)
  const object = patchErrors(() => decodeValue(schema, patched, validation, { offences }), shown) as KubeObject
  if (clears) object.metadata.managedFields = []
  if (validation === 'Strict' && offences.length > 0) {
    throw invalidPatch(shown(), `strict decoding error: ${offences.join(', ')}`)
  }
  for (const offence of offences) call.warn(offence)
  return { ...object, kind: kind.kind, apiVersion: apiVersionOf(kind) }
}

/** The patch as an error shows it: strategic ones as Go prints a map, of the others what came out of them. */
function patchText(patch: Patch, patched: unknown): string {
  const parsed = patch.type === 'application/apply-patch+yaml' ? {} : parsePatch(patch)
  if (patch.type === 'application/strategic-merge-patch+json') return printGo(parsed)
  return stringifyJson(sortTouched(patched, parsed))
}

/** Go has maps where the patch has been, and shows their keys in order; the rest is as it was. */
function sortTouched(value: unknown, patch: unknown): unknown {
  if (!isMap(value)) return value
  const deeper = isMap(patch) ? patch : {}
  const fields = Object.entries(value).toSorted(([a], [b]) => (a < b ? -1 : 1))
  return Object.fromEntries(
    fields.map(([name, part]) => [name, Object.hasOwn(deeper, name) ? sortTouched(part, deeper[name]) : part]),
  )
}

function isMap(value: unknown): value is JsonMap {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
}

type Config = Partial<KubeObject> & { metadata?: KubeObject['metadata'] }

function applyMerge(patch: Patch, config: Config): Merge {
  const { call, target, options } = patch
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
  return (live) => {
    try {
      const result = applyConfig(target.fieldRequest(live, options), whole, options.force ?? false)
      if (!result.ok) throw applyConflictError(result.causes, result.message)
      const next = decodePatched(patch, () => result.object)
      settleIdentity(next, call, kind.namespaced)
      target.applyDefaults(next)
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

async function readConfig({ call, services, body }: Patch): Promise<Config> {
  const value = parseJsonConfig(body) ?? (await readYamlConfig(call, services, body))
  if (typeof value === 'object' && value !== null && !Array.isArray(value)) return value
  throw badRequestError('error decoding YAML: the patch is not an object')
}

/** kubectl sends JSON under the name of YAML, which it is too; reading it as JSON is many times faster. */
function parseJsonConfig(body: Buffer): unknown {
  if (body[0] !== OPENING_BRACE) return undefined
  try {
    return parseJson(body)
  } catch (cause) {
    if (!(cause instanceof JsonError)) throw cause
    if (cause.code === 'limit') throw requestEntityTooLargeError(cause.message)
    return undefined
  }
}

const OPENING_BRACE = 0x7b

async function readYamlConfig(call: Call, services: Services, body: Buffer): Promise<unknown> {
  try {
    return (await readYaml(call, services, body)).value
  } catch (cause) {
    if (!(cause instanceof CodecError)) throw cause
    if (cause.code === 'limit') throw requestEntityTooLargeError(cause.message)
    throw badRequestError(`error decoding YAML: ${cause.message}`)
  }
}
