/**
 * The interface through which `hyperkube build` uses the API of its cluster: Nodes, manifests and the Secret with the
 * cluster's state.
 */
import type { DesiredNode } from '../desired.ts'
import type { DroppedMarks } from '../plan/node-difference.ts'
import type { ObservedNode } from '../plan/observed.ts'
import type { DrainMode } from '../plan/step.ts'

export interface ClusterApi {
  /** Rejects if no server responds. */
  nodes(): Promise<ReadonlyMap<string, ObservedNode>>
  setNode(name: string, desired: DesiredNode, dropped: DroppedMarks, signal: AbortSignal): Promise<void>
  /** Cordons the node and optionally drains it. */
  drain(name: string, mode: DrainMode, signal: AbortSignal): Promise<void>
  /** Waits until it is ready and optionally uncordons it. */
  ready(name: string, uncordons: boolean, signal: AbortSignal): Promise<void>
  deleteNode(name: string, signal: AbortSignal): Promise<void>
  /** Manifests of addons by name. */
  addons(): Promise<ReadonlyMap<string, string>>
  /** An empty manifest removes the addon. */
  saveAddon(name: string, manifest: string, signal: AbortSignal): Promise<void>
  /** All objects of a manifest. */
  apply(manifest: string, signal: AbortSignal): Promise<void>
  delete(manifest: string, signal: AbortSignal): Promise<void>
  /** Rewrites every Secret unchanged, so that API servers store it with the current key. */
  rewriteSecrets(signal: AbortSignal): Promise<void>
  /** Restarts pods of the cluster, which still use authorities that are about to be removed. */
  restartPods(signal: AbortSignal): Promise<void>
  savedState(): Promise<string | undefined>
  saveState(state: string, signal: AbortSignal): Promise<void>
}
