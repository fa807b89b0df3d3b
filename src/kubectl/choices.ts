/**
 * The types with which commands declare their shell completion. `completion/sources.ts` finds the choices when the
 * shell requests them.
 */

export type Choices =
  /** `TYPE NAME…` and `TYPE/NAME…` of all types that can be read. */
  | 'resources'
  /** A pod or a workload. */
  | 'pods'
  | 'pods and containers'
  | 'pods and ports'
  /** The containers of the pod in the first argument. */
  | 'containers'
  /** `NAMESPACE/POD:PATH`, `POD:PATH` or a local file. */
  | 'copied files'
  /** As `resources`, with these types only. `isSingle`: the command accepts one object. */
  | { readonly resources: readonly string[]; readonly isSingle?: boolean }
  /** The name of one object of the type. */
  | { readonly names: string }
  | { readonly kubeconfig: 'contexts' | 'clusters' | 'users' }
  /** One of these words. */
  | { readonly words: readonly string[] }

/** Workloads with rollouts. */
export const ROLLED_TYPES = ['deployment', 'daemonset', 'statefulset'] as const
/** Workloads with a scale. */
export const SCALED_TYPES = ['deployment', 'replicaset', 'replicationcontroller', 'statefulset'] as const
