/** Prints a KubeSchedulerConfiguration for /configz and for `--write-config-to`. */
import { stringifyYaml } from '#lib/yaml/write.ts'

import type { PluginSet } from '../framework/extension-points.ts'
import {
  CONFIGURATION,
  type PluginConfig,
  type ProfileConfiguration,
  type SchedulerConfiguration,
  SHOWN_POINTS,
} from './configuration.ts'
import { ARGS, GROUP_VERSION } from './plugin-args.ts'

/** Fields in upstream's order. */
export function shownConfiguration(config: SchedulerConfiguration): object {
  const { extenders, delayCacheUntilActive, ...shown } = config
  return {
    kind: CONFIGURATION.kind,
    apiVersion: GROUP_VERSION,
    ...shown,
    profiles: config.profiles.map(shownProfile),
    ...(extenders.length > 0 && { extenders }),
    ...(delayCacheUntilActive && { delayCacheUntilActive }),
  }
}

/** Contains only the arguments of enabled plugins, sorted by name. */
export function writtenConfiguration(config: SchedulerConfiguration): string {
  const profiles = config.profiles.map((profile): ProfileConfiguration => {
    const enabled = new Set(
      Object.values(profile.plugins ?? {})
        .flatMap((set) => set.enabled ?? [])
        .map(({ name }) => name),
    )
    const used = (profile.pluginConfig ?? []).filter(({ name }) => enabled.has(name))
    return { ...profile, pluginConfig: used.toSorted((a, b) => (a.name < b.name ? -1 : 1)) }
  })
  return stringifyYaml(shownConfiguration({ ...config, profiles }))
}

function shownProfile(profile: ProfileConfiguration): object {
  const { schedulerName, percentageOfNodesToScore, plugins = {}, pluginConfig = [] } = profile
  return {
    schedulerName,
    ...(percentageOfNodesToScore !== undefined && { percentageOfNodesToScore }),
    plugins: Object.fromEntries(SHOWN_POINTS.map((point) => [point, shownSet(plugins[point] ?? {})])),
    pluginConfig: pluginConfig.map(shownArgs),
  }
}

function shownSet({ enabled = [], disabled = [] }: PluginSet): PluginSet {
  return { ...(enabled.length > 0 && { enabled }), ...(disabled.length > 0 && { disabled }) }
}

function shownArgs({ name, args }: PluginConfig): object {
  const known = ARGS.get(name)
  if (known === undefined) return { name, ...(args !== undefined && { args }) }
  const given = args as Readonly<Record<string, unknown>>
  const fields = known.fields.filter((field) => given[field] !== undefined).map((field) => [field, given[field]])
  return { name, args: { kind: known.kind.kind, apiVersion: GROUP_VERSION, ...Object.fromEntries(fields) } }
}
