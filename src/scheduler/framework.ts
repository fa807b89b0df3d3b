/**
 * What a scheduler plugin is: a name and the points of a decision where it has something to say; it has only those it
 * needs. A refusal is a value with upstream's words. What a plugin must look up about a pod it looks up once
 * (`preFilter`, `preScore`), and what it found lives in the object it returns, never in the module: a decision can be
 * forked to ask what would be if some pods were gone.
 */
import type { ObjectReference, Pod } from '#apis/core/v1.ts'
import type { Kind } from '#apis/kinds.ts'
import type { ApiClient } from '#client/api-client.ts'
import type { SeriesNote } from '#client/event-series.ts'
import type { Informer } from '#client/informer.ts'
import type { Clock } from '#lib/clock.ts'
import type { Logger } from '#lib/log.ts'
import type { Random } from '#lib/random.ts'
import type { KubeObject } from '#meta/object.ts'

import type { Cluster } from './cluster.ts'
import type { NodeInfo } from './node-info.ts'
import type { Nominations } from './nominations.ts'
import type { PodInfo } from './pod-info.ts'

/**
 * `unschedulable`: others would have to go. `unresolvable`: not even that would help. `pending`: something else must
 * happen first, and will. `error`: the world is broken; it is tried again. `busy`: nobody knows yet, see `BUSY`.
 */
export type RefusalCode = 'unschedulable' | 'unresolvable' | 'pending' | 'error' | 'busy'

export interface Refusal {
  readonly code: RefusalCode
  readonly reasons: readonly string[]
}

/** Undefined: nothing against it. */
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

/** About a node: whoever says so has worked as long as it may, and says more when asked again after a turn of others (`resume`). */
export const BUSY: Refusal = { code: 'busy', reasons: [] }

/** What one plugin found out about one pod, for one decision. */
export interface Case {
  /** The only nodes that come into question, by name. */
  readonly nodes?: ReadonlySet<string>
  filter?(node: NodeInfo): Verdict
  /** As if the other pod were on the node, or were not; only asked of forks. */
  add?(other: PodInfo, node: NodeInfo): void
  remove?(other: PodInfo, node: NodeInfo): void
  /** A copy that may be changed; itself where nothing would. */
  fork?(): Case
  /** Others have had their turn; only of one that may be busy. */
  resume?(): void
  reserve?(node: NodeInfo): Verdict
  /** A promise where something was written: the pod is not thought of before that is undone. */
  unreserve?(node: NodeInfo): void | Promise<void>
  /** Whether `preBind` has something to do; such a pod is nominated meanwhile. */
  willPreBind?(node: NodeInfo): boolean
  preBind?(node: NodeInfo, signal: AbortSignal): Promise<Verdict>
}

export function isRefusal(result: Case | Refusal | undefined): result is Refusal {
  return result !== undefined && 'code' in result
}

export interface PluginRefusal extends Refusal {
  readonly plugin: string
}

/** What each plugin found out, by its name. */
export type Cases = ReadonlyMap<string, Case>

/** What came of looking at the nodes. */
export interface Search {
  readonly pod: PodInfo
  readonly cases: Cases
  readonly feasible: NodeInfo[]
  /** By name of the node; those that were not looked at are not there. */
  readonly refusals: Map<string, PluginRefusal>
  /** The pod was refused before any node was looked at. */
  readonly refused?: PluginRefusal
  /** Why the nodes without a verdict have none: plugins that named the only nodes they would have. */
  readonly narrowedBy: readonly string[]
  /** Those that come into question, which of them was looked at first, and how many that fit are enough. */
  readonly nodes: readonly NodeInfo[]
  readonly start: number
  readonly enough: number
  /** How many nodes were looked at. */
  looked: number
  /** Somebody is busy with the next one. */
  isUnfinished: boolean
}

/** Whether a pod would fit on a node as it might be, with cases forked for it; also beside those that are promised a place there. */
export interface Judge {
  judgeFreely(pod: PodInfo, node: NodeInfo, cases: Cases): PluginRefusal | undefined
}

export interface PostFilterResult {
  /** Why it did not help. Empty: it did. */
  readonly reasons: readonly string[]
  /** Where room is being made. An empty text: a nomination is taken back. */
  readonly nominate?: string
  /** It broke: nobody else is asked, and what others said is not told. */
  readonly isBroken?: boolean
}

/** What might help, before anything is done. */
export interface Foreseen extends PostFilterResult {
  /** Nodes where others could make room; absent: nowhere. */
  readonly candidates?: readonly Candidate[]
}

/** A node where others would have to go. */
export interface Candidate {
  readonly node: string
  /** The most important first. */
  readonly victims: readonly PodInfo[]
  /** How many of them some budget would rather keep. */
  readonly violations: number
}

/** Points for the nodes that are left. */
export interface Scorer {
  score(node: NodeInfo): number
  /** To 0 … 100, in place, with all that were scored. */
  normalize?(scores: number[], nodes: readonly NodeInfo[]): void
}

export interface Plugin {
  /** What may change its mind about a pod that it refused. */
  readonly wakes?: readonly Wake[]
  /** Whether a pod may be thought of at all. */
  preEnqueue?(pod: PodInfo): Verdict
  /** Negative when the first goes before the second. */
  compare?(a: Queued, b: Queued): number
  /** Undefined: the plugin has no part in this decision. */
  preFilter?(pod: PodInfo): Case | Refusal | undefined
  /** Looks at nothing but the pod's spec and the node: remembered for pods alike until the node changes. */
  filter?(pod: PodInfo, node: NodeInfo): Verdict
  /** As `filter`, looks at nothing else. */
  score?(pod: PodInfo, node: NodeInfo): number
  normalize?(scores: number[], nodes: readonly NodeInfo[]): void
  /** Undefined: it does not care where. */
  preScore?(pod: PodInfo, nodes: readonly NodeInfo[]): Scorer | undefined
  /** No node fits: does what might help. */
  postFilter?(search: Search, judge: Judge): PostFilterResult | Promise<PostFilterResult>
  /** What that would be, where it is more than words. */
  foresee?(search: Search, judge: Judge): Foreseen
  /** Wait: until it allows or times out. */
  permit?(pod: PodInfo, node: NodeInfo): Verdict | Wait
  /** Undefined: it does not bind this one. */
  bind?(pod: PodInfo, node: string, signal: AbortSignal): Promise<Verdict> | undefined
  postBind?(pod: PodInfo, node: string): void
}

export interface Wait {
  readonly timeoutMs: number
  readonly reason: string
  /** Asked for at once by whoever waits, and by nobody else; after `over` nobody does any more. */
  decided(over: AbortSignal): Promise<Verdict>
}

/** A pod in the queue, as far as the order there looks at it. */
export interface Queued {
  readonly pod: PodInfo
  readonly queuedMs: number
}

/** What happened to what, in words of the queue; see `events.ts`. */
export type WakeAction =
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

/** Pods that run or are about to, others that want a node, and the very pod that was refused, are told apart. */
export type WakeResource = 'AssignedPod' | 'WaitingPod' | 'TargetPod' | Kind

export interface Wake {
  readonly on: WakeResource
  readonly actions: readonly WakeAction[]
  /** Whether it might help this pod; absent: it might. */
  helps?(pod: Pod, now: KubeObject | undefined, old: KubeObject | undefined): boolean
}

/** What plugins work with. */
export interface Handle {
  readonly cluster: Cluster
  readonly client: ApiClient
  readonly clock: Clock
  readonly random: Random
  readonly log: Logger
  readonly isEnabled: (gate: string) => boolean
  readonly nominations: Nominations
  readonly meter: Meter
  /** An event, in the name of the profile. */
  readonly record: (regarding: ObjectReference, note: SeriesNote) => void
  /** Something that nobody waits for, but for the end of the scheduler. It must not fail. */
  readonly alongside: (doing: Promise<void>) => void
  /** Lets these pods try at once, whatever refused them. */
  readonly activate: (uids: Iterable<string>) => void
  /** Whether a pod that is on its way to its node could still be held up; it goes back to the queue. */
  readonly holdUp: (uid: string, why: string) => boolean
  /** What extenders make of nodes where others could go; throws where one that is needed cannot be asked. Undefined: nobody is. */
  readonly reconsider?: (pod: PodInfo, candidates: readonly Candidate[]) => Promise<readonly Candidate[]>
  /** What is stored, as far as the scheduler has heard; followed from the start on by whoever asks for it. */
  readonly of: <T extends KubeObject>(kind: Kind<T>) => Informer<T>
}

/** What came of thinking about a pod once. */
export interface Attempt {
  readonly result: 'scheduled' | 'unschedulable' | 'error'
  readonly profile: string
  /** With its binding. */
  readonly tookMs: number
}

/** What is counted. */
export interface Meter {
  /** A node was found. */
  decided(tookMs: number): void
  attempted(attempt: Attempt): void
  /** `tookMs`: since it was first thought of. */
  scheduled(attempts: number, tookMs: number): void
  preemptionTried(): void
  preemptionChosen(victims: number): void
  preemptionDone(result: 'success' | 'error', tookMs: number): void
  /** All plugins of a point, for one pod. */
  ran(point: string, status: string, profile: string, tookMs: number): void
  pluginRan(point: string, plugin: string, status: string, tookMs: number): void
  /** A plugin was asked so often at a point. */
  evaluated(plugin: string, point: string, profile: string, times: number): void
  permitWaited(result: string, tookMs: number): void
  /** A pod came into a part of the queue, for this reason. */
  queued(queue: 'active' | 'backoff' | 'unschedulable', event: string): void
  /** It was placed after nobody knew for minutes what would help it. */
  scheduledAfterFlush(): void
  /** A plugin said whether news may help a pod. */
  hinted(plugin: string, event: string, hint: 'Queue' | 'QueueSkip', tookMs: number): void
  /** News were told to everybody. */
  handled(event: string, tookMs: number): void
}

export interface PluginFactory {
  readonly name: string
  /** `args`: of the profile, with defaults filled in. */
  create(handle: Handle, args: object): Plugin
}

export function definePlugin(factory: PluginFactory): PluginFactory {
  return factory
}

export const MAX_SCORE = 100

/** So that the greatest is 100; `reverse`: so that the greatest is 0. As upstream does, in whole numbers. */
export function spreadScores(scores: number[], reverse = false): void {
  let most = 0
  for (const score of scores) if (score > most) most = score
  for (let at = 0; at < scores.length; at++) {
    const part = most === 0 ? 0 : Math.floor((MAX_SCORE * (scores[at] as number)) / most)
    scores[at] = reverse ? MAX_SCORE - part : part
  }
}
