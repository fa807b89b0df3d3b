/** Restores container records from the pod status after a restart of the kubelet. Pure. */
import type { ContainerState, ContainerStatus, PodStatus } from '#apis/core/v1.ts'
import { epochMsOf } from '#meta/time.ts'

import type { ContainerRecord, Run } from './container-runs.ts'

/** Back-offs start again from zero, as in upstream's kubelet after a restart. */
export function adopt(records: readonly ContainerRecord[], status: PodStatus): void {
  const { initContainerStatuses = [], containerStatuses = [], ephemeralContainerStatuses = [] } = status
  const known = new Map(
    [...initContainerStatuses, ...containerStatuses, ...ephemeralContainerStatuses].map((each) => [each.name, each]),
  )
  for (const record of records) {
    const found = known.get(record.spec.name)
    if (found !== undefined) adoptOne(record, found)
  }
}

function adoptOne(record: ContainerRecord, status: ContainerStatus): void {
  const { state, lastState, containerID: id = '', restartCount, started = false, ready, imageID, resources } = status
  const isWaiting = state.waiting !== undefined
  // A container that waits for init containers has not run in this sandbox.
  const isAnew = state.waiting?.reason === 'PodInitializing'
  const run = isAnew ? undefined : runOf(isWaiting ? lastState : state, id)
  const lastRun = isWaiting && !isAnew ? undefined : runOf(lastState, '')
  record.restartCount = restartCount
  record.imageId = imageID
  if (run !== undefined) record.run = run
  if (lastRun !== undefined) record.lastRun = lastRun
  if (resources !== undefined) record.actual = resources
  record.isStarted = started
  record.isReady = ready && record.role !== 'init'
}

function runOf({ running, terminated }: ContainerState, id: string): Run | undefined {
  if (running !== undefined) return { id, startedMs: epochMsOf(running.startedAt ?? EPOCH) }
  if (terminated === undefined) return undefined
  const { containerID = id, startedAt, finishedAt, exitCode, reason = 'Error', message } = terminated
  const end = { finishedMs: epochMsOf(finishedAt ?? EPOCH), exitCode, reason }
  return {
    id: containerID,
    startedMs: epochMsOf(startedAt ?? EPOCH),
    end: message === undefined ? end : { ...end, message },
  }
}

const EPOCH = '1970-01-01T00:00:00Z'
