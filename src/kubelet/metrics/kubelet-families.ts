/** Metric families of the kubelet, with upstream's names, labels and buckets. */

import { createRegistry, DEFAULT_BUCKETS, exponentialBuckets, type Registry } from '#lib/metrics/metrics.ts'
import { createMeters, type Meters, parseFamily, type Words } from '#lib/metrics/table.ts'

type BucketName = Words<'admissionMs claims containers csi operation podStart pull resizeMs statusSync usual'>[number]

/** `count` exponential bounds from `least` to `most`. */
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

export const KUBELET_FAMILIES = {
  // Pods and their containers.
  kubelet_active_pods: `gauge ALPHA [static] Pods that count when another pod is admitted. static: whether the pod comes from a file or URL.`,
  kubelet_admission_rejections_total: `counter ALPHA [reason] Pods that the kubelet has rejected at admission, by reason.`,
  kubelet_containers_per_pod_count: `histogram:containers ALPHA [] Containers of each pod that was started.`,
  kubelet_desired_pods: `gauge ALPHA [static] Pods that the kubelet is to run. static: whether the pod comes from a file or URL.`,
  kubelet_first_network_pod_start_sli_duration_seconds: `gauge INTERNAL [] Time from the creation of the first pod with a network until all its containers ran, without image pulls and init containers.`,
  kubelet_managed_ephemeral_containers: `gauge ALPHA [] Ephemeral containers in the pods of this kubelet.`,
  kubelet_mirror_pods: `gauge ALPHA [] Mirror pods that the kubelet keeps in the API, one for each admitted static pod.`,
  kubelet_orphan_pod_cleaned_volumes: `gauge ALPHA [] Removed pods whose volumes the last periodic cleanup has deleted.`,
  kubelet_orphan_pod_cleaned_volumes_errors: `gauge ALPHA [] Removed pods whose volumes the last periodic cleanup could not delete.`,
  kubelet_orphaned_runtime_pods_total: `counter ALPHA [] Pods found in the runtime that no pod worker knew, usually after a restart of the kubelet.`,
  kubelet_pod_start_duration_seconds: `histogram:podStart ALPHA [] Time from the moment the kubelet first sees a pod until the pod runs.`,
  kubelet_pod_start_sli_duration_seconds: `histogram:podStart ALPHA [] Time from the creation of a pod until its containers are seen running, without image pulls and init containers.`,
  kubelet_pod_start_total_duration_seconds: `histogram:podStart ALPHA [] Time from the creation of a pod until its containers are seen running, with image pulls and init containers.`,
  kubelet_pod_status_sync_duration_seconds: `histogram:statusSync ALPHA [] Time from a change of a pod's status until the API server has it.`,
  kubelet_pod_worker_duration_seconds: `histogram:usual ALPHA [operation_type] Time that one sync of a pod takes, by operation: create, update or sync.`,
  kubelet_pod_worker_start_duration_seconds: `histogram:usual ALPHA [] Time from the moment the kubelet first sees a pod until its worker starts.`,
  kubelet_preemptions: `counter ALPHA [preemption_signal] Pods evicted to make room for critical pods, by the scarce resource.`,
  kubelet_running_containers: `gauge ALPHA [container_state] Containers in the runtime, by state.`,
  kubelet_running_pods: `gauge ALPHA [] Pods whose sandbox runs.`,
  kubelet_sleep_action_terminated_early_total: `counter ALPHA [] Sleep handlers that ended before their time because the grace period was over.`,
  kubelet_started_containers_errors_total: `counter ALPHA [container_type code] Containers that failed to start, by type and error.`,
  kubelet_started_containers_total: `counter ALPHA [container_type] Containers that the kubelet has started, by type.`,
  kubelet_started_pods_errors_total: `counter ALPHA [] Pods whose sandbox failed to start.`,
  kubelet_started_pods_total: `counter ALPHA [] Pods whose sandbox the kubelet has started.`,
  kubelet_started_user_namespaced_pods_errors_total: `counter ALPHA [] Pods with a user namespace whose sandbox failed to start; only on Linux.`,
  kubelet_started_user_namespaced_pods_total: `counter ALPHA [] Pods with a user namespace that the kubelet has started; only on Linux.`,
  kubelet_terminated_containers_total: `counter ALPHA [container_type exit_code reason] Containers that have ended, by type, exit code and reason.`,
  kubelet_working_pods: `gauge ALPHA [lifecycle config static] Pods with a worker, by the phase of the worker, whether the pod is desired, orphaned or only in the runtime, and whether it is static.`,

  // Pod resizes.
  kubelet_pod_in_progress_resizes: `gauge ALPHA [] Pods whose containers are being resized.`,
  kubelet_pod_infeasible_resizes_total: `counter ALPHA [reason_detail] Resizes that this node can never grant, by reason.`,
  kubelet_pod_pending_resizes: `gauge ALPHA [reason] Pods whose resize waits, by reason.`,
  kubelet_pod_resize_duration_milliseconds: `histogram:resizeMs ALPHA [success] Time that the resize of a pod takes, by success.`,

  // The container runtime.
  kubelet_evented_pleg_connection_error_count: `counter ALPHA [] Failed attempts to open a stream of events from the runtime.`,
  kubelet_evented_pleg_connection_latency_seconds: `histogram:usual ALPHA [] Lifetime of streams of events from the runtime.`,
  kubelet_evented_pleg_connection_success_count: `counter ALPHA [] Streams of events that the kubelet has opened to the runtime.`,
  kubelet_pleg_last_seen_seconds: `gauge ALPHA [] Time of the last relist of containers, in seconds since 1970.`,
  kubelet_pleg_relist_duration_seconds: `histogram:usual ALPHA [] Time that a relist of containers takes.`,
  kubelet_pleg_relist_interval_seconds: `histogram:usual ALPHA [] Time between two relists of containers.`,
  kubelet_run_podsandbox_duration_seconds: `histogram:usual ALPHA [runtime_handler] Time that the runtime takes to start a sandbox, by handler of the RuntimeClass.`,
  kubelet_run_podsandbox_errors_total: `counter ALPHA [runtime_handler] Sandboxes that the runtime failed to start, by handler of the RuntimeClass.`,
  kubelet_runtime_operations_duration_seconds: `histogram:operation ALPHA [operation_type] Time that calls of the runtime take, by operation.`,
  kubelet_runtime_operations_errors_total: `counter ALPHA [operation_type] Failed calls of the runtime, by operation.`,
  kubelet_runtime_operations_total: `counter ALPHA [operation_type] Calls of the runtime, by operation.`,

  // Images.
  kubelet_image_garbage_collected_total: `counter ALPHA [reason] Images that garbage collection has removed: for disk space or for their age.`,
  kubelet_image_manager_ensure_image_requests_total: `counter ALPHA [present_locally pull_policy pull_required] Images that containers needed, by pull policy, presence on the node and whether a pull was required.`,
  kubelet_imagemanager_image_mustpull_checks_total: `counter ALPHA [result] Checks whether a pod may use an image on the node without a pull, by result.`,
  kubelet_imagemanager_ondisk_pulledrecords: `gauge ALPHA [] Records of pulled images on disk.`,
  kubelet_imagemanager_ondisk_pullintents: `gauge ALPHA [] Records of intended image pulls on disk.`,
  kubelet_image_pull_duration_seconds: `histogram:pull ALPHA [image_size_in_bytes] Time that an image pull takes, by size of the image.`,
  kubelet_image_volume_mounted_errors_total: `counter BETA [] Image volumes that failed to mount.`,
  kubelet_image_volume_mounted_succeed_total: `counter BETA [] Image volumes that were mounted.`,
  kubelet_image_volume_requested_total: `counter BETA [] Image volumes that pods have requested.`,

  // The node and the kubelet.
  kubelet_cgroup_manager_duration_seconds: `histogram:usual ALPHA [operation_type] Time that changes of cgroups take, by operation.`,
  kubelet_cgroup_version: `gauge ALPHA [] Version of the cgroup hierarchy of this machine.`,
  kubelet_credential_provider_config_info: `gauge ALPHA [hash] Always 1; the label is the hash of the configuration of credential providers.`,
  kubelet_credential_provider_plugin_duration: `histogram:usual ALPHA [plugin_name] Time that a credential provider plugin runs, in seconds.`,
  kubelet_credential_provider_plugin_errors_total: `counter ALPHA [plugin_name] Failed runs of a credential provider plugin.`,
  kubelet_eviction_stats_age_seconds: `histogram:usual ALPHA [eviction_signal] Age of the statistics on which an eviction was based, by signal.`,
  kubelet_evictions: `counter ALPHA [eviction_signal] Pods evicted for a scarce resource, by signal.`,
  kubelet_http_inflight_requests: `gauge ALPHA [method path server_type long_running] Requests that the kubelet is serving now.`,
  kubelet_http_requests_duration_seconds: `histogram:usual ALPHA [method path server_type long_running] Time that the kubelet takes to serve a request.`,
  kubelet_http_requests_total: `counter ALPHA [method path server_type long_running] Requests that the kubelet has received.`,
  kubelet_metrics_provider: `gauge ALPHA [provider] Always 1; the label names the source of container statistics: cadvisor or cri.`,
  kubelet_node_name: `gauge ALPHA [node] Always 1; the label is the name of the node.`,
  kubelet_node_startup_duration_seconds: `gauge ALPHA [] Time from the boot of the machine until the node is registered and ready to run pods.`,
  kubelet_node_startup_post_registration_duration_seconds: `gauge ALPHA [] The part of the node's start after its registration.`,
  kubelet_node_startup_pre_kubelet_duration_seconds: `gauge ALPHA [] The part of the node's start before the kubelet runs.`,
  kubelet_node_startup_pre_registration_duration_seconds: `gauge ALPHA [] The part of the node's start from the start of the kubelet until it registers the node.`,
  kubelet_node_startup_registration_duration_seconds: `gauge ALPHA [] The part of the node's start that the registration takes.`,
  kubelet_websocket_streaming_requests_total: `counter ALPHA [subresource] WebSocket requests for exec, attach and port forwarding, by subresource.`,

  // The container manager.
  dra_resource_claims_in_use: `gauge ALPHA [driver_name] ResourceClaims that are prepared on this node, by driver; <any> counts each claim once.`,
  dra_operations_duration_seconds: `histogram:claims ALPHA [operation_name is_error] Time to prepare or unprepare all ResourceClaims of a pod, by operation and whether it failed.`,
  kubelet_cpu_manager_allocation_per_numa: `gauge ALPHA [numa_node] CPUs allocated on each NUMA node.`,
  kubelet_cpu_manager_exclusive_cpu_allocation_count: `gauge ALPHA [] CPUs that containers have for themselves.`,
  kubelet_cpu_manager_pinning_errors_total: `counter ALPHA [] Failed allocations of exclusive CPUs.`,
  kubelet_cpu_manager_pinning_requests_total: `counter ALPHA [] Allocations of exclusive CPUs.`,
  kubelet_cpu_manager_shared_pool_size_millicores: `gauge ALPHA [] Size of the CPU pool that containers without exclusive CPUs share.`,
  kubelet_device_plugin_alloc_duration_seconds: `histogram:usual ALPHA [resource_name] Time that a device plugin takes to allocate devices, by resource.`,
  kubelet_device_plugin_registration_total: `counter ALPHA [resource_name] Registrations of device plugins, by resource.`,
  kubelet_memory_manager_pinning_errors_total: `counter ALPHA [] Failed allocations of memory on NUMA nodes.`,
  kubelet_memory_manager_pinning_requests_total: `counter ALPHA [] Allocations of memory on NUMA nodes.`,
  kubelet_topology_manager_admission_duration_ms: `histogram:admissionMs ALPHA [] Time that the topology manager takes to admit a pod.`,
  kubelet_topology_manager_admission_errors_total: `counter ALPHA [] Pods rejected because their resources cannot be aligned.`,
  kubelet_topology_manager_admission_requests_total: `counter ALPHA [] Pods whose resources must be aligned.`,

  // Volumes.
  csi_operations_seconds: `histogram:csi ALPHA [driver_name method_name grpc_status_code migrated] Time that calls of CSI drivers take, by driver, method and gRPC status.`,
  kubelet_container_log_filesystem_used_bytes: `gauge ALPHA [uid namespace pod container] Size of the logs of a container on disk.`,
  kubelet_volume_metric_collection_duration_seconds: `histogram:usual ALPHA [metric_source] Time to measure the use of volumes.`,
  kubelet_podcertificate_states: `gauge ALPHA [signer_name state] Projected volume sources with a pod certificate, by signer and state.`,
  kubelet_volume_stats_available_bytes: `gauge ALPHA [namespace persistentvolumeclaim] Bytes that pods may still write to the volume.`,
  kubelet_volume_stats_capacity_bytes: `gauge ALPHA [namespace persistentvolumeclaim] Size of the volume.`,
  kubelet_volume_stats_health_status_abnormal: `gauge ALPHA [namespace persistentvolumeclaim] 1 if the driver reports the volume as unhealthy, 0 if not.`,
  kubelet_volume_stats_inodes: `gauge ALPHA [namespace persistentvolumeclaim] Inodes of the volume.`,
  kubelet_volume_stats_inodes_free: `gauge ALPHA [namespace persistentvolumeclaim] Inodes of the volume that are free.`,
  kubelet_volume_stats_inodes_used: `gauge ALPHA [namespace persistentvolumeclaim] Inodes of the volume that are in use.`,
  kubelet_volume_stats_used_bytes: `gauge ALPHA [namespace persistentvolumeclaim] Bytes of the volume that are in use.`,
  storage_operation_duration_seconds: `histogram:csi ALPHA [volume_plugin operation_name status migrated] Time that operations on volumes take, by plugin, operation and status.`,
  volume_operation_total_seconds: `histogram:csi ALPHA [plugin_name operation_name] Time from the request of an operation on a volume until its success, retries included.`,
  volume_manager_total_volumes: `gauge ALPHA [plugin_name state] Volumes that the volume manager knows, by plugin and whether they are mounted or to be mounted.`,
} as const

/** The metrics of a kubelet, passed to all its parts. */
export type KubeletMeters = Meters<typeof KUBELET_FAMILIES>

export function createKubeletMeters(registry: Registry = createRegistry()): KubeletMeters {
  return createMeters<typeof KUBELET_FAMILIES, BucketName>(registry, KUBELET_FAMILIES, KUBELET_BUCKETS)
}

/** Declares families without labels, so that they appear with zero. Collected families must be declared before. */
export function declareAll(meters: KubeletMeters): void {
  const declared = new Set(Array.from(meters.registry.declared(), ({ name }) => name))
  for (const [name, row] of Object.entries(KUBELET_FAMILIES)) {
    if (parseFamily(row).labels.length === 0 && !declared.has(name))
      meters.family(name as keyof typeof KUBELET_FAMILIES)
  }
}
