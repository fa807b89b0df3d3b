/** Families about where objects are: the store, what is encrypted in it, and the watch cache in front of it. */
export const STORAGE_FAMILIES = {
  apiserver_cache_list_total: ['counter', 'ALPHA', 'group resource index', 'Lists answered from the watch cache.'],
  apiserver_init_events_total: ['counter', 'ALPHA', 'group resource', 'Objects that watches began with.'],
  apiserver_resource_objects: ['gauge', 'ALPHA', 'group resource', 'Objects stored.'],
  apiserver_resource_size_estimate_bytes: [
    'gauge',
    'ALPHA',
    'group resource',
    'About how large the objects stored are.',
  ],
  apiserver_storage_consistency_checks_total: [
    'counter',
    'ALPHA',
    'group resource status',
    'Comparisons of the watch cache with the store, by how they ended.',
  ],
  apiserver_storage_events_received_total: ['counter', 'BETA', 'group resource', 'Changes that the store told of.'],
  apiserver_storage_objects: ['gauge', 'STABLE', 'resource', 'Objects stored, by resource.', { since: '1.34.0' }],
  apiserver_storage_size_bytes: ['gauge', 'STABLE', 'storage_cluster_id', 'How much room the store takes, in bytes.'],
  apiserver_watch_cache_events_dispatched_total: [
    'counter',
    'ALPHA',
    'group resource',
    'Changes that the watch cache handed to its watchers.',
  ],
  apiserver_watch_cache_events_received_total: [
    'counter',
    'ALPHA',
    'group resource',
    'Changes that the watch cache has taken in.',
  ],
  apiserver_watch_cache_initializations_total: [
    'counter',
    'ALPHA',
    'group resource',
    'How often the watch cache was filled anew.',
  ],
  apiserver_watch_cache_resource_version: [
    'gauge',
    'ALPHA',
    'group resource',
    'The revision up to which the watch cache knows everything; its last 15 digits.',
  ],
  etcd_request_duration_seconds: [
    'histogram',
    'ALPHA',
    'operation group resource',
    'How long the store took, whichever it is, in seconds.',
    { buckets: 'request' },
  ],
  etcd_request_errors_total: ['counter', 'ALPHA', 'operation group resource', 'Requests to the store that failed.'],
  etcd_requests_total: ['counter', 'ALPHA', 'operation group resource', 'Requests to the store.'],
} as const
