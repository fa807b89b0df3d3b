/** Reads objects from files, folders, URLs and standard input, with upstream's errors. */
import { readdir, readFile, stat } from 'node:fs/promises'
import { extname, join, resolve } from 'node:path'
import type { Readable } from 'node:stream'

import { goJson, goQuote } from '#lib/go/text.ts'
import { parseJson } from '#lib/json/json.ts'
import { isJsonObject, type JsonObject, type JsonValue } from '#lib/json/value.ts'
import { parseYaml, splitYaml } from '#lib/yaml/yaml.ts'

import { asError, KubectlError } from '../errors.ts'

const EXTENSIONS = ['.json', '.yaml', '.yml']

/** One source: a file, standard input or a URL. */
export interface ManifestSource {
  /** The name in messages. */
  readonly name: string
  read(): Promise<string>
}

export interface ManifestInputs {
  readonly cwd: string
  readonly stdin: () => Readable
}

/** The files of a path or a pattern; throws KubectlError. */
export async function filesAt(path: string, recursive: boolean, { cwd }: ManifestInputs): Promise<ManifestSource[]> {
  const found = await expand(path, cwd)
  const files: string[] = []
  for (const one of found) files.push(...(await walk(one, { cwd, recursive, isRoot: true })))
  if (files.length === 0) {
    throw new KubectlError(
      `error reading [${found.join(' ')}]: recognized file extensions are [${EXTENSIONS.join(' ')}]`,
    )
  }
  return files.map((file) => ({ name: file, read: async () => textOf(await readFile(resolve(cwd, file))) }))
}

export function standardInput({ stdin }: ManifestInputs): ManifestSource {
  return { name: 'STDIN', read: async () => textOf(await readAll(stdin())) }
}

export async function readAll(stream: Readable): Promise<Buffer> {
  const chunks: Buffer[] = []
  for await (const chunk of stream) chunks.push(Buffer.from(chunk as Buffer))
  return Buffer.concat(chunks)
}

/** Accepts UTF-16 with a byte order mark, which Windows editors write. */
function textOf(bytes: Buffer): string {
  if (bytes[0] === 0xff && bytes[1] === 0xfe) return bytes.subarray(2).toString('utf16le')
  if (bytes[0] === 0xfe && bytes[1] === 0xff) return Buffer.from(bytes.subarray(2)).swap16().toString('utf16le')
  return bytes.toString('utf8')
}

async function expand(path: string, cwd: string): Promise<string[]> {
  const info = await stat(resolve(cwd, path)).catch((error: NodeJS.ErrnoException) => error)
  if (!(info instanceof Error)) return [path]
  if (info.code !== 'ENOENT' && info.code !== 'ENOTDIR') {
    throw new KubectlError(`the path ${goQuote(path)} cannot be accessed: ${info.message}`)
  }
  const { glob } = await import('node:fs/promises')
  const matches = /[*?[]/.test(path) ? (await Array.fromAsync(glob(path, { cwd }))).sort() : []
  if (matches.length === 0) throw new KubectlError(`the path ${goQuote(path)} does not exist`)
  return matches
}

interface Walk {
  readonly cwd: string
  readonly recursive: boolean
  readonly isRoot: boolean
}

async function walk(path: string, { cwd, recursive, isRoot }: Walk): Promise<string[]> {
  const info = await stat(resolve(cwd, path))
  if (!info.isDirectory()) return isRoot || EXTENSIONS.includes(extname(path)) ? [path] : []
  if (!isRoot && !recursive) return []
  const names = (await readdir(resolve(cwd, path))).sort()
  const found = await Promise.all(names.map((name) => walk(join(path, name), { cwd, recursive, isRoot: false })))
  return found.flat()
}

/** The documents of a JSON or YAML text, without empty ones. Throws KubectlError. */
export function* readDocuments(source: string, text: string): Generator<JsonValue> {
  const isJson = /^\s*\{/.test(text)
  try {
    yield* isJson ? jsonDocuments(text) : yamlDocuments(text)
  } catch (cause) {
    if (cause instanceof KubectlError) throw cause
    throw new KubectlError(`error parsing ${source}: ${asError(cause).message}`, { cause })
  }
}

function* yamlDocuments(text: string): Generator<JsonValue> {
  for (const document of splitYaml(text)) {
    let value: JsonValue
    try {
      value = parseYaml(document)
    } catch (cause) {
      throw new Error(`error converting YAML to JSON: ${asError(cause).message}`, { cause })
    }
    if (value !== null) yield value
  }
}

/** Splits concatenated JSON values. The text after the last complete value belongs to the next error. */
function* jsonDocuments(text: string): Generator<JsonValue> {
  let rest = text.trim()
  while (rest !== '') {
    const end = documentEnd(rest)
    const value = parseStreamed(rest.slice(0, end))
    if (value !== null) yield value
    rest = rest.slice(end).trim()
    if (rest !== '' && !rest.startsWith('{')) {
      yield* yamlDocuments(rest)
      return
    }
  }
}

/** Upstream reads a stream here, so an incomplete value is an unexpected end. */
function parseStreamed(text: string): JsonValue {
  try {
    return parseJson(text)
  } catch (cause) {
    const { message } = asError(cause)
    throw new Error(message === 'unexpected end of JSON input' ? 'unexpected EOF' : message, { cause })
  }
}

function documentEnd(text: string): number {
  let depth = 0
  for (const { 0: token, index } of text.matchAll(/"(?:[^"\\]|\\.)*"|[{}]/gs)) {
    if (token === '{') depth++
    if (token === '}' && --depth === 0) return index + 1
  }
  return text.length
}

/** The validation error before anything is sent; undefined without one. */
export function validationProblem(source: string, value: JsonValue): KubectlError | undefined {
  const problems = typeProblems(value)
  if (problems.length === 0) return undefined
  const problemText = problems.length === 1 ? problems.join('') : `[${problems.join(', ')}]`
  return new KubectlError(
    `error validating ${goQuote(source)}: error validating data: ${problemText}; if you choose to ignore these errors, turn validation off with --validate=false`,
  )
}

function typeProblems(value: JsonValue): string[] {
  if (!isJsonObject(value)) return ['invalid object to validate']
  return ['apiVersion', 'kind'].flatMap((field) => {
    const found = value[field]
    if (found === undefined || found === null) return [`${field} not set`]
    return typeof found === 'string' ? [] : [`${field} isn't string type`]
  })
}

/** Decodes a document as an API object. Throws KubectlError. */
export function decodeObject(source: string, value: JsonValue): JsonObject & { kind: string; apiVersion: string } {
  const fail = (text: string): never => {
    throw new KubectlError(`unable to decode ${goQuote(source)}: ${text}`)
  }
  if (!isJsonObject(value)) return fail(`json: cannot unmarshal ${goType(value)} into Go value of type struct`)
  const { kind, apiVersion, metadata } = value
  if (typeof kind !== 'string' || kind === '') return fail(`Object 'Kind' is missing in '${goJson(value)}'`)
  if (typeof apiVersion !== 'string') return fail(`Object 'apiVersion' is missing in '${goJson(value)}'`)
  const problem = metadata === undefined ? undefined : metadataProblem(metadata)
  if (problem !== undefined) return fail(problem)
  return { metadata: {}, ...value, kind, apiVersion }
}

function metadataProblem(metadata: JsonValue): string | undefined {
  const wrong = (path: string, value: JsonValue, type: string): string =>
    `json: cannot unmarshal ${goType(value)} into Go struct field ${path} of type ${type}`
  if (metadata === null) return undefined
  if (!isJsonObject(metadata)) return wrong('metadataOnlyObject.metadata', metadata, 'v1.ObjectMeta')
  for (const field of ['name', 'namespace', 'generateName', 'resourceVersion', 'uid']) {
    const value = metadata[field] ?? ''
    if (typeof value !== 'string') return wrong(`ObjectMeta.metadata.${field}`, value, 'string')
  }
  for (const field of ['labels', 'annotations']) {
    const map = metadata[field] ?? {}
    if (!isJsonObject(map)) return wrong(`ObjectMeta.metadata.${field}`, map, 'map[string]string')
    const bad = Object.values(map).find((value) => typeof value !== 'string' && value !== null)
    if (bad !== undefined) return wrong(`ObjectMeta.metadata.${field}`, bad, 'string')
  }
  return undefined
}

function goType(value: JsonValue): string {
  if (typeof value === 'boolean') return 'bool'
  if (typeof value === 'string') return 'string'
  if (Array.isArray(value)) return 'array'
  return value !== null && isJsonObject(value) ? 'object' : 'number'
}
