/**
 * What controllers are told: upstream's flags of kube-controller-manager, in its groups, each named for the controller that
 * reads them (`context.settings`). How many workers one has is here too, and of concern to the manager alone.
 */
import { type FlagsOf, type FlagGroup, idle } from '#lib/flags/flag-support.ts'
import { flag, type Flag, type FlagGroups } from '#lib/flags/flags.ts'
import { bool, duration, float, float32, int32, string } from '#lib/flags/kinds.ts'

/** By the names of the flags; durations in milliseconds. */
export interface ControllerSettings
  extends
    CertificateValues,
    EndpointValues,
    AutoscalingValues,
    NodeIpamValues,
    NodeLifecycleValues,
    VolumeValues,
    AccountValues,
    RestValues {}

interface CertificateValues {
  readonly 'cluster-signing-cert-file': string
  readonly 'cluster-signing-duration': number
  readonly 'cluster-signing-key-file': string
  readonly 'cluster-signing-kube-apiserver-client-cert-file': string
  readonly 'cluster-signing-kube-apiserver-client-key-file': string
  readonly 'cluster-signing-kubelet-client-cert-file': string
  readonly 'cluster-signing-kubelet-client-key-file': string
  readonly 'cluster-signing-kubelet-serving-cert-file': string
  readonly 'cluster-signing-kubelet-serving-key-file': string
  readonly 'cluster-signing-legacy-unknown-cert-file': string
  readonly 'cluster-signing-legacy-unknown-key-file': string
}

interface EndpointValues {
  readonly 'endpoint-updates-batch-period': number
  readonly 'endpointslice-updates-batch-period': number
  readonly 'max-endpoints-per-slice': number
  readonly 'mirroring-endpointslice-updates-batch-period': number
  readonly 'mirroring-max-endpoints-per-subset': number
}

interface AutoscalingValues {
  readonly 'horizontal-pod-autoscaler-cpu-initialization-period': number
  readonly 'horizontal-pod-autoscaler-downscale-stabilization': number
  readonly 'horizontal-pod-autoscaler-initial-readiness-delay': number
  readonly 'horizontal-pod-autoscaler-sync-period': number
  readonly 'horizontal-pod-autoscaler-tolerance': number
}

interface NodeIpamValues {
  readonly 'node-cidr-mask-size': number
  readonly 'node-cidr-mask-size-ipv4': number
  readonly 'node-cidr-mask-size-ipv6': number
  readonly 'service-cluster-ip-range': string
}

interface NodeLifecycleValues {
  readonly 'large-cluster-size-threshold': number
  readonly 'node-eviction-rate': number
  readonly 'node-monitor-grace-period': number
  readonly 'node-startup-grace-period': number
  readonly 'secondary-node-eviction-rate': number
  readonly 'unhealthy-zone-threshold': number
}

interface VolumeValues {
  readonly 'attach-detach-reconcile-sync-period': number
  readonly 'disable-attach-detach-reconcile-sync': boolean
  readonly 'disable-force-detach-on-timeout': boolean
  readonly 'enable-dynamic-provisioning': boolean
  readonly 'enable-hostpath-provisioner': boolean
  readonly 'pv-recycler-increment-timeout-nfs': number
  readonly 'pv-recycler-minimum-timeout-hostpath': number
  readonly 'pv-recycler-minimum-timeout-nfs': number
  readonly 'pv-recycler-pod-template-filepath-hostpath': string
  readonly 'pv-recycler-pod-template-filepath-nfs': string
  readonly 'pv-recycler-timeout-increment-hostpath': number
  readonly 'pvclaimbinder-sync-period': number
}

interface AccountValues {
  readonly 'legacy-service-account-token-clean-up-period': number
  readonly 'root-ca-file': string
  readonly 'service-account-private-key-file': string
}

/** Of the group "generic", and of those with a single one. */
interface RestValues {
  readonly 'allocate-node-cidrs': boolean
  readonly 'cidr-allocator-type': string
  readonly 'cluster-cidr': string
  readonly 'cluster-name': string
  readonly 'enable-garbage-collector': boolean
  readonly 'node-monitor-period': number
  readonly 'resource-quota-sync-period': number
  readonly 'terminated-pod-gc-threshold': number
}

/** `workers(5, 'ReplicaSets')`. */
function workers(count: number, what: string): Flag<number> {
  return flag(int32, count, `How many ${what} are looked after at once`)
}

function signing(file: 'certificate' | 'key', signer: string): Flag<string> {
  const what = file === 'certificate' ? 'authority' : 'key of the authority'
  return flag(string, '', `PEM file with the ${what} of ${signer}`)
}

/** Why the flags of a controller that is not in the list yet do nothing. */
export const NOT_BUILT = 'the controller that reads it is not built yet'

const BATCHING = 'changes that come while the last ones are written are gathered, however long that takes'
const YEAR_MS = 8760 * 3_600_000

const CERTIFICATES: FlagsOf<CertificateValues> = {
  'cluster-signing-cert-file': signing('certificate', 'every signer that has none of its own'),
  'cluster-signing-duration': flag(duration, YEAR_MS, 'How long certificates last at most'),
  'cluster-signing-key-file': signing('key', 'every signer that has none of its own'),
  'cluster-signing-kube-apiserver-client-cert-file': signing('certificate', 'kubernetes.io/kube-apiserver-client'),
  'cluster-signing-kube-apiserver-client-key-file': signing('key', 'kubernetes.io/kube-apiserver-client'),
  'cluster-signing-kubelet-client-cert-file': signing('certificate', 'kubernetes.io/kube-apiserver-client-kubelet'),
  'cluster-signing-kubelet-client-key-file': signing('key', 'kubernetes.io/kube-apiserver-client-kubelet'),
  'cluster-signing-kubelet-serving-cert-file': signing('certificate', 'kubernetes.io/kubelet-serving'),
  'cluster-signing-kubelet-serving-key-file': signing('key', 'kubernetes.io/kubelet-serving'),
  'cluster-signing-legacy-unknown-cert-file': signing('certificate', 'kubernetes.io/legacy-unknown'),
  'cluster-signing-legacy-unknown-key-file': signing('key', 'kubernetes.io/legacy-unknown'),
}

const RECYCLING = 'Seconds a pod may take that empties a volume of type'
const TEMPLATE = 'File with the pod that empties volumes of type'

/** Flags of single controllers, by the name of the controller, in upstream's order. */
export const CONTROLLER_FLAGS: FlagGroups = {
  'persistentvolume-attach-detach-controller': {
    'attach-detach-reconcile-sync-period': flag(
      duration,
      60_000,
      'How often what is attached is compared; more than 1s',
    ),
    'disable-attach-detach-reconcile-sync': flag(
      bool,
      false,
      'Whether what is attached is not compared from time to time',
    ),
    'disable-force-detach-on-timeout': flag(bool, false, 'Whether volumes are never detached by force'),
  },
  'certificatesigningrequest-signing-controller': { ...CERTIFICATES },
  'deployment-controller': { 'concurrent-deployment-syncs': workers(5, 'Deployments') },
  'device-taint-eviction-controller': { 'concurrent-device-taint-eviction-syncs': workers(8, 'evictions') },
  'resourceclaim-controller': { 'concurrent-resourceclaim-syncs': workers(50, 'ResourceClaims') },
  'statefulset-controller': { 'concurrent-statefulset-syncs': workers(5, 'StatefulSets') },
  'daemonset-controller': { 'concurrent-daemonset-syncs': workers(2, 'DaemonSets') },
  'endpoints-controller': {
    'concurrent-endpoint-syncs': workers(5, 'Endpoints'),
    'endpoint-updates-batch-period': idle(duration, 0, BATCHING),
  },
  'endpointslice-controller': {
    'concurrent-service-endpoint-syncs': workers(5, 'Services'),
    'endpointslice-updates-batch-period': idle(duration, 0, BATCHING),
    'max-endpoints-per-slice': flag(int32, 100, 'How many endpoints an EndpointSlice has at most'),
  },
  'endpointslice-mirroring-controller': {
    'mirroring-concurrent-service-endpoint-syncs': workers(5, 'Endpoints'),
    'mirroring-endpointslice-updates-batch-period': idle(duration, 0, BATCHING),
    'mirroring-max-endpoints-per-subset': flag(int32, 1000, 'How many addresses of a subset are mirrored at most'),
  },
  'ephemeral-volume-controller': { 'concurrent-ephemeralvolume-syncs': workers(5, 'pods with ephemeral volumes') },
  'garbage-collector-controller': {
    'concurrent-gc-syncs': workers(20, 'objects'),
    'enable-garbage-collector': flag(bool, true, 'Whether what has lost its owners is deleted'),
  },
  'horizontal-pod-autoscaler-controller': {
    'concurrent-horizontal-pod-autoscaler-syncs': workers(5, 'HorizontalPodAutoscalers'),
    'horizontal-pod-autoscaler-cpu-initialization-period': flag(
      duration,
      300_000,
      'How long the CPU of a new pod may not count',
    ),
    'horizontal-pod-autoscaler-downscale-stabilization': flag(
      duration,
      300_000,
      'How long back the highest recommendation counts before scaling down',
    ),
    'horizontal-pod-autoscaler-initial-readiness-delay': flag(
      duration,
      30_000,
      'How long after its start a pod counts as becoming ready for the first time',
    ),
    'horizontal-pod-autoscaler-sync-period': flag(duration, 15_000, 'How often metrics are looked at'),
    'horizontal-pod-autoscaler-tolerance': flag(
      float,
      0.1,
      'How far metrics may be from what is wanted before anything is scaled',
    ),
  },
  'job-controller': { 'concurrent-job-syncs': workers(5, 'Jobs') },
  'cronjob-controller': { 'concurrent-cron-job-syncs': workers(5, 'CronJobs') },
  'legacy-serviceaccount-token-cleaner-controller': {
    'legacy-service-account-token-clean-up-period': flag(
      duration,
      YEAR_MS,
      'How long a token in a Secret may be unused before it is deleted',
    ),
  },
  'namespace-controller': {
    'concurrent-namespace-syncs': workers(10, 'namespaces'),
    'namespace-sync-period': idle(duration, 300_000, 'a namespace is looked at when there is reason to'),
  },
  'node-ipam-controller': {
    'node-cidr-mask-size': flag(int32, 0, 'Length of the prefix of each node; 0: 24 for IPv4, 64 for IPv6'),
    'node-cidr-mask-size-ipv4': flag(int32, 0, 'Length of the IPv4 prefix of each node, with two families; 0: 24'),
    'node-cidr-mask-size-ipv6': flag(int32, 0, 'Length of the IPv6 prefix of each node, with two families; 0: 64'),
    'service-cluster-ip-range': flag(string, '', 'Addresses of Services, which no node gets'),
  },
  'node-lifecycle-controller': {
    'large-cluster-size-threshold': flag(int32, 50, 'More nodes than that are a large cluster'),
    'node-eviction-rate': flag(float32, 0.1, 'Nodes a second whose pods are evicted in a healthy zone'),
    'node-monitor-grace-period': flag(duration, 50_000, 'How long a node may be silent'),
    'node-startup-grace-period': flag(duration, 60_000, 'How long a new node may be silent'),
    'secondary-node-eviction-rate': flag(
      float32,
      0.01,
      'Nodes a second whose pods are evicted in an unhealthy zone of a large cluster',
    ),
    'unhealthy-zone-threshold': flag(
      float32,
      0.55,
      'Share of silent nodes, three at least, from which a zone is unhealthy',
    ),
  },
  'persistentvolume-binder-controller': {
    'enable-dynamic-provisioning': flag(bool, true, 'Whether volumes are made for claims'),
    'enable-hostpath-provisioner': flag(bool, false, 'Whether volumes are made as folders of the machine, for tests'),
    'flex-volume-plugin-dir': idle(
      string,
      '/usr/libexec/kubernetes/kubelet-plugins/volume/exec/',
      'there are no flex volumes',
    ),
    'pv-recycler-increment-timeout-nfs': flag(int32, 30, `${RECYCLING} NFS, for each GiB`),
    'pv-recycler-minimum-timeout-hostpath': flag(int32, 60, `${RECYCLING} HostPath, at least`),
    'pv-recycler-minimum-timeout-nfs': flag(int32, 300, `${RECYCLING} NFS, at least`),
    'pv-recycler-pod-template-filepath-hostpath': flag(string, '', `${TEMPLATE} HostPath`),
    'pv-recycler-pod-template-filepath-nfs': flag(string, '', `${TEMPLATE} NFS`),
    'pv-recycler-timeout-increment-hostpath': flag(int32, 30, `${RECYCLING} HostPath, for each GiB`),
    'pvclaimbinder-sync-period': flag(duration, 15_000, 'How often volumes and claims are looked at without reason'),
  },
  'pod-garbage-collector-controller': {
    'terminated-pod-gc-threshold': flag(
      int32,
      12_500,
      'How many terminated pods may be there before they are deleted; 0: any number',
    ),
  },
  'replicaset-controller': { 'concurrent-replicaset-syncs': workers(5, 'ReplicaSets') },
  'replicationcontroller-controller': { 'concurrent-rc-syncs': workers(5, 'ReplicationControllers') },
  'resourcequota-controller': {
    'concurrent-resource-quota-syncs': workers(5, 'ResourceQuotas'),
    'resource-quota-sync-period': flag(duration, 300_000, 'How often all quotas are computed anew'),
  },
  'serviceaccount-controller': {
    'concurrent-serviceaccount-token-syncs': workers(5, 'tokens in Secrets'),
    'root-ca-file': flag(string, '', 'PEM file with the authority that pods are told to trust'),
    'service-account-private-key-file': flag(string, '', 'PEM file with the key that signs tokens in Secrets'),
  },
  'ttl-after-finished-controller': { 'concurrent-ttl-after-finished-syncs': workers(5, 'finished Jobs') },
  'validatingadmissionpolicy-status-controller': {
    'concurrent-validating-admission-policy-status-syncs': workers(5, 'policies'),
  },
}

/** Those of the group "generic" that controllers read. */
export const GENERIC_CONTROLLER_FLAGS: FlagGroup = {
  'allocate-node-cidrs': flag(bool, false, 'Whether nodes get addresses for their pods'),
  'cidr-allocator-type': flag(string, 'RangeAllocator', 'Where they come from; RangeAllocator: --cluster-cidr'),
  'cluster-cidr': flag(string, '', 'Addresses of pods, of one family or of both'),
  'cluster-name': idle(string, 'kubernetes', 'only cloud providers ask what the cluster is called'),
  'node-monitor-period': flag(duration, 5000, 'How often nodes are looked at'),
}

/** The defaults of all flags, but for `chosen`. */
export function controllerSettings(
  chosen: Partial<ControllerSettings> & Readonly<Record<string, unknown>> = {},
): ControllerSettings {
  const all = [...Object.values(CONTROLLER_FLAGS), GENERIC_CONTROLLER_FLAGS].flatMap((group) => Object.entries(group))
  const values = all.map(([name, { initial }]) => [name, chosen[name] ?? initial])
  return Object.fromEntries(values)
}

/** What is wrong with them before anything is looked at, in upstream's words. */
export function controllerSettingErrors(settings: ControllerSettings): string[] {
  const ranges = settings['service-cluster-ip-range'].split(',')
  return ranges.length > 2 ? ['--service-cluster-ip-range can not contain more than two entries'] : []
}

/** How many keys a controller works on at once, if there is a flag that says so. */
export function workersOf(controller: string, settings: ControllerSettings): number | undefined {
  // The account itself has one worker: what the flag of its group means is the controller of tokens.
  const group = controller === 'serviceaccount-token-controller' ? 'serviceaccount-controller' : controller
  if (controller === 'serviceaccount-controller') return undefined
  const name = Object.keys(CONTROLLER_FLAGS[group] ?? {}).find((flag) => flag.includes('concurrent-'))
  return name === undefined ? undefined : (settings as unknown as Readonly<Record<string, number>>)[name]
}
