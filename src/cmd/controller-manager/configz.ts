/**
 * The `/configz` page of kube-controller-manager: upstream's KubeControllerManagerConfiguration with values from our
 * flags. Each leaf names its flag.
 */
import type { FlagGroups } from '#lib/flags/flags.ts'
import { duration } from '#lib/flags/kinds.ts'

/** A reference to a flag; `part` selects one of its comma-separated parts. */
interface FlagReference {
  readonly flag: string
  readonly part?: number
}

type Shape = FlagReference | { readonly [field: string]: Shape } | readonly Shape[] | string | number | boolean | null

function of(flag: string): FlagReference {
  return { flag }
}

function signer(name: string): Shape {
  return { CertFile: of(`cluster-signing-${name}-cert-file`), KeyFile: of(`cluster-signing-${name}-key-file`) }
}

const GENERIC: Shape = {
  Port: 0,
  Address: '0.0.0.0',
  MinResyncPeriod: of('min-resync-period'),
  ClientConnection: {
    kubeconfig: of('kubeconfig'),
    acceptContentTypes: '',
    contentType: of('kube-api-content-type'),
    qps: of('kube-api-qps'),
    burst: of('kube-api-burst'),
  },
  ControllerStartInterval: of('controller-start-interval'),
  LeaderElection: {
    leaderElect: of('leader-elect'),
    leaseDuration: of('leader-elect-lease-duration'),
    renewDeadline: of('leader-elect-renew-deadline'),
    retryPeriod: of('leader-elect-retry-period'),
    resourceLock: of('leader-elect-resource-lock'),
    resourceName: of('leader-elect-resource-name'),
    resourceNamespace: of('leader-elect-resource-namespace'),
  },
  Controllers: of('controllers'),
  Debugging: { enableProfiling: of('profiling'), enableContentionProfiling: of('contention-profiling') },
  LeaderMigrationEnabled: of('enable-leader-migration'),
  LeaderMigration: { leaderName: '', resourceLock: '', controllerLeaders: null },
}

const CLOUD: Shape = {
  CloudProvider: { Name: of('cloud-provider'), CloudConfigFile: of('cloud-config') },
  ExternalCloudVolumePlugin: of('external-cloud-volume-plugin'),
  UseServiceAccountCredentials: of('use-service-account-credentials'),
  AllowUntaggedCloud: false,
  RouteReconciliationPeriod: of('route-reconciliation-period'),
  NodeMonitorPeriod: of('node-monitor-period'),
  ClusterName: of('cluster-name'),
  ClusterCIDR: of('cluster-cidr'),
  AllocateNodeCIDRs: of('allocate-node-cidrs'),
  CIDRAllocatorType: of('cidr-allocator-type'),
  ConfigureCloudRoutes: of('configure-cloud-routes'),
  NodeSyncPeriod: '0s',
}

const VOLUMES: Shape = {
  PVClaimBinderSyncPeriod: of('pvclaimbinder-sync-period'),
  VolumeConfiguration: {
    EnableHostPathProvisioning: of('enable-hostpath-provisioner'),
    EnableDynamicProvisioning: of('enable-dynamic-provisioning'),
    PersistentVolumeRecyclerConfiguration: {
      MaximumRetry: 3,
      MinimumTimeoutNFS: of('pv-recycler-minimum-timeout-nfs'),
      PodTemplateFilePathNFS: of('pv-recycler-pod-template-filepath-nfs'),
      IncrementTimeoutNFS: of('pv-recycler-increment-timeout-nfs'),
      PodTemplateFilePathHostPath: of('pv-recycler-pod-template-filepath-hostpath'),
      MinimumTimeoutHostPath: of('pv-recycler-minimum-timeout-hostpath'),
      IncrementTimeoutHostPath: of('pv-recycler-timeout-increment-hostpath'),
    },
    FlexVolumePluginDir: of('flex-volume-plugin-dir'),
  },
}

/** In upstream's order. */
const CONFIGURATION: Shape = {
  kind: 'KubeControllerManagerConfiguration',
  apiVersion: 'kubecontrollermanager.config.k8s.io/v1alpha1',
  Generic: GENERIC,
  KubeCloudShared: CLOUD,
  AttachDetachController: {
    DisableAttachDetachReconcilerSync: of('disable-attach-detach-reconcile-sync'),
    ReconcilerSyncLoopPeriod: of('attach-detach-reconcile-sync-period'),
    disableForceDetachOnTimeout: of('disable-force-detach-on-timeout'),
  },
  CSRSigningController: {
    ClusterSigningCertFile: of('cluster-signing-cert-file'),
    ClusterSigningKeyFile: of('cluster-signing-key-file'),
    KubeletServingSignerConfiguration: signer('kubelet-serving'),
    KubeletClientSignerConfiguration: signer('kubelet-client'),
    KubeAPIServerClientSignerConfiguration: signer('kube-apiserver-client'),
    LegacyUnknownSignerConfiguration: signer('legacy-unknown'),
    ClusterSigningDuration: of('cluster-signing-duration'),
  },
  DaemonSetController: { ConcurrentDaemonSetSyncs: of('concurrent-daemonset-syncs') },
  DeploymentController: { ConcurrentDeploymentSyncs: of('concurrent-deployment-syncs') },
  StatefulSetController: { ConcurrentStatefulSetSyncs: of('concurrent-statefulset-syncs') },
  DeprecatedController: {},
  EndpointController: {
    ConcurrentEndpointSyncs: of('concurrent-endpoint-syncs'),
    EndpointUpdatesBatchPeriod: of('endpoint-updates-batch-period'),
  },
  EndpointSliceController: {
    ConcurrentServiceEndpointSyncs: of('concurrent-service-endpoint-syncs'),
    MaxEndpointsPerSlice: of('max-endpoints-per-slice'),
    EndpointUpdatesBatchPeriod: of('endpointslice-updates-batch-period'),
  },
  EndpointSliceMirroringController: {
    MirroringConcurrentServiceEndpointSyncs: of('mirroring-concurrent-service-endpoint-syncs'),
    MirroringMaxEndpointsPerSubset: of('mirroring-max-endpoints-per-subset'),
    MirroringEndpointUpdatesBatchPeriod: of('mirroring-endpointslice-updates-batch-period'),
  },
  EphemeralVolumeController: { ConcurrentEphemeralVolumeSyncs: of('concurrent-ephemeralvolume-syncs') },
  GarbageCollectorController: {
    EnableGarbageCollector: of('enable-garbage-collector'),
    ConcurrentGCSyncs: of('concurrent-gc-syncs'),
    GCIgnoredResources: [
      { Group: '', Resource: 'events' },
      { Group: 'events.k8s.io', Resource: 'events' },
    ],
  },
  HPAController: {
    ConcurrentHorizontalPodAutoscalerSyncs: of('concurrent-horizontal-pod-autoscaler-syncs'),
    HorizontalPodAutoscalerSyncPeriod: of('horizontal-pod-autoscaler-sync-period'),
    HorizontalPodAutoscalerDownscaleStabilizationWindow: of('horizontal-pod-autoscaler-downscale-stabilization'),
    HorizontalPodAutoscalerTolerance: of('horizontal-pod-autoscaler-tolerance'),
    HorizontalPodAutoscalerCPUInitializationPeriod: of('horizontal-pod-autoscaler-cpu-initialization-period'),
    HorizontalPodAutoscalerInitialReadinessDelay: of('horizontal-pod-autoscaler-initial-readiness-delay'),
  },
  JobController: { ConcurrentJobSyncs: of('concurrent-job-syncs') },
  CronJobController: { ConcurrentCronJobSyncs: of('concurrent-cron-job-syncs') },
  LegacySATokenCleaner: { CleanUpPeriod: of('legacy-service-account-token-clean-up-period') },
  NamespaceController: {
    NamespaceSyncPeriod: of('namespace-sync-period'),
    ConcurrentNamespaceSyncs: of('concurrent-namespace-syncs'),
  },
  NodeIPAMController: {
    ServiceCIDR: { flag: 'service-cluster-ip-range', part: 0 },
    SecondaryServiceCIDR: { flag: 'service-cluster-ip-range', part: 1 },
    NodeCIDRMaskSize: of('node-cidr-mask-size'),
    NodeCIDRMaskSizeIPv4: of('node-cidr-mask-size-ipv4'),
    NodeCIDRMaskSizeIPv6: of('node-cidr-mask-size-ipv6'),
  },
  NodeLifecycleController: {
    NodeEvictionRate: of('node-eviction-rate'),
    SecondaryNodeEvictionRate: of('secondary-node-eviction-rate'),
    NodeStartupGracePeriod: of('node-startup-grace-period'),
    NodeMonitorGracePeriod: of('node-monitor-grace-period'),
    PodEvictionTimeout: '0s',
    LargeClusterSizeThreshold: of('large-cluster-size-threshold'),
    UnhealthyZoneThreshold: of('unhealthy-zone-threshold'),
  },
  PersistentVolumeBinderController: VOLUMES,
  PodGCController: { TerminatedPodGCThreshold: of('terminated-pod-gc-threshold') },
  ReplicaSetController: { ConcurrentRSSyncs: of('concurrent-replicaset-syncs') },
  ReplicationController: { ConcurrentRCSyncs: of('concurrent-rc-syncs') },
  ResourceQuotaController: {
    ResourceQuotaSyncPeriod: of('resource-quota-sync-period'),
    ConcurrentResourceQuotaSyncs: of('concurrent-resource-quota-syncs'),
  },
  SAController: {
    ServiceAccountKeyFile: of('service-account-private-key-file'),
    ConcurrentSATokenSyncs: of('concurrent-serviceaccount-token-syncs'),
    RootCAFile: of('root-ca-file'),
  },
  ServiceController: { ConcurrentServiceSyncs: of('concurrent-service-syncs') },
  TTLAfterFinishedController: { ConcurrentTTLSyncs: of('concurrent-ttl-after-finished-syncs') },
  ValidatingAdmissionPolicyStatusController: {
    ConcurrentPolicySyncs: of('concurrent-validating-admission-policy-status-syncs'),
  },
  DeviceTaintEvictionController: { ConcurrentSyncs: of('concurrent-device-taint-eviction-syncs') },
  ResourceClaimController: { ConcurrentSyncs: of('concurrent-resourceclaim-syncs') },
}

/** For `/configz`: durations in Go's format. */
export function managerConfigz(flags: FlagGroups, values: Readonly<Record<string, unknown>>): object {
  const known = new Map(Object.values(flags).flatMap((group) => Object.entries(group)))
  const valueAt = ({ flag, part }: FlagReference): unknown => {
    const { kind, initial } = known.get(flag) ?? {}
    const value = values[flag] ?? initial
    if (part !== undefined) return String(value).split(',')[part] ?? ''
    return kind === duration ? duration.print(value as number) : value
  }
  const fill = (shape: Shape): unknown => {
    if (typeof shape !== 'object' || shape === null) return shape
    if (Array.isArray(shape)) return shape.map(fill)
    if (isPlace(shape)) return valueAt(shape)
    return Object.fromEntries(Object.entries(shape).map(([field, below]) => [field, fill(below)]))
  }
  return { 'kubecontrollermanager.config.k8s.io': fill(CONFIGURATION) }
}

function isPlace(shape: object): shape is FlagReference {
  return Object.hasOwn(shape, 'flag')
}
