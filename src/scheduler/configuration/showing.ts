/** A configuration as others see it: on /configz, and in the file of `--write-config-to`. */
import { stringifyYaml } from '#lib/yaml-write.ts'

import { type PluginSet, type PluginSets } from '../extension-points.ts'
import type { PluginConfig, ProfileConfiguration, SchedulerConfiguration } from './configuration.ts'
import { ARGS, GROUP_VERSION } from './plugin-args.ts'

/** In upstream's order of fields. */
export function shownConfiguration(config: SchedulerConfiguration): object {
  const { extenders, delayCacheUntilActive } = config
  return {
    kind: 'KubeSchedulerConfiguration',
    apiVersion: GROUP_VERSION,
    parallelism: config.parallelism,
    leaderElection: config.leaderElection,
    clientConnection: config.clientConnection,
    enableProfiling: config.enableProfiling,
    enableContentionProfiling: config.enableContentionProfiling,
    percentageOfNodesToScore: config.percentageOfNodesToScore,
    podInitialBackoffSeconds: config.podInitialBackoffSeconds,
    podMaxBackoffSeconds: config.podMaxBackoffSeconds,
    profiles: config.profiles.map(shownProfile),
    ...(extenders.length > 0 && { extenders }),
    ...(delayCacheUntilActive && { delayCacheUntilActive }),
  }
}

/** Only what takes part, in order of names. */
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

const SHOWN_POINTS = [
  'preEnqueue',
  'queueSort',
  'preFilter',
  'filter',
  'postFilter',
  'preScore',
  'score',
  'reserve',
  'permit',
  'preBind',
  'bind',
  'postBind',
  'multiPoint',
  'placementGenerate',
  'placementScore',
] as const satisfies readonly (keyof PluginSets)[]

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
