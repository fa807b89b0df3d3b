/**
 * Lists the feature gates of upstream's kube-scheduler: those that take effect here, and those that have no effect.
 * Upstream's scheduler does not read any other gate.
 */
/** Gates that take effect here. */
export const WORKING: readonly string[] = [
  'ComponentFlagz',
  'ComponentStatusz',
  'CoordinatedLeaderElection',
  'DRADeviceTaintRules',
  'DRADeviceTaints',
  'DRAExtendedResource',
  'DRASchedulerFilterTimeout',
  'GangScheduling',
  'GenericWorkload',
  'MatchLabelKeysInPodTopologySpread',
  'NodeDeclaredFeatures',
  'NominatedNodeNameForExpectation',
  'SchedulerAsyncPreemption',
  'SchedulerPopFromBackoffQ',
  'StorageCapacityScoring',
  'TaintTolerationComparisonOperators',
  'VolumeLimitScaling',
]

const ONE_WAY = 'informers have one implementation'
const ALLOCATED = 'devices are always allocated by the fields of slices and claims'

/** Gates fixed at their default, and gates whose change is logged or refused, with the reason. */
export const SCHEDULER_REACH: Readonly<Record<'fixed' | 'refused', Readonly<Record<string, string>>>> = {
  fixed: {
    AtomicFIFO: ONE_WAY,
    ClientsAllowCARotation: 'a new CA in the kubeconfig is read when the program starts',
    ClientsAllowCBOR: 'requests are sent as JSON',
    ClientsAllowTLSCacheGC: 'connections have one implementation',
    ClientsPreferCBOR: 'requests are sent as JSON',
    ContextualLogging: 'logging has one implementation',
    DRAConsumableCapacity: ALLOCATED,
    DRADeviceBindingConditions: ALLOCATED,
    DRAPartitionableDevices: ALLOCATED,
    DRAPrioritizedList: ALLOCATED,
    DRAResourceClaimDeviceStatus: ALLOCATED,
    InOrderInformersBatchProcess: ONE_WAY,
    InPlacePodLevelResourcesVerticalScaling: 'pod-level allocations always count',
    InformerResourceVersion: ONE_WAY,
    LoggingAlphaOptions: 'logging options are available at every maturity level',
    LoggingBetaOptions: 'logging options are available at every maturity level',
    NativeHistograms: 'only classic histograms are exported',
    OpportunisticBatching: 'equivalent pods always share cached results',
    PodLevelResources: 'pod-level requests always count',
    SchedulerAsyncAPICalls: 'API calls never block decisions',
    UnlockWhileProcessingFIFO: ONE_WAY,
    WatchListClient: 'streamed lists are always used if the server supports them',
  },
  refused: {
    DRAListTypeAttributes: 'list attributes are not supported',
    DRANodeAllocatableResources: 'devices do not count as node allocatable resources',
    DRAWorkloadResourceClaims: 'claims are not reserved for PodGroups',
    TopologyAwareWorkloadScheduling: 'PodGroups are placed pod by pod',
    WorkloadAwarePreemption: 'victims are selected by pod, not by group',
  },
}
