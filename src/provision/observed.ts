/** What machines and the cluster are, as far as a plan asks. */
import type { DesiredTaint } from './desired.ts'
import type { MachineFacts, Seen } from './machine.ts'

/** What a machine was last told to be: it is no longer to be what is here and is not wanted. */
export interface Manifest {
  readonly files: readonly string[]
  readonly services: readonly string[]
}

export type ObservedHost =
  /** Nobody answers there. */
  | { readonly state: 'unreachable'; readonly reason: string }
  /** It answers, and has nothing of ours yet: nothing more is known. */
  | { readonly state: 'bare' }
  | {
      readonly state: 'seen'
      readonly facts: MachineFacts
      /** The operator's time when it was asked. */
      readonly askedAt: number
      readonly seen: Seen
      readonly manifest: Manifest
    }

export interface EtcdMember {
  readonly id: string
  /** Empty: it was added and has not started yet. */
  readonly name: string
  readonly peerUrls: readonly string[]
}

export interface ObservedNode {
  readonly isReady: boolean
  readonly isSchedulable: boolean
  readonly labels: Readonly<Record<string, string>>
  readonly annotations: Readonly<Record<string, string>>
  readonly taints: readonly DesiredTaint[]
}

export interface Observed {
  /** Of this cluster's file and of the last one's, by name. */
  readonly hosts: ReadonlyMap<string, ObservedHost>
  /** Undefined: no etcd answers. */
  readonly members: readonly EtcdMember[] | undefined
  /** Undefined: no API server answers. */
  readonly nodes: ReadonlyMap<string, ObservedNode> | undefined
  /** What `full-cluster-state` holds. */
  readonly savedState: string | undefined
  /** Manifests of the addons that are there, by name. */
  readonly addons: ReadonlyMap<string, string>
}

export const NO_MANIFEST: Manifest = { files: [], services: [] }
