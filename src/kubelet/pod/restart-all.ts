/**
 * Handles rules with RestartAllContainers: when a container's exit matches the rule, all containers of the pod restart
 * in place. Pure.
 */
import type { ContainerStateTerminated } from '#apis/core/v1.ts'
import { matchingRule } from '#model/pods.ts'

import { type ContainerRecord, isRunning } from './container-runs.ts'
import type { EventSpec } from './events.ts'

const RESTARTING = 'RestartingAllContainers'
const REMOVED = 'The container is removed because RestartAllContainers in place'

/** Upstream's event. */
export const KILLING: EventSpec = { type: 'Normal', reason: 'Killing', message: 'killing' }

const isTrigger = ({ role, spec, run }: ContainerRecord): boolean =>
  role !== 'ephemeral' &&
  run?.end !== undefined &&
  run.isOfOldSandbox !== true &&
  matchingRule(spec, run.end.exitCode)?.action === 'RestartAllContainers'

/** True if the exit of a container matches such a rule. */
export function restartsAll(records: readonly ContainerRecord[]): boolean {
  return records.some(isTrigger)
}

/**
 * Order in which containers are stopped and removed. The triggering one is last, so that a restarted kubelet still
 * finds it.
 */
export function removalOrder(records: readonly ContainerRecord[]): readonly ContainerRecord[] {
  const own = records.filter(({ role }) => role !== 'ephemeral')
  const rankOf = (record: ContainerRecord): number => (isTrigger(record) ? 2 : 0) + (record.role === 'main' ? 0 : 1)
  return own.toSorted((a, b) => rankOf(a) - rankOf(b))
}

/** Resets the records after all containers were removed. Init containers run again, and back-offs are cleared. */
export function resetRecords(records: readonly ContainerRecord[], nowMs: number): void {
  for (const record of records) {
    if (record.role === 'ephemeral' || record.run === undefined || isRunning(record)) continue
    const { id, startedMs } = record.run
    const end = { finishedMs: nowMs, exitCode: 137, reason: RESTARTING, message: REMOVED }
    record.lastRun = { id, startedMs, end }
    delete record.run
    record.restarts = undefined
    record.waiting = { reason: RESTARTING, message: REMOVED }
    record.isStarted = false
    record.isReady = false
  }
}

/** True if the container was removed by a restart of all containers. */
export const wasRemovedForAll = ({ reason }: ContainerStateTerminated): boolean => reason === RESTARTING
