/**
 * The state of a pod worker, as plain data. `pod-plan.ts` plans from this state, and the actions of the plan record
 * their results in it.
 */
import type { Pod, PodCondition } from '#apis/core/v1.ts'
import type { PodSandboxConfig } from '#apis/wire/cri.ts'
import type { Input } from '#lib/protobuf/message.ts'
import { epochMsOf } from '#meta/time.ts'
import { isTerminalPhase } from '#model/pods.ts'

import { adopt } from '../pod/adoption.ts'
import { type ContainerRecord, isRunning, recordsOf } from '../pod/container-runs.ts'
import type { EventSpec } from '../pod/events.ts'
import { type Allocation, withAllocation } from '../pod/pod-allocation.ts'
import type { PodView } from '../pod/pod-status.ts'
import type { ResizeState } from '../pod/resize-state.ts'
import type { MountedVolume } from '../volumes/volume-manager.ts'

export interface Sandbox {
  readonly id: string
  readonly config: Input<PodSandboxConfig>
  /** The pod IPs; empty with host network. */
  readonly ips: readonly string[]
}

/** Why a container is to be killed while its pod continues. */
export interface KillRequest {
  readonly why: EventSpec
  /** The grace period of the failed probe. Default: the pod's. */
  readonly graceSeconds?: number | undefined
}

/** The steps of a sync, in order; `pod-plan.ts` explains them. */
export type Stage =
  | 'admission'
  | 'decision'
  | 'restart-all'
  | 'course'
  | 'sandbox'
  | 'resize'
  | 'kills'
  | 'containers'
  | 'settled'
  | 'stopping'
  | 'leaving'

export interface PodState {
  /** From the API server. */
  desired: Pod
  /** With the allocated resources of its containers. */
  pod: Pod
  records: readonly ContainerRecord[]
  /** When the kubelet first saw the pod. */
  readonly seenMs: number
  /** The start time in its status. */
  readonly startedMs: number
  stage: Stage
  /** Number of containers started by this sync. */
  startedCount: number
  isAdmitted: boolean
  isRejected: boolean
  /** The API server no longer has the pod. */
  isDeleted: boolean
  isRestartingAll: boolean
  /** All containers have ended for good. */
  hasEnded: boolean
  /** Nothing of the pod is left. */
  isOver: boolean
  /** Why the whole pod has failed. */
  verdict: PodView['verdict']
  /** The DisruptionTarget condition of an evicted, preempted or shut down pod. */
  disruption: PodCondition | undefined
  /** The ready sandbox. */
  sandbox: Sandbox | undefined
  /** The ID of the last sandbox that was left. */
  leftSandbox: string | undefined
  /** The pod IPs are published once a container runs. */
  publishedIps: readonly string[]
  volumes: ReadonlyMap<string, MountedVolume>
  /** Number of consecutive failures to mount volumes. */
  mountFailures: number
  resize: ResizeState
  /** Containers to be stopped and restarted. */
  readonly killRequests: Map<ContainerRecord, KillRequest>
  /** Limit of the grace period, whatever the pod specifies. */
  maxGraceSeconds: number
  /** When the kubelet began to stop the whole pod. */
  endingSinceMs: number | undefined
  /** Last observed state of containers, by ID. */
  readonly observed: Map<string, number>
  /** The relist from which on a started container must be listed, by ID. */
  readonly listedFrom: Map<string, number>
}

/** Restores what a kubelet before this one wrote to the pod's status. */
export function createPodState(desired: Pod, allocation: Allocation, nowMs: number): PodState {
  const pod = withAllocation(desired, allocation)
  const { startTime, phase, podIPs = [] } = pod.status
  const records = recordsOf(pod.spec)
  if (startTime !== undefined) adopt(records, pod.status)
  return {
    desired,
    pod,
    records,
    seenMs: nowMs,
    startedMs: startTime === undefined ? nowMs : epochMsOf(startTime),
    stage: 'admission',
    startedCount: 0,
    isAdmitted: startTime !== undefined,
    isRejected: false,
    isDeleted: false,
    isRestartingAll: false,
    hasEnded: false,
    isOver: false,
    verdict: undefined,
    disruption: undefined,
    sandbox: undefined,
    leftSandbox: undefined,
    // The runtime no longer knows the addresses of an ended pod.
    publishedIps: isTerminalPhase(phase) ? podIPs.map(({ ip }) => ip) : [],
    volumes: new Map(),
    mountFailures: 0,
    resize: { allocation, pending: undefined, inProgress: undefined },
    killRequests: new Map(),
    maxGraceSeconds: Infinity,
    endingSinceMs: undefined,
    observed: new Map(),
    listedFrom: new Map(),
  }
}

/** Applies the allocation to the desired pod. Records of known containers stay. */
export function applyAllocation(state: PodState): void {
  state.pod = withAllocation(state.desired, state.resize.allocation)
  const known = new Map(state.records.map((record) => [record.spec.name, record]))
  state.records = recordsOf(state.pod.spec).map((fresh) => {
    const record = known.get(fresh.spec.name) ?? fresh
    record.spec = fresh.spec
    return record
  })
}

/** Pod IPs become visible once a container runs. */
export function publishIps(state: PodState): void {
  if (state.sandbox !== undefined && state.records.some(isRunning)) state.publishedIps = state.sandbox.ips
}

export const uidOf = ({ pod }: Pick<PodState, 'pod'>): string => pod.metadata.uid ?? ''

/** The pod is deleted. */
export function isLeaving({ isDeleted, pod }: PodState): boolean {
  return isDeleted || pod.metadata.deletionTimestamp !== undefined
}

/** No container may be started any more. */
export function isEnding(state: PodState): boolean {
  return state.verdict !== undefined || isLeaving(state)
}

/** When activeDeadlineSeconds end; Infinity without them. */
export function deadlineMsOf({ pod: { spec }, startedMs }: PodState): number {
  return startedMs + (spec.activeDeadlineSeconds ?? Infinity) * 1000
}

export function isPastDeadline(state: PodState, nowMs: number): boolean {
  return nowMs >= deadlineMsOf(state) && !isEnding(state)
}

/** The grace period of the pod from now on. */
export function graceSecondsOf({ pod: { metadata, spec }, isDeleted, maxGraceSeconds }: PodState): number {
  const seconds = metadata.deletionGracePeriodSeconds ?? spec.terminationGracePeriodSeconds ?? 30
  return Math.min(isDeleted ? 0 : seconds, maxGraceSeconds)
}
