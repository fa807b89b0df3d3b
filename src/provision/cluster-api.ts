/** The cluster itself as the builder uses it: nodes, and one secret. */
import type { DesiredNode, DesiredTaint } from './desired.ts'
import type { ObservedNode } from './observed.ts'

export interface ClusterApi {
  /** Rejects when no server answers. */
  nodes(): Promise<ReadonlyMap<string, ObservedNode>>
  setNode(name: string, desired: DesiredNode, dropped: readonly DesiredTaint[], signal: AbortSignal): Promise<void>
  /** Lets no more pods onto it, and evicts those that are there if asked. */
  drain(name: string, evicts: boolean, signal: AbortSignal): Promise<void>
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
  savedState(): Promise<string | undefined>
  saveState(state: string, signal: AbortSignal): Promise<void>
}
