/**
 * Defines the flags of kube-controller-manager in upstream's groups. Each controller reads its own group from
 * `context.settings`; only the manager reads the worker counts.
 */
import { flagRows, type GroupValues, type RowValues } from '#lib/flags/flag-rows.ts'
import type { FlagGroup } from '#lib/flags/flag-support.ts'
import type { FlagGroups } from '#lib/flags/flags.ts'

/** The help text for flags of a controller that kube-controller-manager lists but never runs. */
export const RUNS_IN_CLOUD_MANAGER = 'its controller runs in cloud-controller-manager'

/** By controller, in upstream's order. */
const ROWS = {
  'persistentvolume-attach-detach-controller': {
    'attach-detach-reconcile-sync-period':
      'duration =1m0s Period of comparing attached volumes with their drivers; more than 1s',
    'disable-attach-detach-reconcile-sync': 'bool Do not compare attached volumes periodically',
    'disable-force-detach-on-timeout': 'bool Never force-detach volumes',
  },
  'certificatesigningrequest-signing-controller': {
    'cluster-signing-cert-file': 'string PEM file with the CA certificate for signers without their own files',
    'cluster-signing-duration': 'duration =8760h0m0s Maximum validity of signed certificates',
    'cluster-signing-key-file': 'string PEM file with the CA key for signers without their own files',
    'cluster-signing-kube-apiserver-client-cert-file':
      'string PEM file with the CA certificate for kubernetes.io/kube-apiserver-client',
    'cluster-signing-kube-apiserver-client-key-file':
      'string PEM file with the CA key for kubernetes.io/kube-apiserver-client',
    'cluster-signing-kubelet-client-cert-file':
      'string PEM file with the CA certificate for kubernetes.io/kube-apiserver-client-kubelet',
    'cluster-signing-kubelet-client-key-file':
      'string PEM file with the CA key for kubernetes.io/kube-apiserver-client-kubelet',
    'cluster-signing-kubelet-serving-cert-file':
      'string PEM file with the CA certificate for kubernetes.io/kubelet-serving',
    'cluster-signing-kubelet-serving-key-file': 'string PEM file with the CA key for kubernetes.io/kubelet-serving',
    'cluster-signing-legacy-unknown-cert-file':
      'string PEM file with the CA certificate for kubernetes.io/legacy-unknown',
    'cluster-signing-legacy-unknown-key-file': 'string PEM file with the CA key for kubernetes.io/legacy-unknown',
  },
  'deployment-controller': {
    'concurrent-deployment-syncs': 'int32 =5 Number of Deployments to sync concurrently',
  },
  'device-taint-eviction-controller': {
    'concurrent-device-taint-eviction-syncs': 'int32 =8 Number of evictions to sync concurrently',
  },
  'resourceclaim-controller': {
    'concurrent-resourceclaim-syncs': 'int32 =50 Number of ResourceClaims to sync concurrently',
  },
  'statefulset-controller': {
    'concurrent-statefulset-syncs': 'int32 =5 Number of StatefulSets to sync concurrently',
  },
  'daemonset-controller': {
    'concurrent-daemonset-syncs': 'int32 =2 Number of DaemonSets to sync concurrently',
  },
  'endpoints-controller': {
    'concurrent-endpoint-syncs': 'int32 =5 Number of Endpoints to sync concurrently',
    'endpoint-updates-batch-period': 'duration idle: changes during a write are always batched',
  },
  'endpointslice-controller': {
    'concurrent-service-endpoint-syncs': 'int32 =5 Number of Services to sync concurrently',
    'endpointslice-updates-batch-period': 'duration idle: changes during a write are always batched',
    'max-endpoints-per-slice': 'int32 =100 Maximum number of endpoints in an EndpointSlice',
  },
  'endpointslice-mirroring-controller': {
    'mirroring-concurrent-service-endpoint-syncs': 'int32 =5 Number of Endpoints to sync concurrently',
    'mirroring-endpointslice-updates-batch-period': 'duration idle: changes during a write are always batched',
    'mirroring-max-endpoints-per-subset': 'int32 =1000 Maximum number of mirrored addresses of a subset',
  },
  'ephemeral-volume-controller': {
    'concurrent-ephemeralvolume-syncs': 'int32 =5 Number of pods with ephemeral volumes to sync concurrently',
  },
  'garbage-collector-controller': {
    'concurrent-gc-syncs': 'int32 =20 Number of objects to sync concurrently',
    'enable-garbage-collector': 'bool =true Delete objects whose owners no longer exist',
  },
  'horizontal-pod-autoscaler-controller': {
    'concurrent-horizontal-pod-autoscaler-syncs': 'int32 =5 Number of HorizontalPodAutoscalers to sync concurrently',
    'horizontal-pod-autoscaler-cpu-initialization-period':
      'duration =5m0s Period after the start of a pod in which its CPU usage may be ignored',
    'horizontal-pod-autoscaler-downscale-stabilization':
      'duration =5m0s Window of recommendations whose maximum applies before scaling down',
    'horizontal-pod-autoscaler-initial-readiness-delay':
      'duration =30s Period after the start of a pod in which readiness counts as initial',
    'horizontal-pod-autoscaler-sync-period': 'duration =15s Period of reading metrics and scaling',
    'horizontal-pod-autoscaler-tolerance': 'float =0.1 Minimum deviation of the usage ratio from 1 before scaling',
  },
  'job-controller': {
    'concurrent-job-syncs': 'int32 =5 Number of Jobs to sync concurrently',
  },
  'cronjob-controller': {
    'concurrent-cron-job-syncs': 'int32 =5 Number of CronJobs to sync concurrently',
  },
  'legacy-serviceaccount-token-cleaner-controller': {
    'legacy-service-account-token-clean-up-period':
      'duration =8760h0m0s Time without use after which a token Secret is invalidated, and after the same time again deleted',
  },
  'namespace-controller': {
    'concurrent-namespace-syncs': 'int32 =10 Number of namespaces to sync concurrently',
    'namespace-sync-period': 'duration =5m0s idle: namespaces are synced on events',
  },
  'node-ipam-controller': {
    'node-cidr-mask-size': 'int32 Prefix length of each node; 0: 24 for IPv4, 64 for IPv6',
    'node-cidr-mask-size-ipv4': 'int32 IPv4 prefix length of each node in dual stack; 0: 24',
    'node-cidr-mask-size-ipv6': 'int32 IPv6 prefix length of each node in dual stack; 0: 64',
    'service-cluster-ip-range': 'string CIDRs of Services, which are not assigned to nodes',
  },
  'node-lifecycle-controller': {
    'large-cluster-size-threshold': 'int32 =50 Number of nodes above which a cluster is large',
    'node-eviction-rate': 'float32 =0.1 Nodes per second to evict pods from in a healthy zone',
    'node-monitor-grace-period': 'duration =50s Time without heartbeats before a node becomes unhealthy',
    'node-startup-grace-period': 'duration =1m0s Time without heartbeats before a new node becomes unhealthy',
    'secondary-node-eviction-rate':
      'float32 =0.01 Nodes per second to evict pods from in an unhealthy zone of a large cluster',
    'unhealthy-zone-threshold':
      'float32 =0.55 Fraction of unready nodes, at least three, above which a zone is unhealthy',
  },
  'persistentvolume-binder-controller': {
    'enable-dynamic-provisioning': 'bool =true Provision volumes for claims',
    'enable-hostpath-provisioner': 'bool Provision hostPath volumes on this machine, for tests',
    'flex-volume-plugin-dir':
      'string =/usr/libexec/kubernetes/kubelet-plugins/volume/exec/ idle: flex volumes are not supported',
    'pv-recycler-increment-timeout-nfs':
      'int32 =30 Timeout in seconds for recycling a volume of type NFS, for each GiB',
    'pv-recycler-minimum-timeout-hostpath':
      'int32 =60 Timeout in seconds for recycling a volume of type HostPath, at least',
    'pv-recycler-minimum-timeout-nfs': 'int32 =300 Timeout in seconds for recycling a volume of type NFS, at least',
    'pv-recycler-pod-template-filepath-hostpath':
      'string File with the pod template for recycling volumes of type HostPath',
    'pv-recycler-pod-template-filepath-nfs': 'string File with the pod template for recycling volumes of type NFS',
    'pv-recycler-timeout-increment-hostpath':
      'int32 =30 Timeout in seconds for recycling a volume of type HostPath, for each GiB',
    'pvclaimbinder-sync-period': 'duration =15s Period of syncing all volumes and claims',
  },
  'pod-garbage-collector-controller': {
    'terminated-pod-gc-threshold': 'int32 =12500 Number of terminated pods above which they are deleted; 0: no limit',
  },
  'replicaset-controller': {
    'concurrent-replicaset-syncs': 'int32 =5 Number of ReplicaSets to sync concurrently',
  },
  'replicationcontroller-controller': {
    'concurrent-rc-syncs': 'int32 =5 Number of ReplicationControllers to sync concurrently',
  },
  'resourcequota-controller': {
    'concurrent-resource-quota-syncs': 'int32 =5 Number of ResourceQuotas to sync concurrently',
    'resource-quota-sync-period': 'duration =5m0s Period of recomputing all quotas',
  },
  'serviceaccount-controller': {
    'concurrent-serviceaccount-token-syncs': 'int32 =5 Number of tokens in Secrets to sync concurrently',
    'root-ca-file': 'string PEM file with the CA bundle for kube-root-ca.crt',
    'service-account-private-key-file': 'string PEM file with the private key for token Secrets',
  },
  'ttl-after-finished-controller': {
    'concurrent-ttl-after-finished-syncs': 'int32 =5 Number of finished Jobs to sync concurrently',
  },
  'validatingadmissionpolicy-status-controller': {
    'concurrent-validating-admission-policy-status-syncs': 'int32 =5 Number of policies to sync concurrently',
  },
} as const

/** The flags of the group "generic" that controllers read. */
const GENERIC = {
  'allocate-node-cidrs': 'bool Assign pod CIDRs to nodes',
  'cidr-allocator-type': 'string =RangeAllocator Source of pod CIDRs; RangeAllocator: --cluster-cidr',
  'cluster-cidr': 'string CIDRs of pods, one or one of each family',
  'cluster-name': 'string =kubernetes idle: only cloud providers use the cluster name',
  'node-monitor-period': 'duration =5s Period of checking node health',
} as const

/** By flag name; durations in milliseconds. */
export interface ControllerSettings extends GroupValues<typeof ROWS>, RowValues<typeof GENERIC> {}

/** Flags by controller. */
export const CONTROLLER_FLAGS: FlagGroups = Object.fromEntries(
  Object.entries(ROWS).map(([controller, rows]) => [controller, flagRows(rows)]),
)

export const GENERIC_CONTROLLER_FLAGS: FlagGroup = flagRows(GENERIC)

/** All defaults, overridden by `chosen`. */
export function controllerSettings(
  chosen: Partial<ControllerSettings> & Readonly<Record<string, unknown>> = {},
): ControllerSettings {
  const all = [...Object.values(CONTROLLER_FLAGS), GENERIC_CONTROLLER_FLAGS].flatMap((group) => Object.entries(group))
  const values = all.map(([name, { initial }]) => [name, chosen[name] ?? initial])
  return Object.fromEntries(values)
}

/** Validation errors in upstream's words. */
export function controllerSettingErrors(settings: ControllerSettings): string[] {
  const ranges = settings['service-cluster-ip-range'].split(',')
  return ranges.length > 2 ? ['--service-cluster-ip-range can not contain more than two entries'] : []
}

/** The number of workers from the controller's flag, if it has one. */
export function workersOf(controller: string, settings: ControllerSettings): number | undefined {
  // The flag of the account group sets the workers of the token controller; the account controller has one.
  const group = controller === 'serviceaccount-token-controller' ? 'serviceaccount-controller' : controller
  if (controller === 'serviceaccount-controller') return undefined
  const name = Object.keys(CONTROLLER_FLAGS[group] ?? {}).find((flag) => flag.includes('concurrent-'))
  return name === undefined ? undefined : (settings as unknown as Readonly<Record<string, number>>)[name]
}
