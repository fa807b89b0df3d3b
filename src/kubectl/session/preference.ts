/** Preferences of a kuberc file in both versions, with validation. */
import { normalize } from 'node:path'

import { goQuote } from '#lib/go/text.ts'
import { isJsonObject, type JsonObject, type JsonValue } from '#lib/json/value.ts'
import { parseYaml, splitYaml } from '#lib/yaml/yaml.ts'

import { asError, KubectlError } from '../errors.ts'

export interface OptionDefault {
  readonly name: string
  readonly default: string
}

export interface CommandDefaults {
  readonly command: string
  readonly options: readonly OptionDefault[]
}

export interface Alias extends CommandDefaults {
  readonly name: string
  readonly prependArgs: readonly string[]
  readonly appendArgs: readonly string[]
}

/** The policy for credential plugins. */
export interface PluginPolicy {
  /** Empty allows all. */
  readonly type: string
  readonly allowlist?: readonly { readonly command: string; readonly name: string }[]
}

export interface Preference {
  readonly defaults: readonly CommandDefaults[]
  readonly aliases: readonly Alias[]
  readonly policy: PluginPolicy
}

export interface DecodedPreference {
  readonly preference: Preference
  /** A warning about unknown fields; empty without any. */
  readonly strictError: string
}

const GROUP = 'kubectl.config.k8s.io'

/** Field names of the two versions. */
const NAMES: Readonly<Record<string, { readonly defaults: string; readonly options: string }>> = {
  [`${GROUP}/v1beta1`]: { defaults: 'defaults', options: 'options' },
  [`${GROUP}/v1alpha1`]: { defaults: 'overrides', options: 'flags' },
}

/** Logs with upstream's source line. */
export type LogPreference = (source: string, text: string) => void

/** The first usable document; undefined for an empty file. Throws KubectlError. */
export function decodePreference(file: string, text: string, log: LogPreference): DecodedPreference | undefined {
  let attempts = 0
  for (const document of splitYaml(text)) {
    if (document.trim() === '') continue
    attempts++
    try {
      const { decoded, version } = decodeDocument(document)
      log('marshal.go:94', `kuberc: using entry ${attempts} (${version}) in ${file}`)
      return decoded
    } catch (error) {
      // Not YAML, or with wrong types: tries the next document.
      log('marshal.go:71', `kuberc: strict decoding error for entry ${attempts} in ${file}: ${asError(error).message}`)
    }
  }
  if (attempts > 0) throw new KubectlError(`no valid preferences found in ${file}, use --v=5 to see details`)
  log('marshal.go:103', `kuberc: no preferences found in ${file}`)
  return undefined
}

/** Throws an error for an invalid document. */
function decodeDocument(text: string): { readonly decoded: DecodedPreference; readonly version: string } {
  const value = parseYaml(text)
  if (!isJsonObject(value)) throw new Error("couldn't get version/kind; json parse error")
  const [version, kind] = [value['apiVersion'], value['kind']].map((part) => (typeof part === 'string' ? part : ''))
  if (kind === '') throw new Error(`Object 'Kind' is missing in '${text.trim()}'`)
  const names = NAMES[version ?? '']
  if (kind !== 'Preference' || names === undefined) {
    const scheme = 'in scheme "pkg/runtime/scheme.go:111"'
    throw new Error(`no kind ${goQuote(kind ?? '')} is registered for version ${goQuote(version ?? '')} ${scheme}`)
  }
  return { decoded: read(value, names), version: version ?? '' }
}

function read(value: JsonObject, names: { readonly defaults: string; readonly options: string }): DecodedPreference {
  const unknown: string[] = []
  const reader = new Reader(unknown)
  const isOld = names.defaults === 'overrides'
  const policyFields = isOld ? [] : ['credentialPluginPolicy', 'credentialPluginAllowlist']
  reader.known(value, '', ['apiVersion', 'kind', names.defaults, 'aliases', ...policyFields])
  const options = (of: JsonObject, path: string): OptionDefault[] =>
    reader.objects(of[names.options], `${path}.${names.options}`, ['name', 'default']).map(({ one }) => ({
      name: reader.text(one['name']),
      default: reader.text(one['default']),
    }))
  const defaults = reader
    .objects(value[names.defaults], names.defaults, ['command', names.options])
    .map(({ one, path }) => ({ command: reader.text(one['command']), options: options(one, path) }))
  const aliasFields = ['name', 'command', 'prependArgs', 'appendArgs', names.options]
  const aliases = reader.objects(value['aliases'], 'aliases', aliasFields).map(({ one, path }) => ({
    name: reader.text(one['name']),
    command: reader.text(one['command']),
    prependArgs: reader.texts(one['prependArgs']),
    appendArgs: reader.texts(one['appendArgs']),
    options: options(one, path),
  }))
  const policy = isOld ? { type: '' } : readPolicy(value, reader)
  // Go decodes fields in alphabetical order.
  const errors = unknown.sort().map((path) => `unknown field ${goQuote(path)}`)
  const strictError = errors.length === 0 ? '' : `strict decoding error: ${errors.join(', ')}`
  return { preference: { defaults, aliases, policy }, strictError }
}

function readPolicy(value: JsonObject, reader: Reader): PluginPolicy {
  const type = reader.text(value['credentialPluginPolicy'])
  const given = value['credentialPluginAllowlist']
  if (given === undefined || given === null) return { type }
  const entries = reader.objects(given, 'credentialPluginAllowlist', ['name', 'command'])
  const allowlist = entries.map(({ one }) => ({ name: reader.text(one['name']), command: reader.text(one['command']) }))
  return { type, allowlist }
}

/** Reads values of the expected types and throws for others. */
class Reader {
  readonly #unknown: string[]

  constructor(unknown: string[]) {
    this.#unknown = unknown
  }

  known(of: JsonObject, path: string, fields: readonly string[]): void {
    const strange = Object.keys(of).filter((name) => !fields.includes(name))
    this.#unknown.push(...strange.map((name) => (path === '' ? name : `${path}.${name}`)))
  }

  text(value: JsonValue | undefined): string {
    if (value === undefined || value === null) return ''
    if (typeof value === 'string') return value
    throw new Error('expected a string')
  }

  texts(value: JsonValue | undefined): string[] {
    return this.#list(value).map((one) => this.text(one))
  }

  objects(
    value: JsonValue | undefined,
    path: string,
    fields: readonly string[],
  ): { readonly one: JsonObject; readonly path: string }[] {
    return this.#list(value).map((one, at) => {
      if (!isJsonObject(one)) throw new Error('expected an object')
      this.known(one, `${path}[${at}]`, fields)
      return { one, path: `${path}[${at}]` }
    })
  }

  #list(value: JsonValue | undefined): readonly JsonValue[] {
    if (value === undefined || value === null) return []
    if (Array.isArray(value)) return value
    throw new Error('expected a list')
  }
}

/** Throws KubectlError for contradictory preferences. */
export function validatePreference({ aliases, defaults, policy }: Preference): void {
  const names = new Set<string>()
  for (const { name, options } of aliases) {
    if (!/^[a-zA-Z]+$/.test(name)) {
      throw new KubectlError('invalid alias name, can only include alphabetical characters')
    }
    validateOptions(options)
    if (names.has(name)) throw new KubectlError(`duplicate alias name ${name}`)
    names.add(name)
  }
  for (const { options } of defaults) validateOptions(options)
  validatePolicy(policy)
}

function validateOptions(options: readonly OptionDefault[]): void {
  const wrong = options.find(({ name }) => name.startsWith('-'))
  if (wrong !== undefined) {
    throw new KubectlError(`flag name ${wrong.name} should be in long form without dashes`)
  }
}

function validatePolicy({ type, allowlist }: PluginPolicy): void {
  const problem = policyProblem(type, allowlist)
  if (problem !== undefined) throw new KubectlError(problem)
}

function policyProblem(type: string, allowlist: PluginPolicy['allowlist']): string | undefined {
  if (['', 'AllowAll', 'DenyAll'].includes(type)) {
    if (allowlist === undefined) return undefined
    return `misconfigured credential plugin allowlist: plugin policy is ${goQuote(type)} but allowlist is non-nil`
  }
  if (type !== 'Allowlist') return `unknown plugin policy: ${goQuote(type)}`
  if (allowlist === undefined) return 'credential plugin policy set to "Allowlist", but allowlist is unspecified'
  if (allowlist.length === 0) {
    return 'credential plugin policy set to "Allowlist", but allowlist is empty; use "DenyAll" policy instead'
  }
  for (const [at, { command, name }] of allowlist.entries()) {
    if (command === '' && name === '') {
      return `misconfigured credential plugin allowlist: empty allowlist entry #${at + 1}`
    }
    const cleaned = command === '' ? '.' : normalize(command).replace(/(?<=.)\/$/, '')
    if (cleaned !== command) return `non-normalized file path: ${goQuote(command)} vs ${goQuote(cleaned)}`
  }
  return undefined
}
