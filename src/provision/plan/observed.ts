/** The types of the observed state of a cluster and its machines, from which `hyperkube build` plans. */
import type { DesiredTaint } from '../desired.ts'
import type { MachineFacts, MachineState } from '../machine.ts'

/** The last desired state of a machine: entries that are no longer desired are removed. */
export interface Manifest {
  readonly files: readonly string[]
  readonly services: readonly string[]
}

export type ObservedHost =
  /** The machine does not respond. */
  | { readonly state: 'unreachable'; readonly reason: string }
  /** It responds, but nothing of ours is installed. */
  | { readonly state: 'bare' }
  | {
      readonly state: 'seen'
      readonly facts: MachineFacts
      /** The operator's time of the observation. */
      readonly observedAt: number
      readonly seen: MachineState
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
  /** The machines of this file and of the last one, by name. */
  readonly hosts: ReadonlyMap<string, ObservedHost>
  /** Undefined: etcd does not respond. */
  readonly members: readonly EtcdMember[] | undefined
  /** Undefined: no API server responds. */
  readonly nodes: ReadonlyMap<string, ObservedNode> | undefined
  /** The content of `full-cluster-state`. */
  readonly savedState: string | undefined
  /** Manifests of the existing addons, by name. */
  readonly addons: ReadonlyMap<string, string>
}

export const NO_MANIFEST: Manifest = { files: [], services: [] }
