/**
 * Decides the health of kube-proxy: `/healthz`, for load balancers, also fails if the node is being deleted; `/livez`
 * does not. Pure.
 */
import type { Node } from '#apis/core/v1.ts'
import type { IpFamily } from '#model/services.ts'

import type { SyncState } from './rule-syncer.ts'

export interface Health {
  readonly isHealthy: boolean
  /** As upstream writes it. */
  readonly text: string
}

/** The autoscaler's taint on nodes that it will remove. */
const TO_BE_DELETED = 'ToBeDeletedByClusterAutoscaler'
/** Rules may lag by two sync periods, as upstream. */
const LATE_ROUNDS = 2

export interface HealthFacts {
  readonly standing: ReadonlyMap<IpFamily, Readonly<SyncState>>
  readonly syncMs: number
  readonly nowMs: number
}

export function isKeptUp({ standing, syncMs, nowMs }: HealthFacts): boolean {
  return [...standing.values()].every((one) => isOnTime(one, syncMs, nowMs))
}

export function livez(facts: HealthFacts): Health {
  return healthOf(facts, isKeptUp(facts), {})
}

export function healthz(facts: HealthFacts, node: Node | undefined): Health {
  const nodeEligible = isEligible(node)
  return healthOf(facts, isKeptUp(facts) && nodeEligible, { nodeEligible })
}

function healthOf(facts: HealthFacts, isHealthy: boolean, more: object): Health {
  const { standing, syncMs, nowMs } = facts
  const time = (ms: number): string => new Date(ms).toISOString()
  const updated = Math.max(...Array.from(standing.values(), ({ updatedMs }) => updatedMs))
  const status = Array.from(standing, ([family, one]) => [
    family,
    { lastUpdated: time(one.updatedMs), healthy: isOnTime(one, syncMs, nowMs) },
  ])
  const text = JSON.stringify({
    // A healthy proxy reports the current time, as older releases.
    lastUpdated: time(isHealthy ? nowMs : updated),
    currentTime: time(nowMs),
    ...more,
    healthy: isKeptUp(facts),
    status: Object.fromEntries(status),
  })
  return { isHealthy, text }
}

function isOnTime({ queuedMs }: Readonly<SyncState>, syncMs: number, nowMs: number): boolean {
  return queuedMs === undefined || nowMs - queuedMs < LATE_ROUNDS * syncMs
}

function isEligible(node: Node | undefined): boolean {
  if (node === undefined || node.metadata.deletionTimestamp !== undefined) return false
  return node.spec.taints?.some(({ key }) => key === TO_BE_DELETED) !== true
}
