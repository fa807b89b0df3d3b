/** Families about this program and its parts: build, gates, health, addresses of Services, connections to kubelets. */
export const COMPONENT_FAMILIES = {
  apiserver_stream_translator_requests_total: [
    'counter',
    'ALPHA',
    'code',
    'Exec and attach by WebSocket that were translated to SPDY, by code.',
  ],
  apiserver_stream_tunnel_requests_total: [
    'counter',
    'ALPHA',
    'code',
    'Port forwarding by WebSocket that was unwrapped to SPDY, by code.',
  ],
  apiserver_websocket_streaming_requests_total: [
    'counter',
    'ALPHA',
    'subresource proxy_type',
    'Exec, attach and port forwarding, by subresource and by who translates: proxied_to_kubelet, translated_at_apiserver.',
  ],
  cardinality_enforcement_unexpected_categorizations_total: [
    'counter',
    'ALPHA',
    '',
    'Values of labels that were not among those allowed.',
  ],
  disabled_metrics_total: ['counter', 'BETA', '', 'Families that were turned off.'],
  hidden_metrics_total: ['counter', 'BETA', '', 'Families that are hidden because they are deprecated.'],
  kube_apiserver_pod_logs_backend_tls_failure_total: [
    'counter',
    'ALPHA',
    '',
    'Logs that could not be had because the certificate of the kubelet is not trusted.',
  ],
  kube_apiserver_pod_logs_insecure_backend_total: [
    'counter',
    'ALPHA',
    'usage',
    'Logs asked for, by whether the certificate of the kubelet is checked: enforce_tls, skip_tls_allowed.',
  ],
  kubernetes_build_info: [
    'gauge',
    'BETA',
    'major minor git_version git_commit git_tree_state build_date go_version compiler platform',
    'Always 1; the labels say which version this is.',
  ],
  kubernetes_feature_enabled: ['gauge', 'BETA', 'name stage', 'Whether a feature gate is on, by name and maturity.'],
  kubernetes_healthcheck: ['gauge', 'STABLE', 'name type', 'Whether a health check passed when it was last made.'],
  kubernetes_healthchecks_total: ['counter', 'STABLE', 'name type status', 'Health checks made, by how they ended.'],
  registered_metrics_total: [
    'counter',
    'BETA',
    'stability_level deprecated_version',
    'Families declared, by stability and the release that deprecated them.',
  ],
  version_info: [
    'gauge',
    'ALPHA',
    'component binary emulation min_compat',
    'Always 1; the labels say which versions a component is, behaves as, and can be together with.',
  ],
} as const
