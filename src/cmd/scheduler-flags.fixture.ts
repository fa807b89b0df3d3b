import { GATE_ROWS, leaderRows, METRICS_AND_LOGS, servingRows } from './component-flags.fixture.ts'

/** What v1.36.4's kube-scheduler has for flags, taken from its help: group, then name, hint of the type and default. */
export const UPSTREAM_SCHEDULER_FLAGS: string = `
# misc
config string ''
master string ''
write-config-to string ''
${servingRows({ port: 10_259, tolerates: 'true' })}# deprecated
contention-profiling bool true
kube-api-burst int32 100
kube-api-content-type string application/vnd.kubernetes.protobuf
kube-api-qps float32 50
kubeconfig string ''
pod-max-in-unschedulable-pods-duration duration 5m0s
profiling bool true
# leader election
${leaderRows('kube-scheduler')}# feature gate
${GATE_ROWS}${METRICS_AND_LOGS}`
