/**
 * How far each feature gate of upstream's kube-scheduler that can be changed goes here. What is in no table is about other programs, and
 * upstream's scheduler does nothing with it either.
 */
/** Gates that are looked at: on or off is a difference. */
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

const ONE_WAY = 'collections are followed in one way'
const ALLOCATED = 'devices are allocated as their slices and claims say'

/** Those that stay at their default, and those whose change must not be taken in silence, and why. */
export const SCHEDULER_REACH: Readonly<Record<'fixed' | 'refused', Readonly<Record<string, string>>>> = {
  fixed: {
    AtomicFIFO: ONE_WAY,
    ClientsAllowCARotation: 'a new CA in the kubeconfig is read when the program starts',
    ClientsAllowCBOR: 'requests are sent as JSON',
    ClientsAllowTLSCacheGC: 'connections are kept as by default',
    ClientsPreferCBOR: 'requests are sent as JSON',
    ContextualLogging: 'logging has one way',
    DRAConsumableCapacity: ALLOCATED,
    DRADeviceBindingConditions: ALLOCATED,
    DRAPartitionableDevices: ALLOCATED,
    DRAPrioritizedList: ALLOCATED,
    DRAResourceClaimDeviceStatus: ALLOCATED,
    InOrderInformersBatchProcess: ONE_WAY,
    InPlacePodLevelResourcesVerticalScaling: 'what pods have been granted as a whole always counts',
    InformerResourceVersion: ONE_WAY,
    LoggingAlphaOptions: 'logging options are there whatever their maturity',
    LoggingBetaOptions: 'logging options are there whatever their maturity',
    NativeHistograms: 'histograms are classic',
    OpportunisticBatching: 'pods that are alike always share what was found out',
    PodLevelResources: 'what pods ask for as a whole always counts',
    SchedulerAsyncAPICalls: 'no decision waits for what is written',
    UnlockWhileProcessingFIFO: ONE_WAY,
    WatchListClient: 'collections are followed by streamed lists where the server has them',
  },
  refused: {
    DRAListTypeAttributes: 'attributes that are lists are not compared',
    DRANodeAllocatableResources: 'devices do not count as resources of nodes',
    DRAWorkloadResourceClaims: 'claims of groups are not reserved for them',
    TopologyAwareWorkloadScheduling: 'groups are placed pod by pod wherever they fit',
    WorkloadAwarePreemption: 'pods are preempted one by one, not as groups',
  },
}
