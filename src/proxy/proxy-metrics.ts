/** What kube-proxy counts, by upstream's names. */
import { createMeters, type Meters } from '#lib/metrics-table.ts'
import { exponentialBuckets, linearBuckets, type Registry } from '#lib/metrics.ts'

const FAMILIES = {
  kubeproxy_conntrack_reconciler_deleted_entries_total: [
    'counter',
    'ALPHA',
    'ip_family',
    'Cumulative conntrack flows deleted by conntrack reconciler',
  ],
  kubeproxy_conntrack_reconciler_sync_duration_seconds: [
    'histogram',
    'ALPHA',
    'ip_family',
    'ReconcileConntrackFlowsLatency latency in seconds',
    { buckets: 'sync' },
  ],
  kubeproxy_network_programming_duration_seconds: [
    'histogram',
    'ALPHA',
    'ip_family',
    'In Cluster Network Programming Latency in seconds',
    { buckets: 'programming' },
  ],
  kubeproxy_proxy_healthz_total: ['counter', 'ALPHA', 'code', 'Cumulative proxy healthz HTTP status'],
  kubeproxy_proxy_livez_total: ['counter', 'ALPHA', 'code', 'Cumulative proxy livez HTTP status'],
  kubeproxy_sync_full_proxy_rules_duration_seconds: [
    'histogram',
    'ALPHA',
    'ip_family',
    'SyncProxyRules latency in seconds for full resyncs',
    { buckets: 'sync' },
  ],
  kubeproxy_sync_partial_proxy_rules_duration_seconds: [
    'histogram',
    'ALPHA',
    'ip_family',
    'SyncProxyRules latency in seconds for partial resyncs',
    { buckets: 'sync' },
  ],
  kubeproxy_sync_proxy_rules_duration_seconds: [
    'histogram',
    'ALPHA',
    'ip_family',
    'SyncProxyRules latency in seconds',
    { buckets: 'sync' },
  ],
  kubeproxy_sync_proxy_rules_endpoint_changes_pending: ['gauge', 'ALPHA', '', 'Pending proxy rules Endpoint changes'],
  kubeproxy_sync_proxy_rules_endpoint_changes_total: [
    'counter',
    'ALPHA',
    '',
    'Cumulative proxy rules Endpoint changes',
  ],
  kubeproxy_sync_proxy_rules_iptables_last: [
    'gauge',
    'ALPHA',
    'table ip_family',
    'Number of iptables rules written by kube-proxy in last sync',
  ],
  kubeproxy_sync_proxy_rules_iptables_partial_restore_failures_total: [
    'counter',
    'ALPHA',
    'ip_family',
    'Cumulative proxy iptables partial restore failures',
  ],
  kubeproxy_sync_proxy_rules_iptables_restore_failures_total: [
    'counter',
    'ALPHA',
    'ip_family',
    'Cumulative proxy iptables restore failures',
  ],
  kubeproxy_sync_proxy_rules_iptables_total: [
    'gauge',
    'ALPHA',
    'table ip_family',
    'Total number of iptables rules owned by kube-proxy',
  ],
  kubeproxy_sync_proxy_rules_last_queued_timestamp_seconds: [
    'gauge',
    'ALPHA',
    'ip_family',
    'The last time a sync of proxy rules was queued',
  ],
  kubeproxy_sync_proxy_rules_last_timestamp_seconds: [
    'gauge',
    'ALPHA',
    'ip_family',
    'The last time proxy rules were successfully synced',
  ],
  kubeproxy_sync_proxy_rules_nftables_cleanup_failures_total: [
    'counter',
    'ALPHA',
    'ip_family',
    'Cumulative proxy nftables cleanup failures',
  ],
  kubeproxy_sync_proxy_rules_nftables_sync_failures_total: [
    'counter',
    'ALPHA',
    'ip_family',
    'Cumulative proxy nftables sync failures',
  ],
  kubeproxy_sync_proxy_rules_no_local_endpoints_total: [
    'gauge',
    'ALPHA',
    'traffic_policy ip_family',
    'Number of services with a Local traffic policy and no endpoints',
  ],
  kubeproxy_sync_proxy_rules_service_changes_pending: ['gauge', 'ALPHA', '', 'Pending proxy rules Service changes'],
  kubeproxy_sync_proxy_rules_service_changes_total: ['counter', 'ALPHA', '', 'Cumulative proxy rules Service changes'],
} as const

const BUCKETS = {
  sync: exponentialBuckets(0.001, 2, 15),
  programming: [
    ...linearBuckets(0.25, 0.25, 2),
    ...linearBuckets(1, 1, 59),
    ...linearBuckets(60, 5, 12),
    ...linearBuckets(120, 30, 7),
  ],
}

export type ProxyMeters = Meters<typeof FAMILIES>

export function createProxyMeters(registry: Registry): ProxyMeters {
  return createMeters<typeof FAMILIES, keyof typeof BUCKETS>(registry, FAMILIES, BUCKETS)
}
