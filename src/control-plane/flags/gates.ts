/**
 * The feature gates of v1.36's kube-apiserver: maturity, default and whether that may be changed. Gates that are about
 * other components are here too, because their flags are one text for all of them.
 */
import { type FeatureGates, type GateSpec, type GateSpecs, isEnabled } from '#lib/flags/feature-gates.ts'

type Row = readonly [spec: GateSpec, names: string]

const ROWS: readonly Row[] = [
  [
    { maturity: 'ALPHA', default: false },
    `APIServingWithRoutine AllowUnsafeMalformedObjectDeletion ControllerManagerReleaseLeaderElectionLockOnExit NativeHistograms CBORServingAndStorage CPUManagerPolicyAlphaOptions
     CRIListStreaming CSIVolumeHealth ClientsAllowCBOR ClientsPreferCBOR
     CloudControllerManagerWatchBasedRoutesReconciliation CloudControllerManagerWebhook ContainerStopSignals
     CrossNamespaceVolumeDataSource DRAListTypeAttributes DRANodeAllocatableResources DRAResourcePoolStatus
     DRAWorkloadResourceClaims EventedPLEG GangScheduling GenericWorkload HPAScaleToZero ImageVolumeWithDigest
     InPlacePodVerticalScalingExclusiveCPUs InPlacePodVerticalScalingExclusiveMemory KubeletInUserNamespace
     LoggingAlphaOptions ManifestBasedAdmissionControlConfig MemoryQoS MutablePVNodeAffinity
     PersistentVolumeClaimUnusedSinceTime PodAndContainerStatsFromCRI PodLevelResourceManagers
     PodLogsQuerySplitStreams PodsAPI QOSReserved ReduceDefaultCrashLoopBackOffDecay RuntimeClassInImageCriApi
     ShardedListAndWatch StorageCapacityScoring StorageVersionAPI TaintTolerationComparisonOperators
     TopologyAwareWorkloadScheduling TopologyManagerPolicyAlphaOptions UserNamespacesHostNetworkSupport
     VolumeLimitScaling WindowsCPUAndMemoryAffinity WorkloadAwarePreemption WorkloadWithJob`,
  ],
  [
    { maturity: 'BETA', default: false },
    `ClusterTrustBundle ClusterTrustBundleProjection ConcurrentWatchObjectDecode CoordinatedLeaderElection
     DRADeviceTaintRules LocalStorageCapacityIsolationFSQuotaMonitoring MaxUnavailableStatefulSet
     PodCertificateRequest SELinuxMount SchedulerAsyncAPICalls StorageVersionMigrator`,
  ],
  [
    { maturity: 'BETA', default: true },
    `APIResponseCompression APIServerIdentity AllowParsingUserUIDFromCertAuth AtomicFIFO
     AuthorizePodWebsocketUpgradeCreatePermission CPUManagerPolicyBetaOptions CRDObservedGenerationTracking
     ClearingNominatedNodeNameAfterBinding ClientsAllowCARotation ClientsAllowTLSCacheGC ComponentFlagz
     ComponentStatusz ConstrainedImpersonation ContainerCheckpoint ContainerRestartRules ContextualLogging
     DRAConsumableCapacity DRADeviceBindingConditions DRADeviceTaints DRAExtendedResource DRAPartitionableDevices
     DRAResourceClaimDeviceStatus DRAResourceClaimGranularStatusAuthorization DRASchedulerFilterTimeout
     DeclarativeValidationBeta DeploymentReplicaSetTerminatingReplicas DetectCacheInconsistency EnvFiles
     ExtendWebSocketsToKubelet GracefulNodeShutdown GracefulNodeShutdownBasedOnPodPriority HPAConfigurableTolerance
     HostnameOverride InOrderInformersBatchProcess InPlacePodLevelResourcesVerticalScaling
     InPlacePodVerticalScalingInitContainers KubeletCrashLoopBackOffMax KubeletEnsureSecretPulledImages
     KubeletSeparateDiskGC KubeletServiceAccountTokenForCredentialProviders ListFromCacheSnapshot
     LoggingBetaOptions MatchLabelKeysInPodTopologySpread MatchLabelKeysInPodTopologySpreadSelectorMerge
     MutablePodResourcesForSuspendedJobs MutableSchedulingDirectivesForSuspendedJobs NodeDeclaredFeatures
     NominatedNodeNameForExpectation OpenAPIEnums OpportunisticBatching PLEGOnDemandRelist PodDeletionCost
     PodLevelResources PodReadyToStartContainersCondition PodTopologyLabelsAdmission PortForwardWebsockets
     PreventStaticPodAPIReferences RelaxedServiceNameValidation ReloadKubeletClientCAFile
     ReloadKubeletServerCertificateFile RemoteRequestHeaderUID ResourceHealthStatus ResourceHealthStatusMessage
     RestartAllContainersOnContainerExits RotateKubeletServerCertificate SchedulerAsyncPreemption
     SchedulerPopFromBackoffQ ServiceAccountNodeAudienceRestriction SizeBasedListCostEstimate
     StaleControllerConsistencyDaemonSet StaleControllerConsistencyJob StaleControllerConsistencyReplicaSet
     StaleControllerConsistencyStatefulSet StatefulSetSemanticRevisionComparison StorageVersionHash
     StrictIPCIDRValidation StructuredAuthenticationConfigurationEgressSelector
     StructuredAuthenticationConfigurationJWKSMetrics TokenRequestServiceAccountUIDValidation
     TopologyManagerPolicyBetaOptions TranslateStreamCloseWebsocketRequests UnauthenticatedHTTP2DOSMitigation
     UnknownVersionInteroperabilityProxy UnlockWhileProcessingFIFO WatchCacheInitializationPostStartHook WatchList
     WatchListClient WindowsGracefulNodeShutdown`,
  ],
  [
    { maturity: 'GA', default: true },
    `AllowServiceExternalIPs CustomCPUCFSQuotaPeriod DRAPrioritizedList InformerResourceVersion
     MutatingAdmissionPolicy`,
  ],
  [
    { maturity: 'GA', default: true, locked: true },
    `APIServerTracing AnonymousAuthConfigurableEndpoints AnyVolumeDataSource AuthorizeNodeWithSelectors
     AuthorizeWithSelectors BtreeWatchCache CPUManagerPolicyOptions CRDValidationRatcheting
     CSIServiceAccountTokenSecrets ConsistentListFromCache CustomResourceFieldSelectors DRAAdminAccess
     DeclarativeValidation DisableAllocatorDualWrite DynamicResourceAllocation ExecProbeTimeout
     ExternalServiceAccountTokenSigner ImageMaximumGCAge ImageVolume InOrderInformers InPlacePodVerticalScaling
     JobBackoffLimitPerIndex JobManagedBy JobPodReplacementPolicy JobSuccessPolicy KubeletCgroupDriverFromCRI
     KubeletFineGrainedAuthz KubeletPSI KubeletPodResourcesDynamicResources KubeletPodResourcesGet KubeletTracing
     LogarithmicScaleDown MatchLabelKeysInPodAffinity MultiCIDRServiceAllocator MutableCSINodeAllocatableCount
     NFTablesProxyMode NodeInclusionPolicyInPodTopologySpread NodeLogQuery NodeSwap OrderedNamespaceDeletion
     PodLifecycleSleepAction PodLifecycleSleepActionAllowZero PodObservedGenerationTracking PodSchedulingReadiness
     PreferSameTrafficDistribution ProcMountType RecoverVolumeExpansionFailure RecursiveReadOnlyMounts
     RelaxedDNSSearchValidation RelaxedEnvironmentVariableValidation ResilientWatchCacheInitialization
     RetryGenerateName SELinuxChangePolicy SELinuxMountReadWriteOncePod SchedulerQueueingHints
     SeparateTaintEvictionController ServiceAccountTokenJTI ServiceAccountTokenNodeBinding
     ServiceAccountTokenNodeBindingValidation ServiceAccountTokenPodNodeInfo SidecarContainers
     StreamingCollectionEncodingToJSON StreamingCollectionEncodingToProtobuf StructuredAuthenticationConfiguration
     SupplementalGroupsPolicy SystemdWatchdog TopologyManagerPolicyOptions UserNamespacesSupport
     VolumeAttributesClass WinDSR WinOverlay`,
  ],
  [
    { maturity: 'DEPRECATED', default: false },
    `AllowDNSOnlyNodeCSR AllowInsecureKubeletCertificateSigningRequests ChangeContainerStatusOnKubeletRestart
     DeclarativeValidationTakeover KMSv1 KubeletRegistrationGetOnExistsOnly WindowsHostNetwork`,
  ],
  [
    { maturity: 'DEPRECATED', default: true },
    `DisableCPUQuotaWithExclusiveCPUs KubeletPodResourcesListUseActivePods ServiceCIDRStatusFieldWiping
     StorageNamespaceIndex`,
  ],
  [
    { maturity: 'DEPRECATED', default: false, locked: true },
    `AllowOverwriteTerminationGracePeriodSeconds GitRepoVolumeDriver SeparateCacheWatchRPC`,
  ],
  [
    { maturity: 'DEPRECATED', default: true, locked: true },
    `AggregatedDiscoveryRemoveBetaType DisableNodeKubeProxyVersion`,
  ],
]

export const FEATURE_GATES: GateSpecs = Object.fromEntries(
  ROWS.flatMap(([spec, names]) => names.split(/\s+/).map((name) => [name, spec])),
)

/** Whether a gate is on, for the gates that were set. Throws for a gate that is not in the table: a bug. */
export function createGates(asked: FeatureGates, onRead?: (gate: string) => void): (gate: string) => boolean {
  if (onRead === undefined) return (gate) => isEnabled(FEATURE_GATES, asked, gate)
  return (gate) => {
    onRead(gate)
    return isEnabled(FEATURE_GATES, asked, gate)
  }
}

/** Which gates make no sense without which others, as far as those can be off. */
const NEEDS: readonly (readonly [gates: string, needed: string])[] = [
  ['ClusterTrustBundleProjection', 'ClusterTrustBundle'],
  ['DRADeviceBindingConditions DRAResourceClaimGranularStatusAuthorization', 'DRAResourceClaimDeviceStatus'],
  ['DRADeviceTaintRules', 'DRADeviceTaints'],
  ['DRAWorkloadResourceClaims GangScheduling TopologyAwareWorkloadScheduling WorkloadWithJob', 'GenericWorkload'],
  [
    'ExtendWebSocketsToKubelet InPlacePodVerticalScalingInitContainers UserNamespacesHostNetworkSupport',
    'NodeDeclaredFeatures',
  ],
  ['GracefulNodeShutdownBasedOnPodPriority WindowsGracefulNodeShutdown', 'GracefulNodeShutdown'],
  ['InPlacePodLevelResourcesVerticalScaling', 'NodeDeclaredFeatures PodLevelResources'],
  ['MatchLabelKeysInPodTopologySpreadSelectorMerge', 'MatchLabelKeysInPodTopologySpread'],
  ['PodLevelResourceManagers', 'PodLevelResources'],
  ['ResourceHealthStatusMessage', 'ResourceHealthStatus'],
  ['RestartAllContainersOnContainerExits', 'ContainerRestartRules NodeDeclaredFeatures'],
  ['StaleControllerConsistencyDaemonSet StaleControllerConsistencyJob', 'AtomicFIFO'],
  ['StaleControllerConsistencyReplicaSet StaleControllerConsistencyStatefulSet', 'AtomicFIFO'],
  ['StorageVersionAPI UnknownVersionInteroperabilityProxy', 'APIServerIdentity'],
  ['WorkloadAwarePreemption', 'GangScheduling'],
]

/** Gates that are on while others are off that they need, in upstream's words. */
export function gateErrors(asked: FeatureGates): string[] {
  const isOn = createGates(asked)
  return NEEDS.flatMap(([gates, needed]) => {
    const off = needed.split(' ').filter((gate) => !isOn(gate))
    if (off.length === 0) return []
    const why = `is enabled, but depends on features that are disabled: [${off.join(' ')}]`
    return gates
      .split(' ')
      .filter(isOn)
      .map((gate) => `${gate} ${why}`)
  })
}
