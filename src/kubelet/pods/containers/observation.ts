/** Updates container records from the runtime's container status. Pure. */
import type { ContainerStatus } from '#apis/wire/cri.ts'
import { CONTAINER_STATE } from '#cri/codes.ts'

import type { ContainerRecord, Run } from '../../pod/container-runs.ts'
import { ANNOTATIONS } from '../container-config.ts'

const msOf = (nanos: number | bigint): number => Number(BigInt(nanos) / 1_000_000n)

/** `terminationMessage` comes from the termination message file or the end of the log. */
function runOf(status: ContainerStatus, id: string, terminationMessage: string): Run {
  const startedMs = msOf(status.startedAt)
  if (status.state === CONTAINER_STATE.running) return { id, startedMs }
  const message = [status.message, terminationMessage].filter((text) => text !== '').join(': ')
  const reason = status.reason === '' ? (status.exitCode === 0 ? 'Completed' : 'Error') : status.reason
  const end = { finishedMs: msOf(status.finishedAt), exitCode: status.exitCode, reason }
  return { id, startedMs, end: message === '' ? end : { ...end, message } }
}

const attemptOf = ({ annotations, metadata }: ContainerStatus): number =>
  Number(annotations.get(ANNOTATIONS.restartCount) ?? metadata?.attempt ?? 0)

/**
 * Applies the status of one container; `id` includes the name of the runtime. A container that was created but not
 * started is ignored.
 */
export function observe(record: ContainerRecord, status: ContainerStatus, id: string, terminationMessage = ''): void {
  if (status.state === CONTAINER_STATE.created) return
  const run = runOf(status, id, terminationMessage)
  const attempt = attemptOf(status)
  if (record.lastRun?.id === id) record.lastRun = run
  else if (record.run === undefined || record.run.id === id || attempt > record.restartCount) {
    if (record.run !== undefined && record.run.id !== id) record.lastRun = record.run
    record.run = run
    record.restartCount = Math.max(attempt, record.restartCount)
    applyStatus(record, status)
  } else if (attempt < record.restartCount && run.end !== undefined) record.lastRun ??= run
}

function applyStatus(record: ContainerRecord, { image, imageRef, user, annotations }: ContainerStatus): void {
  record.imageId = imageRef
  record.hash = annotations.get(ANNOTATIONS.hash)
  if (image?.image !== undefined && image.image !== '') record.image = image.image
  const linux = user?.linux
  record.user =
    linux === undefined
      ? null
      : {
          linux: {
            uid: Number(linux.uid),
            gid: Number(linux.gid),
            supplementalGroups: linux.supplementalGroups.map(Number),
          },
        }
  const isUp = record.run?.end === undefined
  if (!isUp) {
    record.isStarted = false
    record.isReady = false
    return
  }
  record.waiting = undefined
  record.mustRestart = false
  if (record.spec.startupProbe === undefined) record.isStarted = true
  if (record.spec.readinessProbe === undefined) record.isReady = record.isStarted
}

/** The container ran and is gone from the runtime, so its exit code is unknown. */
export function markLost(record: ContainerRecord, message: string, nowMs: number): void {
  const { run } = record
  if (run === undefined || run.end !== undefined) return
  record.run = { ...run, end: { finishedMs: nowMs, exitCode: 137, reason: 'ContainerStatusUnknown', message } }
  record.isStarted = false
  record.isReady = false
}
