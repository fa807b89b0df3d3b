/**
 * Loads the kubelet's configuration: the file of `--config`, then the drop-ins of `--config-dir` in order, then the
 * defaults. Pure.
 */
import { resolve } from 'node:path'

import { applyMergePatch } from '#lib/json/merge-patch.ts'
import type { JsonValue } from '#lib/json/value.ts'
import { parseYaml } from '#lib/yaml/yaml.ts'
import { readConfig } from '#meta/config-kind.ts'

import {
  CONFIGURATION,
  type GivenConfiguration,
  GROUP_VERSION,
  type KubeletConfiguration,
  readConfiguration,
} from './configuration.ts'
import { EVICTION_HARD, withDefaults } from './defaults.ts'
import { plainConfiguration } from './printing.ts'

export interface ConfigurationFile {
  /** An absolute path. */
  readonly path: string
  readonly source: string
}

/** Throws upstream's errors. `warn` receives errors that only the lenient parser accepts. */
export function loadFile({ path, source }: ConfigurationFile, warn: (error: string) => void): KubeletConfiguration {
  if (source === '') throw new Error(`kubelet config file "${path}" was empty`)
  const given = readConfiguration(source, warn)
  const config = withDefaults(absolute(given, resolve(path, '..')))
  return { ...config, evictionHard: evictionsOf(config) }
}

function evictionsOf({ evictionHard, mergeDefaultEvictionSettings: merges }: KubeletConfiguration): EvictionThresholds {
  return evictionHard === undefined ? EVICTION_HARD : merges ? { ...EVICTION_HARD, ...evictionHard } : evictionHard
}

type EvictionThresholds = Readonly<Record<string, string>>

/** Paths relative to the file that contains them. */
const PATHS = ['staticPodPath', 'tlsCertFile', 'tlsPrivateKeyFile', 'resolvConf', 'volumePluginDir', 'podLogsDir']

function absolute(given: GivenConfiguration, folder: string): GivenConfiguration {
  const resolved = (value: unknown): unknown =>
    typeof value === 'string' && value !== '' ? resolve(folder, value) : value
  const own = Object.fromEntries(PATHS.filter((name) => name in given).map((name) => [name, resolved(given[name])]))
  const { authentication } = given as { authentication?: { x509?: { clientCAFile?: string } } }
  if (authentication?.x509?.clientCAFile === undefined) return { ...given, ...own }
  const x509 = { clientCAFile: resolved(authentication.x509.clientCAFile) }
  return { ...given, ...own, authentication: { ...authentication, x509 } }
}

/** A drop-in contains only the fields it changes. Throws upstream's errors. */
export function mergeDropIns(base: KubeletConfiguration, files: readonly ConfigurationFile[]): KubeletConfiguration {
  const merged = files.reduce<JsonValue>(
    (before, file) => applyMergePatch(before, dropIn(file)),
    plainConfiguration(base) as unknown as JsonValue,
  )
  const whole = { ...(merged as object), kind: CONFIGURATION.kind, apiVersion: GROUP_VERSION }
  try {
    return withDefaults(readConfiguration(JSON.stringify(whole)))
  } catch (cause) {
    const why = (cause as Error).message
    throw new Error(`failed to unmarshal merged JSON into kubelet configuration: ${why}`, { cause })
  }
}

function dropIn({ path, source }: ConfigurationFile): JsonValue {
  const start = `failed to load kubelet dropin file, path: ${path}, `
  const failed = (why: string, cause?: unknown): never => {
    throw new Error(`${start}${why}`, { cause })
  }
  if (source === '') return failed(`error: kubelet config file "${path}" was empty`)
  let value: Record<string, JsonValue>
  try {
    readConfig(source, [CONFIGURATION])
    value = parseYaml(source) as Record<string, JsonValue>
  } catch (cause) {
    return failed(`error: ${(cause as Error).message}`, cause)
  }
  const { kind: _, apiVersion: __, ...own } = value
  return own
}
