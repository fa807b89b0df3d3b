/**
 * The types of the steps in a plan of `hyperkube build`. A step describes an action as data; `actions.ts` executes
 * it.
 */
import type { DesiredFile, DesiredNode, DesiredUpload, Health } from '../desired.ts'
import type { RunAsk, ServiceSpec } from '../machine.ts'
import type { DroppedMarks } from './node-difference.ts'
import type { Manifest } from './observed.ts'

export interface PortCheck {
  readonly from: string
  readonly to: string
  readonly address: string
  readonly port: number
}

/**
 * cordon: accepts no new pods. evict: evicts pods with the settings of the file. clear: removes all pods, because the
 * machine leaves.
 */
export type DrainMode = 'cordon' | 'evict' | 'clear'

export type Action =
  | { readonly type: 'ports'; readonly checks: readonly PortCheck[] }
  | { readonly type: 'claim'; readonly paths: readonly string[] }
  | { readonly type: 'upload'; readonly upload: DesiredUpload }
  | { readonly type: 'copy'; readonly from: string; readonly file: Omit<DesiredUpload, 'source'> }
  | { readonly type: 'run'; readonly ask: RunAsk }
  | { readonly type: 'write'; readonly files: readonly DesiredFile[] }
  | { readonly type: 'manifest'; readonly path: string; readonly manifest: Manifest }
  | { readonly type: 'serve'; readonly service: ServiceSpec; readonly health?: Health }
  | { readonly type: 'healthy'; readonly service: string; readonly health: Health }
  | { readonly type: 'retire'; readonly name: string }
  | { readonly type: 'remove'; readonly paths: readonly string[] }
  | {
      readonly type: 'restore'
      readonly home: string
      /** Stopped first, in this order. */
      readonly services: readonly string[]
      /** Commands that clean up after services. */
      readonly before: readonly (readonly string[])[]
    }
  | {
      readonly type: 'join-etcd'
      /** A machine with an existing member. */
      readonly through: string
      readonly health: Health
      readonly name: string
      readonly peerUrl: string
      readonly file: string
    }
  | { readonly type: 'leave-etcd'; readonly through: string; readonly health: Health; readonly peerUrl: string }
  | { readonly type: 'drain'; readonly node: string; readonly mode: DrainMode }
  | { readonly type: 'ready'; readonly node: string; readonly uncordons: boolean }
  | {
      readonly type: 'node'
      readonly node: string
      readonly desired: DesiredNode
      readonly dropped: DroppedMarks
    }
  | { readonly type: 'delete-node'; readonly node: string }
  | { readonly type: 'save-state'; readonly state: string }
  | { readonly type: 'rewrite-secrets' }
  | { readonly type: 'restart-pods' }
  | { readonly type: 'addon'; readonly name: string; readonly manifest: string; readonly before: string }

/** The number of parallel machines. */
export const MACHINES_AT_ONCE = 50

export interface Step {
  /** The machine or node; empty: the cluster. */
  readonly host: string
  /** A description for people, beginning with a verb. */
  readonly describe: string
  readonly action: Action
}

/** The steps of one machine, in order. */
export type Track = readonly Step[]

/** Tracks that may run concurrently, before the next wave begins. */
export interface Wave {
  readonly name: string
  /** The number of concurrent tracks. */
  readonly width: number
  readonly tracks: readonly Track[]
  /** The number of tracks that may fail before the run stops; failures are reported at the end. */
  readonly tolerates: number
}

export interface Plan {
  readonly waves: readonly Wave[]
  /** Reasons against applying the plan; nothing changes while there are any. */
  readonly faults: readonly string[]
  /** Notices that do not stop the run. */
  readonly notes: readonly string[]
}

export function stepsOf({ waves }: Pick<Plan, 'waves'>): Step[] {
  return waves.flatMap(({ tracks }) => tracks.flat())
}
