/**
 * How far each feature gate that upstream's kube-controller-manager reads goes here. A gate in neither table is read, or
 * upstream's manager does not read it either.
 */
const STORED = 'controllers obey every field that the API server stores'
const OWN_WRITES = 'controllers always wait until they see their own writes'

/** `fixed`: gates that stay at their default. `refused`: gates whose change must not be accepted in silence. */
export const MANAGER_REACH: Readonly<Record<'fixed' | 'refused', Readonly<Record<string, string>>>> = {
  fixed: {
    DeploymentReplicaSetTerminatingReplicas: 'terminating replicas are always counted',
    MaxUnavailableStatefulSet: STORED,
    MutableSchedulingDirectivesForSuspendedJobs: STORED,
    PersistentVolumeClaimUnusedSinceTime: 'claims get no condition that says since when they are unused',
    PodDeletionCost: 'the deletion cost of pods always counts',
    StaleControllerConsistencyDaemonSet: OWN_WRITES,
    StaleControllerConsistencyJob: OWN_WRITES,
    StaleControllerConsistencyReplicaSet: OWN_WRITES,
    StaleControllerConsistencyStatefulSet: OWN_WRITES,
    StatefulSetSemanticRevisionComparison: 'revisions are always compared by meaning',
  },
  refused: {
    WorkloadWithJob: 'the Job controller creates neither Workloads nor PodGroups',
  },
}
