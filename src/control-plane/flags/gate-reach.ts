/**
 * How far each feature gate that can be changed goes here. A gate is upstream's word that something can be switched: one
 * that this server does not switch must not be taken in silence.
 */
import type { FeatureGates } from '#lib/flags/feature-gates.ts'
import type { SupportFindings } from '#lib/flags/flag-support.ts'

import { createGates, FEATURE_GATES } from './gates.ts'

const words = (text: string): readonly string[] => text.trim().split(/\s+/)

/** Gates that are looked at: on or off is a difference. */
export const WORKING: readonly string[] = words(`
  APIResponseCompression APIServerIdentity AllowInsecureKubeletCertificateSigningRequests
  AllowParsingUserUIDFromCertAuth AuthorizePodWebsocketUpgradeCreatePermission CRDObservedGenerationTracking ClearingNominatedNodeNameAfterBinding
  ClusterTrustBundle ClusterTrustBundleProjection ComponentFlagz ComponentStatusz ConstrainedImpersonation ContainerRestartRules ContainerStopSignals
  CoordinatedLeaderElection CrossNamespaceVolumeDataSource DRAConsumableCapacity DRADeviceBindingConditions
  DRADeviceTaintRules DRADeviceTaints DRAExtendedResource DRAListTypeAttributes DRANodeAllocatableResources
  DRAPartitionableDevices DRAPrioritizedList DRAResourceClaimDeviceStatus DRAResourceClaimGranularStatusAuthorization DRAResourcePoolStatus
  DRAWorkloadResourceClaims DeploymentReplicaSetTerminatingReplicas EnvFiles ExtendWebSocketsToKubelet GenericWorkload
  HPAConfigurableTolerance HPAScaleToZero HostnameOverride ImageVolumeWithDigest
  InPlacePodLevelResourcesVerticalScaling InPlacePodVerticalScalingInitContainers
  KubeletServiceAccountTokenForCredentialProviders
  MatchLabelKeysInPodTopologySpread MatchLabelKeysInPodTopologySpreadSelectorMerge MaxUnavailableStatefulSet
  MutablePVNodeAffinity MutablePodResourcesForSuspendedJobs MutableSchedulingDirectivesForSuspendedJobs
  MutatingAdmissionPolicy NodeDeclaredFeatures PodCertificateRequest PodDeletionCost PodLevelResources
  PodLogsQuerySplitStreams PodTopologyLabelsAdmission RelaxedServiceNameValidation RemoteRequestHeaderUID
  ResourceHealthStatus ResourceHealthStatusMessage RestartAllContainersOnContainerExits SELinuxMount
  ServiceAccountNodeAudienceRestriction SizeBasedListCostEstimate StorageVersionAPI StorageVersionHash StorageVersionMigrator
  StrictIPCIDRValidation TaintTolerationComparisonOperators TopologyAwareWorkloadScheduling
  UnknownVersionInteroperabilityProxy UserNamespacesHostNetworkSupport VolumeLimitScaling WatchList WorkloadAwarePreemption WorkloadWithJob`)

/** Gates of kubelets, schedulers, controllers and clients: upstream's server does nothing with them either. */
export const ELSEWHERE: readonly string[] = words(`
  AllowDNSOnlyNodeCSR AllowServiceExternalIPs AtomicFIFO CPUManagerPolicyAlphaOptions CPUManagerPolicyBetaOptions
  CRIListStreaming CSIVolumeHealth ChangeContainerStatusOnKubeletRestart ClientsAllowCARotation ClientsAllowCBOR
  ClientsAllowTLSCacheGC ClientsPreferCBOR CloudControllerManagerWatchBasedRoutesReconciliation
  CloudControllerManagerWebhook ContainerCheckpoint ControllerManagerReleaseLeaderElectionLockOnExit
  CustomCPUCFSQuotaPeriod DRASchedulerFilterTimeout DisableCPUQuotaWithExclusiveCPUs EventedPLEG GangScheduling
  GracefulNodeShutdown GracefulNodeShutdownBasedOnPodPriority InOrderInformersBatchProcess
  InPlacePodVerticalScalingExclusiveCPUs InPlacePodVerticalScalingExclusiveMemory InformerResourceVersion
  KubeletCrashLoopBackOffMax KubeletEnsureSecretPulledImages KubeletInUserNamespace
  KubeletPodResourcesListUseActivePods KubeletRegistrationGetOnExistsOnly KubeletSeparateDiskGC
  LocalStorageCapacityIsolationFSQuotaMonitoring MemoryQoS NominatedNodeNameForExpectation OpportunisticBatching
  PLEGOnDemandRelist PersistentVolumeClaimUnusedSinceTime PodAndContainerStatsFromCRI PodLevelResourceManagers
  PodReadyToStartContainersCondition PodsAPI PreventStaticPodAPIReferences QOSReserved
  ReduceDefaultCrashLoopBackOffDecay ReloadKubeletClientCAFile ReloadKubeletServerCertificateFile
  RotateKubeletServerCertificate RuntimeClassInImageCriApi SchedulerAsyncAPICalls SchedulerAsyncPreemption
  SchedulerPopFromBackoffQ StaleControllerConsistencyDaemonSet StaleControllerConsistencyJob
  StaleControllerConsistencyReplicaSet StaleControllerConsistencyStatefulSet StatefulSetSemanticRevisionComparison
  StorageCapacityScoring TopologyManagerPolicyAlphaOptions TopologyManagerPolicyBetaOptions UnlockWhileProcessingFIFO
  WatchListClient WindowsCPUAndMemoryAffinity WindowsGracefulNodeShutdown WindowsHostNetwork`)

/** Gates of upstream's server that stay at their default here, and why that is; another wish is told in the log. */
export const FIXED: Readonly<Record<string, string>> = {
  APIServingWithRoutine: 'requests are not served by goroutines',
  AllowUnsafeMalformedObjectDeletion: 'objects that cannot be read are not deleted',
  CBORServingAndStorage: 'CBOR is neither served nor stored',
  ConcurrentWatchObjectDecode: 'watches share what was decoded once',
  ContextualLogging: 'logging has one way',
  DeclarativeValidationBeta: 'validation has one way',
  DeclarativeValidationTakeover: 'validation has one way',
  DetectCacheInconsistency: 'the cache is always compared with the store',
  ListFromCacheSnapshot: 'lists of the past come from the cache where it has them',
  LoggingAlphaOptions: 'logging options are there whatever their maturity',
  LoggingBetaOptions: 'logging options are there whatever their maturity',
  NativeHistograms: 'histograms are classic',
  OpenAPIEnums: 'enums are always in OpenAPI',
  PortForwardWebsockets: 'port forwarding is always there over WebSocket',
  ServiceCIDRStatusFieldWiping: 'the status of a new ServiceCIDR is always wiped',
  ShardedListAndWatch: 'lists and watches are not sharded',
  StorageNamespaceIndex: 'namespaces are always an index',
  StructuredAuthenticationConfigurationEgressSelector: 'there are no egress selectors',
  StructuredAuthenticationConfigurationJWKSMetrics: 'these metrics are as by default',
  TokenRequestServiceAccountUIDValidation: 'the uid of a token request is judged as by default',
  TranslateStreamCloseWebsocketRequests: 'WebSocket streams are always translated',
  UnauthenticatedHTTP2DOSMitigation: 'HTTP/2 connections are treated as by default',
  WatchCacheInitializationPostStartHook: 'the server listens when its cache is filled',
}

/** Gates whose change in silence would be a loss. */
export const REFUSED: Readonly<Record<string, string>> = {
  KMSv1: 'plugins of KMS v1 are not there; use KMS v2',
  ManifestBasedAdmissionControlConfig: 'admission webhooks and policies are not read from manifests',
}

/**
 * Gates that are on by default and do less here than upstream: a user who turns one on by name gets an error. Turning one off
 * has upstream's effect.
 */
export const HOLLOW: Readonly<Record<string, string>> = {
  UnknownVersionInteroperabilityProxy: 'requests are not passed on between servers',
}

/** How far gates go in one program: those that stay at their default, and those whose change must not be taken in silence, and why. */
export interface GateReach {
  readonly fixed: Readonly<Record<string, string>>
  readonly refused: Readonly<Record<string, string>>
  readonly hollow?: Readonly<Record<string, string>>
}

/** What was asked for that a program does not do; by default this server. What AllAlpha or AllBeta bring along is told, not refused. */
export function findGates(asked: FeatureGates, { fixed, refused, hollow = {} }: GateReach = SERVER): SupportFindings {
  const isEnabled = createGates(asked)
  const changed = (table: Readonly<Record<string, string>>): [gate: string, why: string][] =>
    Object.entries(table).filter(([gate]) => isEnabled(gate) !== FEATURE_GATES[gate]?.default)
  const flagOf = (gate: string): string => `--feature-gates=${gate}=${isEnabled(gate)}`
  const [named, broughtAlong] = [true, false].map((isNamed) =>
    changed(refused).filter(([gate]) => asked.has(gate) === isNamed),
  )
  return {
    errors: [...(named ?? []), ...Object.entries(hollow).filter(([gate]) => asked.get(gate) === true)].map(
      ([gate, why]) => `${flagOf(gate)} is not supported: ${why}`,
    ),
    notes: [...changed(fixed), ...(broughtAlong ?? [])].map(([gate, why]) => `${flagOf(gate)} has no effect: ${why}`),
  }
}

const SERVER: GateReach = { fixed: FIXED, refused: REFUSED, hollow: HOLLOW }
