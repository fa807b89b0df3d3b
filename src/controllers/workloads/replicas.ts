/** Plans pod creations and deletions of a ReplicaSet or ReplicationController. Pure. */
import type { Pod } from '#apis/core/v1.ts'
import { findCondition } from '#meta/conditions.ts'
import { epochMsOf } from '#meta/time.ts'
import { conditionsOf, isReady, isScheduled } from '#model/pods.ts'

/** The maximum number of pods that one sync creates or deletes, so that one set does not starve others. */
export const BURST = 500

export interface ReplicaPlan {
  readonly missing: number
  readonly surplus: readonly Pod[]
}

/** `related` are pods of the same Deployment, to find nodes with many of them. */
export function planReplicas(
  wanted: number,
  pods: readonly Pod[],
  related: readonly Pod[],
  nowMs: number,
): ReplicaPlan {
  const difference = pods.length - wanted
  if (difference <= 0) return { missing: Math.min(-difference, BURST), surplus: [] }
  return { missing: 0, surplus: cheapestFirst(pods, related, nowMs).slice(0, Math.min(difference, BURST)) }
}

/** A criterion that ranks one pod before another. */
export interface Criterion {
  /** `it was not ready`, as the end of a sentence about the pod that is deleted first. */
  readonly text: string
  /** The field that it reads, if there is one. */
  readonly fieldPath?: string
}

/** In the order of `rankOf`. */
const CRITERIA: readonly Criterion[] = [
  { text: 'it had no node' },
  { text: 'it had not started yet', fieldPath: 'status.phase' },
  { text: 'it was not ready', fieldPath: 'status.conditions[Ready].status' },
  {
    text: 'its deletion cost was lower',
    fieldPath: 'metadata.annotations[controller.kubernetes.io/pod-deletion-cost]',
  },
  { text: 'its node had more pods of the set', fieldPath: 'spec.nodeName' },
  { text: 'it had been ready for a shorter time', fieldPath: 'status.conditions[Ready].lastTransitionTime' },
  { text: 'its containers had restarted more often' },
  { text: 'its init containers had restarted more often' },
  { text: 'it was younger', fieldPath: 'metadata.creationTimestamp' },
  { text: 'its uid comes first, and nothing else distinguished the pods', fieldPath: 'metadata.uid' },
]

/** Why `pod` is deleted before `other`; undefined: it is not. */
export function decidingCriterion(pod: Pod, other: Pod, related: readonly Pod[], nowMs: number): Criterion | undefined {
  const perNode = countPerNode(related)
  const [rank, otherRank] = [rankOf(pod, perNode, nowMs), rankOf(other, perNode, nowMs)]
  if (compareRanks(rank, otherRank) >= 0) return undefined
  return CRITERIA[rank.findIndex((value, at) => value !== otherRank[at])]
}

function countPerNode(pods: readonly Pod[]): Map<string, number> {
  const perNode = new Map<string, number>()
  for (const pod of pods) {
    const node = pod.spec.nodeName ?? ''
    if (isReady(pod)) perNode.set(node, (perNode.get(node) ?? 0) + 1)
  }
  return perNode
}

/** Pods with the lowest deletion cost first. */
function cheapestFirst(pods: readonly Pod[], related: readonly Pod[], nowMs: number): Pod[] {
  const perNode = countPerNode(related)
  const ranked = pods.map((pod) => ({ pod, rank: rankOf(pod, perNode, nowMs) }))
  return ranked.sort((a, b) => compareRanks(a.rank, b.rank)).map(({ pod }) => pod)
}

/** Compared lexicographically; lower ranks are deleted first. */
type Rank = readonly (number | string)[]

const PHASES: Readonly<Record<string, number>> = { Pending: 0, Unknown: 1, Running: 2 }

function rankOf(pod: Pod, perNode: ReadonlyMap<string, number>, nowMs: number): Rank {
  const { status, metadata, spec } = pod
  const ready = isReady(pod)
  const readySince = findCondition(conditionsOf(status.conditions), 'Ready')?.lastTransitionTime
  return [
    isScheduled(pod) ? 1 : 0,
    PHASES[status.phase ?? ''] ?? 0,
    ready ? 1 : 0,
    deletionCost(pod),
    -(perNode.get(spec.nodeName ?? '') ?? 0),
    ready ? ageRank(readySince, nowMs) : 0,
    -restartsOf(status.containerStatuses),
    -restartsOf(status.initContainerStatuses),
    ageRank(metadata.creationTimestamp, nowMs),
    metadata.uid ?? '',
  ]
}

function compareRanks(a: Rank, b: Rank): number {
  for (const [at, left] of a.entries()) {
    const right = b[at] ?? 0
    if (left !== right) return left < right ? -1 : 1
  }
  return 0
}

/** Compares ages logarithmically, so that the youngest pod is not always chosen. */
function ageRank(since: string | undefined, nowMs: number): number {
  if (since === undefined) return -1
  const nanoseconds = (nowMs - epochMsOf(since)) * 1e6
  return nanoseconds <= 0 ? -1 : Math.floor(Math.log2(nanoseconds))
}

const COST = 'controller.kubernetes.io/pod-deletion-cost'
const INT32 = 2 ** 31

function deletionCost({ metadata }: Pod): number {
  const text = metadata.annotations?.[COST] ?? ''
  // As Go parses: no leading zeros or plus sign.
  if (!/^(?:0|-?[1-9]\d*)$/.test(text)) return 0
  const cost = Number(text)
  return cost >= -INT32 && cost < INT32 ? cost : 0
}

function restartsOf(statuses: Pod['status']['containerStatuses']): number {
  return Math.max(0, ...(statuses ?? []).map(({ restartCount }) => restartCount))
}
