/** Containers that, by how they end, have all of their pod started again in place, as upstream has it. Pure. */
import type { ContainerStateTerminated } from '#apis/core/v1.ts'
import { matchingRule } from '#model/pods.ts'

import { type ContainerRecord, isRunning } from './container-runs.ts'
import type { Note } from './kubelet-notes.ts'

const RESTARTING = 'RestartingAllContainers'
const REMOVED = 'The container is removed because RestartAllContainers in place'

/** In upstream's words. */
export const KILLING: Note = { type: 'Normal', reason: 'Killing', message: 'killing' }

const isTrigger = ({ role, spec, run }: ContainerRecord): boolean =>
  role !== 'ephemeral' &&
  run?.end !== undefined &&
  run.isPast !== true &&
  matchingRule(spec, run.end.exitCode)?.action === 'RestartAllContainers'

/** Whether one of them has ended so. */
export function restartsAll(records: readonly ContainerRecord[]): boolean {
  return records.some(isTrigger)
}

/** In the order in which they are ended and removed: who began it is last, so that it is known until all is done. */
export function removalOrder(records: readonly ContainerRecord[]): readonly ContainerRecord[] {
  const own = records.filter(({ role }) => role !== 'ephemeral')
  const rankOf = (record: ContainerRecord): number => (isTrigger(record) ? 2 : 0) + (record.role === 'main' ? 0 : 1)
  return own.toSorted((a, b) => rankOf(a) - rankOf(b))
}

/** All of them have ended and are removed: everything begins anew, init containers as well, and nobody waits for a back-off. */
export function startAnew(records: readonly ContainerRecord[], nowMs: number): void {
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

/** Whether it was ended only to be started again. */
export const wasRemovedForAll = ({ reason }: ContainerStateTerminated): boolean => reason === RESTARTING
