/** The options of a kubelet: its dependencies and settings. */
import type { Node } from '#apis/core/v1.ts'
import type { ApiClientOptions } from '#client/api-client.ts'
import type { Runtime } from '#cri/runtime.ts'
import type { Clock } from '#lib/clock.ts'
import type { Logger } from '#lib/log/log.ts'
import type { Registry } from '#lib/metrics/metrics.ts'
import type { Random } from '#lib/random.ts'
import type { ZPages } from '#model/zpages.ts'

import type { Cgroups } from './cgroups/node-cgroups.ts'
import type { ProviderConfig } from './credentials/provider-config.ts'
import type { Verification } from './credentials/pull-policy.ts'
import type { EvictionSettings } from './eviction/node-eviction.ts'
import type { Machine } from './machine/machine.ts'
import type { Reserved } from './node/allocatable.ts'
import type { Cloud } from './node/node-status.ts'
import type { NodeTraits } from './pod/admission-rules.ts'
import type { PodFacts } from './pod/pod-of-node.ts'
import type { PodWorkersOptions } from './pods/pod-host.ts'
import type { LogPolicy } from './runtime/log-rotation.ts'
import type { Serving } from './server/ports.ts'
import type { ShutdownPeriod } from './shutdown/shutdown-groups.ts'
import type { ShutdownSource } from './shutdown/shutdown-manager.ts'
import type { StaticSources } from './static-pods/sources.ts'
import type { TopologySettings } from './topology/topology-settings.ts'
import type { VolumeManager } from './volumes/volume-manager.ts'

export interface KubeletOptions {
  readonly name: string
  readonly clock: Clock
  readonly random: Random
  readonly log: Logger
  /** How to reach the API server as `system:node:<name>`. */
  readonly connect: Pick<ApiClientOptions, 'transport' | 'server' | 'bearerToken'>
  readonly runtime: Runtime
  readonly machine: Machine
  readonly pods: Omit<PodFacts, 'nodeName' | 'addresses' | 'memoryBytes' | 'forbidsSwap'>
  readonly labels?: Readonly<Record<string, string>>
  readonly taints?: NonNullable<Node['spec']['taints']>
  /** Default: upstream's defaults. */
  readonly node?: NodeSettings
  /** Default: upstream's. */
  readonly logs?: LogPolicy
  /** Default: on disk, below `pods.rootDir`. */
  readonly volumes?: VolumeManager
  /** Thresholds for evicting pods. Default: upstream's. */
  readonly eviction?: EvictionSettings
  readonly garbage?: PodWorkersOptions['garbage']
  readonly pulls?: PodWorkersOptions['pulls']
  /**
   * The pods that may use a present image without its credentials. `off`: every pod, and pulls are not recorded.
   * Default: upstream's.
   */
  readonly verification?: Verification | 'off'
  /** Default: CPUs are shared by all containers. */
  readonly topology?: TopologySettings
  /** Default: the runtime creates the cgroups of pods, and the kubelet does not remove them. */
  readonly cgroups?: Cgroups
  /** Node facts for admission that the Node object does not contain. */
  readonly traits?: Pick<NodeTraits, 'allowedSysctls' | 'hasAppArmor' | 'isTolerated'>
  /** Source of shutdown signals, and the grace periods of pods. Default: no graceful shutdown. */
  readonly shutdown?: { readonly source: ShutdownSource; readonly periods: readonly ShutdownPeriod[] }
  /** Sources of static pods. Default: none. */
  readonly staticPods?: StaticSources & { readonly isEnabled: (gate: string) => boolean }
  /** Credential provider plugins. Default: none. */
  readonly credentials?: CredentialPrograms
  /** A docker config file with registry credentials for every pod. Default: none. */
  readonly registryFile?: string
  readonly serving: Serving
  /** Registry of `/metrics`; metrics already in it are served as well. Default: a new registry. */
  readonly registry?: Registry
  /** Served on `/configz`. */
  readonly configuration: object
  /** Serves `/statusz` and `/flagz`. Default: disabled. */
  readonly zpages?: ZPages
  /** The directory served on `/logs/`. Default: the path is disabled. */
  readonly logDirectory?: string
}

export interface CredentialPrograms {
  readonly providers: readonly ProviderConfig[]
  /** Directory of the plugin binaries. */
  readonly binDir: string
  readonly env: Readonly<Record<string, string | undefined>>
  /** Hash of the configuration files: `sha256:…`. */
  readonly hash: string
}

/** Settings of the node from KubeletConfiguration. */
export interface NodeSettings {
  readonly reserved?: Reserved
  readonly maxImages?: number
  readonly providerId?: string
  /**
   * A cloud controller sets the node addresses, given `--node-ip` (0.0.0.0: unspecified). Default: the kubelet sets
   * them.
   */
  readonly cloud?: Cloud | undefined
  readonly registers?: boolean
  readonly statusUpdateMs?: number
  readonly statusReportMs?: number
  readonly leaseSeconds?: number
  readonly runtimeTimeoutMs?: number
  /** Maximum age of volume stats; 0 disables them. Default: one minute. */
  readonly volumeStatsMs?: number
  readonly limits?: { readonly qps: number; readonly burst: number }
  readonly eventLimits?: { readonly qps: number; readonly burst: number }
}
