/** Public API of `hyperkube/testing`: a complete cluster inside a test. Exports are stable. */
export type { Explanation } from '#explain/explanation.ts'
export type { Fault } from '#simulated-node/fault.ts'
export type { ApiFault, RequestAim } from './api-fault.ts'
export type { NodePlan } from '#simulated-node/simulated-node.ts'
export {
  type ClusterClock,
  type ClusterOptions,
  type Snapshot,
  type SnapshotOptions,
  startCluster,
  type TestCluster,
} from './cluster.ts'
export type { SettleOptions } from './settle.ts'
export type { Span } from '#lib/span.ts'
