/**
 * Whether a node shows signs of life: a lease that is renewed, or a status with a new heartbeat. What counts is when this
 * controller saw the sign, by its own clock: clocks of nodes may be wrong. Pure.
 */
import type { Lease } from '#apis/coordination/v1.ts'
import type { Node, NodeCondition } from '#apis/core/v1.ts'
import { epochMsOf, timeOf } from '#meta/time.ts'

export interface NodeHealth {
  /** When the last sign was seen. */
  readonly seenMs: number
  /** `Ready` as it was then; undefined while the node has said nothing. */
  readonly ready: NodeCondition | undefined
  readonly lease: Lease | undefined
}

/** For how long a node may be silent. */
export interface Patience {
  readonly 'node-monitor-grace-period': number
  readonly 'node-startup-grace-period': number
}

export function readyOf({ status }: Pick<Node, 'status'>): NodeCondition | undefined {
  return status.conditions?.find(({ type }) => type === 'Ready')
}

/** What is known of the node now, from what was known before. */
export function observe(
  known: NodeHealth | undefined,
  node: Node,
  lease: Lease | undefined,
  nowMs: number,
): NodeHealth {
  const health = observeStatus(known, node, nowMs)
  const isRenewed =
    lease !== undefined && (known?.lease === undefined || isBefore(known.lease.spec.renewTime, lease.spec.renewTime))
  return isRenewed ? { ...health, lease, seenMs: nowMs } : health
}

/** A new heartbeat forgets the lease, as upstream's does: one that is there counts once more. */
function observeStatus(known: NodeHealth | undefined, node: Node, nowMs: number): NodeHealth {
  const ready = readyOf(node)
  if (ready === undefined) {
    const seenMs = epochMsOf(node.metadata.creationTimestamp ?? '')
    return { seenMs, lease: undefined, ...known, ready }
  }
  if (known?.ready !== undefined && known.ready.lastHeartbeatTime === ready.lastHeartbeatTime) return known
  return { seenMs: nowMs, ready, lease: undefined }
}

function isBefore(time: string | undefined, other: string | undefined): boolean {
  return time !== undefined && other !== undefined && time < other
}

/** One that has never said anything has time to start. */
export function isSilent({ seenMs }: NodeHealth, node: Node, patience: Patience, nowMs: number): boolean {
  const isNew = readyOf(node) === undefined
  return nowMs > seenMs + patience[isNew ? 'node-startup-grace-period' : 'node-monitor-grace-period']
}

/** What kubelets say of their nodes. `NetworkUnavailable` is not theirs. */
const CONDITIONS = ['Ready', 'MemoryPressure', 'DiskPressure', 'PIDPressure']

/** The conditions of a node that is silent: nobody knows. */
export function unknownConditions({ metadata, status }: Node, nowMs: number): NodeCondition[] {
  const unknown = { status: 'Unknown', lastTransitionTime: timeOf(nowMs) }
  const known = (status.conditions ?? []).map((condition) =>
    !CONDITIONS.includes(condition.type) || condition.status === 'Unknown'
      ? condition
      : {
          ...condition,
          ...unknown,
          reason: 'NodeStatusUnknown',
          message: 'Kubelet stopped posting node status.',
        },
  )
  const missing = CONDITIONS.filter((type) => !known.some((condition) => condition.type === type))
  const never = {
    reason: 'NodeStatusNeverUpdated',
    message: 'Kubelet never posted node status.',
    lastHeartbeatTime: metadata.creationTimestamp ?? null,
  }
  return [...known, ...missing.map((type) => ({ type, ...unknown, ...never }))]
}
