/**
 * Decides the health of nodes from lease renewals and status heartbeats. Times are those of this controller's clock,
 * because clocks of nodes may be wrong. Pure.
 */
import type { Lease } from '#apis/coordination/v1.ts'
import type { Node, NodeCondition } from '#apis/core/v1.ts'
import { epochMsOf, timeOf } from '#meta/time.ts'

export interface NodeHealth {
  /** The time of the last observed heartbeat. */
  readonly seenMs: number
  /** The `Ready` condition then; undefined if the node has not reported. */
  readonly ready: NodeCondition | undefined
  readonly lease: Lease | undefined
}

/** The grace periods of a node. */
export interface Patience {
  readonly 'node-monitor-grace-period': number
  readonly 'node-startup-grace-period': number
}

export function readyOf({ status }: Pick<Node, 'status'>): NodeCondition | undefined {
  return status.conditions?.find(({ type }) => type === 'Ready')
}

/** The next health from the previous one. */
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

/** A new status forgets the lease, as upstream: an existing lease then counts as a new heartbeat. */
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

/** A node that has never reported gets the startup grace period. */
export function isSilent({ seenMs }: NodeHealth, node: Node, patience: Patience, nowMs: number): boolean {
  const isNew = readyOf(node) === undefined
  return nowMs > seenMs + patience[isNew ? 'node-startup-grace-period' : 'node-monitor-grace-period']
}

/** Conditions that kubelets set. `NetworkUnavailable` is set by others. */
const CONDITIONS = ['Ready', 'MemoryPressure', 'DiskPressure', 'PIDPressure']

/** The conditions of an unresponsive node: Unknown. */
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
