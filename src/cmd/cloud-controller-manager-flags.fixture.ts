import { leaderRows, METRICS_AND_LOGS, servingRows } from './component-flags.fixture.ts'

/**
 * What v1.36.4's cloud-controller-manager has for flags, taken from its help: name, hint of the type and default. Gates are read as the other
 * programs read them, which takes all that this one's hint allows.
 */
export const UPSTREAM_CLOUD_FLAGS: string = `
# debugging
contention-profiling bool ''
profiling bool true
# leader-migration
enable-leader-migration bool ''
leader-migration-config string ''
# generic
allocate-node-cidrs bool ''
cidr-allocator-type string RangeAllocator
cloud-config string ''
cloud-provider string ''
cluster-cidr string ''
cluster-name string kubernetes
configure-cloud-routes bool true
controller-start-interval duration ''
controllers strings [*]
external-cloud-volume-plugin string ''
feature-gates colonSeparatedMultimapStringString ''
kube-api-burst int32 30
kube-api-content-type string application/vnd.kubernetes.protobuf
kube-api-qps float32 20
${leaderRows('cloud-controller-manager')}min-resync-period duration 12h0m0s
node-monitor-period duration 5s
route-reconciliation-period duration 10s
use-service-account-credentials bool ''
# cloud-node-controller
concurrent-node-status-updates int32 ''
concurrent-node-syncs int32 1
# service-lb-controller
concurrent-service-syncs int32 1
# webhook
webhooks strings ''
# webhook serving
webhook-bind-address ip 0.0.0.0
webhook-cert-dir string ''
webhook-disable-http2-serving bool ''
webhook-secure-port int 10260
webhook-tls-cert-file string ''
webhook-tls-cipher-suites strings ''
webhook-tls-curve-preferences int32Slice []
webhook-tls-min-version string ''
webhook-tls-private-key-file string ''
webhook-tls-sni-cert-key namedCertKey []
${servingRows({ port: 10_258, tolerates: "''" })}# node-ipam-controller
node-cidr-mask-size int32 ''
node-cidr-mask-size-ipv4 int32 ''
node-cidr-mask-size-ipv6 int32 ''
service-cluster-ip-range string ''
${METRICS_AND_LOGS}# misc
kubeconfig string ''
master string ''
node-status-update-frequency duration 5m0s
`
