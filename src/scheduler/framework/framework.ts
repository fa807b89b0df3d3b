/**
 * Types of the scheduling framework: a plugin is a name with the extension points it implements. A rejection is a value
 * with upstream's reasons. `preFilter` and `preScore` return their per-pod state, so that preemption can copy it and
 * simulate removed pods.
 */
import type { ObjectReference, Pod } from '#apis/core/v1.ts'
import type { Kind } from '#apis/kinds.ts'
import type { ApiClient } from '#client/api-client.ts'
import type { SeriesNote } from '#client/events/event-series.ts'
import type { Informer } from '#client/informer.ts'
import type { Clock } from '#lib/clock.ts'
import type { Logger } from '#lib/log/log.ts'
import type { Random } from '#lib/random.ts'
import type { KubeObject } from '#meta/object.ts'

import type { Cluster } from '../cluster/cluster.ts'
import type { NodeInfo } from '../cluster/node-info.ts'
import type { Nominations } from '../cluster/nominations.ts'
import type { PodInfo } from '../cluster/pod-info.ts'

/**
 * `unschedulable`: preemption may help. `unresolvable`: preemption cannot help. `pending`: waits for an event that will
 * come. `error`: an internal failure, retried. `busy`: not known yet, see `BUSY`.
 */
export type RefusalCode = 'unschedulable' | 'unresolvable' | 'pending' | 'error' | 'busy'

export interface Refusal {
  readonly code: RefusalCode
  readonly reasons: readonly string[]
}

/** Undefined: accepted. */
export type Verdict = Refusal | undefined

export function unschedulable(...reasons: readonly string[]): Refusal {
  return { code: 'unschedulable', reasons }
}

export function unresolvable(...reasons: readonly string[]): Refusal {
  return { code: 'unresolvable', reasons }
}

export function failed(reason: string): Refusal {
  return { code: 'error', reasons: [reason] }
}

/** The filter has used up its time slice for this node; call it again after `resume`. */
export const BUSY: Refusal = { code: 'busy', reasons: [] }

/** The state of one plugin for one pod in one scheduling cycle. */
export interface PluginState {
  /** The only nodes to search, by name. */
  readonly nodes?: ReadonlySet<string>
  filter?(node: NodeInfo): Verdict
  /** Simulates the other pod on the node, or its removal; only called on forks. */
  add?(other: PodInfo, node: NodeInfo): void
  remove?(other: PodInfo, node: NodeInfo): void
  /** Returns a copy for simulation; the state itself if it is immutable. */
  fork?(): PluginState
  /** Starts a new time slice; only of a plugin that may be busy. */
  resume?(): void
  reserve?(node: NodeInfo): Verdict
  /** Returns a promise if something was written: the pod is not requeued before that is undone. */
  unreserve?(node: NodeInfo): void | Promise<void>
  /** Whether `preBind` has work to do; the pod is nominated meanwhile. */
  willPreBind?(node: NodeInfo): boolean
  preBind?(node: NodeInfo, signal: AbortSignal): Promise<Verdict>
}

export function isRefusal(result: PluginState | Refusal | undefined): result is Refusal {
  return result !== undefined && 'code' in result
}

export interface PluginRefusal extends Refusal {
  readonly plugin: string
}

/** The plugin states by name. */
export type CycleState = ReadonlyMap<string, PluginState>

/** The result of filtering the nodes. */
export interface Search {
  readonly pod: PodInfo
  readonly cycleState: CycleState
  readonly feasible: NodeInfo[]
  /** By node name; nodes that were not visited are absent. */
  readonly refusals: Map<string, PluginRefusal>
  /** The pod was rejected before any node was visited. */
  readonly refused?: PluginRefusal
  /** The PreFilter plugins that restricted the nodes: the reason for nodes without a rejection. */
  readonly narrowedBy: readonly string[]
  /** The candidate nodes, the index of the first one, and the number of feasible nodes to find. */
  readonly nodes: readonly NodeInfo[]
  readonly start: number
  readonly feasibleLimit: number
  /** The number of visited nodes. */
  visited: number
  /** A plugin is busy with the next node. */
  isUnfinished: boolean
}

/** Runs all filters for a simulated node with forked plugin states, with and without nominated pods. */
export interface FilterRunner {
  filterWithNominated(pod: PodInfo, node: NodeInfo, cycleState: CycleState): PluginRefusal | undefined
}

export interface PostFilterResult {
  /** Why it failed. Empty: it succeeded. */
  readonly reasons: readonly string[]
  /** The node to nominate. Empty: clears the nomination. */
  readonly nominate?: string
  /** An internal error: later PostFilter plugins do not run, and earlier reasons are dropped. */
  readonly isBroken?: boolean
}

/** The result of PostFilter without its effects. */
export interface PostFilterPreview extends PostFilterResult {
  /** Nodes where preemption is possible; absent: none. */
  readonly candidates?: readonly Candidate[]
}

/** A node where preemption is possible. */
export interface Candidate {
  readonly node: string
  /** The highest priority first. */
  readonly victims: readonly PodInfo[]
  /** The number of PodDisruptionBudget violations. */
  readonly violations: number
}

/** Scores the feasible nodes. */
export interface Scorer {
  score(node: NodeInfo): number
  /** Scales to 0 … 100 in place, over all scored nodes. */
  normalize?(scores: number[], nodes: readonly NodeInfo[]): void
}

export interface Plugin {
  /** The events that may make a rejected pod schedulable. */
  readonly eventsToRegister?: readonly ClusterEventWithHint[]
  /** Whether the pod may enter the active queue. */
  preEnqueue?(pod: PodInfo): Verdict
  /** Negative if the first pod goes before the second. */
  compare?(a: QueueEntry, b: QueueEntry): number
  /** Undefined: the plugin is skipped in this cycle. */
  preFilter?(pod: PodInfo): PluginState | Refusal | undefined
  /** Depends only on the pod's spec and the node, so results are cached for equivalent pods until the node changes. */
  filter?(pod: PodInfo, node: NodeInfo): Verdict
  /** Like `filter`, depends on nothing else. */
  score?(pod: PodInfo, node: NodeInfo): number
  normalize?(scores: number[], nodes: readonly NodeInfo[]): void
  /** Undefined: the plugin does not score this pod. */
  preScore?(pod: PodInfo, nodes: readonly NodeInfo[]): Scorer | undefined
  /** Runs if no node fits, and may make one fit. */
  postFilter?(search: Search, filterRunner: FilterRunner): PostFilterResult | Promise<PostFilterResult>
  /** The effect that `postFilter` would have, if any. */
  previewPostFilter?(search: Search, filterRunner: FilterRunner): PostFilterPreview
  /** Wait: until the plugin decides or times out. */
  permit?(pod: PodInfo, node: NodeInfo): Verdict | Wait
  /** Undefined: the plugin does not bind this pod. */
  bind?(pod: PodInfo, node: string, signal: AbortSignal): Promise<Verdict> | undefined
  postBind?(pod: PodInfo, node: string): void
}

export interface Wait {
  readonly timeoutMs: number
  readonly reason: string
  /** Called once, when the wait begins; `over` aborts the wait. */
  decided(over: AbortSignal): Promise<Verdict>
}

/** The part of a queued pod that the queue sort compares. */
export interface QueueEntry {
  readonly pod: PodInfo
  readonly queuedMs: number
}

/** The action of a cluster event; see cluster-events.ts. */
export type ActionType =
  | 'add'
  | 'delete'
  | 'update'
  | 'labels'
  | 'taints'
  | 'conditions'
  | 'allocatable'
  | 'annotations'
  | 'features'
  | 'scaled-down'
  | 'tolerations'
  | 'gates'
  | 'claims'

/** Pods with a node, other pods without one, and the rejected pod itself are separate resources. */
export type EventResource = 'AssignedPod' | 'WaitingPod' | 'TargetPod' | Kind

export interface ClusterEventWithHint {
  readonly resource: EventResource
  readonly actions: readonly ActionType[]
  /** Whether the event may help this pod. Absent: yes. */
  queueingHint?(pod: Pod, now: KubeObject | undefined, old: KubeObject | undefined): boolean
}

/** The framework handle of plugins. */
export interface Handle {
  readonly cluster: Cluster
  readonly client: ApiClient
  readonly clock: Clock
  readonly random: Random
  readonly log: Logger
  readonly isEnabled: (gate: string) => boolean
  readonly nominations: Nominations
  readonly meter: Meter
  /** Records an event for the profile. */
  readonly record: (regarding: ObjectReference, note: SeriesNote) => void
  /** Runs work that only the scheduler's shutdown waits for. It must not reject. */
  readonly runInBackground: (doing: Promise<void>) => void
  /** Moves these pods to the active queue, whatever rejected them. */
  readonly activate: (uids: Iterable<string>) => void
  /** Cancels the binding of a pod that is waiting in Permit or PreBind. Returns whether it was; the pod is requeued. */
  readonly cancelBinding: (uid: string, why: string) => boolean
  /**
   * Passes preemption candidates through the extenders; throws if a required one fails. Undefined: no extender supports
   * it.
   */
  readonly processPreemption?: (pod: PodInfo, candidates: readonly Candidate[]) => Promise<readonly Candidate[]>
  /** The informer of a kind; started on first use, before scheduling begins. */
  readonly of: <T extends KubeObject>(kind: Kind<T>) => Informer<T>
}

/** The result of one scheduling attempt. */
export interface Attempt {
  readonly result: 'scheduled' | 'unschedulable' | 'error'
  readonly profile: string
  /** Includes the binding. */
  readonly tookMs: number
}

/** The scheduler's metrics. */
export interface Meter {
  /** A node was selected. */
  decided(tookMs: number): void
  attempted(attempt: Attempt): void
  /** `tookMs` counts from the first attempt. */
  scheduled(attempts: number, tookMs: number): void
  preemptionTried(): void
  preemptionChosen(victims: number): void
  preemptionDone(result: 'success' | 'error', tookMs: number): void
  /** All plugins of an extension point, for one pod. */
  ran(point: string, status: string, profile: string, tookMs: number): void
  pluginRan(point: string, plugin: string, status: string, tookMs: number): void
  /** The number of calls of a plugin at an extension point. */
  evaluated(plugin: string, point: string, profile: string, times: number): void
  permitWaited(result: string, tookMs: number): void
  /** A pod entered a queue because of this event. */
  queued(queue: 'active' | 'backoff' | 'unschedulable', event: string): void
  /** The pod was scheduled after a flush of unschedulable pods by timeout. */
  scheduledAfterFlush(): void
  /** A plugin's queueing hint for an event. */
  hinted(plugin: string, event: string, hint: 'Queue' | 'QueueSkip', tookMs: number): void
  /** An event was handled. */
  handled(event: string, tookMs: number): void
}

export interface PluginFactory {
  readonly name: string
  /** `args` come from the profile, with defaults. */
  create(handle: Handle, args: object): Plugin
}

export function definePlugin(factory: PluginFactory): PluginFactory {
  return factory
}

export const MAX_SCORE = 100

/** Scales so that the maximum is 100, or 0 with `reverse`. Integer arithmetic as upstream. */
export function spreadScores(scores: number[], reverse = false): void {
  let most = 0
  for (const score of scores) if (score > most) most = score
  for (let at = 0; at < scores.length; at++) {
    const part = most === 0 ? 0 : Math.floor((MAX_SCORE * (scores[at] as number)) / most)
    scores[at] = reverse ? MAX_SCORE - part : part
  }
}
