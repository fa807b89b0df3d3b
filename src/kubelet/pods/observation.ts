/** What the runtime tells of containers, as records of their runs. Pure. */
import type { ContainerRecord, Run } from '../container-runs.ts'
import { CONTAINER_STATE } from '../cri/codes.ts'
import type { ContainerStatus } from '../cri/container-messages.ts'
import { ANNOTATIONS } from './container-config.ts'

const msOf = (nanos: number | bigint): number => Number(BigInt(nanos) / 1_000_000n)

/** `lastWords`: what it left in the file for that, or at the end of its log. */
function runOf(status: ContainerStatus, id: string, lastWords: string): Run {
  const startedMs = msOf(status.startedAt)
  if (status.state === CONTAINER_STATE.running) return { id, startedMs }
  const message = [status.message, lastWords].filter((text) => text !== '').join(': ')
  const reason = status.reason === '' ? (status.exitCode === 0 ? 'Completed' : 'Error') : status.reason
  const end = { finishedMs: msOf(status.finishedAt), exitCode: status.exitCode, reason }
  return { id, startedMs, end: message === '' ? end : { ...end, message } }
}

const attemptOf = ({ annotations, metadata }: ContainerStatus): number =>
  Number(annotations.get(ANNOTATIONS.restartCount) ?? metadata?.attempt ?? 0)

/** Told of one container; `id` is with the name of the runtime. One that was made and not started tells nothing. */
export function observe(record: ContainerRecord, status: ContainerStatus, id: string, lastWords = ''): void {
  if (status.state === CONTAINER_STATE.created) return
  const run = runOf(status, id, lastWords)
  const attempt = attemptOf(status)
  if (record.lastRun?.id === id) record.lastRun = run
  else if (record.run === undefined || record.run.id === id || attempt > record.restartCount) {
    if (record.run !== undefined && record.run.id !== id) record.lastRun = record.run
    record.run = run
    record.restartCount = Math.max(attempt, record.restartCount)
    tell(record, status)
  } else if (attempt < record.restartCount && run.end !== undefined) record.lastRun ??= run
}

function tell(record: ContainerRecord, { image, imageRef, user, annotations }: ContainerStatus): void {
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
  record.isDue = false
  if (record.spec.startupProbe === undefined) record.isStarted = true
  if (record.spec.readinessProbe === undefined) record.isReady = record.isStarted
}

/** It ran, and the runtime does not have it any more: nobody saw how it ended. */
export function lose(record: ContainerRecord, message: string, nowMs: number): void {
  const { run } = record
  if (run === undefined || run.end !== undefined) return
  record.run = { ...run, end: { finishedMs: nowMs, exitCode: 137, reason: 'ContainerStatusUnknown', message } }
  record.isStarted = false
  record.isReady = false
}
