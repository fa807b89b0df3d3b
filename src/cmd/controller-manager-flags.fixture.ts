import { GATE_ROWS, leaderRows, METRICS_AND_LOGS, servingRows } from './component-flags.fixture.ts'

/** What v1.36.4's kube-controller-manager has for flags, taken from its help: group, then name, hint of the type and default. */
export const UPSTREAM_MANAGER_FLAGS: string = `
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
controller-shutdown-timeout duration 10s
controller-start-interval duration ''
controllers strings [*]
external-cloud-volume-plugin string ''
${GATE_ROWS}kube-api-burst int32 30
kube-api-content-type string application/vnd.kubernetes.protobuf
kube-api-qps float32 20
${leaderRows('kube-controller-manager')}min-resync-period duration 12h0m0s
node-monitor-period duration 5s
route-reconciliation-period duration 10s
use-service-account-credentials bool ''
# service-lb-controller
concurrent-service-syncs int32 1
${servingRows({ port: 10_257, tolerates: "''" })}# persistentvolume-attach-detach-controller
attach-detach-reconcile-sync-period duration 1m0s
disable-attach-detach-reconcile-sync bool ''
disable-force-detach-on-timeout bool ''
# certificatesigningrequest-signing-controller
cluster-signing-cert-file string ''
cluster-signing-duration duration 8760h0m0s
cluster-signing-key-file string ''
cluster-signing-kube-apiserver-client-cert-file string ''
cluster-signing-kube-apiserver-client-key-file string ''
cluster-signing-kubelet-client-cert-file string ''
cluster-signing-kubelet-client-key-file string ''
cluster-signing-kubelet-serving-cert-file string ''
cluster-signing-kubelet-serving-key-file string ''
cluster-signing-legacy-unknown-cert-file string ''
cluster-signing-legacy-unknown-key-file string ''
# deployment-controller
concurrent-deployment-syncs int32 5
# device-taint-eviction-controller
concurrent-device-taint-eviction-syncs int32 8
# resourceclaim-controller
concurrent-resourceclaim-syncs int32 50
# statefulset-controller
concurrent-statefulset-syncs int32 5
# daemonset-controller
concurrent-daemonset-syncs int32 2
# endpoints-controller
concurrent-endpoint-syncs int32 5
endpoint-updates-batch-period duration ''
# endpointslice-controller
concurrent-service-endpoint-syncs int32 5
endpointslice-updates-batch-period duration ''
max-endpoints-per-slice int32 100
# endpointslice-mirroring-controller
mirroring-concurrent-service-endpoint-syncs int32 5
mirroring-endpointslice-updates-batch-period duration ''
mirroring-max-endpoints-per-subset int32 1000
# ephemeral-volume-controller
concurrent-ephemeralvolume-syncs int32 5
# garbage-collector-controller
concurrent-gc-syncs int32 20
enable-garbage-collector bool true
# horizontal-pod-autoscaler-controller
concurrent-horizontal-pod-autoscaler-syncs int32 5
horizontal-pod-autoscaler-cpu-initialization-period duration 5m0s
horizontal-pod-autoscaler-downscale-stabilization duration 5m0s
horizontal-pod-autoscaler-initial-readiness-delay duration 30s
horizontal-pod-autoscaler-sync-period duration 15s
horizontal-pod-autoscaler-tolerance float 0.1
# job-controller
concurrent-job-syncs int32 5
# cronjob-controller
concurrent-cron-job-syncs int32 5
# legacy-serviceaccount-token-cleaner-controller
legacy-service-account-token-clean-up-period duration 8760h0m0s
# namespace-controller
concurrent-namespace-syncs int32 10
namespace-sync-period duration 5m0s
# node-ipam-controller
node-cidr-mask-size int32 ''
node-cidr-mask-size-ipv4 int32 ''
node-cidr-mask-size-ipv6 int32 ''
service-cluster-ip-range string ''
# node-lifecycle-controller
large-cluster-size-threshold int32 50
node-eviction-rate float32 0.1
node-monitor-grace-period duration 50s
node-startup-grace-period duration 1m0s
secondary-node-eviction-rate float32 0.01
unhealthy-zone-threshold float32 0.55
# persistentvolume-binder-controller
enable-dynamic-provisioning bool true
enable-hostpath-provisioner bool ''
flex-volume-plugin-dir string /usr/libexec/kubernetes/kubelet-plugins/volume/exec/
pv-recycler-increment-timeout-nfs int32 30
pv-recycler-minimum-timeout-hostpath int32 60
pv-recycler-minimum-timeout-nfs int32 300
pv-recycler-pod-template-filepath-hostpath string ''
pv-recycler-pod-template-filepath-nfs string ''
pv-recycler-timeout-increment-hostpath int32 30
pvclaimbinder-sync-period duration 15s
# pod-garbage-collector-controller
terminated-pod-gc-threshold int32 12500
# replicaset-controller
concurrent-replicaset-syncs int32 5
# replicationcontroller-controller
concurrent-rc-syncs int32 5
# resourcequota-controller
concurrent-resource-quota-syncs int32 5
resource-quota-sync-period duration 5m0s
# serviceaccount-controller
concurrent-serviceaccount-token-syncs int32 5
root-ca-file string ''
service-account-private-key-file string ''
# ttl-after-finished-controller
concurrent-ttl-after-finished-syncs int32 5
# validatingadmissionpolicy-status-controller
concurrent-validating-admission-policy-status-syncs int32 5
${METRICS_AND_LOGS}# misc
kubeconfig string ''
master string ''
`
