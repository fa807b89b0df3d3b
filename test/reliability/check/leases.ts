/** Checks lease guarantees: keys are deleted when their lease expires or is revoked, and not before. */
import type { LeaseId } from '#storage/backend.ts'

import type { History, OperationOf } from '../history.ts'
import { describe } from './describe.ts'
import type { Violation } from './violation.ts'

/** Clocks of two processes and timers are not that exact. */
const CLOCK_TOLERANCE_MS = 50

export interface Moment {
  readonly tick: number
  readonly ms: number
}

export interface LeaseEnds {
  /** Whether the lease can have ended by then: revoked, or not kept alive for its time. */
  mayHaveEnded(lease: LeaseId, by: Moment): boolean
}

interface Life {
  readonly grant: OperationOf<'grant'>
  readonly renewals: OperationOf<'renew'>[]
  readonly revocations: OperationOf<'revoke'>[]
}

export function leaseEnds(history: History): LeaseEnds {
  const lives = livesOf(history)
  return {
    mayHaveEnded(lease, { tick, ms }) {
      const life = lives.get(lease)
      if (life === undefined) return false
      if (life.revocations.some(({ start }) => start < tick)) return true
      // A renewal that was answered moved the end; one that was not may have.
      const begun = [life.grant, ...life.renewals]
        .filter(({ start, result }) => start < tick && result !== undefined)
        .map(({ startMs }) => startMs)
      return ms + CLOCK_TOLERANCE_MS >= Math.max(...begun) + life.grant.argument
    },
  }
}

/**
 * No read sees a key of a lease after the lease was revoked. At the end of the run (`overMs`), no key of a lease may
 * exist `graceMs` after its last renewal.
 */
export function checkLeases(history: History, graceMs: number): Violation[] {
  const lives = livesOf(history)
  const violations: Violation[] = []
  for (const operation of history.operations) {
    if (operation.method !== 'range' || operation.argument.revision !== undefined) continue
    for (const { key, lease } of operation.result?.items ?? []) {
      const life = lives.get(lease)
      if (life === undefined) continue
      const revoked = life.revocations.find(({ end }) => end < operation.start)
      const lastMs = Math.max(
        ...[life.grant, ...life.renewals].map(({ startMs, endMs }) =>
          Math.max(startMs, endMs === Infinity ? 0 : endMs),
        ),
      )
      const isOver = operation.startMs > lastMs + life.grant.argument + graceMs
      if (revoked === undefined && !isOver) continue
      const why = revoked === undefined ? 'its time was over' : 'it had been revoked'
      violations.push({
        rule: 'lease',
        detail: `${key} was still there for lease ${lease} when ${why}: ${describe(operation)}`,
      })
    }
  }
  return violations.slice(0, 3)
}

function livesOf({ operations }: History): Map<LeaseId, Life> {
  const lives = new Map<LeaseId, Life>()
  for (const operation of operations) {
    if (operation.method === 'grant' && operation.result !== undefined) {
      lives.set(operation.result, { grant: operation, renewals: [], revocations: [] })
    }
  }
  for (const operation of operations) {
    if (operation.method === 'renew') lives.get(operation.argument)?.renewals.push(operation)
    if (operation.method === 'revoke' && operation.error?.code !== 'lease-not-found') {
      lives.get(operation.argument)?.revocations.push(operation)
    }
  }
  return lives
}
