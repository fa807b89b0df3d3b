/**
 * `hyperkube codec`: reads API objects in any encoding and writes them in another: manifests, API responses or values
 * from etcd. The output has upstream's canonical form.
 */
import { Buffer } from 'node:buffer'
import { addAbortSignal, type Readable } from 'node:stream'

import { schemaFor } from '#apis/schemas.ts'
import { flag } from '#lib/flags/flags.ts'
import { bool, oneOf, string } from '#lib/flags/kinds.ts'
import { parseJson, stringifyJson } from '#lib/json/json.ts'
import type { JsonLimits } from '#lib/json/scan.ts'
import { type JsonDuplicate, JsonError, type JsonObject } from '#lib/json/value.ts'
import { defineProgram, type Program, ProgramError } from '#lib/program.ts'
import { YamlError } from '#lib/yaml/error.ts'
import { splitYaml, stringifyYaml } from '#lib/yaml/yaml.ts'
import { encodeJson } from '#meta/codec/encode-json.ts'
import { CodecError } from '#meta/codec/error.ts'
import type { MediaType } from '#meta/codec/negotiate.ts'
import { type DecodedObject, decodeObject, decodeUntypedObject } from '#meta/codec/object.ts'
import { encodeProtobuf, isProtobuf } from '#meta/codec/protobuf.ts'
import { apiVersionOf, type GroupVersion, type GroupVersionKind, parseApiVersion } from '#meta/kind.ts'
import type { KubeObject } from '#meta/object.ts'
import { ConversionError, convert } from '#model/conversion/conversion.ts'

type Form = 'json' | 'yaml' | 'protobuf'

interface Reading {
  readonly form: Form
  readonly strict: boolean
  /** Receives every problem that is not fatal. */
  readonly warn: (offence: string) => void
}

const mediaTypes: Readonly<Record<Form, MediaType>> = {
  json: 'application/json',
  yaml: 'application/yaml',
  protobuf: 'application/vnd.kubernetes.protobuf',
}

/** Only memory limits the input, because nothing else runs in the process. */
const LIMITS: JsonLimits = { maxDepth: 10_000, maxLength: 2 ** 29, maxWeight: Number.MAX_SAFE_INTEGER }

const NOTHING = 'Standard input contains no object'

export const codec: Program = defineProgram({
  name: 'codec',
  long:
    'codec reads API objects from standard input and writes them to standard output in another format.\n\n' +
    'It reads JSON, YAML and the protobuf values of etcd ("etcdctl get --print-value-only KEY | ' +
    'hyperkube codec"). Several objects are written as YAML documents, or as items of a List in other formats. Unknown ' +
    'fields are dropped with a warning. Objects of kinds that are not built in stay unchanged.',
  flags: {
    codec: {
      from: flag(oneOf('auto', 'json', 'yaml', 'protobuf'), 'auto', 'input format: auto, json, yaml or protobuf'),
      to: flag(oneOf('json', 'yaml', 'protobuf'), 'yaml', 'output format: json, yaml or protobuf'),
      'output-version': flag(string, '', 'convert objects to this `apiVersion`, such as autoscaling/v1'),
      pretty: flag(bool, false, 'indent JSON'),
      strict: flag(bool, false, 'reject unknown and duplicate fields instead of warning'),
    },
  },
  async run({ flags, stdin, stdout, stderr }, signal) {
    const bytes = openValue(await readAll(stdin(), signal))
    const form = flags.from === 'auto' ? detectForm(bytes) : flags.from
    const warn = (offence: string): void => void stderr.write(`Warning: ${offence}\n`)
    const decoded = readObjects(bytes, { form, strict: flags.strict, warn })
    const version = flags['output-version']
    const objects = version === '' ? decoded : decoded.map((each) => inVersion(each, version))
    stdout.write(explained('', () => writeObjects(objects, flags.to, flags.pretty)))
    return 0
  },
})

async function readAll(input: Readable, signal: AbortSignal): Promise<Buffer> {
  const chunks: Buffer[] = []
  for await (const chunk of addAbortSignal(signal, input)) chunks.push(Buffer.from(chunk as Uint8Array))
  return Buffer.concat(chunks)
}

/** Returns the value without the line with its key that `etcdctl get` prints. Throws if it is encrypted or missing. */
function openValue(input: Buffer): Buffer {
  const line = input[0] === 0x2f ? input.indexOf('\n') + 1 : 0
  const bytes = input.subarray(line)
  if (bytes.toString('latin1').trim() === '') throw new ProgramError(NOTHING)
  const sealed = /^k8s:enc:([^:]+):([^:]+):([^:\n]*):/.exec(bytes.toString('latin1', 0, 512))
  if (sealed === null) return bytes
  const [, provider, version, key] = sealed
  throw new ProgramError(
    `The value is encrypted by provider "${provider}" (${version}) with key "${key}": read the object through an API ` +
      'server that has the key, or decrypt it first',
  )
}

function detectForm(bytes: Buffer): Form {
  if (isProtobuf(bytes)) return 'protobuf'
  return /^\s*[[{]/.test(bytes.toString('utf8', 0, 4096)) ? 'json' : 'yaml'
}

function readObjects(bytes: Buffer, reading: Reading): DecodedObject[] {
  const documents = splitDocuments(bytes, reading)
  const decoded = documents.map((document, index) => {
    const prefix = documents.length === 1 ? '' : `Object ${index + 1}: `
    return explained(prefix, () => readObject(document, reading))
  })
  if (decoded.length === 0) throw new ProgramError(NOTHING)
  return decoded.map((each) => mapItems(each, (item) => readItem(item, reading)))
}

/** The texts of the objects: YAML documents, items of a JSON array, or a single object. */
function splitDocuments(bytes: Buffer, { form, strict, warn }: Reading): (Buffer | string)[] {
  if (form === 'protobuf') return [bytes]
  const text = bytes.toString('utf8')
  if (form === 'yaml') return splitYaml(text).filter(hasContent)
  if (!/^\s*\[/.test(text)) return [bytes]
  const duplicates: JsonDuplicate[] = []
  const values = explained('', () => parseJson(text, { exactNumbers: true, duplicates, limits: LIMITS }))
  for (const { path } of duplicates) {
    const offence = `duplicate field "${path}"`
    if (strict) throw new ProgramError(`strict decoding error: ${offence}`)
    warn(offence)
  }
  return (values as unknown[]).map((value) => stringifyJson(value))
}

function readObject(document: Buffer | string, { form, strict, warn }: Reading): DecodedObject {
  const validation = strict ? 'Strict' : 'Warn'
  const mediaType = mediaTypes[form]
  const options = { schemaFor, validation, limits: LIMITS } as const
  const decoded = withoutLineEnd(document, form, (body) => {
    try {
      return decodeObject(body, mediaType, options)
    } catch (cause) {
      if (!(cause instanceof CodecError)) throw cause
      const asEvent = { ...options, defaultKind: WATCH_EVENT }
      if (
        cause.code === 'no-kind' &&
        isWatchEvent(decodeObject(body, mediaType, { ...asEvent, validation: 'Ignore' }))
      ) {
        return decodeObject(body, mediaType, asEvent)
      }
      if (cause.code !== 'unknown-kind' || form === 'protobuf') throw cause
      return decodeUntypedObject(body, mediaType, validation)
    }
  })
  for (const offence of decoded.offences) warn(offence)
  return decoded
}

/** A watch event, one a line: the only type without a kind. */
const WATCH_EVENT: GroupVersionKind = { group: '', version: 'v1', kind: 'WatchEvent' }

function isWatchEvent({ object: { type, object } }: DecodedObject): boolean {
  return typeof type === 'string' && type !== '' && typeof object === 'object' && object !== null
}

/** `etcdctl` adds a newline to a value; a complete message never ends with it. */
function withoutLineEnd<T>(document: Buffer | string, form: Form, read: (body: Buffer | string) => T): T {
  try {
    return read(document)
  } catch (cause) {
    const spare = form === 'protobuf' && typeof document !== 'string' && document.at(-1) === 0x0a
    if (!spare || !(cause instanceof CodecError) || cause.code !== 'syntax') throw cause
    return read(document.subarray(0, -1))
  }
}

/** True if a document has more than comments. */
function hasContent(document: string): boolean {
  return document.split('\n').some((line) => !/^\s*(?:#|$)/.test(line))
}

/** A plain `List` contains objects of any kind, which are converted one by one. */
function mapItems(decoded: DecodedObject, change: (item: JsonObject) => JsonObject): DecodedObject {
  const { gvk, object } = decoded
  const { items } = object
  if (gvk.group !== '' || gvk.version !== 'v1' || gvk.kind !== 'List' || !Array.isArray(items)) return decoded
  const changed = items.map((item, index) => explained(`Item ${index + 1}: `, () => change(item as JsonObject)))
  return { ...decoded, object: { ...object, items: changed } }
}

function readItem(item: JsonObject, reading: Reading): JsonObject {
  return readObject(stringifyJson(item), { ...reading, form: 'json' }).object
}

function inVersion(decoded: DecodedObject, apiVersion: string): DecodedObject {
  const { gvk } = decoded
  if (gvk.kind === 'List') return mapItems(decoded, (item) => converted(item, apiVersion))
  const target = { ...parseVersion(apiVersion), kind: gvk.kind }
  return { ...decoded, gvk: target, object: explained('', () => converted(decoded.object, apiVersion)) }
}

function converted(item: JsonObject, apiVersion: string): JsonObject {
  const object = item as unknown as KubeObject
  return convert(object, { ...parseVersion(apiVersion), kind: object.kind ?? '' }) as unknown as JsonObject
}

function parseVersion(apiVersion: string): GroupVersion {
  try {
    return parseApiVersion(apiVersion)
  } catch (cause) {
    throw new ProgramError(`--output-version: ${(cause as Error).message}`, { cause })
  }
}

function writeObjects(decoded: readonly DecodedObject[], to: Form, pretty: boolean): string | Buffer {
  const objects = decoded.map(({ object }) => object)
  if (to === 'yaml') return objects.map((object) => stringifyYaml(object)).join('---\n')
  const [first, second] = decoded
  const list: GroupVersionKind = { group: '', version: 'v1', kind: 'List' }
  const single = first !== undefined && second === undefined
  const whole = single ? first.object : { kind: 'List', apiVersion: 'v1', metadata: {}, items: objects }
  if (to === 'json') return `${encodeJson(whole, { pretty })}\n`
  return writeProtobuf(single ? first.gvk : list, whole)
}

function writeProtobuf(gvk: GroupVersionKind, object: JsonObject): Buffer {
  const schema = schemaFor(gvk)
  if (schema?.protobuf !== undefined) {
    // A type without a kind in JSON has none here either.
    const named = object['kind'] === undefined ? { group: '', version: '', kind: '' } : gvk
    return encodeProtobuf(schema, named, object)
  }
  throw new ProgramError(
    `Kind "${gvk.kind}" of "${apiVersionOf(gvk)}" is not built in and has no protobuf form: use --to json or --to yaml`,
  )
}

/** Runs `read` and reports problems of the input to the user, with their position in front. */
function explained<T>(prefix: string, read: () => T): T {
  try {
    return read()
  } catch (cause) {
    if (cause instanceof CodecError || cause instanceof ConversionError || isSyntax(cause)) {
      throw new ProgramError(prefix + explain(cause), { cause })
    }
    throw cause
  }
}

function isSyntax(error: unknown): error is Error {
  return error instanceof JsonError || error instanceof YamlError
}

function explain(error: Error): string {
  if (!(error instanceof CodecError)) return error.message
  // Upstream's texts for these repeat the whole input.
  if (error.code === 'no-kind') return 'The object has no type: it needs "kind" and "apiVersion"'
  if (error.code === 'no-version') return `The object of kind "${error.gvk?.kind}" needs an "apiVersion"`
  return error.message
}
