/** The end of one container: told in an event, asked to by its hook, stopped by the runtime within its grace. */
import type { Pod } from '#apis/core/v1.ts'
import { sleep } from '#lib/clock.ts'

import { type ContainerRecord, fieldPathOf } from '../container-runs.ts'
import type { Note } from '../kubelet-notes.ts'
import type { ProbeTarget } from '../probes/probe-action.ts'
import { runHook } from './hooks.ts'
import type { PodHost } from './pod-host.ts'

/** What a container gets at least, its hook may have taken all the rest. */
export const MIN_GRACE_SECONDS = 2

export interface Ending {
  readonly pod: Pod
  readonly record: ContainerRecord
  readonly target: ProbeTarget
  readonly why: Note
  readonly graceSeconds: number
}

/** Why a container is to end while its pod goes on. */
export interface Doom {
  readonly why: Note
  /** A probe may say how long the container that failed it has to end. Default: the pod's. */
  readonly graceSeconds?: number | undefined
}

const FAILED_PRE_STOP: Note = { type: 'Warning', reason: 'FailedPreStopHook', message: 'PreStopHook failed' }

/** Resolves when the container has ended. */
export async function endContainer(host: PodHost, { pod, record, target, why, graceSeconds }: Ending): Promise<void> {
  const say = (note: Note): void => host.note(pod, note, fieldPathOf(record))
  say(why)
  const { preStop } = record.spec.lifecycle ?? {}
  const beganMs = host.clock.elapsed()
  if (preStop !== undefined && graceSeconds > 0) {
    const late = new AbortController()
    const hook = runHook(host, preStop, target, { timeoutSeconds: graceSeconds }).catch(() => say(FAILED_PRE_STOP))
    const limit = sleep(host.clock, graceSeconds * 1000, late.signal).catch(() => undefined)
    await Promise.race([hook, limit])
    late.abort()
  }
  const tookSeconds = Math.trunc((host.clock.elapsed() - beganMs) / 1000)
  const timeout = Math.max(graceSeconds - tookSeconds, MIN_GRACE_SECONDS)
  await host.runtime.stopContainer({ containerId: target.containerId, timeout })
}
