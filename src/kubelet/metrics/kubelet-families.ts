/** What a kubelet counts, under the names, labels and buckets of upstream's. */
import { createMeters, type FamilyRow, type Meters } from '#lib/metrics-table.ts'
import { createRegistry, DEFAULT_BUCKETS, exponentialBuckets, type Registry } from '#lib/metrics.ts'

import { IMAGE_FAMILIES } from './image-families.ts'
import { POD_FAMILIES, RESIZE_FAMILIES } from './pod-families.ts'

type BucketName =
  | 'admissionMs'
  | 'claims'
  | 'containers'
  | 'csi'
  | 'operation'
  | 'podStart'
  | 'pull'
  | 'resizeMs'
  | 'statusSync'
  | 'usual'

/** `count` bounds from `least` to `most`, each the same times the one before. */
function bucketsBetween(least: number, most: number, count: number): number[] {
  const growth = (most / least) ** (1 / (count - 1))
  return Array.from({ length: count }, (_, at) => least * growth ** at)
}

export const KUBELET_BUCKETS: Readonly<Record<BucketName, readonly number[]>> = {
  admissionMs: exponentialBuckets(0.05, 2, 15),
  claims: bucketsBetween(0.1, 40, 15),
  containers: exponentialBuckets(1, 2, 5),
  csi: [0.1, 0.25, 0.5, 1, 2.5, 5, 10, 15, 25, 50, 120, 300, 600],
  operation: exponentialBuckets(0.005, 2.5, 14),
  podStart: [
    0.5, 1, 2, 3, 4, 5, 6, 8, 10, 20, 30, 45, 60, 120, 180, 240, 300, 360, 480, 600, 900, 1200, 1800, 2700, 3600,
  ],
  pull: [1, 5, 10, 20, 30, 60, 120, 180, 240, 300, 360, 480, 600, 900, 1200, 1800, 2700, 3600],
  resizeMs: [10, 50, 100, 500, 1000, 2000, 5000, 10_000, 20_000, 30_000, 60_000, 120_000, 300_000, 600_000],
  statusSync: [0.01, 0.05, 0.1, 0.5, 1, 5, 10, 20, 30, 45, 60],
  usual: DEFAULT_BUCKETS,
}

/** Of the runtime. */
const RUNTIME_FAMILIES = {
  kubelet_evented_pleg_connection_error_count: [
    'counter',
    'ALPHA',
    '',
    'The number of errors encountered during the establishment of streaming connection with the CRI runtime.',
  ],
  kubelet_evented_pleg_connection_latency_seconds: [
    'histogram',
    'ALPHA',
    '',
    'The latency of streaming connection with the CRI runtime, measured in seconds.',
    { buckets: 'usual' },
  ],
  kubelet_evented_pleg_connection_success_count: [
    'counter',
    'ALPHA',
    '',
    'The number of times a streaming client was obtained to receive CRI Events.',
  ],
  kubelet_pleg_last_seen_seconds: ['gauge', 'ALPHA', '', 'Timestamp in seconds when PLEG was last seen active.'],
  kubelet_pleg_relist_duration_seconds: [
    'histogram',
    'ALPHA',
    '',
    'Duration in seconds for relisting pods in PLEG.',
    { buckets: 'usual' },
  ],
  kubelet_pleg_relist_interval_seconds: [
    'histogram',
    'ALPHA',
    '',
    'Interval in seconds between relisting in PLEG.',
    { buckets: 'usual' },
  ],
  kubelet_run_podsandbox_duration_seconds: [
    'histogram',
    'ALPHA',
    'runtime_handler',
    'Duration in seconds of the run_podsandbox operations. Broken down by RuntimeClass.Handler.',
    { buckets: 'usual' },
  ],
  kubelet_run_podsandbox_errors_total: [
    'counter',
    'ALPHA',
    'runtime_handler',
    'Cumulative number of the run_podsandbox operation errors by RuntimeClass.Handler.',
  ],
  kubelet_runtime_operations_duration_seconds: [
    'histogram',
    'ALPHA',
    'operation_type',
    'Duration in seconds of runtime operations. Broken down by operation type.',
    { buckets: 'operation' },
  ],
  kubelet_runtime_operations_errors_total: [
    'counter',
    'ALPHA',
    'operation_type',
    'Cumulative number of runtime operation errors by operation type.',
  ],
  kubelet_runtime_operations_total: [
    'counter',
    'ALPHA',
    'operation_type',
    'Cumulative number of runtime operations by operation type.',
  ],
} as const

/** Of the node and of the kubelet itself. */
const NODE_FAMILIES = {
  kubelet_cgroup_manager_duration_seconds: [
    'histogram',
    'ALPHA',
    'operation_type',
    'Duration in seconds for cgroup manager operations. Broken down by method.',
    { buckets: 'usual' },
  ],
  kubelet_cgroup_version: ['gauge', 'ALPHA', '', 'cgroup version on the hosts.'],
  kubelet_credential_provider_config_info: [
    'gauge',
    'ALPHA',
    'hash',
    'Information about the last applied credential provider configuration with hash as label',
  ],
  kubelet_credential_provider_plugin_duration: [
    'histogram',
    'ALPHA',
    'plugin_name',
    'Duration of execution in seconds for credential provider plugin',
    { buckets: 'usual' },
  ],
  kubelet_credential_provider_plugin_errors_total: [
    'counter',
    'ALPHA',
    'plugin_name',
    'Number of errors from credential provider plugin',
  ],
  kubelet_eviction_stats_age_seconds: [
    'histogram',
    'ALPHA',
    'eviction_signal',
    'Time between when stats are collected, and when pod is evicted based on those stats by eviction signal',
    { buckets: 'usual' },
  ],
  kubelet_evictions: ['counter', 'ALPHA', 'eviction_signal', 'Cumulative number of pod evictions by eviction signal'],
  kubelet_http_inflight_requests: [
    'gauge',
    'ALPHA',
    'method path server_type long_running',
    'Number of the inflight http requests',
  ],
  kubelet_http_requests_duration_seconds: [
    'histogram',
    'ALPHA',
    'method path server_type long_running',
    'Duration in seconds to serve http requests',
    { buckets: 'usual' },
  ],
  kubelet_http_requests_total: [
    'counter',
    'ALPHA',
    'method path server_type long_running',
    'Number of the http requests received since the server started',
  ],
  kubelet_metrics_provider: [
    'gauge',
    'ALPHA',
    'provider',
    "Metrics provider used by kubelet to collect container stats. Values can be 'cadvisor' and 'cri'",
  ],
  kubelet_node_name: ['gauge', 'ALPHA', 'node', "The node's name. The count is always 1."],
  kubelet_node_startup_duration_seconds: ['gauge', 'ALPHA', '', 'Duration in seconds of node startup in total.'],
  kubelet_node_startup_post_registration_duration_seconds: [
    'gauge',
    'ALPHA',
    '',
    'Duration in seconds of node startup after registration.',
  ],
  kubelet_node_startup_pre_kubelet_duration_seconds: [
    'gauge',
    'ALPHA',
    '',
    'Duration in seconds of node startup before kubelet starts.',
  ],
  kubelet_node_startup_pre_registration_duration_seconds: [
    'gauge',
    'ALPHA',
    '',
    'Duration in seconds of node startup before registration.',
  ],
  kubelet_node_startup_registration_duration_seconds: [
    'gauge',
    'ALPHA',
    '',
    'Duration in seconds of node startup during registration.',
  ],
  kubelet_websocket_streaming_requests_total: [
    'counter',
    'ALPHA',
    'subresource',
    'Total number of WebSocket streaming requests (exec/attach/portforward) received by the kubelet.',
  ],
} as const

/** Of what is set aside for pods. */
const GRANT_FAMILIES = {
  dra_resource_claims_in_use: [
    'gauge',
    'ALPHA',
    'driver_name',
    'The number of ResourceClaims that are currently in use on the node, by driver name (driver_name label value) and across all drivers (special value <any> for driver_name). Note that the sum of all by-driver counts is not the total number of in-use ResourceClaims because the same ResourceClaim might use devices from different drivers. Instead, use the count for the <any> driver_name.',
  ],
  dra_operations_duration_seconds: [
    'histogram',
    'ALPHA',
    'operation_name is_error',
    "Latency histogram in seconds for the duration of handling all ResourceClaims referenced by a pod when the pod starts or stops. Identified by the name of the operation (PrepareResources or UnprepareResources) and separated by the success of the operation. The number of failed operations is provided through the histogram's overall count.",
    { buckets: 'claims' },
  ],
  kubelet_cpu_manager_allocation_per_numa: ['gauge', 'ALPHA', 'numa_node', 'Number of CPUs allocated per NUMA node'],
  kubelet_cpu_manager_exclusive_cpu_allocation_count: [
    'gauge',
    'ALPHA',
    '',
    'The total number of CPUs exclusively allocated to containers running on this node',
  ],
  kubelet_cpu_manager_pinning_errors_total: [
    'counter',
    'ALPHA',
    '',
    'The number of cpu core allocations which required pinning failed.',
  ],
  kubelet_cpu_manager_pinning_requests_total: [
    'counter',
    'ALPHA',
    '',
    'The number of cpu core allocations which required pinning.',
  ],
  kubelet_cpu_manager_shared_pool_size_millicores: [
    'gauge',
    'ALPHA',
    '',
    'The size of the shared CPU pool for non-guaranteed QoS pods, in millicores.',
  ],
  kubelet_device_plugin_alloc_duration_seconds: [
    'histogram',
    'ALPHA',
    'resource_name',
    'Duration in seconds to serve a device plugin Allocation request. Broken down by resource name.',
    { buckets: 'usual' },
  ],
  kubelet_device_plugin_registration_total: [
    'counter',
    'ALPHA',
    'resource_name',
    'Cumulative number of device plugin registrations. Broken down by resource name.',
  ],
  kubelet_memory_manager_pinning_errors_total: [
    'counter',
    'ALPHA',
    '',
    'The number of memory pages allocations which required pinning that failed.',
  ],
  kubelet_memory_manager_pinning_requests_total: [
    'counter',
    'ALPHA',
    '',
    'The number of memory pages allocations which required pinning.',
  ],
  kubelet_topology_manager_admission_duration_ms: [
    'histogram',
    'ALPHA',
    '',
    'Duration in milliseconds to serve a pod admission request.',
    { buckets: 'admissionMs' },
  ],
  kubelet_topology_manager_admission_errors_total: [
    'counter',
    'ALPHA',
    '',
    'The number of admission request failures where resources could not be aligned.',
  ],
  kubelet_topology_manager_admission_requests_total: [
    'counter',
    'ALPHA',
    '',
    'The number of admission requests where resources have to be aligned.',
  ],
} as const

/** Of volumes. */
const VOLUME_FAMILIES = {
  csi_operations_seconds: [
    'histogram',
    'ALPHA',
    'driver_name method_name grpc_status_code migrated',
    'Container Storage Interface operation duration with gRPC error code status total',
    { buckets: 'csi' },
  ],
  kubelet_container_log_filesystem_used_bytes: [
    'gauge',
    'ALPHA',
    'uid namespace pod container',
    "Bytes used by the container's logs on the filesystem.",
  ],
  kubelet_volume_metric_collection_duration_seconds: [
    'histogram',
    'ALPHA',
    'metric_source',
    'Duration in seconds to calculate volume stats',
    { buckets: 'usual' },
  ],
  kubelet_podcertificate_states: [
    'gauge',
    'ALPHA',
    'signer_name state',
    'Gauge vector reporting the number of pod certificate projected volume sources, faceted by signer_name and state.',
  ],
  kubelet_volume_stats_available_bytes: [
    'gauge',
    'ALPHA',
    'namespace persistentvolumeclaim',
    'Number of available bytes in the volume',
  ],
  kubelet_volume_stats_capacity_bytes: [
    'gauge',
    'ALPHA',
    'namespace persistentvolumeclaim',
    'Capacity in bytes of the volume',
  ],
  kubelet_volume_stats_health_status_abnormal: [
    'gauge',
    'ALPHA',
    'namespace persistentvolumeclaim',
    'Abnormal volume health status. The count is either 1 or 0. 1 indicates the volume is unhealthy, 0 indicates volume is healthy',
  ],
  kubelet_volume_stats_inodes: [
    'gauge',
    'ALPHA',
    'namespace persistentvolumeclaim',
    'Maximum number of inodes in the volume',
  ],
  kubelet_volume_stats_inodes_free: [
    'gauge',
    'ALPHA',
    'namespace persistentvolumeclaim',
    'Number of free inodes in the volume',
  ],
  kubelet_volume_stats_inodes_used: [
    'gauge',
    'ALPHA',
    'namespace persistentvolumeclaim',
    'Number of used inodes in the volume',
  ],
  kubelet_volume_stats_used_bytes: [
    'gauge',
    'ALPHA',
    'namespace persistentvolumeclaim',
    'Number of used bytes in the volume',
  ],
  storage_operation_duration_seconds: [
    'histogram',
    'ALPHA',
    'volume_plugin operation_name status migrated',
    'Storage operation duration',
    { buckets: 'csi' },
  ],
  volume_operation_total_seconds: [
    'histogram',
    'ALPHA',
    'plugin_name operation_name',
    'Storage operation end to end duration in seconds',
    { buckets: 'csi' },
  ],
  volume_manager_total_volumes: ['gauge', 'ALPHA', 'plugin_name state', 'Number of volumes in Volume Manager'],
} as const

type Families = typeof POD_FAMILIES &
  typeof RESIZE_FAMILIES &
  typeof RUNTIME_FAMILIES &
  typeof IMAGE_FAMILIES &
  typeof NODE_FAMILIES &
  typeof GRANT_FAMILIES &
  typeof VOLUME_FAMILIES

export const KUBELET_FAMILIES: Families & Readonly<Record<string, FamilyRow<BucketName>>> = {
  ...POD_FAMILIES,
  ...RESIZE_FAMILIES,
  ...RUNTIME_FAMILIES,
  ...IMAGE_FAMILIES,
  ...NODE_FAMILIES,
  ...GRANT_FAMILIES,
  ...VOLUME_FAMILIES,
}

/** What everything in a kubelet that records is handed. */
export type KubeletMeters = Meters<Families>

export function createKubeletMeters(registry: Registry = createRegistry()): KubeletMeters {
  return createMeters<Families, BucketName>(registry, KUBELET_FAMILIES, KUBELET_BUCKETS)
}

/** Those without labels are there from the start, with nothing counted. Those that are collected must have been named before. */
export function declareAll(meters: KubeletMeters): void {
  const declared = new Set(Array.from(meters.registry.declared(), ({ name }) => name))
  for (const [name, [, , labels]] of Object.entries(KUBELET_FAMILIES)) {
    if (labels === '' && !declared.has(name)) meters.family(name as keyof Families)
  }
}
