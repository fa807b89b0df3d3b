/**
 * Decodes bytes to an object: determines its kind, finds the schema and decodes the fields. Errors are reported in
 * upstream's order.
 */
import { Buffer } from 'node:buffer'

import { goQuote } from '#lib/go/text.ts'
import { parseJson, parseJsonInSteps } from '#lib/json/json.ts'
import { DEFAULT_JSON_LIMITS, type JsonLimits } from '#lib/json/scan.ts'
import { isJsonObject, type JsonDuplicate, JsonError, type JsonObject } from '#lib/json/value.ts'
import type { Steps } from '#lib/time-slicing.ts'
import { YamlError } from '#lib/yaml/error.ts'
import type { ReadYaml } from '#lib/yaml/reader.ts'
import { parseYaml } from '#lib/yaml/yaml.ts'

import { apiVersionOf, type GroupVersionKind, parseApiVersion } from '../kind.ts'
import type { StructSchema } from '../schema.ts'
import { goWord } from './decode-state.ts'
import { decodeValue, type FieldValidation, type Sink } from './decode.ts'
import { CodecError, strictError } from './error.ts'
import type { MediaType } from './negotiate.ts'
import { decodeMessage } from './protobuf-decode.ts'
import { decodeEnvelope } from './protobuf.ts'
import { normalizeUntyped } from './untyped.ts'

export interface DecodeOptions {
  readonly schemaFor: (gvk: GroupVersionKind) => StructSchema | undefined
  /** `Ignore` by default. Protobuf has no unknown or duplicate fields. */
  readonly validation?: FieldValidation
  /** The default kind of an object without one. */
  readonly defaultKind?: GroupVersionKind
  /** The required kind. */
  readonly expected?: ExpectedKind
  /** Upstream's name of the searched type table; its server's by default. */
  readonly scheme?: string
  /** The work limit of the document. The default suits request bodies, not every list. */
  readonly limits?: JsonLimits
  /** For a custom resource: removes unknown fields and returns their paths. Its kind is checked later. */
  readonly prune?: (object: JsonObject) => readonly string[]
  /** The parsed body, if the caller has read it; otherwise it is parsed here. */
  readonly document?: Document
}

/** The cost of a struct, in the unit of `JsonLimits.maxWeight`. */
const STRUCT_WEIGHT = 20

export interface ExpectedKind extends GroupVersionKind {
  /** Upstream's internal type name: `core.ConfigMap`. */
  readonly internalType: string
  /** Other accepted versions of the kind. */
  readonly acceptsVersion?: (version: string) => boolean
}

export interface DecodedObject {
  readonly gvk: GroupVersionKind
  /** The kind in the bytes, parts of which may be empty. */
  readonly claimed: GroupVersionKind
  /** Canonical, kind and apiVersion first. */
  readonly object: JsonObject
  /** The warnings under Warn. */
  readonly offences: readonly string[]
}

/** Upstream's name of its server's type table, for the error about an unknown type. */
const SCHEME_NAME = 'pkg/api/legacyscheme/scheme.go:30'

/** Decodes an object of a known kind. Throws only CodecError, for any bytes. */
export function decodeObject(body: Buffer | string, mediaType: MediaType, options: DecodeOptions): DecodedObject {
  if (mediaType === 'application/vnd.kubernetes.protobuf') return decodeProtobufObject(body, options)
  const document = options.document ?? parseDocument(body, mediaType, options.limits)
  const claimed = interpret(document.value)
  const gvk = withDefaults(claimed, options.defaultKind)
  const schema = lookUp(gvk, options, () => String(body))
  const sink: Sink = {
    duplicates: options.prune === undefined ? document.duplicates : [],
    offences: options.prune === undefined ? [] : repeatedFields(document, options),
    maxStructs: maxStructs(options),
  }
  const validation = options.validation ?? 'Ignore'
  const clears = clearsManagedFields(document.value)
  const value = guarded(gvk, () => decodeValue(schema, document.value, validation, sink), options)
  const object = withTypeMeta(value as JsonObject, gvk, schema)
  if (clears && isJsonObject(object['metadata'])) object['metadata']['managedFields'] = []
  const unknown = guarded(gvk, () => options.prune?.(object)) ?? []
  const offences = gather(document.offences, withUnknown(sink.offences, unknown, validation), validation)
  return finish({ gvk, claimed, object, offences }, schema.goType, options)
}

/** Offences of metadata and of the rest are one ordered list, after the duplicates. */
function withUnknown(offences: string[], paths: readonly string[], validation: FieldValidation): readonly string[] {
  if (paths.length === 0 || validation === 'Ignore') return offences
  const isUnknown = (text: string): boolean => text.startsWith('unknown field')
  const unknown = [...offences.filter(isUnknown), ...paths.map((path) => `unknown field ${goQuote(path)}`)]
  return [...offences.filter((text) => !isUnknown(text)), ...unknown.sort()]
}

/** The duplicate keys of an untyped value, at any depth. */
function repeatedFields({ duplicates }: Document, { validation = 'Ignore' }: DecodeOptions): string[] {
  return validation === 'Ignore' ? [] : duplicates.map(({ path }) => `duplicate field ${goQuote(path)}`)
}

/**
 * True if an object clears its managedFields with an empty list. Canonical form has no empty lists, so this is checked
 * before decoding, and the list is put back afterwards; the field manager removes it.
 */
export function clearsManagedFields(sent: unknown): boolean {
  const metadata = isJsonObject(sent) ? sent['metadata'] : undefined
  const managedFields = isJsonObject(metadata) ? metadata['managedFields'] : undefined
  return Array.isArray(managedFields) && managedFields.length === 0
}

/**
 * Decodes an object without a schema, like custom resources before pruning and validation: keys sorted, nothing
 * omitted.
 */
export function decodeUntypedObject(
  body: Buffer | string,
  mediaType: MediaType,
  validation: FieldValidation = 'Ignore',
): DecodedObject {
  const { value, duplicates, offences } = parseDocument(body, mediaType)
  const gvk = interpret(value)
  if (gvk.kind === '') throw new CodecError('no-kind', `Object 'Kind' is missing in '${String(body)}'`, { gvk })
  const object = guarded(gvk, () => normalizeUntyped(value)) as JsonObject
  const repeated = duplicates.map(({ path }) => `duplicate field ${goQuote(path)}`)
  const found = gather(offences, repeated, validation)
  if (validation === 'Strict' && found.length > 0) throw strictError(found, gvk)
  return { gvk, claimed: gvk, object, offences: found }
}

/**
 * All offences: those of the YAML parser form one under Strict, with its own text around them, and one warning each
 * otherwise.
 */
function gather(yaml: readonly string[], others: readonly string[], validation: FieldValidation): string[] {
  if (validation === 'Ignore') return []
  if (validation === 'Warn' || yaml.length === 0) return [...yaml, ...others]
  return [unmarshalErrors(yaml), ...others]
}

/** Errors of the YAML reader, with its own text around them. */
export function unmarshalErrors(complaints: readonly string[]): string {
  return ['yaml: unmarshal errors:', ...complaints].join('\n  ')
}

/** The full answer for a body that could not be decoded as `kind`: upstream's sentence around the error. */
export function badRequestText(error: CodecError, kind: string, body: Uint8Array): string {
  if (error.code === 'wrong-version') return error.message
  const { gvk } = error
  if (gvk !== undefined && gvk.kind !== '') {
    return `${gvk.kind} in version ${goQuote(gvk.version)} cannot be handled as a ${kind}: ${error.message}`
  }
  return `the object provided is unrecognized (must be of type ${kind}): ${error.message} (${summary(body)})`
}

function decodeProtobufObject(body: Buffer | string, options: DecodeOptions): DecodedObject {
  const { apiVersion, kind, message } = decodeEnvelope(typeof body === 'string' ? Buffer.from(body) : body)
  const claimed = kindFrom(apiVersion, kind)
  const gvk = withDefaults(claimed, options.defaultKind)
  const typeMeta = `runtime.TypeMeta{APIVersion:${goQuote(apiVersion)}, Kind:${goQuote(kind)}}`
  const schema = lookUp(gvk, options, () => typeMeta)
  const object = guarded(gvk, () => decodeMessage(schema, message, maxStructs(options)))
  return finish({ gvk, claimed, object: withTypeMeta(object, gvk, schema), offences: [] }, schema.goType, options)
}

function maxStructs({ limits = DEFAULT_JSON_LIMITS }: DecodeOptions): number {
  return Math.floor(limits.maxWeight / STRUCT_WEIGHT)
}

/** A parsed body of a kind not yet determined. */
export interface Document {
  readonly value: unknown
  readonly duplicates: readonly JsonDuplicate[]
  /** Duplicate keys that the parser itself reports, as YAML's does. */
  readonly offences: readonly string[]
}

/** Throws CodecError. */
function parseDocument(
  body: Buffer | string,
  mediaType: MediaType,
  limits: JsonLimits = DEFAULT_JSON_LIMITS,
): Document {
  if (mediaType === 'application/yaml') return parseYamlDocument(body)
  const duplicates: JsonDuplicate[] = []
  try {
    return { value: parseJson(body, { exactNumbers: true, duplicates, limits }), duplicates, offences: [] }
  } catch (cause) {
    throw parseError(cause)
  }
}

/** As `parseDocument` of JSON, in steps. */
export function* parseJsonDocument(body: Buffer): Steps<Document> {
  const duplicates: JsonDuplicate[] = []
  try {
    return { value: yield* parseJsonInSteps(body, { exactNumbers: true, duplicates }), duplicates, offences: [] }
  } catch (cause) {
    throw parseError(cause)
  }
}

function parseYamlDocument(body: Buffer | string): Document {
  const duplicates: string[] = []
  try {
    return yamlDocument({ value: parseYaml(body, { duplicates }), duplicates })
  } catch (cause) {
    throw yamlFailure(cause)
  }
}

/** Go converts YAML to JSON first, which sorts the keys, so offences are sorted too. */
export function yamlDocument({ value, duplicates }: ReadYaml): Document {
  return { value: normalizeUntyped(value), duplicates: [], offences: duplicates }
}

/** An error of the YAML reader as a CodecError; others unchanged. */
export function yamlFailure(cause: unknown): unknown {
  if (!(cause instanceof YamlError)) return cause
  const { code, message } = cause
  const isTooMuch = code === 'effort' || code === 'busy'
  return new CodecError(code === 'value' ? 'type' : isTooMuch ? 'limit' : code, message, { cause })
}

function parseError(cause: unknown): unknown {
  if (!(cause instanceof JsonError)) return cause
  if (cause.code === 'limit') return new CodecError('limit', cause.message, { cause })
  const code = cause.code === 'depth' ? 'depth' : 'syntax'
  return new CodecError(code, `couldn't get version/kind; json parse error: ${cause.message}`, { cause })
}

/** Go's first pass, before the type is known. It ignores the case of the two names. */
function interpret(value: unknown): GroupVersionKind {
  if (value === null) return kindFrom('', '')
  if (!isJsonObject(value)) throw notReadable(value, `value of type ${typeMetaStruct}`)
  const found = { kind: '', apiVersion: '' }
  for (const key of Object.keys(value)) {
    const name = names.get(key.toLowerCase())
    if (name === undefined) continue
    const text = value[key]
    if (typeof text !== 'string' && text !== null) throw notReadable(text, `struct field .${name} of type string`)
    found[name] = text ?? found[name]
  }
  return kindFrom(found.apiVersion, found.kind)
}

const names = new Map<string, 'kind' | 'apiVersion'>([
  ['kind', 'kind'],
  ['apiversion', 'apiVersion'],
])

const typeMetaStruct = String.raw`struct { APIVersion string "json:\"apiVersion,omitempty\""; Kind string "json:\"kind,omitempty\"" }`

function notReadable(value: unknown, where: string): CodecError {
  const message = `json: cannot unmarshal ${goWord(value, false)} into Go ${where}`
  return new CodecError('type', `couldn't get version/kind; json parse error: ${message}`)
}

function kindFrom(apiVersion: string, kind: string): GroupVersionKind {
  try {
    return { ...parseApiVersion(apiVersion), kind }
  } catch (cause) {
    throw new CodecError('syntax', (cause as Error).message, { cause })
  }
}

function withDefaults(actual: GroupVersionKind, defaults: GroupVersionKind | undefined): GroupVersionKind {
  if (defaults === undefined) return actual
  const kind = actual.kind === '' ? defaults.kind : actual.kind
  if (actual.version !== '' || (actual.group !== '' && actual.group !== defaults.group)) return { ...actual, kind }
  return { group: defaults.group, version: defaults.version, kind }
}

function lookUp(gvk: GroupVersionKind, options: DecodeOptions, describe: () => string): StructSchema {
  if (gvk.kind === '') throw new CodecError('no-kind', `Object 'Kind' is missing in '${describe()}'`, { gvk })
  if (gvk.version === '' && options.prune === undefined)
    throw new CodecError('no-version', `Object 'apiVersion' is missing in '${describe()}'`, { gvk })
  const schema = options.schemaFor(gvk)
  if (schema !== undefined) return schema
  throw new CodecError('unknown-kind', unknownKindText(gvk, options.scheme), { gvk })
}

export function unknownKindText(gvk: GroupVersionKind, scheme: string = SCHEME_NAME): string {
  const where = `for version ${goQuote(apiVersionOf(gvk))} in scheme ${goQuote(scheme)}`
  return `no kind ${goQuote(gvk.kind)} is registered ${where}`
}

/** Adds the claimed kind to every error. */
function guarded<Value>(gvk: GroupVersionKind, run: () => Value, { prune }: Partial<DecodeOptions> = {}): Value {
  try {
    return run()
  } catch (cause) {
    if (!(cause instanceof CodecError)) throw cause
    const message = prune === undefined ? cause.message : customTypeText(cause.message)
    throw new CodecError(cause.code, message, { cause, gvk })
  }
}

/** The text of a type error in a custom resource, whose metadata upstream decodes separately. */
export function customTypeText(message: string): string {
  const own = 'Go struct field ObjectMeta.'
  return message
    .replace(`${own}metadata.`, own)
    .replace('Go struct field Unstructured.metadata of type', 'Go value of type')
}

function withTypeMeta(object: JsonObject, gvk: GroupVersionKind, schema: StructSchema): JsonObject {
  if (!schema.fields.has('kind') || !schema.fields.has('apiVersion')) return object
  const apiVersion = apiVersionOf(gvk)
  if (object['kind'] === gvk.kind && object['apiVersion'] === apiVersion) return object
  const { kind: _kind, apiVersion: _apiVersion, ...rest } = object
  return { kind: gvk.kind, apiVersion, ...rest }
}

/** Checks the expectations of a decoded object. */
function finish(decoded: DecodedObject, goType: string, { expected, validation, prune }: DecodeOptions): DecodedObject {
  const { gvk, offences } = decoded
  const isOther = expected !== undefined && (gvk.kind !== expected.kind || gvk.group !== expected.group)
  if (isOther && prune === undefined) {
    const message = `converting (${goType}) to (${expected.internalType}): unknown conversion`
    throw new CodecError('wrong-kind', message, { gvk })
  }
  if (validation === 'Strict' && offences.length > 0) throw strictError(offences, gvk)
  const isOtherVersion = gvk.version !== expected?.version || gvk.group !== expected.group
  if (expected !== undefined && isOtherVersion && expected.acceptsVersion?.(gvk.version) !== true) {
    const [given, wanted] = [apiVersionOf(gvk), apiVersionOf(expected)]
    const message = `the API version in the data (${given}) does not match the expected API version (${wanted})`
    throw new CodecError('wrong-version', message, { gvk })
  }
  return decoded
}

/** The part of a body in an error: text, or hexadecimal for other bytes. */
const SUMMARY_BYTES = 30

function summary(body: Uint8Array): string {
  if (body.length === 0) return '<empty>'
  const start = Buffer.from(body.subarray(0, SUMMARY_BYTES)).toString(body[0] === 0x7b ? 'utf8' : 'hex')
  return body.length > SUMMARY_BYTES ? `${start} ...` : start
}
