/** Rows of flags that kube-scheduler and kube-controller-manager of v1.36.4 share; see their tables. */
export const GATE_ROWS = `emulated-version strings ''
feature-gates colonSeparatedMultimapStringString ''
min-compatibility-version strings ''
`

export function leaderRows(name: string): string {
  return `leader-elect bool true
leader-elect-lease-duration duration 15s
leader-elect-renew-deadline duration 10s
leader-elect-resource-lock string leases
leader-elect-resource-name string ${name}
leader-elect-resource-namespace string kube-system
leader-elect-retry-period duration 2s
`
}

/** Groups of serving, authentication and authorization. */
export function servingRows({ port, tolerates }: { readonly port: number; readonly tolerates: string }): string {
  return `# secure serving
bind-address ip 0.0.0.0
cert-dir string ''
disable-http2-serving bool ''
http2-max-streams-per-connection int ''
permit-address-sharing bool ''
permit-port-sharing bool ''
secure-port int ${port}
tls-cert-file string ''
tls-cipher-suites strings ''
tls-curve-preferences int32Slice []
tls-min-version string ''
tls-private-key-file string ''
tls-sni-cert-key namedCertKey []
# authentication
authentication-kubeconfig string ''
authentication-skip-lookup bool ''
authentication-token-webhook-cache-ttl duration 10s
authentication-tolerate-lookup-failure bool ${tolerates}
client-ca-file string ''
requestheader-allowed-names strings ''
requestheader-client-ca-file string ''
requestheader-extra-headers-prefix strings [x-remote-extra-]
requestheader-group-headers strings [x-remote-group]
requestheader-uid-headers strings ''
requestheader-username-headers strings [x-remote-user]
# authorization
authorization-always-allow-paths strings [/healthz,/readyz,/livez]
authorization-kubeconfig string ''
authorization-webhook-cache-authorized-ttl duration 10s
authorization-webhook-cache-unauthorized-ttl duration 10s
`
}

export const METRICS_AND_LOGS = `# metrics
allow-metric-labels stringToString []
allow-metric-labels-manifest string ''
disabled-metrics strings ''
show-hidden-metrics-for-version string ''
# logs
log-flush-frequency duration 5s
log-json-info-buffer-size quantity ''
log-json-split-stream bool ''
log-text-info-buffer-size quantity ''
log-text-split-stream bool ''
logging-format string text
v Level ''
vmodule pattern=N,... ''
`
