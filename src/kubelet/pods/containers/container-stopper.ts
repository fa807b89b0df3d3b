/** Stops one container: records an event, runs its preStop hook and stops it within its grace period. */
import { sleep } from '#lib/clock.ts'

import { fieldPathOf, idOf, isRunning } from '../../pod/container-runs.ts'
import type { EventSpec } from '../../pod/events.ts'
import type { PodContext } from '../pod-context.ts'
import type { Stop } from '../pod-plan.ts'
import { targetOf } from '../pod-probes.ts'
import { graceSecondsOf } from '../pod-state.ts'
import { observeStopped } from './container-records.ts'
import { runHook } from './hooks.ts'

/** Minimum time to stop, even if the hook used the whole grace period. */
const MIN_GRACE_SECONDS = 2

const FAILED_PRE_STOP: EventSpec = { type: 'Warning', reason: 'FailedPreStopHook', message: 'PreStopHook failed' }

/** Resolves when the container has ended. */
export async function stopContainer(context: PodContext, { record, why, graceSeconds }: Stop): Promise<void> {
  const { state, probes } = context
  state.killRequests.delete(record)
  const id = idOf(record)
  if (id === undefined) return
  probes.endLivenessAndStartup([id])
  await stopGracefully(context, { record, why, graceSeconds: graceSeconds ?? graceSecondsOf(state), id })
  await observeStopped(context, record, id)
}

async function stopGracefully(
  { host, state }: PodContext,
  { record, why, graceSeconds, id: containerId }: Stop & { readonly graceSeconds: number; readonly id: string },
): Promise<void> {
  const recordEvent = (event: EventSpec): void => host.recordEvent(state.pod, event, fieldPathOf(record))
  recordEvent(why)
  const { preStop } = record.spec.lifecycle ?? {}
  const beganMs = host.clock.elapsed()
  if (preStop !== undefined && graceSeconds > 0) {
    const late = new AbortController()
    const target = targetOf(host, state, record, containerId)
    const hook = runHook(host, preStop, target, { timeoutSeconds: graceSeconds }).catch(() =>
      recordEvent(FAILED_PRE_STOP),
    )
    const limit = sleep(host.clock, graceSeconds * 1000, late.signal).catch(() => undefined)
    await Promise.race([hook, limit])
    late.abort()
  }
  const tookSeconds = Math.trunc((host.clock.elapsed() - beganMs) / 1000)
  const timeout = Math.max(graceSeconds - tookSeconds, MIN_GRACE_SECONDS)
  await host.runtime.stopContainer({ containerId, timeout })
}

/** Shortens the grace period of containers that are already stopping. */
export function shortenGrace({ host, state }: PodContext, graceSeconds: number): void {
  if (state.endingSinceMs === undefined) return
  const { runtime, log } = host
  const timeout = Math.max(graceSeconds, MIN_GRACE_SECONDS)
  for (const record of state.records.filter(isRunning)) {
    const containerId = idOf(record)
    if (containerId === undefined) continue
    runtime
      .stopContainer({ containerId, timeout })
      .catch((error: unknown) => log.error(error, 'Failed to stop container', { containerId }))
  }
}
