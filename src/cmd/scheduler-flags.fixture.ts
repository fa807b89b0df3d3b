/** What v1.36.4's kube-scheduler has for flags, taken from its help: group, then name, hint of the type and default. */
export const UPSTREAM_SCHEDULER_FLAGS = `
# misc
config string ''
master string ''
write-config-to string ''
# secure serving
bind-address ip 0.0.0.0
cert-dir string ''
disable-http2-serving bool ''
http2-max-streams-per-connection int ''
permit-address-sharing bool ''
permit-port-sharing bool ''
secure-port int 10259
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
authentication-tolerate-lookup-failure bool true
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
# deprecated
contention-profiling bool true
kube-api-burst int32 100
kube-api-content-type string application/vnd.kubernetes.protobuf
kube-api-qps float32 50
kubeconfig string ''
pod-max-in-unschedulable-pods-duration duration 5m0s
profiling bool true
# leader election
leader-elect bool true
leader-elect-lease-duration duration 15s
leader-elect-renew-deadline duration 10s
leader-elect-resource-lock string leases
leader-elect-resource-name string kube-scheduler
leader-elect-resource-namespace string kube-system
leader-elect-retry-period duration 2s
# feature gate
emulated-version strings ''
feature-gates colonSeparatedMultimapStringString ''
min-compatibility-version strings ''
# metrics
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
