/** What becomes of the containers of a pod whose sandbox has gone, by upstream's rules. Pure. */
import type { PodSpec } from '#apis/core/v1.ts'

import type { ContainerRecord } from './container-runs.ts'

/** Whether there is to be another sandbox: not for who is never started again, nor when all is done. */
export function comesBack(spec: PodSpec, records: readonly ContainerRecord[]): boolean {
  const hasBegun = ({ run, lastRun }: ContainerRecord): boolean => (run ?? lastRun) !== undefined
  if (spec.restartPolicy === 'Never' && records.some(hasBegun)) return false
  const mains = records.filter(({ role }) => role === 'main')
  return mains.some((record) => !isDone(spec, record)) || !mains.some(hasBegun)
}

/** Everything begins anew, init containers as well; who is to run once and has is done. All have ended. */
export function leaveSandbox(spec: PodSpec, records: readonly ContainerRecord[]): void {
  for (const record of records) retire(spec, record)
}

/** Its newest run was in a sandbox that has gone. */
export function retire(spec: PodSpec, record: ContainerRecord): void {
  const { run, role } = record
  if (run === undefined || role === 'ephemeral') return
  record.isStarted = false
  record.isReady = false
  record.waiting = undefined
  if (isDone(spec, record)) {
    run.isPast = true
    return
  }
  record.lastRun = run
  delete record.run
}

function isDone({ restartPolicy }: PodSpec, { spec, role, run }: ContainerRecord): boolean {
  return role === 'main' && (spec.restartPolicy ?? restartPolicy) === 'OnFailure' && run?.end?.exitCode === 0
}
