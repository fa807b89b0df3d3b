/** Generates ConfigMaps and Secrets from literals, files and env files, and the hash suffixes of names. */
import { createHash } from 'node:crypto'
import { basename } from 'node:path'

import { goJson, goQuote } from '#lib/go/text.ts'
import { isJsonObject, type JsonObject, type JsonValue } from '#lib/json/value.ts'

import { KustomizeError, within } from './ids.ts'
import type { Loader } from './loader.ts'
import { type Behavior, Resource, textOf } from './resource.ts'

export interface GeneratorOptions {
  readonly labels?: Readonly<Record<string, string>>
  readonly annotations?: Readonly<Record<string, string>>
  readonly disableNameSuffixHash?: boolean
  readonly immutable?: boolean
}

export interface GeneratorArgs {
  readonly name?: string
  readonly namespace?: string
  readonly behavior?: string
  readonly literals?: readonly string[]
  readonly files?: readonly string[]
  readonly envs?: readonly string[]
  readonly env?: string
  readonly type?: string
  readonly options?: GeneratorOptions
}

/** The options of the kustomization, used for options that the generator lacks. */
export function mergedOptions(own: GeneratorOptions | undefined, all: GeneratorOptions | undefined): GeneratorOptions {
  return {
    labels: { ...all?.labels, ...own?.labels },
    annotations: { ...all?.annotations, ...own?.annotations },
    disableNameSuffixHash: all?.disableNameSuffixHash === true || own?.disableNameSuffixHash === true,
    immutable: all?.immutable === true || own?.immutable === true,
  }
}

/** Throws KustomizeError. */
export async function generate(kind: 'ConfigMap' | 'Secret', args: GeneratorArgs, loader: Loader): Promise<Resource> {
  const { name = '', namespace = '', options = {} } = args
  if (name === '') throw new KustomizeError('a configmap must have a name')
  const data = await dataOf(name, args, loader)
  const value: JsonObject = {
    apiVersion: 'v1',
    kind,
    metadata: { name, ...(namespace !== '' && { namespace }) },
    ...(kind === 'Secret' && { type: args.type || 'Opaque' }),
    ...(kind === 'Secret' ? secretData(data) : configMapData(data)),
    ...(options.immutable === true && { immutable: true }),
  }
  const resource = new Resource(value)
  if (options.labels !== undefined) resource.setMetadata('labels', { ...options.labels })
  if (options.annotations !== undefined) resource.setMetadata('annotations', { ...options.annotations })
  resource.needsHash = options.disableNameSuffixHash !== true
  const { behavior = '' } = args
  resource.behavior = (['create', 'merge', 'replace'].includes(behavior) ? behavior : 'unspecified') as Behavior
  return resource
}

type Pairs = ReadonlyMap<string, Buffer>

function configMapData(data: Pairs): JsonObject {
  const texts = [...data].filter(([, bytes]) => isText(bytes)).map(([key, bytes]) => [key, bytes.toString()] as const)
  const binary = [...data].filter(([, bytes]) => !isText(bytes)).map(([key, bytes]) => [key, inLines(bytes)] as const)
  return {
    ...(texts.length > 0 && { data: Object.fromEntries(texts) }),
    ...(binary.length > 0 && { binaryData: Object.fromEntries(binary) }),
  }
}

function secretData(data: Pairs): JsonObject {
  return data.size === 0 ? {} : { data: Object.fromEntries([...data].map(([key, bytes]) => [key, inLines(bytes)])) }
}

function isText(bytes: Buffer): boolean {
  return Buffer.compare(Buffer.from(bytes.toString('utf8')), bytes) === 0
}

/** Upstream's base64: lines of 70 characters if longer than one line. */
function inLines(bytes: Buffer): string {
  const text = bytes.toString('base64')
  if (text.length < 70) return text
  return (text.match(/.{1,70}/g) ?? []).map((line) => `${line}\n`).join('')
}

async function dataOf(name: string, args: GeneratorArgs, loader: Loader): Promise<Pairs> {
  const pairs = await pairsOf(args, loader).catch((error: unknown) => {
    throw within('loading KV pairs', error)
  })
  const data = new Map<string, Buffer>()
  for (const [key, value] of pairs) {
    if (data.has(key)) throw new KustomizeError(`configmap ${name} illegally repeats the key \`${key}\``)
    data.set(key, value)
  }
  return data
}

type Pair = readonly [key: string, value: Buffer]

async function pairsOf({ envs = [], env, literals = [], files = [] }: GeneratorArgs, loader: Loader): Promise<Pair[]> {
  const all = env === undefined || env === '' ? envs : [...envs, env]
  const step = async (what: string, run: () => Promise<Pair[]>): Promise<Pair[]> =>
    run().catch((error: unknown) => {
      throw within(what, error)
    })
  return [
    ...(await step(`env source files: [${all.join(' ')}]`, () => fromEnvFiles(all, loader))),
    ...(await step(`literal sources [${literals.join(' ')}]`, () =>
      Promise.resolve().then(() => literals.map(fromLiteral)),
    )),
    ...(await step(`file sources: [${files.join(' ')}]`, () => fromFiles(files, loader))),
  ]
}

async function fromEnvFiles(paths: readonly string[], loader: Loader): Promise<Pair[]> {
  const out: Pair[] = []
  for (const path of paths) {
    const text = (await loader.load(path)).toString().replace(/^\uFEFF/, '')
    for (const line of text.split(/\r?\n/)) {
      const trimmed = line.trimStart()
      if (trimmed === '' || trimmed.startsWith('#')) continue
      const at = trimmed.indexOf('=')
      const key = at < 0 ? trimmed : trimmed.slice(0, at)
      out.push([key, Buffer.from(at < 0 ? '' : trimmed.slice(at + 1))])
    }
  }
  return out
}

function fromLiteral(source: string): Pair {
  const at = source.indexOf('=')
  if (at <= 0) throw new KustomizeError(`invalid literal source ${source}, expected key=value`)
  return [source.slice(0, at), Buffer.from(withoutQuotes(source.slice(at + 1)))]
}

function withoutQuotes(text: string): string {
  const isQuoted = text.length >= 2 && (text.startsWith('"') || text.startsWith("'")) && text.at(-1) === text[0]
  return isQuoted ? text.slice(1, -1) : text
}

async function fromFiles(sources: readonly string[], loader: Loader): Promise<Pair[]> {
  const out: Pair[] = []
  for (const source of sources) {
    const [key, path] = fileSource(source)
    out.push([key, await loader.load(path)])
  }
  return out
}

function fileSource(source: string): [key: string, path: string] {
  const parts = source.split('=')
  const [first = '', second = ''] = parts
  if (parts.length === 1) return [basename(source), source]
  if (parts.length > 2) throw new KustomizeError(`source ${goQuote(source)} key name or file path contains '='`)
  if (first === '') {
    throw new KustomizeError(`missing key name for file path ${goQuote(second)} in source ${goQuote(source)}`)
  }
  if (second === '') {
    throw new KustomizeError(`missing file path for key name ${goQuote(first)} in source ${goQuote(source)}`)
  }
  return [first, second]
}

/** A hash of ten letters that form no words. */
export function hashOf(value: JsonObject): string {
  const hex = createHash('sha256').update(hashedText(value)).digest('hex').slice(0, 10)
  const letters: Record<string, string> = { '0': 'g', '1': 'h', '3': 'k', a: 'm', e: 't' }
  return hex.replaceAll(/[013ae]/g, (letter) => letters[letter] ?? letter)
}

function hashedText(value: JsonObject): string {
  // Upstream intends to include the name but reads it from the wrong place.
  const name = ''
  const field = (one: string): JsonValue => sortedMap(value[one]) ?? ''
  const extra = (one: string): JsonObject => (sortedMap(value[one]) === undefined ? {} : { [one]: field(one) })
  if (value.kind === 'ConfigMap')
    return goJson({ ...extra('binaryData'), data: field('data'), kind: 'ConfigMap', name })
  if (value.kind === 'Secret') {
    return goJson({ data: field('data'), kind: 'Secret', name, ...extra('stringData'), type: textOf(value['type']) })
  }
  return goJson(value)
}

function sortedMap(value: JsonValue | undefined): JsonObject | undefined {
  if (value === undefined || !isJsonObject(value)) return undefined
  return Object.fromEntries(
    Object.keys(value)
      .sort()
      .map((key) => [key, value[key] as JsonValue]),
  )
}
