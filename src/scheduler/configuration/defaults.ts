/** What a configuration says when it says nothing: upstream's defaults, and its plugins with what a profile changes of them. */
import { type PluginSet, type PluginSets, type PluginSetting, POINTS } from '../extension-points.ts'
import { DEFAULT_PLUGINS, PLUGIN_GATES } from '../plugins/index.ts'
import type {
  ClientConnectionConfiguration,
  GivenConfiguration,
  LeaderElectionConfiguration,
  PluginConfig,
  ProfileConfiguration,
  SchedulerConfiguration,
} from './configuration.ts'
import { ARGS, type IsEnabled } from './plugin-args.ts'

export function withDefaults(given: GivenConfiguration, isEnabled: IsEnabled): SchedulerConfiguration {
  const { enableProfiling = true, enableContentionProfiling = enableProfiling, profiles: named = [] } = given
  const profiles = (named.length === 0 ? [{}] : named).map((profile) => profileWithDefaults(profile, isEnabled))
  return {
    parallelism: 16,
    percentageOfNodesToScore: 0,
    podInitialBackoffSeconds: 1,
    podMaxBackoffSeconds: 10,
    extenders: [],
    delayCacheUntilActive: false,
    ...given,
    leaderElection: leaderElectionOf(given.leaderElection ?? {}),
    clientConnection: clientConnectionOf(given.clientConnection ?? {}),
    enableProfiling,
    enableContentionProfiling,
    // Of several each must say its name.
    profiles:
      profiles.length === 1 ? profiles.map((one) => ({ schedulerName: 'default-scheduler', ...one })) : profiles,
  }
}

function leaderElectionOf(given: NonNullable<GivenConfiguration['leaderElection']>): LeaderElectionConfiguration {
  return {
    leaderElect: given.leaderElect ?? true,
    leaseDuration: unlessEmpty(given.leaseDuration, '15s'),
    renewDeadline: unlessEmpty(given.renewDeadline, '10s'),
    retryPeriod: unlessEmpty(given.retryPeriod, '2s'),
    resourceLock: unlessEmpty(given.resourceLock, 'leases'),
    resourceName: unlessEmpty(given.resourceName, 'kube-scheduler'),
    resourceNamespace: unlessEmpty(given.resourceNamespace, 'kube-system'),
  }
}

function clientConnectionOf(given: NonNullable<GivenConfiguration['clientConnection']>): ClientConnectionConfiguration {
  return {
    kubeconfig: given.kubeconfig ?? '',
    acceptContentTypes: given.acceptContentTypes ?? '',
    contentType: unlessEmpty(given.contentType, 'application/vnd.kubernetes.protobuf'),
    qps: unlessEmpty(given.qps, 50),
    burst: unlessEmpty(given.burst, 100),
  }
}

function unlessEmpty<T extends string | number>(value: T | undefined, otherwise: NoInfer<T>): T {
  return value === undefined || value === '' || value === 0 || value === '0s' ? otherwise : value
}

function profileWithDefaults(profile: ProfileConfiguration, isEnabled: IsEnabled): ProfileConfiguration {
  const plugins = mergePlugins(defaultPlugins(isEnabled), profile.plugins ?? {})
  const given = (profile.pluginConfig ?? []).map(({ name, args }): PluginConfig => {
    const known = ARGS.get(name)
    return known === undefined
      ? { name, ...(args !== undefined && { args }) }
      : { name, args: known.withDefaults((args ?? {}) as never, isEnabled) }
  })
  const said = new Set(given.map(({ name }) => name))
  const enabled = new Set(Object.values(plugins).flatMap((set) => (set.enabled ?? []).map(({ name }) => name)))
  const rest = [...enabled].sort().flatMap((name): PluginConfig[] => {
    const known = said.has(name) ? undefined : ARGS.get(name)
    return known === undefined ? [] : [{ name, args: known.withDefaults({} as never, isEnabled) }]
  })
  return { ...profile, plugins, pluginConfig: [...given, ...rest] }
}

function defaultPlugins(isEnabled: IsEnabled): PluginSetting[] {
  return DEFAULT_PLUGINS.filter(([name]) => {
    const gate = PLUGIN_GATES.get(name)
    return gate === undefined || isEnabled(gate)
  }).map(([name, weight = 0]) => ({ name, weight }))
}

/** Every point has a set, in upstream's order. */
function mergePlugins(defaults: readonly PluginSetting[], own: PluginSets): PluginSets {
  const multiPoint = mergeSet(defaults, own.multiPoint ?? {})
  const sets = POINTS.map((point) => [point, mergeSet([], own[point] ?? {})] as const)
  return { ...(Object.fromEntries(sets) as PluginSets), multiPoint }
}

/** What is on anyway keeps its place, with the weight that it is given; the rest follows. */
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
