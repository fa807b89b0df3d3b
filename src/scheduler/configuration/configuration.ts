/** Decodes KubeSchedulerConfiguration v1 as strictly as upstream does, with its error texts. */
import { type ConfigTable, defineConfig, readConfig } from '#meta/config-kind.ts'
import { type Complete, type Given, valueAt } from '#meta/config-rows.ts'
import { apiVersionOf, parseApiVersion } from '#meta/kind.ts'

import type { PluginSets } from '../framework/extension-points.ts'
import { ARGS, ARGS_KINDS, GROUP_VERSION } from './plugin-args.ts'

const STRUCTS = {
  'v1.KubeSchedulerConfiguration': {
    parallelism: '*int32 =16 idle: decisions are made one at a time',
    leaderElection: 'v1alpha1.LeaderElectionConfiguration',
    clientConnection: 'v1alpha1.ClientConnectionConfiguration',
    enableProfiling: '*bool =true --profiling',
    enableContentionProfiling: '*bool =true idle: there are no locks to profile',
    percentageOfNodesToScore: '*int32 =0',
    podInitialBackoffSeconds: '*int64 =1',
    podMaxBackoffSeconds: '*int64 =10',
    profiles: '[]v1.KubeSchedulerProfile =',
    extenders: '[]v1.Extender =',
    delayCacheUntilActive: 'bool =false',
  },
  'v1alpha1.LeaderElectionConfiguration': {
    leaderElect: '*bool =true --leader-elect',
    leaseDuration: 'v1.Duration =15s --leader-elect-lease-duration',
    renewDeadline: 'v1.Duration =10s --leader-elect-renew-deadline',
    retryPeriod: 'v1.Duration =2s --leader-elect-retry-period',
    resourceLock: 'string =leases',
    resourceName: 'string =kube-scheduler --leader-elect-resource-name',
    resourceNamespace: 'string =kube-system --leader-elect-resource-namespace',
  },
  'v1alpha1.ClientConnectionConfiguration': {
    kubeconfig: 'string = --kubeconfig',
    acceptContentTypes: 'string = idle: responses are requested as JSON',
    contentType: 'string =application/vnd.kubernetes.protobuf idle: requests are sent as JSON',
    qps: 'float32 =50 --kube-api-qps',
    burst: 'int32 =100 --kube-api-burst',
  },
  'v1.KubeSchedulerProfile': {
    schedulerName: '*string',
    percentageOfNodesToScore: '*int32',
    plugins: '*v1.Plugins',
    pluginConfig: '[]v1.PluginConfig',
  },
  'v1.Plugins': {
    preEnqueue: 'v1.PluginSet',
    queueSort: 'v1.PluginSet',
    preFilter: 'v1.PluginSet',
    filter: 'v1.PluginSet',
    postFilter: 'v1.PluginSet',
    preScore: 'v1.PluginSet',
    score: 'v1.PluginSet',
    reserve: 'v1.PluginSet',
    permit: 'v1.PluginSet',
    preBind: 'v1.PluginSet',
    bind: 'v1.PluginSet',
    postBind: 'v1.PluginSet',
    multiPoint: 'v1.PluginSet',
    placementGenerate: 'v1.PluginSet',
    placementScore: 'v1.PluginSet',
  },
  'v1.PluginSet': { enabled: '[]v1.Plugin', disabled: '[]v1.Plugin' },
  'v1.Plugin': { name: 'string =', weight: '*int32' },
  'v1.PluginConfig': { name: 'string =', args: '*runtime.RawExtension' },
  'v1.Extender': {
    urlPrefix: 'string',
    filterVerb: 'string',
    preemptVerb: 'string',
    prioritizeVerb: 'string',
    weight: 'int64',
    bindVerb: 'string',
    enableHTTPS: 'bool',
    tlsConfig: '*v1.ExtenderTLSConfig',
    httpTimeout: 'v1.Duration',
    nodeCacheCapable: 'bool',
    managedResources: '[]v1.ExtenderManagedResource',
    ignorable: 'bool',
  },
  'v1.ExtenderTLSConfig': {
    insecure: 'bool',
    serverName: 'string',
    certFile: 'string',
    keyFile: 'string',
    caFile: 'string',
    certData: '[]uint8',
    keyData: '[]uint8',
    caData: '[]uint8',
  },
  'v1.ExtenderManagedResource': { name: 'string', ignoredByScheduler: 'bool' },
} as const

type Structs = typeof STRUCTS

export interface PluginConfig {
  readonly name: string
  readonly args?: object
}

export interface ProfileConfiguration extends Omit<
  Given<Structs, 'v1.KubeSchedulerProfile'>,
  'plugins' | 'pluginConfig'
> {
  readonly plugins?: PluginSets
  readonly pluginConfig?: readonly PluginConfig[]
}

export interface ExtenderConfiguration extends Given<Structs, 'v1.Extender'> {}

/** Certificates and keys are in base64. */
export interface ExtenderTls extends Given<Structs, 'v1.ExtenderTLSConfig'> {}

/** Durations as Go prints them. */
export interface LeaderElectionConfiguration extends Complete<Structs, 'v1alpha1.LeaderElectionConfiguration'> {}

interface WithProfiles {
  readonly profiles: readonly ProfileConfiguration[]
}

/** With every default applied. */
export interface SchedulerConfiguration
  extends Omit<Complete<Structs, 'v1.KubeSchedulerConfiguration'>, 'profiles'>, WithProfiles {}

/** The file's fields without defaults. */
export interface GivenConfiguration
  extends Omit<Given<Structs, 'v1.KubeSchedulerConfiguration'>, 'profiles'>, Partial<WithProfiles> {}

export const CONFIGURATION: ConfigTable<SchedulerConfiguration> = defineConfig(
  ['KubeSchedulerConfiguration', 'v1.KubeSchedulerConfiguration'],
  [GROUP_VERSION],
  STRUCTS,
)

/** In upstream's order. */
export const SHOWN_POINTS: readonly (keyof PluginSets)[] = Object.keys(STRUCTS['v1.Plugins']) as (keyof PluginSets)[]

/** One warning for each field without effect that the file sets. */
export function idleNotes(given: GivenConfiguration): string[] {
  return CONFIGURATION.options.flatMap(({ path, idle }) =>
    idle === undefined || valueAt(given, path) === undefined ? [] : [`${path} has no effect: ${idle}`],
  )
}

const STRICT = 'strict decoding error: '

/** Throws upstream's error texts. */
export function readConfiguration(source: string): GivenConfiguration {
  const strict: string[] = []
  const warn = (message: string): void => void strict.push(message.slice(STRICT.length))
  const { gvk, value } = readConfig(source, [CONFIGURATION, ...ARGS_KINDS], { warn })
  if (gvk.kind !== CONFIGURATION.kind) {
    throw new Error(`couldn't decode as KubeSchedulerConfiguration, got ${apiVersionOf(gvk)}, Kind=${gvk.kind}: `)
  }
  const given = value as GivenConfiguration
  const profiles = given.profiles?.map((profile, at) => ({
    ...profile,
    ...(profile.pluginConfig !== undefined && {
      pluginConfig: profile.pluginConfig.map((one, place) =>
        readArgs(one, `decoding .profiles[${at}].pluginConfig[${place}]: `, (wrong) => strict.push(wrong)),
      ),
    }),
  }))
  if (strict.length > 0) throw new Error(`${STRICT}${strict.join(', ')}`)
  return { ...given, ...(profiles !== undefined && { profiles }) }
}

/** Ignores the arguments of unknown plugins. `where` prefixes every error. */
function readArgs(config: PluginConfig, where: string, isStrict: (text: string) => void): PluginConfig {
  const { name, args = {} } = config
  const own = ARGS.get(name)
  if (own === undefined) return config
  const start = `decoding args for plugin ${name}: `
  const defaultKind = { ...parseApiVersion(GROUP_VERSION), kind: own.kind.kind }
  const warn = (message: string): void => isStrict(`${where}${STRICT}${start}${message}`)
  let read
  try {
    read = readConfig(JSON.stringify(args), ARGS_KINDS, { defaultKind, warn })
  } catch (cause) {
    throw new Error(`${where}${start}${(cause as Error).message}`, { cause })
  }
  const { gvk, value } = read
  if (gvk.kind !== defaultKind.kind) {
    const { group } = defaultKind
    throw new Error(
      `${where}args for plugin ${name} were not of type ${defaultKind.kind}.${group}, got ${gvk.kind}.${gvk.group}`,
    )
  }
  const { kind: _, apiVersion: __, ...rest } = value
  return { name, args: rest }
}
