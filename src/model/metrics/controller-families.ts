/** Metric families of controllers, with upstream's names, types and labels (kube-controller-manager v1.36). */

import { createRegistry, type Registry } from '#lib/metrics/metrics.ts'
import { createMeters, type Meters } from '#lib/metrics/table.ts'

import { type BucketName, BUCKETS } from './buckets.ts'

/** Families without labels are always shown, others after their first sample. */
export const CONTROLLER_FAMILIES = {
  clustertrustbundle_publisher_sync_duration_seconds: `histogram:decision ALPHA [code] Time that a sync of a published ClusterTrustBundle takes.`,
  clustertrustbundle_publisher_sync_total: `counter ALPHA [code] Syncs of published ClusterTrustBundles, by status code.`,
  cronjob_controller_job_creation_skew_duration_seconds: `histogram:skew STABLE [] Delay between the scheduled time of a CronJob and the creation of its Job.`,
  device_taint_eviction_controller_pod_deletion_duration_seconds: `histogram:eviction ALPHA [] Delay between the start of a device taint's effect and the deletion of a pod.`,
  device_taint_eviction_controller_pod_deletions_total: `counter ALPHA [] Pods deleted because of device taints.`,
  endpoint_slice_controller_changes: `counter ALPHA [operation] EndpointSlices created, updated or deleted.`,
  endpoint_slice_controller_desired_endpoint_slices: `gauge BETA [] EndpointSlices that would suffice if every one were full.`,
  endpoint_slice_controller_endpoints_added_per_sync: `histogram:perSync BETA [] Endpoints that a sync of a Service adds.`,
  endpoint_slice_controller_endpoints_desired: `gauge BETA [] Endpoints that all Services should have.`,
  endpoint_slice_controller_endpoints_removed_per_sync: `histogram:perSync BETA [] Endpoints that a sync of a Service removes.`,
  endpoint_slice_controller_endpointslices_changed_per_sync: `histogram:usual ALPHA [topology traffic_distribution] EndpointSlices that a sync of a Service changes.`,
  endpoint_slice_controller_num_endpoint_slices: `gauge BETA [] EndpointSlices of the controller.`,
  endpoint_slice_controller_services_count_by_traffic_distribution: `gauge BETA [traffic_distribution] Services, by their trafficDistribution.`,
  endpoint_slice_controller_syncs: `counter ALPHA [result] Syncs of Services, by result.`,
  endpoint_slice_mirroring_controller_addresses_skipped_per_sync: `histogram:perSync ALPHA [] Addresses that a sync of Endpoints leaves out because they are invalid or too many.`,
  endpoint_slice_mirroring_controller_changes: `counter ALPHA [operation] Mirrored EndpointSlices created, updated or deleted.`,
  endpoint_slice_mirroring_controller_endpoints_sync_duration: `histogram:decision ALPHA [] Time that a sync of mirrored Endpoints takes, in seconds.`,
  ephemeral_volume_controller_create_failures_total: `counter ALPHA [] Claims of ephemeral volumes that could not be created.`,
  ephemeral_volume_controller_create_total: `counter ALPHA [] Claims of ephemeral volumes that the controller has tried to create.`,
  garbagecollector_controller_resources_sync_error_total: `counter ALPHA [] Failed updates of the garbage collector's list of resources.`,
  horizontal_pod_autoscaler_controller_desired_replicas: `gauge ALPHA [namespace hpa_name] Replicas that a HorizontalPodAutoscaler wants now.`,
  horizontal_pod_autoscaler_controller_num_horizontal_pod_autoscalers: `gauge ALPHA [] HorizontalPodAutoscalers of the controller.`,
  horizontal_pod_autoscaler_controller_reconciliation_duration_seconds: `histogram:decision BETA [action error] Time that a reconciliation takes, by what it decided and how it failed.`,
  horizontal_pod_autoscaler_controller_reconciliations_total: `counter BETA [action error] Reconciliations, by what they decided and how they failed.`,
  job_controller_job_finished_indexes_total: `counter ALPHA [status backoffLimit] Finished indexes of indexed Jobs, by outcome and whether the Job limits retries for each index.`,
  job_controller_job_pods_creation_total: `counter ALPHA [reason status] Pods that the controller has created, by reason and outcome.`,
  job_controller_job_pods_finished_total: `counter STABLE [completion_mode result] Finished pods that the status of their Job counts.`,
  job_controller_job_sync_duration_seconds: `histogram:jobSync STABLE [completion_mode result action] Time that a sync of a Job takes.`,
  job_controller_job_syncs_total: `counter STABLE [completion_mode result action] Syncs of Jobs, by result and action.`,
  job_controller_jobs_finished_total: `counter STABLE [completion_mode result reason] Finished Jobs, by result and reason.`,
  node_collector_evictions_total: `counter STABLE [zone] Nodes whose pods the controller has begun to evict.`,
  node_collector_unhealthy_nodes_in_zone: `gauge ALPHA [zone] Nodes of a zone that are not ready.`,
  node_collector_update_all_nodes_health_duration_seconds: `histogram:allNodes ALPHA [] Time to check the health of all nodes.`,
  node_collector_update_node_health_duration_seconds: `histogram:oneNode ALPHA [] Time to check the health of one node.`,
  node_collector_zone_health: `gauge ALPHA [zone] Percentage of healthy nodes in a zone.`,
  node_collector_zone_size: `gauge ALPHA [zone] Nodes of a zone.`,
  pod_gc_collector_force_delete_pod_errors_total: `counter ALPHA [namespace reason] Pods that the garbage collector failed to delete.`,
  pod_gc_collector_force_delete_pods_total: `counter ALPHA [namespace reason] Pods that the garbage collector has deleted.`,
  pv_collector_bound_pv_count: `gauge ALPHA [storage_class] PersistentVolumes with a claim.`,
  pv_collector_bound_pvc_count: `gauge ALPHA [namespace storage_class volume_attributes_class] Claims with a PersistentVolume.`,
  pv_collector_unbound_pv_count: `gauge ALPHA [storage_class] PersistentVolumes without a claim.`,
  pv_collector_unbound_pvc_count: `gauge ALPHA [namespace storage_class volume_attributes_class] Claims without a PersistentVolume.`,
  replicaset_controller_sorting_deletion_age_ratio: `histogram:ageRatio ALPHA [] Age of the pod chosen for deletion, relative to the youngest pod. It should stay below 2.`,
  retroactive_storageclass_errors_total: `counter ALPHA [] Claims that could not get the default StorageClass afterwards.`,
  retroactive_storageclass_total: `counter ALPHA [] Claims that were to get the default StorageClass afterwards.`,
  root_ca_cert_publisher_sync_duration_seconds: `histogram:decision ALPHA [code] Time that a sync of a namespace's kube-root-ca.crt takes.`,
  root_ca_cert_publisher_sync_total: `counter ALPHA [code] Syncs of kube-root-ca.crt, by status code.`,
  taint_eviction_controller_pod_deletion_duration_seconds: `histogram:eviction ALPHA [] Delay between the start of a taint's effect on a pod and the pod's deletion.`,
  taint_eviction_controller_pod_deletions_total: `counter ALPHA [] Pods deleted because of taints of their node.`,
  ttl_after_finished_controller_job_deletion_duration_seconds: `histogram:jobDeletion ALPHA [] Delay between the end of a finished Job's time to live and its deletion.`,
} as const

export type ControllerMeters = Meters<typeof CONTROLLER_FAMILIES>

export function createControllerMeters(registry: Registry = createRegistry()): ControllerMeters {
  return createMeters<typeof CONTROLLER_FAMILIES, BucketName>(registry, CONTROLLER_FAMILIES, BUCKETS)
}
