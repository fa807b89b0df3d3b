/** Metrics of kube-proxy, with upstream's names. */

import { exponentialBuckets, linearBuckets, type Registry } from '#lib/metrics/metrics.ts'
import { createMeters, type Meters } from '#lib/metrics/table.ts'

export const PROXY_FAMILIES = {
  kubeproxy_conntrack_reconciler_deleted_entries_total: `counter ALPHA [ip_family] Conntrack entries that the reconciler has deleted.`,
  kubeproxy_conntrack_reconciler_sync_duration_seconds: `histogram:sync ALPHA [ip_family] Time that a run of the conntrack reconciler takes.`,
  kubeproxy_network_programming_duration_seconds: `histogram:programming ALPHA [ip_family] Time from a change of a Service or its endpoints until the rules of this node have it.`,
  kubeproxy_proxy_healthz_total: `counter ALPHA [code] Answers of /healthz, by status code.`,
  kubeproxy_proxy_livez_total: `counter ALPHA [code] Answers of /livez, by status code.`,
  kubeproxy_sync_full_proxy_rules_duration_seconds: `histogram:sync ALPHA [ip_family] Time that a sync of all rules takes.`,
  kubeproxy_sync_partial_proxy_rules_duration_seconds: `histogram:sync ALPHA [ip_family] Time that a sync of changed rules takes.`,
  kubeproxy_sync_proxy_rules_duration_seconds: `histogram:sync ALPHA [ip_family] Time that a sync of rules takes.`,
  kubeproxy_sync_proxy_rules_endpoint_changes_pending: `gauge ALPHA [] Changes of endpoints that the rules do not have yet.`,
  kubeproxy_sync_proxy_rules_endpoint_changes_total: `counter ALPHA [] Changes of endpoints that kube-proxy has seen.`,
  kubeproxy_sync_proxy_rules_iptables_last: `gauge ALPHA [table ip_family] Rules that the last sync has written to iptables.`,
  kubeproxy_sync_proxy_rules_iptables_partial_restore_failures_total: `counter ALPHA [ip_family] Failed restores of changed iptables rules.`,
  kubeproxy_sync_proxy_rules_iptables_restore_failures_total: `counter ALPHA [ip_family] Failed restores of iptables rules.`,
  kubeproxy_sync_proxy_rules_iptables_total: `gauge ALPHA [table ip_family] Rules of kube-proxy in iptables.`,
  kubeproxy_sync_proxy_rules_last_queued_timestamp_seconds: `gauge ALPHA [ip_family] Time at which a sync of rules was last requested, in seconds since 1970.`,
  kubeproxy_sync_proxy_rules_last_timestamp_seconds: `gauge ALPHA [ip_family] Time of the last successful sync of rules, in seconds since 1970.`,
  kubeproxy_sync_proxy_rules_nftables_cleanup_failures_total: `counter ALPHA [ip_family] Failed cleanups of stale nftables rules.`,
  kubeproxy_sync_proxy_rules_nftables_sync_failures_total: `counter ALPHA [ip_family] Failed syncs of nftables rules.`,
  kubeproxy_sync_proxy_rules_no_local_endpoints_total: `gauge ALPHA [traffic_policy ip_family] Services with traffic policy Local and no endpoint on this node.`,
  kubeproxy_sync_proxy_rules_service_changes_pending: `gauge ALPHA [] Changes of Services that the rules do not have yet.`,
  kubeproxy_sync_proxy_rules_service_changes_total: `counter ALPHA [] Changes of Services that kube-proxy has seen.`,
} as const

export const PROXY_BUCKETS: Readonly<Record<'sync' | 'programming', readonly number[]>> = {
  sync: exponentialBuckets(0.001, 2, 15),
  programming: [
    ...linearBuckets(0.25, 0.25, 2),
    ...linearBuckets(1, 1, 59),
    ...linearBuckets(60, 5, 12),
    ...linearBuckets(120, 30, 7),
  ],
}

export type ProxyMeters = Meters<typeof PROXY_FAMILIES>

export function createProxyMeters(registry: Registry): ProxyMeters {
  return createMeters<typeof PROXY_FAMILIES, keyof typeof PROXY_BUCKETS>(registry, PROXY_FAMILIES, PROXY_BUCKETS)
}
