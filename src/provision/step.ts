/** A plan as data. Steps say what is done to whom; how is in `actions.ts`. */
import type { DesiredFile, DesiredNode, DesiredUpload, Health } from './desired.ts'
import type { RunAsk, ServiceSpec } from './machine.ts'
import type { DroppedMarks } from './node-difference.ts'
import type { Manifest } from './observed.ts'

export interface PortCheck {
  readonly from: string
  readonly to: string
  readonly address: string
  readonly port: number
}

/** No more pods; those that are there go as the file says; all go, as the machine does. */
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
      /** Commands that end what services leave behind. */
      readonly before: readonly (readonly string[])[]
    }
  | {
      readonly type: 'join-etcd'
      /** A machine that has a member already. */
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

/** So many machines at a time. */
export const MACHINES_AT_ONCE = 50

export interface Step {
  /** Of the machine, or of the node; empty: of the cluster. */
  readonly host: string
  /** For people: begins with a verb. */
  readonly describe: string
  readonly action: Action
}

/** Steps of one machine, in order. */
export type Track = readonly Step[]

/** What may be done at the same time, before the next wave begins. */
export interface Wave {
  readonly name: string
  /** So many tracks at a time. */
  readonly width: number
  readonly tracks: readonly Track[]
  /** So many tracks may fail before the rest is left; they are reported at the end. */
  readonly tolerates: number
}

export interface Plan {
  readonly waves: readonly Wave[]
  /** Why it must not be done; nothing is changed as long as there are any. */
  readonly faults: readonly string[]
  /** What people should know, and is no reason to stop. */
  readonly notes: readonly string[]
}

export function stepsOf({ waves }: Pick<Plan, 'waves'>): Step[] {
  return waves.flatMap(({ tracks }) => tracks.flat())
}
