/**
 * PATCH, in four languages: JSON patch, merge patch, strategic merge patch, and apply. The first three turn the live
 * object into another one and go on as an update does; apply merges by ownership. None of them fails because somebody
 * else was faster, unless the patch itself names a version.
 */
import { applyJsonPatch, JsonPatchError } from '#lib/json-patch.ts'
import { JsonError } from '#lib/json-value.ts'
import { parseJson } from '#lib/json.ts'
import { applyMergePatch } from '#lib/merge-patch.ts'
import { parseYaml } from '#lib/yaml.ts'
import { applyConfig, trackUpdate, TypedPatchError } from '#meta/apply/field-manager.ts'
import { decodeValue } from '#meta/codec/decode.ts'
import { CodecError } from '#meta/codec/error.ts'
import { isRefusal, negotiatePatch, type PatchType } from '#meta/codec/negotiate.ts'
import { apiVersionOf, type GroupVersionKind } from '#meta/kind.ts'
import { deepCopy, type KubeObject } from '#meta/object.ts'
import { invalidOptionsError, type PatchOptions, patchOptionsQuery, validatePatchOptions } from '#meta/options.ts'
import { printGo } from '#meta/patch/json-map.ts'
import { StrategicMergeError } from '#meta/patch/strategic-merge-error.ts'
import { strategicMerge } from '#meta/patch/strategic-merge.ts'
import { decodeQuery } from '#meta/query.ts'
import type { StructSchema } from '#meta/schema.ts'
import { applyConflictError, badRequestError, failure, genericError, invalidError } from '#meta/status-errors.ts'
import { invalid, verbatim } from '#meta/validation/field-error.ts'

import type { Answer, Call } from '../call.ts'
import type { Transform } from '../registry/store.ts'
import { validationOf, writeRequestOf } from './body.ts'
import { applyDefaults } from './defaults.ts'
import { formOf, type View } from './view.ts'

type JsonMap = Record<string, unknown>

export async function patchObject(call: Call, view: View): Promise<Answer> {
  const form = formOf(call, 'object')
  const type = negotiatePatch(call.header('content-type'), 'builtin')
  if (isRefusal(type)) throw failure(type)
  const options = decodeQuery(patchOptionsQuery, call.query)
  const apply = type === 'application/apply-patch+yaml'
  const errors = validatePatchOptions(options, { apply })
  if (errors.length > 0) throw invalidOptionsError('PatchOptions', errors)
  const patch = { call, view, options, type, body: await call.body() }
  const transform = apply ? applyTransform(patch) : patchTransform(patch)
  const terms = { mayCreate: apply && call.info.subresource === '' }
  const { entry, created } = await view.store.update(
    writeRequestOf(call, view, options),
    call.info.name,
    transform,
    terms,
  )
  return view.representation.object(entry, form, created ? 201 : 200)
}

interface Patch {
  readonly call: Call
  readonly view: View
  readonly options: PatchOptions
  readonly type: PatchType
  readonly body: Buffer
}

function patchTransform(patch: Patch): Transform {
  const { view, type } = patch
  const parsed = parsePatch(patch)
  const { kind } = view.representation
  return (live) => {
    const patched = patchErrors(kind, patch.call.info.name, () =>
      applyTo(view.services.schemaFor(kind), live, parsed, type),
    )
    const next = decodePatched(patch, patched)
    applyDefaults(view, next)
    const { resourceVersion = '' } = next.metadata
    // A version that the patch names, and that is not the live one, is a precondition that failed.
    if (resourceVersion !== '' && resourceVersion !== live.metadata.resourceVersion) throw staleVersion(view, live)
    return trackUpdate(view.store.fieldRequest(writeRequestOf(patch.call, view, patch.options), live), next)
  }
}

function staleVersion(view: View, { metadata }: KubeObject): Error {
  const { group, plural } = view.resource.kind
  const message = `Operation cannot be fulfilled on ${plural}${group === '' ? '' : `.${group}`} "${metadata.name}": the object has been modified; please apply your changes to the latest version and try again`
  return failure({
    code: 409,
    reason: 'Conflict',
    message,
    details: { name: metadata.name ?? '', ...(group === '' ? {} : { group }), kind: plural },
  })
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
      return applyJsonPatch(target as never, patch as never)
    case 'application/merge-patch+json':
      return applyMergePatch(target as never, requireObject(patch) as never)
    default: {
      if (schema === undefined) throw failure({ code: 415, message: 'There is no schema to merge by' })
      return strategicMerge(schema, target, requireObject(patch))
    }
  }
}

function requireObject(patch: unknown): JsonMap {
  if (typeof patch === 'object' && patch !== null && !Array.isArray(patch)) return patch as JsonMap
  throw badRequestError(
    'error decoding patch: json: cannot unmarshal array into Go value of type map[string]interface {}',
  )
}

/** What patching can run into, in the API's words. */
function patchErrors(kind: GroupVersionKind, name: string, work: () => unknown): unknown {
  try {
    return work()
  } catch (cause) {
    if (cause instanceof JsonPatchError) throw jsonPatchFailure(cause)
    if (cause instanceof StrategicMergeError) throw strategicFailure(cause)
    if (cause instanceof CodecError) throw invalidError(kind, name, [invalid('patch', cause.message, cause.message)])
    throw cause
  }
}

function jsonPatchFailure({ code, message }: JsonPatchError): Error {
  if (code === 'operations' || code === 'copies')
    return failure({ code: 413, reason: 'RequestEntityTooLarge', message })
  return genericError({ code: 422, method: 'PATCH' })
}

function strategicFailure({ code, message }: StrategicMergeError): Error {
  if (code === 'bad-format') return badRequestError(message)
  return code === 'unprocessable' ? genericError({ code: 422, method: 'PATCH' }) : failure({ code: 500, message })
}

/** The patched object in canonical form; what the patch brought in that does not belong is refused or warned of. */
function decodePatched(patch: Patch, patched: unknown): KubeObject {
  const { call, view, options } = patch
  const { kind } = view.representation
  const schema = view.services.schemaFor(kind)
  if (schema === undefined) return patched as KubeObject
  const offences: string[] = []
  const validation = validationOf(options.fieldValidation)
  const object = patchErrors(kind, call.info.name, () =>
    decodeValue(schema, patched, validation, { offences }),
  ) as KubeObject
  if (validation === 'Strict' && offences.length > 0) {
    const text = `strict decoding error: ${offences.join(', ')}`
    throw invalidError(kind, call.info.name, [invalid('patch', verbatim(`"${patchText(patch)}"`), text)])
  }
  for (const offence of offences) call.warn(offence)
  return { ...object, kind: kind.kind, apiVersion: apiVersionOf(kind) }
}

/** The patch as an error shows it: strategic ones as Go prints a map, the others as they came. */
function patchText(patch: Patch): string {
  const strategic = patch.type === 'application/strategic-merge-patch+json'
  return strategic ? printGo(parsePatch(patch)) : patch.body.toString('utf8')
}

function applyTransform(patch: Patch): Transform {
  const { call, view, options, body } = patch
  const { kind } = view.representation
  const config = parseConfig(body)
  const { apiVersion = '', metadata } = config
  if (config.kind !== kind.kind || apiVersion !== apiVersionOf(kind)) {
    const [group, version] = apiVersion.includes('/') ? apiVersion.split('/') : ['', apiVersion]
    throw badRequestError(`invalid object type: ${group}/${version}, Kind=${config.kind ?? kind.kind}`)
  }
  if ((metadata?.managedFields ?? null) !== null) throw badRequestError('metadata.managedFields must be nil')
  const whole = { ...config, metadata: metadata ?? {} }
  return (live) => {
    const request = view.store.fieldRequest(writeRequestOf(call, view, options), live)
    try {
      const result = applyConfig(request, whole, options.force ?? false)
      if (!result.ok) throw applyConflictError(result.causes, result.message)
      const next = decodePatched(patch, result.object)
      settleIdentity(next, call, kind.namespaced)
      applyDefaults(view, next)
      return next
    } catch (cause) {
      throw cause instanceof TypedPatchError ? failure({ code: 500, message: cause.message }, { cause }) : cause
    }
  }
}

/** The path says which object it is; a body that says another is refused. */
function settleIdentity({ metadata }: KubeObject, { info }: Call, namespaced: boolean): void {
  const { name = info.name, namespace = info.namespace } = metadata
  if (name !== info.name) {
    throw badRequestError(`the name of the object (${name}) does not match the name on the URL (${info.name})`)
  }
  if (namespaced && namespace !== info.namespace) {
    throw badRequestError('the namespace of the provided object does not match the namespace sent on the request')
  }
  metadata.name = info.name
  if (namespaced) metadata.namespace = info.namespace
}

function parseConfig(body: Buffer): Partial<KubeObject> & { metadata?: KubeObject['metadata'] } {
  const value = parseJsonConfig(body) ?? parseYamlConfig(body)
  if (typeof value === 'object' && value !== null && !Array.isArray(value)) return value
  throw badRequestError('error decoding YAML: the patch is not an object')
}

/** kubectl sends JSON under the name of YAML, which it is too; reading it as JSON is many times faster. */
function parseJsonConfig(body: Buffer): unknown {
  if (body[0] !== OPENING_BRACE) return undefined
  try {
    return parseJson(body)
  } catch (cause) {
    if (cause instanceof JsonError) return undefined
    throw cause
  }
}

const OPENING_BRACE = 0x7b

function parseYamlConfig(body: Buffer): unknown {
  try {
    return parseYaml(body)
  } catch (cause) {
    throw badRequestError(`error decoding YAML: ${(cause as Error).message}`)
  }
}

/** A patch of a Scale: made by the same rules, applied to the view instead of the object. */
export async function patchScaleBody(
  call: Call,
  view: View,
): Promise<{ readonly apply: (live: KubeObject) => KubeObject; readonly options: PatchOptions }> {
  const type = negotiatePatch(call.header('content-type'), 'builtin')
  if (isRefusal(type)) throw failure(type)
  const options = decodeQuery(patchOptionsQuery, call.query)
  const errors = validatePatchOptions(options, { apply: type === 'application/apply-patch+yaml' })
  if (errors.length > 0) throw invalidOptionsError('PatchOptions', errors)
  const body = await call.body()
  if (type === 'application/apply-patch+yaml') {
    const config = parseConfig(body)
    return { options, apply: (live) => applyMergePatch(live as never, config as never) as unknown as KubeObject }
  }
  const parsed = parsePatch({ call, view, options, type, body })
  const scale = { group: 'autoscaling', version: 'v1', kind: 'Scale' }
  const schema = view.services.schemaFor(scale)
  return {
    options,
    apply: (live) => patchErrors(scale, call.info.name, () => applyTo(schema, live, parsed, type)) as KubeObject,
  }
}
