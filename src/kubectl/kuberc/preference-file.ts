/** Reads and writes the kuberc file for `kuberc view` and `kuberc set`, as one object of v1beta1. */
import { mkdir, readFile, writeFile } from 'node:fs/promises'
import { dirname, resolve } from 'node:path'

import { type Flag, flag } from '#lib/flags/flags.ts'
import { string } from '#lib/flags/kinds.ts'
import { isJsonObject, type JsonObject, type JsonValue } from '#lib/json/value.ts'
import { stringifyYaml } from '#lib/yaml/write.ts'
import { parseYaml } from '#lib/yaml/yaml.ts'

import type { Invocation } from '../command.ts'
import { asError, KubectlError } from '../errors.ts'
import { goFileError } from '../printing.ts'
import { type KubercLocation, kubercLocation } from './location.ts'

export const KUBERC_FLAG: { readonly kuberc: Flag<string> } = {
  kuberc: flag(string, '', 'Path of the kuberc file with preferences. KUBECTL_KUBERC=false or KUBERC=off disables it.'),
}

/** A list of the file. Members may have any fields; only those of v1beta1 are kept. */
type Entries = readonly JsonObject[] | null

export interface PreferenceFile {
  readonly kind: string
  readonly apiVersion: string
  readonly defaults: Entries
  readonly aliases: Entries
  readonly credentialPluginPolicy: string
  readonly credentialPluginAllowlist: Entries
}

export const NEW_PREFERENCE: PreferenceFile = {
  kind: 'Preference',
  apiVersion: 'kubectl.config.k8s.io/v1beta1',
  defaults: null,
  aliases: null,
  credentialPluginPolicy: '',
  credentialPluginAllowlist: null,
}

/** The default file that `kubectl kuberc view` offers to create. */
export const RECOMMENDED: PreferenceFile = {
  ...NEW_PREFERENCE,
  defaults: [
    { command: 'apply', options: [{ name: 'server-side', default: 'true' }] },
    { command: 'delete', options: [{ name: 'interactive', default: 'true' }] },
  ],
}

/** The path of the file. Throws KubectlError if preferences are disabled. */
export function locationOf({ flags, env }: Pick<Invocation<typeof KUBERC_FLAG>, 'flags' | 'env'>): KubercLocation {
  const location = kubercLocation(flags.kuberc, env)
  if (location === undefined) throw new KubectlError('KUBERC is disabled via KUBERC=off environment variable')
  return location
}

/** Undefined if the file does not exist. Throws KubectlError for an unreadable one. */
export async function readPreferenceFile(file: string, cwd: string): Promise<PreferenceFile | undefined> {
  const text = await readFile(resolve(cwd, file), 'utf8').catch((error: NodeJS.ErrnoException) => {
    if (error.code === 'ENOENT') return undefined
    throw new KubectlError(`error reading kuberc file: ${goFileError(file, error)}`, { cause: error })
  })
  return text === undefined ? undefined : parseWritten(text)
}

function parseWritten(text: string): PreferenceFile {
  if (text === '') return NEW_PREFERENCE
  try {
    const value = parseYaml(text)
    if (!isJsonObject(value)) throw new Error('it holds no object')
    return {
      kind: textOf(value['kind']),
      apiVersion: textOf(value['apiVersion']),
      defaults: entriesOf(value['defaults'], ['command', 'options']),
      aliases: entriesOf(value['aliases'], ['name', 'command', 'prependArgs', 'appendArgs', 'options']),
      credentialPluginPolicy: textOf(value['credentialPluginPolicy']),
      credentialPluginAllowlist: entriesOf(value['credentialPluginAllowlist'], ['name', 'command']),
    }
  } catch (cause) {
    throw new KubectlError(`error parsing kuberc file: ${asError(cause).message}`, { cause })
  }
}

function textOf(value: JsonValue | undefined): string {
  if (value === undefined || value === null) return ''
  if (typeof value === 'string') return value
  throw new Error(`${JSON.stringify(value)} is no string`)
}

/** Fields in the order of Go's struct; unknown fields are dropped. */
function entriesOf(value: JsonValue | undefined, fields: readonly string[]): Entries {
  if (value === undefined || value === null) return null
  if (!Array.isArray(value)) throw new Error(`${JSON.stringify(value)} is no list`)
  return value.map((entry) => {
    if (!isJsonObject(entry)) throw new Error(`${JSON.stringify(entry)} is no object`)
    return inOrder(entry, fields)
  })
}

function inOrder(entry: JsonObject, fields: readonly string[]): JsonObject {
  const ordered = (name: string, value: JsonValue): JsonValue => {
    if (name !== 'options' || !Array.isArray(value)) return value
    return value.map((option) => (isJsonObject(option) ? inOrder(option, ['name', 'default']) : option))
  }
  const known = fields.flatMap((name) => (entry[name] === undefined ? [] : [[name, ordered(name, entry[name])]]))
  return Object.fromEntries(known) as JsonObject
}

/** Go's form: lists are written even if empty, policies only if set. */
export function jsonOf(written: PreferenceFile): JsonObject {
  const {
    kind,
    apiVersion,
    defaults,
    aliases,
    credentialPluginPolicy: policy,
    credentialPluginAllowlist: list,
  } = written
  return {
    ...(kind !== '' && { kind }),
    ...(apiVersion !== '' && { apiVersion }),
    defaults: defaults === null ? null : [...defaults],
    aliases: aliases === null ? null : [...aliases],
    ...(policy !== '' && { credentialPluginPolicy: policy }),
    ...(list !== null && list.length > 0 && { credentialPluginAllowlist: [...list] }),
  }
}

export async function savePreferenceFile(
  { cwd, stdout }: Pick<Invocation, 'cwd' | 'stdout'>,
  file: string,
  written: PreferenceFile,
): Promise<void> {
  const path = resolve(cwd, file)
  await mkdir(dirname(path), { recursive: true, mode: 0o755 }).catch((cause: Error) => {
    throw new KubectlError(`failed to create directory ${dirname(file)}: ${cause.message}`, { cause })
  })
  await writeFile(path, stringifyYaml(jsonOf(written)), { mode: 0o644 }).catch((cause: Error) => {
    throw new KubectlError(`failed to write kuberc file: ${goFileError(file, cause)}`, { cause })
  })
  stdout.write(`Updated ${file}\n`)
}
