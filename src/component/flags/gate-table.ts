/**
 * The feature gates of v1.36's kube-apiserver, each with its maturity, its default and its effect in this program.
 * Gates of other components are included, because `--feature-gates` is the same for all of them. A program must not
 * silently accept a gate without effect.
 */
import type { GateSpec } from '#lib/flags/feature-gates.ts'

/** Names are separated by spaces. */
export interface GateGroup {
  readonly spec: GateSpec
  /** Gates that take effect. */
  readonly working?: string
  /** Gates of kubelets, schedulers, controllers and clients: upstream's server ignores them as well. */
  readonly elsewhere?: string
  /** Gates that cannot be changed. */
  readonly locked?: string
  /** Gates of upstream's server that stay at their default here, with the reason; another value is logged. */
  readonly fixed?: Readonly<Record<string, string>>
  /** Gates whose change must not be ignored silently. */
  readonly refused?: Readonly<Record<string, string>>
}

export const GATE_GROUPS: readonly GateGroup[] = [
  {
    spec: { maturity: 'ALPHA', default: false },
    working: `
      ContainerStopSignals CrossNamespaceVolumeDataSource DRAListTypeAttributes DRANodeAllocatableResources
      DRAResourcePoolStatus DRAWorkloadResourceClaims GenericWorkload HPAScaleToZero ImageVolumeWithDigest MutablePVNodeAffinity
      PodLogsQuerySplitStreams StorageVersionAPI TaintTolerationComparisonOperators TopologyAwareWorkloadScheduling
      UserNamespacesHostNetworkSupport VolumeLimitScaling WorkloadAwarePreemption WorkloadWithJob`,
    elsewhere: `
      ControllerManagerReleaseLeaderElectionLockOnExit CPUManagerPolicyAlphaOptions CRIListStreaming CSIVolumeHealth
      ClientsAllowCBOR ClientsPreferCBOR CloudControllerManagerWatchBasedRoutesReconciliation CloudControllerManagerWebhook
      EventedPLEG GangScheduling InPlacePodVerticalScalingExclusiveCPUs InPlacePodVerticalScalingExclusiveMemory
      KubeletInUserNamespace MemoryQoS PersistentVolumeClaimUnusedSinceTime PodAndContainerStatsFromCRI PodLevelResourceManagers
      PodsAPI QOSReserved ReduceDefaultCrashLoopBackOffDecay RuntimeClassInImageCriApi StorageCapacityScoring
      TopologyManagerPolicyAlphaOptions WindowsCPUAndMemoryAffinity`,
    fixed: {
      APIServingWithRoutine: 'requests are not served by goroutines',
      AllowUnsafeMalformedObjectDeletion: 'objects that cannot be read are not deleted',
      NativeHistograms: 'histograms are classic',
      CBORServingAndStorage: 'CBOR is neither served nor stored',
      LoggingAlphaOptions: 'logging options are there whatever their maturity',
      ShardedListAndWatch: 'lists and watches are not sharded',
    },
    refused: {
      ManifestBasedAdmissionControlConfig: 'admission webhooks and policies are not read from manifests',
    },
  },
  {
    spec: { maturity: 'BETA', default: false },
    working: `
      ClusterTrustBundle ClusterTrustBundleProjection CoordinatedLeaderElection DRADeviceTaintRules MaxUnavailableStatefulSet
      PodCertificateRequest SELinuxMount StorageVersionMigrator`,
    elsewhere: `LocalStorageCapacityIsolationFSQuotaMonitoring SchedulerAsyncAPICalls`,
    fixed: {
      ConcurrentWatchObjectDecode: 'watches share what was decoded once',
    },
  },
  {
    spec: { maturity: 'BETA', default: true },
    working: `
      APIResponseCompression APIServerIdentity AllowParsingUserUIDFromCertAuth AuthorizePodWebsocketUpgradeCreatePermission
      CRDObservedGenerationTracking ClearingNominatedNodeNameAfterBinding ComponentFlagz ComponentStatusz
      ConstrainedImpersonation ContainerRestartRules DRAConsumableCapacity DRADeviceBindingConditions DRADeviceTaints
      DRAExtendedResource DRAPartitionableDevices DRAResourceClaimDeviceStatus DRAResourceClaimGranularStatusAuthorization
      DeploymentReplicaSetTerminatingReplicas EnvFiles ExtendWebSocketsToKubelet HPAConfigurableTolerance HostnameOverride
      InPlacePodLevelResourcesVerticalScaling InPlacePodVerticalScalingInitContainers
      KubeletServiceAccountTokenForCredentialProviders MatchLabelKeysInPodTopologySpread
      MatchLabelKeysInPodTopologySpreadSelectorMerge MutablePodResourcesForSuspendedJobs
      MutableSchedulingDirectivesForSuspendedJobs NodeDeclaredFeatures PodDeletionCost PodLevelResources
      PodTopologyLabelsAdmission RelaxedServiceNameValidation RemoteRequestHeaderUID ResourceHealthStatus
      ResourceHealthStatusMessage RestartAllContainersOnContainerExits ServiceAccountNodeAudienceRestriction
      SizeBasedListCostEstimate StorageVersionHash StrictIPCIDRValidation UnknownVersionInteroperabilityProxy WatchList`,
    elsewhere: `
      AtomicFIFO CPUManagerPolicyBetaOptions ClientsAllowCARotation ClientsAllowTLSCacheGC ContainerCheckpoint
      DRASchedulerFilterTimeout GracefulNodeShutdown GracefulNodeShutdownBasedOnPodPriority InOrderInformersBatchProcess
      KubeletCrashLoopBackOffMax KubeletEnsureSecretPulledImages KubeletSeparateDiskGC NominatedNodeNameForExpectation
      OpportunisticBatching PLEGOnDemandRelist PodReadyToStartContainersCondition PreventStaticPodAPIReferences
      ReloadKubeletClientCAFile ReloadKubeletServerCertificateFile RotateKubeletServerCertificate SchedulerAsyncPreemption
      SchedulerPopFromBackoffQ StaleControllerConsistencyDaemonSet StaleControllerConsistencyJob
      StaleControllerConsistencyReplicaSet StaleControllerConsistencyStatefulSet StatefulSetSemanticRevisionComparison
      TopologyManagerPolicyBetaOptions UnlockWhileProcessingFIFO WatchListClient WindowsGracefulNodeShutdown`,
    fixed: {
      ContextualLogging: 'logging has one way',
      DeclarativeValidationBeta: 'validation has one way',
      DetectCacheInconsistency: 'the cache is always compared with the store',
      ListFromCacheSnapshot: 'lists of the past come from the cache where it has them',
      LoggingBetaOptions: 'logging options are there whatever their maturity',
      OpenAPIEnums: 'enums are always in OpenAPI',
      PortForwardWebsockets: 'port forwarding is always there over WebSocket',
      StructuredAuthenticationConfigurationEgressSelector: 'there are no egress selectors',
      StructuredAuthenticationConfigurationJWKSMetrics: 'these metrics are as by default',
      TokenRequestServiceAccountUIDValidation: 'the uid of a token request is judged as by default',
      TranslateStreamCloseWebsocketRequests: 'WebSocket streams are always translated',
      UnauthenticatedHTTP2DOSMitigation: 'HTTP/2 connections are treated as by default',
      WatchCacheInitializationPostStartHook: 'the server listens when its cache is filled',
    },
  },
  {
    spec: { maturity: 'GA', default: true },
    working: `DRAPrioritizedList MutatingAdmissionPolicy`,
    elsewhere: `AllowServiceExternalIPs CustomCPUCFSQuotaPeriod InformerResourceVersion`,
  },
  {
    spec: { maturity: 'GA', default: true, locked: true },
    locked: `
      APIServerTracing AnonymousAuthConfigurableEndpoints AnyVolumeDataSource AuthorizeNodeWithSelectors AuthorizeWithSelectors
      BtreeWatchCache CPUManagerPolicyOptions CRDValidationRatcheting CSIServiceAccountTokenSecrets ConsistentListFromCache
      CustomResourceFieldSelectors DRAAdminAccess DeclarativeValidation DisableAllocatorDualWrite DynamicResourceAllocation
      ExecProbeTimeout ExternalServiceAccountTokenSigner ImageMaximumGCAge ImageVolume InOrderInformers
      InPlacePodVerticalScaling JobBackoffLimitPerIndex JobManagedBy JobPodReplacementPolicy JobSuccessPolicy
      KubeletCgroupDriverFromCRI KubeletFineGrainedAuthz KubeletPSI KubeletPodResourcesDynamicResources KubeletPodResourcesGet
      KubeletTracing LogarithmicScaleDown MatchLabelKeysInPodAffinity MultiCIDRServiceAllocator MutableCSINodeAllocatableCount
      NFTablesProxyMode NodeInclusionPolicyInPodTopologySpread NodeLogQuery NodeSwap OrderedNamespaceDeletion
      PodLifecycleSleepAction PodLifecycleSleepActionAllowZero PodObservedGenerationTracking PodSchedulingReadiness
      PreferSameTrafficDistribution ProcMountType RecoverVolumeExpansionFailure RecursiveReadOnlyMounts
      RelaxedDNSSearchValidation RelaxedEnvironmentVariableValidation ResilientWatchCacheInitialization RetryGenerateName
      SELinuxChangePolicy SELinuxMountReadWriteOncePod SchedulerQueueingHints SeparateTaintEvictionController
      ServiceAccountTokenJTI ServiceAccountTokenNodeBinding ServiceAccountTokenNodeBindingValidation
      ServiceAccountTokenPodNodeInfo SidecarContainers StreamingCollectionEncodingToJSON StreamingCollectionEncodingToProtobuf
      StructuredAuthenticationConfiguration SupplementalGroupsPolicy SystemdWatchdog TopologyManagerPolicyOptions
      UserNamespacesSupport VolumeAttributesClass WinDSR WinOverlay`,
  },
  {
    spec: { maturity: 'DEPRECATED', default: false },
    working: `AllowInsecureKubeletCertificateSigningRequests`,
    elsewhere: `AllowDNSOnlyNodeCSR ChangeContainerStatusOnKubeletRestart KubeletRegistrationGetOnExistsOnly WindowsHostNetwork`,
    fixed: {
      DeclarativeValidationTakeover: 'validation has one way',
    },
    refused: {
      KMSv1: 'plugins of KMS v1 are not there; use KMS v2',
    },
  },
  {
    spec: { maturity: 'DEPRECATED', default: true },
    elsewhere: `DisableCPUQuotaWithExclusiveCPUs KubeletPodResourcesListUseActivePods`,
    fixed: {
      ServiceCIDRStatusFieldWiping: 'the status of a new ServiceCIDR is always wiped',
      StorageNamespaceIndex: 'namespaces are always an index',
    },
  },
  {
    spec: { maturity: 'DEPRECATED', default: false, locked: true },
    locked: `AllowOverwriteTerminationGracePeriodSeconds GitRepoVolumeDriver SeparateCacheWatchRPC`,
  },
  {
    spec: { maturity: 'DEPRECATED', default: true, locked: true },
    locked: `AggregatedDiscoveryRemoveBetaType DisableNodeKubeProxyVersion`,
  },
]
