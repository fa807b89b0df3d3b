/**
 * Lists the feature gates of upstream's kube-controller-manager that have no effect here. All other gates take effect,
 * or upstream's manager does not read them either.
 */
const STORED = 'controllers respect every stored field'
const OWN_WRITES = 'controllers always wait for their own writes'

/** `fixed`: gates that stay at their default. `refused`: gates whose change is rejected. */
export const MANAGER_REACH: Readonly<Record<'fixed' | 'refused', Readonly<Record<string, string>>>> = {
  fixed: {
    DeploymentReplicaSetTerminatingReplicas: 'terminating replicas are always counted',
    MaxUnavailableStatefulSet: STORED,
    MutableSchedulingDirectivesForSuspendedJobs: STORED,
    PersistentVolumeClaimUnusedSinceTime: 'claims get no condition about unused time',
    PodDeletionCost: 'pod deletion cost always counts',
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
