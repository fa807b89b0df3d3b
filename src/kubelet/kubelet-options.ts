/** What a kubelet is made of, and what it is told. */
import type { Node } from '#apis/core/v1.ts'
import type { ApiClientOptions } from '#client/api-client.ts'
import type { Clock } from '#lib/clock.ts'
import type { Logger } from '#lib/log.ts'
import type { Registry } from '#lib/metrics.ts'
import type { Random } from '#lib/random.ts'
import type { ZPages } from '#model/zpages.ts'

import type { NodeTraits } from './admission-rules.ts'
import type { Reserved } from './allocatable.ts'
import type { Cgroups } from './cgroups/node-cgroups.ts'
import type { ProviderConfig } from './credentials/provider-config.ts'
import type { Verification } from './credentials/pull-policy.ts'
import type { Runtime } from './cri/runtime.ts'
import type { EvictionSettings } from './eviction/node-eviction.ts'
import type { LogPolicy } from './log-rotation.ts'
import type { Machine } from './machine/machine.ts'
import type { Cloud } from './node-status.ts'
import type { PodWorkersOptions } from './pods/pod-host.ts'
import type { PodFacts } from './pods/pod-of-node.ts'
import type { Serving } from './server/ports.ts'
import type { ShutdownPeriod } from './shutdown/shutdown-groups.ts'
import type { ShutdownSource } from './shutdown/shutdown-manager.ts'
import type { StaticSources } from './static-pods/sources.ts'
import type { TopologySettings } from './topology/topology-settings.ts'
import type { VolumeKeeper } from './volumes/volume-keeper.ts'

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
  /** Default: as a kubelet that was told nothing. */
  readonly node?: NodeSettings
  /** Default: as upstream's. */
  readonly logs?: LogPolicy
  /** Default: on the disk, below `pods.rootDir`. */
  readonly volumes?: VolumeKeeper
  /** When pods are ended for others. Default: as upstream's. */
  readonly eviction?: EvictionSettings
  readonly garbage?: PodWorkersOptions['garbage']
  readonly pulls?: PodWorkersOptions['pulls']
  /** Who may use an image that is there; `off`: everybody, and nothing is noted. Default: as upstream's. */
  readonly verification?: Verification | 'off'
  /** Default: processors are shared by all. */
  readonly topology?: TopologySettings
  /** Default: the runtime makes the cgroups of pods, and nobody removes them. */
  readonly cgroups?: Cgroups
  /** What pods are refused for, beside what the Node tells. */
  readonly traits?: Pick<NodeTraits, 'allowedSysctls' | 'hasAppArmor' | 'isTolerated'>
  /** Who tells when the machine shuts down, and how long pods get then. Default: nobody is waited for. */
  readonly shutdown?: { readonly source: ShutdownSource; readonly periods: readonly ShutdownPeriod[] }
  /** Pods that come from no API server. Default: none. */
  readonly staticPods?: StaticSources & { readonly isEnabled: (gate: string) => boolean }
  /** Programs that know credentials of registries. Default: none. */
  readonly credentials?: CredentialPrograms
  /** A file in docker's form with passwords of registries, for every pod. Default: none. */
  readonly registryFile?: string
  readonly serving: Serving
  /** For `/metrics`; what is in it already is shown too. Default: its own. */
  readonly registry?: Registry
  /** `/configz`. */
  readonly configuration: object
  /** `/statusz` and `/flagz`. Default: there are none. */
  readonly zpages?: ZPages
  /** The directory behind `/logs/` of the port. Default: the path is disabled. */
  readonly logDirectory?: string
}

export interface CredentialPrograms {
  readonly providers: readonly ProviderConfig[]
  /** Where the programs are. */
  readonly binDir: string
  readonly env: Readonly<Record<string, string | undefined>>
  /** Of the files that say it: `sha256:…`. */
  readonly hash: string
}

/** What a KubeletConfiguration says of the node itself. */
export interface NodeSettings {
  readonly reserved?: Reserved
  readonly maxImages?: number
  readonly providerId?: string
  /** Others say where the node is, by what it was given (0.0.0.0: nothing for sure). Default: the node says it itself. */
  readonly cloud?: Cloud | undefined
  readonly registers?: boolean
  readonly lookMs?: number
  readonly reportMs?: number
  readonly leaseSeconds?: number
  readonly callLimitMs?: number
  /** How old figures of volumes may be; 0: they are not measured. Default: a minute. */
  readonly volumesMs?: number
  readonly limits?: { readonly qps: number; readonly burst: number }
  readonly eventLimits?: { readonly qps: number; readonly burst: number }
}
