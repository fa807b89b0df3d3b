/** Defaults of KubeSchedulerConfiguration, as upstream: fields, and default plugins merged with those of a profile. */
import { type PluginSet, type PluginSets, type PluginSetting, POINTS } from '../framework/extension-points.ts'
import { DEFAULT_PLUGINS, PLUGIN_GATES } from '../plugins/index.ts'
import {
  CONFIGURATION,
  type GivenConfiguration,
  type PluginConfig,
  type ProfileConfiguration,
  type SchedulerConfiguration,
} from './configuration.ts'
import { ARGS, type IsEnabled } from './plugin-args.ts'

export function withDefaults(given: GivenConfiguration, isEnabled: IsEnabled): SchedulerConfiguration {
  const filled = CONFIGURATION.withDefaults(given)
  const { enableProfiling, profiles: named } = filled
  const profiles = (named.length === 0 ? [{}] : named).map((profile) => profileWithDefaults(profile, isEnabled))
  return {
    ...filled,
    enableContentionProfiling: given.enableContentionProfiling ?? enableProfiling,
    // With several profiles each needs an explicit name.
    profiles:
      profiles.length === 1 ? profiles.map((one) => ({ schedulerName: 'default-scheduler', ...one })) : profiles,
  }
}

function profileWithDefaults(profile: ProfileConfiguration, isEnabled: IsEnabled): ProfileConfiguration {
  const plugins = mergePlugins(defaultPlugins(isEnabled), profile.plugins ?? {})
  const given = (profile.pluginConfig ?? []).map(({ name, args }): PluginConfig => {
    const known = ARGS.get(name)
    return known === undefined
      ? { name, ...(args !== undefined && { args }) }
      : { name, args: known.withDefaults(args ?? {}, isEnabled) }
  })
  const givenNames = new Set(given.map(({ name }) => name))
  const enabled = new Set(Object.values(plugins).flatMap((set) => (set.enabled ?? []).map(({ name }) => name)))
  const rest = [...enabled].sort().flatMap((name): PluginConfig[] => {
    const known = givenNames.has(name) ? undefined : ARGS.get(name)
    return known === undefined ? [] : [{ name, args: known.withDefaults({}, isEnabled) }]
  })
  return { ...profile, plugins, pluginConfig: [...given, ...rest] }
}

function defaultPlugins(isEnabled: IsEnabled): PluginSetting[] {
  return DEFAULT_PLUGINS.filter(([name]) => {
    const gate = PLUGIN_GATES.get(name)
    return gate === undefined || isEnabled(gate)
  }).map(([name, weight = 0]) => ({ name, weight }))
}

/** Every extension point has a plugin set, in upstream's order. */
function mergePlugins(defaults: readonly PluginSetting[], own: PluginSets): PluginSets {
  const multiPoint = mergeSet(defaults, own.multiPoint ?? {})
  const sets = POINTS.map((point) => [point, mergeSet([], own[point] ?? {})] as const)
  return { ...(Object.fromEntries(sets) as PluginSets), multiPoint }
}

/** A default plugin keeps its position and takes the given weight; the other given plugins follow. */
function mergeSet(defaults: readonly PluginSetting[], { enabled = [], disabled = [] }: PluginSet): PluginSet {
  const off = new Set(disabled.map(({ name }) => name))
  const replaced = new Set<PluginSetting>()
  const kept = off.has('*')
    ? []
    : defaults
        .filter(({ name }) => !off.has(name))
        .map((one) => {
          const own = enabled.findLast(({ name }) => name === one.name)
          if (own !== undefined) replaced.add(own)
          return own ?? one
        })
  const weighted = ({ name, weight = 0 }: PluginSetting): PluginSetting => ({ name, weight })
  return {
    enabled: [...kept, ...enabled.filter((one) => !replaced.has(one))].map(weighted),
    disabled: disabled.map(({ name }) => ({ name, weight: 0 })),
  }
}
