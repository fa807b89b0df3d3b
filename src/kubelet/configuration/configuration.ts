/** What a kubelet is told: KubeletConfiguration v1beta1, as a program reads it. */
import type { Taint } from '#apis/core/v1.ts'
import { readConfig } from '#meta/config-kind.ts'

import { CONFIGURATION } from './fields.ts'

type Words = Readonly<Record<string, string>>

export interface LoggingConfiguration {
  readonly format: string
  /** Nanoseconds, or a duration. */
  readonly flushFrequency: number | string
  readonly verbosity: number
  readonly vmodule?: readonly { readonly filePattern: string; readonly verbosity: number }[]
  readonly options: object
}

/** With every default. Durations are as Go prints them. */
export interface KubeletConfiguration {
  readonly enableServer: boolean
  readonly staticPodPath?: string
  readonly podLogsDir: string
  readonly syncFrequency: string
  readonly fileCheckFrequency: string
  readonly httpCheckFrequency: string
  readonly staticPodURL?: string
  readonly staticPodURLHeader?: Readonly<Record<string, readonly string[]>>
  readonly address: string
  readonly port: number
  readonly readOnlyPort?: number
  readonly tlsCertFile?: string
  readonly tlsPrivateKeyFile?: string
  readonly tlsCipherSuites?: readonly string[]
  readonly tlsCurvePreferences?: readonly number[]
  readonly tlsMinVersion?: string
  readonly rotateCertificates?: boolean
  readonly serverTLSBootstrap?: boolean
  readonly authentication: {
    readonly x509: { readonly clientCAFile?: string }
    readonly webhook: { readonly enabled: boolean; readonly cacheTTL: string }
    readonly anonymous: { readonly enabled: boolean }
  }
  readonly authorization: {
    readonly mode: string
    readonly webhook: { readonly cacheAuthorizedTTL: string; readonly cacheUnauthorizedTTL: string }
  }
  readonly registryPullQPS: number
  readonly registryBurst: number
  readonly imagePullCredentialsVerificationPolicy: string
  readonly preloadedImagesVerificationAllowlist?: readonly string[]
  readonly eventRecordQPS: number
  readonly eventBurst: number
  readonly enableDebuggingHandlers: boolean
  readonly enableContentionProfiling?: boolean
  readonly healthzPort: number
  readonly healthzBindAddress: string
  readonly oomScoreAdj: number
  readonly clusterDomain?: string
  readonly clusterDNS?: readonly string[]
  readonly streamingConnectionIdleTimeout: string
  readonly nodeStatusUpdateFrequency: string
  readonly nodeStatusReportFrequency: string
  readonly nodeLeaseDurationSeconds: number
  readonly imageMinimumGCAge: string
  readonly imageMaximumGCAge: string
  readonly imageGCHighThresholdPercent: number
  readonly imageGCLowThresholdPercent: number
  readonly volumeStatsAggPeriod: string
  readonly kubeletCgroups?: string
  readonly systemCgroups?: string
  readonly cgroupRoot?: string
  readonly cgroupsPerQOS: boolean
  readonly cgroupDriver: string
  readonly cpuManagerPolicy: string
  readonly singleProcessOOMKill?: boolean
  readonly cpuManagerPolicyOptions?: Words
  readonly cpuManagerReconcilePeriod: string
  readonly memoryManagerPolicy: string
  readonly topologyManagerPolicy: string
  readonly topologyManagerScope: string
  readonly topologyManagerPolicyOptions?: Words
  readonly qosReserved?: Words
  readonly runtimeRequestTimeout: string
  readonly hairpinMode: string
  readonly maxPods: number
  readonly podCIDR?: string
  readonly podPidsLimit: number
  readonly resolvConf: string
  readonly runOnce?: boolean
  readonly cpuCFSQuota: boolean
  readonly cpuCFSQuotaPeriod: string
  readonly nodeStatusMaxImages: number
  readonly maxOpenFiles: number
  readonly contentType: string
  readonly kubeAPIQPS: number
  readonly kubeAPIBurst: number
  readonly serializeImagePulls: boolean
  readonly maxParallelImagePulls?: number
  readonly evictionHard?: Words
  readonly evictionSoft?: Words
  readonly evictionSoftGracePeriod?: Words
  readonly evictionPressureTransitionPeriod: string
  readonly evictionMaxPodGracePeriod?: number
  readonly evictionMinimumReclaim?: Words
  readonly mergeDefaultEvictionSettings: boolean
  readonly podsPerCore?: number
  readonly enableControllerAttachDetach: boolean
  readonly protectKernelDefaults?: boolean
  readonly makeIPTablesUtilChains: boolean
  readonly iptablesMasqueradeBit: number
  readonly iptablesDropBit: number
  readonly featureGates?: Readonly<Record<string, boolean>>
  readonly failSwapOn: boolean
  readonly memorySwap: { readonly swapBehavior?: string }
  readonly containerLogMaxSize: string
  readonly containerLogMaxFiles: number
  readonly containerLogMaxWorkers: number
  readonly containerLogMonitorInterval: string
  readonly configMapAndSecretChangeDetectionStrategy: string
  readonly systemReserved?: Words
  readonly kubeReserved?: Words
  readonly reservedSystemCPUs?: string
  readonly showHiddenMetricsForVersion?: string
  readonly systemReservedCgroup?: string
  readonly kubeReservedCgroup?: string
  readonly enforceNodeAllocatable?: readonly string[]
  readonly allowedUnsafeSysctls?: readonly string[]
  readonly volumePluginDir: string
  readonly providerID?: string
  readonly kernelMemcgNotification?: boolean
  readonly logging: LoggingConfiguration
  readonly enableSystemLogHandler: boolean
  readonly enableSystemLogQuery: boolean
  readonly shutdownGracePeriod: string
  readonly shutdownGracePeriodCriticalPods: string
  readonly shutdownGracePeriodByPodPriority?: readonly {
    readonly priority: number
    readonly shutdownGracePeriodSeconds: number
  }[]
  readonly crashLoopBackOff: { readonly maxContainerRestartPeriod?: string }
  /** `numaNode` is left out for the first. */
  readonly reservedMemory?: readonly { readonly numaNode?: number; readonly limits: Words }[]
  readonly enableProfilingHandler: boolean
  readonly enableDebugFlagsHandler: boolean
  readonly seccompDefault: boolean
  readonly memoryThrottlingFactor: number
  readonly memoryReservationPolicy: string
  readonly registerWithTaints?: readonly Taint[]
  readonly registerNode: boolean
  readonly tracing?: object
  readonly localStorageCapacityIsolation: boolean
  readonly containerRuntimeEndpoint: string
  readonly imageServiceEndpoint?: string
  readonly failCgroupV1: boolean
  readonly userNamespaces?: { readonly idsPerPod?: number }
}

/** What files say, and no more. */
export type GivenConfiguration = Readonly<Record<string, unknown>>

/** Throws upstream's texts. `lenient` is told what a file says that nothing understands; absent: that is refused. */
export function readConfiguration(source: string, lenient?: (message: string) => void): GivenConfiguration {
  const { value } = readConfig(source, [CONFIGURATION], lenient === undefined ? {} : { warn: lenient })
  const { kind: _, apiVersion: __, ...given } = value
  return given
}
