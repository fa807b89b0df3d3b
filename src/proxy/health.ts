/**
 * What those are told who ask whether the node can be sent traffic: load balancers at `/healthz`, which also looks whether the node is
 * on its way out, and supervisors at `/livez`. Pure.
 */
import type { Node } from '#apis/core/v1.ts'
import type { IpFamily } from '#model/services.ts'

import type { Standing } from './keeper.ts'

export interface Health {
  readonly isHealthy: boolean
  /** As upstream writes it. */
  readonly text: string
}

/** The autoscaler puts it on nodes that it is about to remove. */
const TO_BE_DELETED = 'ToBeDeletedByClusterAutoscaler'
/** Rules may be this much later than what they are for: upstream's two periods of rounds that failed. */
const LATE_ROUNDS = 2

export interface HealthFacts {
  readonly standing: ReadonlyMap<IpFamily, Readonly<Standing>>
  readonly syncMs: number
  readonly nowMs: number
}

export function isKeptUp({ standing, syncMs, nowMs }: HealthFacts): boolean {
  return [...standing.values()].every((one) => isOnTime(one, syncMs, nowMs))
}

export function livez(facts: HealthFacts): Health {
  return told(facts, isKeptUp(facts), {})
}

export function healthz(facts: HealthFacts, node: Node | undefined): Health {
  const nodeEligible = isEligible(node)
  return told(facts, isKeptUp(facts) && nodeEligible, { nodeEligible })
}

function told(facts: HealthFacts, isHealthy: boolean, more: object): Health {
  const { standing, syncMs, nowMs } = facts
  const time = (ms: number): string => new Date(ms).toISOString()
  const updated = Math.max(...Array.from(standing.values(), ({ updatedMs }) => updatedMs))
  const status = Array.from(standing, ([family, one]) => [
    family,
    { lastUpdated: time(one.updatedMs), healthy: isOnTime(one, syncMs, nowMs) },
  ])
  const text = JSON.stringify({
    // Who is well says so as of now, as older releases did.
    lastUpdated: time(isHealthy ? nowMs : updated),
    currentTime: time(nowMs),
    ...more,
    healthy: isKeptUp(facts),
    status: Object.fromEntries(status),
  })
  return { isHealthy, text }
}

function isOnTime({ queuedMs }: Readonly<Standing>, syncMs: number, nowMs: number): boolean {
  return queuedMs === undefined || nowMs - queuedMs < LATE_ROUNDS * syncMs
}

function isEligible(node: Node | undefined): boolean {
  if (node === undefined || node.metadata.deletionTimestamp !== undefined) return false
  return node.spec.taints?.some(({ key }) => key === TO_BE_DELETED) !== true
}
