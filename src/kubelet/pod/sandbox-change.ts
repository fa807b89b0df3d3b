/** Resets the containers of a pod whose sandbox is gone, by upstream's rules. Pure. */
import type { PodSpec } from '#apis/core/v1.ts'

import type { ContainerRecord } from './container-runs.ts'

/** True if the pod gets a new sandbox: not with policy Never after a start, nor when all main containers are done. */
export function needsNewSandbox(spec: PodSpec, records: readonly ContainerRecord[]): boolean {
  const hasBegun = ({ run, lastRun }: ContainerRecord): boolean => (run ?? lastRun) !== undefined
  if (spec.restartPolicy === 'Never' && records.some(hasBegun)) return false
  const mains = records.filter(({ role }) => role === 'main')
  return mains.some((record) => !isDone(spec, record)) || !mains.some(hasBegun)
}

/**
 * All containers start again, including init containers. A main container that succeeded under OnFailure stays done.
 * All must have ended.
 */
export function resetForNewSandbox(spec: PodSpec, records: readonly ContainerRecord[]): void {
  for (const record of records) moveToOldSandbox(spec, record)
}

/** Moves the newest run to the previous sandbox. */
export function moveToOldSandbox(spec: PodSpec, record: ContainerRecord): void {
  const { run, role } = record
  if (run === undefined || role === 'ephemeral') return
  record.isStarted = false
  record.isReady = false
  record.waiting = undefined
  if (isDone(spec, record)) {
    run.isOfOldSandbox = true
    return
  }
  record.lastRun = run
  delete record.run
}

function isDone({ restartPolicy }: PodSpec, { spec, role, run }: ContainerRecord): boolean {
  return role === 'main' && (spec.restartPolicy ?? restartPolicy) === 'OnFailure' && run?.end?.exitCode === 0
}
