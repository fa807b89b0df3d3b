/**
 * `--admission-control-config-file`: an AdmissionConfiguration with a part for each plugin, inline or in a separate
 * file. Like upstream, parts of disabled plugins are not read.
 */
import { dirname, isAbsolute, join } from 'node:path'

import { enabledPlugins } from '#admission/index.ts'
import { goQuote } from '#lib/go/text.ts'
import { isJsonObject } from '#lib/json/value.ts'
import { ProgramError } from '#lib/program.ts'
import { parseYaml } from '#lib/yaml/yaml.ts'
import { CodecError } from '#meta/codec/error.ts'
import { defineConfig, fileErrorText, readConfig } from '#meta/config-kind.ts'
import type { Given } from '#meta/config-rows.ts'

import { type AdmissionFileSettings, CONFIG_GROUP, InitializationError, READERS } from './admission-plugins.ts'

const STRUCTS = {
  'v1.AdmissionConfiguration': { plugins: '[]v1.AdmissionPluginConfiguration' },
  'v1.AdmissionPluginConfiguration': { name: 'string', path: 'string', configuration: '*runtime.Unknown' },
} as const

const ADMISSION = defineConfig(
  ['AdmissionConfiguration', 'v1.AdmissionConfiguration'],
  [`${CONFIG_GROUP}/v1`, 'apiserver.k8s.io/v1alpha1'],
  STRUCTS,
)

interface PluginPart extends Given<typeof STRUCTS, 'v1.AdmissionPluginConfiguration'> {
  /** The configuration as text, if the whole file is one. */
  readonly source?: string
}

export interface AdmissionConfigTools {
  readonly readFile: (path: string) => Promise<string>
  readonly enable: readonly string[]
  readonly disable: readonly string[]
}

/** Throws ProgramError with upstream's texts. Without a file the plugins have their own defaults. */
export async function loadAdmissionConfig(file: string, tools: AdmissionConfigTools): Promise<AdmissionFileSettings> {
  const parts = file === '' ? [] : await readParts(file, tools.readFile)
  let settings: AdmissionFileSettings = {}
  for (const name of enabledPlugins(tools)) {
    const reader = Object.hasOwn(READERS, name) ? READERS[name] : undefined
    if (reader === undefined) continue
    const part = parts.find((one) => one.name === name)
    const source = part === undefined ? undefined : await sourceOf(part, file, tools.readFile)
    settings = { ...settings, ...attempt(`couldn't init admission plugin ${goQuote(name)}`, () => reader(source)) }
  }
  return settings
}

async function readParts(file: string, readFile: AdmissionConfigTools['readFile']): Promise<readonly PluginPart[]> {
  const place = 'failed to read plugin config'
  const source = await readFile(file).catch((cause: Error) => {
    throw refusal(
      `${place}: unable to read admission control configuration from ${goQuote(file)} [${fileErrorText(file, cause)}]`,
      cause,
    )
  })
  return attempt(place, () => parseParts(source))
}

function parseParts(source: string): readonly PluginPart[] {
  try {
    const mistaken = (kind: string): string => `unexpected type: *apiserver.${kind}`
    const { value } = readConfig(source, [ADMISSION], { mistaken })
    return (value as Given<typeof STRUCTS, 'v1.AdmissionConfiguration'>).plugins ?? []
  } catch (error) {
    if (isUntyped(error) && isLegacy(source)) return LEGACY_PLUGINS.map((name) => ({ name, source }))
    throw error
  }
}

/** Plugins whose configuration may be the whole file, without kind and version. */
const LEGACY_PLUGINS = ['ImagePolicyWebhook', 'PodNodeSelector']
const LEGACY_FIELDS = ['imagePolicy', 'podNodeSelectorPluginConfig']

function isUntyped(error: unknown): boolean {
  const { cause } = error as Error
  return cause instanceof CodecError && ['no-kind', 'no-version', 'unknown-kind'].includes(cause.code)
}

function isLegacy(source: string): boolean {
  const value = parseYaml(source)
  return isJsonObject(value) && LEGACY_FIELDS.some((field) => Object.hasOwn(value, field))
}

/** Undefined if the part is empty. */
async function sourceOf(
  { configuration, path = '', source }: PluginPart,
  file: string,
  readFile: AdmissionConfigTools['readFile'],
): Promise<string | undefined> {
  if (source !== undefined) return source
  if (configuration !== undefined && configuration !== null) return JSON.stringify(configuration)
  if (path === '') return undefined
  const whole = isAbsolute(path) ? path : join(dirname(file), path)
  return readFile(whole).catch((cause: Error) => {
    throw refusal(`Couldn't open admission plugin configuration ${whole}: ${fileErrorText(whole, cause)}`, cause)
  })
}

function attempt<T>(place: string, task: () => T): T {
  try {
    return task()
  } catch (cause) {
    if (cause instanceof InitializationError) throw refusal(cause.message, cause)
    throw refusal(`${place}: ${(cause as Error).message}`, cause)
  }
}

function refusal(why: string, cause: unknown): ProgramError {
  return new ProgramError(`failed to apply admission: ${why}`, { cause })
}
