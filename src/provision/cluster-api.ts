/** The cluster itself as the builder uses it: nodes, and one secret. */
import type { DesiredNode } from './desired.ts'
import type { DroppedMarks } from './node-difference.ts'
import type { ObservedNode } from './observed.ts'
import type { DrainMode } from './step.ts'

export interface ClusterApi {
  /** Rejects when no server answers. */
  nodes(): Promise<ReadonlyMap<string, ObservedNode>>
  setNode(name: string, desired: DesiredNode, dropped: DroppedMarks, signal: AbortSignal): Promise<void>
  /** Lets no more pods onto it, and sends away those that are there if asked. */
  drain(name: string, mode: DrainMode, signal: AbortSignal): Promise<void>
  /** Waits for it, and lets pods onto it again if asked. */
  ready(name: string, uncordons: boolean, signal: AbortSignal): Promise<void>
  deleteNode(name: string, signal: AbortSignal): Promise<void>
  /** Manifests of addons by name. */
  addons(): Promise<ReadonlyMap<string, string>>
  /** An empty manifest: there is none any more. */
  saveAddon(name: string, manifest: string, signal: AbortSignal): Promise<void>
  /** All objects of a manifest. */
  apply(manifest: string, signal: AbortSignal): Promise<void>
  delete(manifest: string, signal: AbortSignal): Promise<void>
  /** Every Secret once, as it is: it is stored as the API servers now store them. */
  rewriteSecrets(signal: AbortSignal): Promise<void>
  /** Pods of the cluster itself, which others make again: they hold authorities that are about to go. */
  restartPods(signal: AbortSignal): Promise<void>
  savedState(): Promise<string | undefined>
  saveState(state: string, signal: AbortSignal): Promise<void>
}
