/** KubeSchedulerConfiguration v1: what a configuration file may say, read as strictly as upstream reads it, with its texts. */
import {
  anything,
  type ConfigKind,
  defineConfig,
  flag,
  listOf,
  optional,
  readConfig,
  scalar,
  struct,
  text,
} from '#meta/config-kind.ts'
import { apiVersionOf, parseApiVersion } from '#meta/kind.ts'

import { type PluginSets, POINTS } from '../extension-points.ts'
import { ARGS, ARGS_KINDS, GROUP_VERSION } from './plugin-args.ts'

export interface PluginConfig {
  readonly name: string
  readonly args?: object
}

export interface ProfileConfiguration {
  readonly schedulerName?: string
  readonly percentageOfNodesToScore?: number
  readonly plugins?: PluginSets
  readonly pluginConfig?: readonly PluginConfig[]
}

export interface ExtenderConfiguration {
  readonly urlPrefix?: string
  readonly filterVerb?: string
  readonly preemptVerb?: string
  readonly prioritizeVerb?: string
  readonly weight?: number
  readonly bindVerb?: string
  readonly enableHTTPS?: boolean
  readonly tlsConfig?: ExtenderTls
  readonly httpTimeout?: string
  readonly nodeCacheCapable?: boolean
  readonly managedResources?: readonly { readonly name?: string; readonly ignoredByScheduler?: boolean }[]
  readonly ignorable?: boolean
}

export interface ExtenderTls {
  readonly insecure?: boolean
  readonly serverName?: string
  readonly certFile?: string
  readonly keyFile?: string
  readonly caFile?: string
  /** In base64. */
  readonly certData?: string
  readonly keyData?: string
  readonly caData?: string
}

/** Durations as Go prints them. */
export interface LeaderElectionConfiguration {
  readonly leaderElect: boolean
  readonly leaseDuration: string
  readonly renewDeadline: string
  readonly retryPeriod: string
  readonly resourceLock: string
  readonly resourceName: string
  readonly resourceNamespace: string
}

export interface ClientConnectionConfiguration {
  readonly kubeconfig: string
  readonly acceptContentTypes: string
  readonly contentType: string
  readonly qps: number
  readonly burst: number
}

interface PlainConfiguration {
  readonly parallelism: number
  readonly enableProfiling: boolean
  readonly enableContentionProfiling: boolean
  readonly percentageOfNodesToScore: number
  readonly podInitialBackoffSeconds: number
  readonly podMaxBackoffSeconds: number
  readonly extenders: readonly ExtenderConfiguration[]
  readonly delayCacheUntilActive: boolean
}

/** With every default. */
export interface SchedulerConfiguration extends PlainConfiguration {
  readonly leaderElection: LeaderElectionConfiguration
  readonly clientConnection: ClientConnectionConfiguration
  readonly profiles: readonly ProfileConfiguration[]
}

/** What a file says, and no more. */
export interface GivenConfiguration extends Partial<PlainConfiguration> {
  readonly leaderElection?: Partial<LeaderElectionConfiguration>
  readonly clientConnection?: Partial<ClientConnectionConfiguration>
  readonly profiles?: readonly ProfileConfiguration[]
}

const int32 = scalar('int32')
const int64 = scalar('int64')
const duration = scalar('duration', 'v1.Duration')
const bytes = scalar('bytes', '[]uint8')
const PLUGIN_LIST = listOf(struct('v1.Plugin', { name: text, weight: optional(int32) }))
const PLUGIN_SET = struct('v1.PluginSet', { enabled: PLUGIN_LIST, disabled: PLUGIN_LIST })
const PROFILE = struct('v1.KubeSchedulerProfile', {
  schedulerName: optional(text),
  percentageOfNodesToScore: optional(int32),
  plugins: optional(
    struct('v1.Plugins', Object.fromEntries([...POINTS, 'multiPoint'].map((point) => [point, PLUGIN_SET]))),
  ),
  pluginConfig: listOf(struct('v1.PluginConfig', { name: text, args: optional(anything) })),
})
const EXTENDER = struct('v1.Extender', {
  urlPrefix: text,
  filterVerb: text,
  preemptVerb: text,
  prioritizeVerb: text,
  weight: int64,
  bindVerb: text,
  enableHTTPS: flag,
  tlsConfig: optional(
    struct('v1.ExtenderTLSConfig', {
      insecure: flag,
      serverName: text,
      certFile: text,
      keyFile: text,
      caFile: text,
      certData: bytes,
      keyData: bytes,
      caData: bytes,
    }),
  ),
  httpTimeout: duration,
  nodeCacheCapable: flag,
  managedResources: listOf(struct('v1.ExtenderManagedResource', { name: text, ignoredByScheduler: flag })),
  ignorable: flag,
})

export const CONFIGURATION: ConfigKind = defineConfig(
  'KubeSchedulerConfiguration',
  [GROUP_VERSION],
  'v1.KubeSchedulerConfiguration',
  {
    parallelism: optional(int32),
    leaderElection: struct('v1alpha1.LeaderElectionConfiguration', {
      leaderElect: optional(flag),
      leaseDuration: duration,
      renewDeadline: duration,
      retryPeriod: duration,
      resourceLock: text,
      resourceName: text,
      resourceNamespace: text,
    }),
    clientConnection: struct('v1alpha1.ClientConnectionConfiguration', {
      kubeconfig: text,
      acceptContentTypes: text,
      contentType: text,
      qps: scalar('float64', 'float32'),
      burst: int32,
    }),
    enableProfiling: optional(flag),
    enableContentionProfiling: optional(flag),
    percentageOfNodesToScore: optional(int32),
    podInitialBackoffSeconds: optional(int64),
    podMaxBackoffSeconds: optional(int64),
    profiles: listOf(PROFILE),
    extenders: listOf(EXTENDER),
    delayCacheUntilActive: flag,
  },
)

/** Fields that change nothing, and why: who sets one is told. */
export const IDLE_FIELDS: Readonly<Record<string, string>> = {
  parallelism: 'decisions are made one at a time',
  enableContentionProfiling: 'there are no locks to profile',
  'clientConnection.acceptContentTypes': 'answers are asked for as JSON',
  'clientConnection.contentType': 'requests are sent as JSON',
}

/** A sentence for each that the file sets. */
export function idleNotes(given: GivenConfiguration): string[] {
  return Object.entries(IDLE_FIELDS).flatMap(([path, why]) => {
    const value = path
      .split('.')
      .reduce<unknown>((at, name) => (at as Record<string, unknown> | undefined)?.[name], given)
    return value === undefined ? [] : [`${path} has no effect: ${why}`]
  })
}

const STRICT = 'strict decoding error: '

/** Throws upstream's texts. */
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

/** Arguments of plugins that nobody knows are nobody's business. `where` begins every complaint. */
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
