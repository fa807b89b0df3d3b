/** `hyperkube/testing`: a whole cluster inside a test. Everything exported here is a promise to those who write tests. */
export type { Fault } from '#kubelet/simulated/fault.ts'
export type { ApiFault, RequestAim } from './api-fault.ts'
export type { NodePlan } from '#kubelet/simulated/node-life.ts'
export { type ClusterClock, type ClusterOptions, type Snapshot, startCluster, type TestCluster } from './cluster.ts'
export type { SettleOptions } from './settle.ts'
export type { Span } from './span.ts'
