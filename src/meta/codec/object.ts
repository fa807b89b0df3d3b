/**
 * Bytes of a request, a file or a store to an object: find out what it claims to be, look up the schema, decode. The
 * order of complaints is upstream's: syntax, kind, types, and only then what was asked of the object.
 */
import { Buffer } from 'node:buffer'

import { goQuote } from '#lib/go-text.ts'
import { DEFAULT_JSON_LIMITS, type JsonLimits } from '#lib/json-scan.ts'
import { isJsonObject, type JsonDuplicate, JsonError, type JsonObject } from '#lib/json-value.ts'
import { parseJson } from '#lib/json.ts'
import { YamlError } from '#lib/yaml-error.ts'
import type { ReadYaml } from '#lib/yaml-reader.ts'
import { parseYaml } from '#lib/yaml.ts'

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
  /** Default `Ignore`. Protobuf has neither unknown nor repeated fields to speak of. */
  readonly validation?: FieldValidation
  /** What an object is that does not say so. */
  readonly defaultKind?: GroupVersionKind
  /** What the object must be. */
  readonly expected?: ExpectedKind
  /** What upstream calls the table of types in which it would look; default: its server's. */
  readonly scheme?: string
  /** How much work the document may make. The default is fit for the body of a request, not for every list. */
  readonly limits?: JsonLimits
  /** Of a custom resource: takes out what its schema does not know, and says what that was. Its kind is judged later. */
  readonly prune?: (object: JsonObject) => readonly string[]
  /** What the body says, for who has read it before; else it is read here and now. */
  readonly document?: Document
}

/** What a struct costs, in the unit of `JsonLimits.maxWeight`. */
const STRUCT_WEIGHT = 20

export interface ExpectedKind extends GroupVersionKind {
  /** What upstream calls its internal type: `core.ConfigMap`. */
  readonly internalType: string
  /** Other versions of the kind that will do. */
  readonly acceptsVersion?: (version: string) => boolean
}

export interface Decoded {
  readonly gvk: GroupVersionKind
  /** What the bytes themselves say that it is, parts of which may be empty. */
  readonly claimed: GroupVersionKind
  /** In canonical form, kind and apiVersion first. */
  readonly object: JsonObject
  /** Under Warn, what to warn of. */
  readonly offences: readonly string[]
}

/** What upstream's server calls its table of types, in the error about a type it does not have. */
const SCHEME_NAME = 'pkg/api/legacyscheme/scheme.go:30'

/** Decodes an object of a known kind. Throws a CodecError, and nothing else, for whatever the bytes are. */
export function decodeObject(body: Buffer | string, mediaType: MediaType, options: DecodeOptions): Decoded {
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

/** Those of metadata and those of the rest are one list, in order; what is repeated comes before. */
function withUnknown(offences: string[], paths: readonly string[], validation: FieldValidation): readonly string[] {
  if (paths.length === 0 || validation === 'Ignore') return offences
  const isUnknown = (text: string): boolean => text.startsWith('unknown field')
  const unknown = [...offences.filter(isUnknown), ...paths.map((path) => `unknown field ${goQuote(path)}`)]
  return [...offences.filter((text) => !isUnknown(text)), ...unknown.sort()]
}

/** Of what no schema describes, wherever they are. */
function repeatedFields({ duplicates }: Document, { validation = 'Ignore' }: DecodeOptions): string[] {
  return validation === 'Ignore' ? [] : duplicates.map(({ path }) => `duplicate field ${goQuote(path)}`)
}

/**
 * Whether an object says, with an empty list of managedFields, that nobody owns anything any more. Canonical form knows no
 * empty lists, so this is asked before decoding, and the list put back afterwards; the field manager takes it away again.
 */
export function clearsManagedFields(sent: unknown): boolean {
  const metadata = isJsonObject(sent) ? sent['metadata'] : undefined
  const said = isJsonObject(metadata) ? metadata['managedFields'] : undefined
  return Array.isArray(said) && said.length === 0
}

/**
 * Decodes an object without schema, as custom resources are before their own schema prunes and checks them: keys
 * sorted, nothing left out.
 */
export function decodeUntypedObject(
  body: Buffer | string,
  mediaType: MediaType,
  validation: FieldValidation = 'Ignore',
): Decoded {
  const { value, duplicates, offences } = parseDocument(body, mediaType)
  const gvk = interpret(value)
  if (gvk.kind === '') throw new CodecError('no-kind', `Object 'Kind' is missing in '${String(body)}'`, { gvk })
  const object = guarded(gvk, () => normalizeUntyped(value)) as JsonObject
  const repeated = duplicates.map(({ path }) => `duplicate field ${goQuote(path)}`)
  const found = gather(offences, repeated, validation)
  if (validation === 'Strict' && found.length > 0) throw strictError(found, gvk)
  return { gvk, claimed: gvk, object, offences: found }
}

/** All offences: those of the YAML parser are one under Strict, in its own frame, and one warning each otherwise. */
function gather(yaml: readonly string[], others: readonly string[], validation: FieldValidation): string[] {
  if (validation === 'Ignore') return []
  if (validation === 'Warn' || yaml.length === 0) return [...yaml, ...others]
  return [unmarshalErrors(yaml), ...others]
}

/** What YAML's reader complained of, in its own frame. */
export function unmarshalErrors(complaints: readonly string[]): string {
  return ['yaml: unmarshal errors:', ...complaints].join('\n  ')
}

/**
 * What a server answers to a body it could not decode where it expected `kind`: upstream's whole sentence around the
 * error.
 */
export function badRequestText(error: CodecError, kind: string, body: Uint8Array): string {
  if (error.code === 'wrong-version') return error.message
  const { gvk } = error
  if (gvk !== undefined && gvk.kind !== '') {
    return `${gvk.kind} in version ${goQuote(gvk.version)} cannot be handled as a ${kind}: ${error.message}`
  }
  return `the object provided is unrecognized (must be of type ${kind}): ${error.message} (${summary(body)})`
}

function decodeProtobufObject(body: Buffer | string, options: DecodeOptions): Decoded {
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

/** A body that was read, and of which nobody knows yet what it is. */
export interface Document {
  readonly value: unknown
  readonly duplicates: readonly JsonDuplicate[]
  /** Repeated keys that the parser itself complains of, as YAML's does. */
  readonly offences: readonly string[]
}

/** Throws CodecError. */
export function parseDocument(
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

function parseYamlDocument(body: Buffer | string): Document {
  const duplicates: string[] = []
  try {
    return yamlDocument({ value: parseYaml(body, { duplicates }), duplicates })
  } catch (cause) {
    throw yamlFailure(cause)
  }
}

/** Go makes JSON of YAML first, which sorts the keys, so that offences come sorted too. */
export function yamlDocument({ value, duplicates }: ReadYaml): Document {
  return { value: normalizeUntyped(value), duplicates: [], offences: duplicates }
}

/** What a reader of YAML complained of, as the codec says it; anything else as it came. */
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

/** Go's look at the document before the type is known. It does not mind the case of the two names. */
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

/** Tells every error what the object claimed to be. */
function guarded<Value>(gvk: GroupVersionKind, run: () => Value, { prune }: Partial<DecodeOptions> = {}): Value {
  try {
    return run()
  } catch (cause) {
    if (!(cause instanceof CodecError)) throw cause
    const message = prune === undefined ? cause.message : customTypeText(cause.message)
    throw new CodecError(cause.code, message, { cause, gvk })
  }
}

/** The text of a type error in a custom resource, of which upstream reads the metadata by itself. */
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

/** What was asked of the object, once it is known to be one. */
function finish(decoded: Decoded, goType: string, { expected, validation, prune }: DecodeOptions): Decoded {
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

/** As much of a body as an error shows: text as text, anything else in hexadecimal. */
const SUMMARY_BYTES = 30

function summary(body: Uint8Array): string {
  if (body.length === 0) return '<empty>'
  const start = Buffer.from(body.subarray(0, SUMMARY_BYTES)).toString(body[0] === 0x7b ? 'utf8' : 'hex')
  return body.length > SUMMARY_BYTES ? `${start} ...` : start
}
